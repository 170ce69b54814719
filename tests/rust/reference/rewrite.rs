//! Rewrites a text by brute force: at each place, every key is tried.

/// Returns the text with its keys replaced, and the end of the text that must be held. The held text is the beginning
/// of a key that later text may complete. If the text has `ended`, nothing is held.
pub fn rewritten(pairs: &[(String, String)], text: &str, ended: bool) -> (String, String) {
    let (mut out, mut at) = (String::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        if !ended && pairs.iter().any(|(key, _)| key.len() > rest.len() && key.starts_with(rest)) {
            return (out, rest.into());
        }
        match pairs.iter().filter(|(key, _)| rest.starts_with(key.as_str())).max_by_key(|(key, _)| key.len()) {
            Some((key, value)) => {
                out += value;
                at += key.len();
            }
            None => {
                let first = rest.chars().next().unwrap();
                out.push(first);
                at += first.len_utf8();
            }
        }
    }
    (out, String::new())
}
