//! Sets like those that users send to a server: patterns for keys, addresses, roles, markdown, tags, log lines, numbers
//! and dates, together with strings, in one region and in several.

use arbitrary::{Arbitrary, Result, Unstructured};
use stopscan::{SegmentSet, StopSet, StopSetError};

const WORDS: [&str; 24] = [
    "sk",
    "api",
    "key",
    "ghp",
    "token",
    "secret",
    "user",
    "human",
    "assistant",
    "system",
    "tool",
    "call",
    "think",
    "answer",
    "final",
    "stop",
    "end",
    "note",
    "step",
    "page",
    "ERROR",
    "Bearer",
    "пользователь",
    "用户",
];
const CLASSES: [&str; 18] = [
    "[a-z0-9]",
    "[A-Za-z0-9]",
    "[A-Za-z0-9_-]",
    "[0-9a-f]",
    "[a-f0-9]",
    "[A-Z2-7]",
    r"\w",
    r"\d",
    "[A-Z]",
    "[a-z]",
    "[^:]",
    r#"[^\s"']"#,
    r"[^\n]",
    "[A-Za-z0-9+/]",
    "[а-я]",
    "[一-龥]",
    r"[\w.-]",
    "[ -~]",
];
const SEPARATORS: [&str; 13] =
    ["", "-", "_", "[-_]", "[-_.]?", ":", r"\s?", " ?", r"\s{0,4}", "=", r"[:=]\s{0,3}", "/", ": "];
const EDGES: [&str; 6] = ["", "", r"\b", r"\n", "(?m:^)", r"\s"];
const ENDS: [&str; 7] = ["", r"\b", "!", r"\n", r"(?m:$)", ":", "[.!?]"];
const STRINGS: [&str; 14] = [
    "END",
    "User:",
    "abc",
    "\n\nHuman:",
    "<|im_end|>",
    "</s>",
    "Observation:",
    "```",
    "\n\n",
    "###",
    "STOP",
    ".",
    "a",
    "\nQ:",
];

/// A set that a user could send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSet {
    pub patterns: Vec<String>,
    pub strings: Vec<&'static str>,
    /// In how many regions the stops can fire.
    pub regions: usize,
    pub max_held: Option<usize>,
}

impl UserSet {
    /// A set of one pattern and `strings`, in one region.
    #[allow(dead_code)] // some programs that include this file do not use this function
    pub fn one(pattern: &str, strings: &[&'static str]) -> UserSet {
        UserSet { patterns: vec![pattern.into()], strings: strings.to_vec(), regions: 1, max_held: None }
    }

    pub fn build(&self) -> Result<(), StopSetError> {
        if self.regions == 1 {
            let set = StopSet::builder().stop(&self.strings).patterns(&self.patterns);
            return match self.max_held {
                Some(most) => set.max_held(most).build().map(drop),
                None => set.build().map(drop),
            };
        }
        let mut set = SegmentSet::builder().stop(&self.strings).patterns(&self.patterns);
        for region in 0..self.regions {
            set = set
                .region(format!("r{region}"), [(format!("<r{region}>"), format!("r{}", (region + 1) % self.regions))]);
        }
        match self.max_held {
            Some(most) => set.max_held(most).build().map(drop),
            None => set.build().map(drop),
        }
    }
}

impl<'a> Arbitrary<'a> for UserSet {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<UserSet> {
        let mut patterns = Vec::new();
        for _ in 0..*u.choose(&[1, 1, 1, 1, 2, 3, 8])? {
            patterns.push(pattern(u)?);
        }
        let mut strings = Vec::new();
        for _ in 0..*u.choose(&[0, 1, 2, 4])? {
            let string = *u.choose(&STRINGS)?;
            if !strings.contains(&string) {
                strings.push(string);
            }
        }
        let max_held = if u.ratio(1, 4)? { Some(*u.choose(&[20, 200, 4_000])?) } else { None };
        Ok(UserSet { patterns, strings, regions: *u.choose(&[1, 1, 1, 2, 4])?, max_held })
    }
}

fn pattern(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = shape(u)?;
    if u.ratio(1, 6)? {
        text = format!("(?:{text}|{})", shape(u)?);
    }
    if u.ratio(1, 10)? {
        text += &counted(u, 40)?;
    }
    Ok(if u.ratio(2, 5)? { format!("(?i){text}") } else { text })
}

fn shape(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=11)? {
        0 | 1 => {
            let (edge, word, separator) = (one(u, &EDGES)?, words(u, 1, 8)?, one(u, &SEPARATORS)?);
            format!("{edge}{word}{separator}{}{}", counted(u, 300)?, one(u, &ENDS)?)
        }
        2 => format!("{}{}", counted(u, 300)?, one(u, &ENDS)?),
        3 => format!(r#"{}["']?\s{{0,3}}[:=]\s{{0,3}}["']?{}["']?"#, words(u, 2, 8)?, counted(u, 300)?),
        4 => url(u)?,
        5 => email(u)?,
        6 => {
            let begin = one(u, &[r"\n", r"\n\n", "(?m:^)", r"\n#{1,6} ?"])?;
            let end = one(u, &[r" ?\d*:", ":", r"\s{0,4}(?: \d{1,3})?:", r"\s?\(\d{1,2}\):"])?;
            format!("{begin}{}{end}", words(u, 2, 6)?)
        }
        7 => markdown(u)?,
        8 => {
            let attributes = one(u, &["", r#"(?: [a-z]{1,20}="[^"]{0,40}"){0,4}"#, r"\s{0,4}", "[^>]{0,80}"])?;
            format!("</?{}{attributes}/?>", words(u, 1, 5)?)
        }
        9 => one(u, &NUMBERS)?.into(),
        10 => secret(u)?,
        _ => log_line(u)?,
    })
}

const NUMBERS: [&str; 6] = [
    r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z?)?\b",
    r"(?:\d{1,3}\.){3}\d{1,3}",
    r"\b(?:\d[ -]?){13,19}\b",
    "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    r"\+?\d{1,3}[ -]?(?:\(\d{1,4}\)[ -]?)?\d{3,4}(?:[ -]?\d{2,4}){1,3}",
    r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}",
];

fn one<'t>(u: &mut Unstructured<'_>, texts: &[&'t str]) -> Result<&'t str> {
    u.choose(texts).copied()
}

/// Draws an alternation of words.
fn words(u: &mut Unstructured<'_>, least: usize, most: usize) -> Result<String> {
    let mut chosen = Vec::new();
    for _ in 0..u.int_in_range(least..=most)? {
        let word = one(u, &WORDS)?;
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        chosen.push(if u.ratio(1, 5)? { first.to_uppercase() + rest } else { word.into() });
    }
    Ok(if chosen.len() == 1 { chosen.remove(0) } else { format!("({}{})", one(u, &["", "?:"])?, chosen.join("|")) })
}

/// Draws a class of characters with a count, such as `[a-z]{2,16}`.
fn counted(u: &mut Unstructured<'_>, most: usize) -> Result<String> {
    let class = one(u, &CLASSES)?;
    let low = *u.choose(&[0, 1, 2, 4, 8, 16, 20, 30, 32, 40])?;
    let high = (low + *u.choose(&[0, 0, 1, 4, 8, 16, 32, 64, 200, 1000])?).clamp(1, most);
    let low = low.min(high);
    Ok(if low == high { format!("{class}{{{low}}}") } else { format!("{class}{{{low},{high}}}") })
}

fn url(u: &mut Unstructured<'_>) -> Result<String> {
    let (label, labels, top) = (u.choose(&[20, 63])?, u.choose(&[1, 3, 5])?, u.choose(&[3, 10, 24])?);
    let port = one(u, &["", r"(?::\d{1,5})?"])?;
    let path = one(u, &["", r"(?:/[\w.%&=-]{0,40}){0,4}", r"/\S{1,200}", r"[^\s]{1,200}\s"])?;
    Ok(format!(r"https?://(?:[\w-]{{1,{label}}}\.){{1,{labels}}}[a-z]{{2,{top}}}{port}{path}"))
}

fn email(u: &mut Unstructured<'_>) -> Result<String> {
    let (name, label, top) = (u.choose(&[20, 64])?, u.choose(&[20, 63])?, u.choose(&[6, 24])?);
    let labels = u.choose(&[1, 3, 4])?;
    Ok(format!(r"\b[\w.+-]{{1,{name}}}@[\w-]{{1,{label}}}(?:\.[\w-]{{2,{top}}}){{1,{labels}}}\b"))
}

fn markdown(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=6)? {
        0 => format!(r"\n#{{1,6}} {}\n", counted(u, 80)?),
        1 => r"```[a-z]{0,20}\n".into(),
        2 => r"\n(?:\|[ \w:-]{1,40}){1,8}\|\n".into(),
        3 => format!(r"\n\d{{1,3}}[.)] {}", counted(u, 40)?),
        4 => r"\n[-*_]{3,40}\n".into(),
        5 => r"\[[^\]]{1,80}\]\([^)]{1,200}\)".into(),
        _ => r"\*\*[^*\n]{1,60}\*\*:".into(),
    })
}

fn secret(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=5)? {
        0 => {
            let most = u.choose(&[40, 200])?;
            format!(r"eyJ[\w-]{{10,{most}}}\.[\w-]{{10,{most}}}\.[\w-]{{10,{most}}}")
        }
        1 => format!("-----BEGIN [A-Z ]{{3,{}}}-----", u.choose(&[20, 40])?),
        2 => "AKIA[A-Z0-9]{16}".into(),
        3 => format!("gh[pousr]_[A-Za-z0-9]{{36,{}}}", u.choose(&[40, 255])?),
        4 => r"xox[baprs]-(?:\d{8,13}-){1,3}[a-zA-Z0-9]{10,48}".into(),
        _ => r"\b(sk|api|key)[-_][a-z0-9]{16,48}\b".into(),
    })
}

fn log_line(u: &mut Unstructured<'_>) -> Result<String> {
    let time =
        one(u, &[r"\d{2}:\d{2}:\d{2}", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{3,6})?", r"\[\d{1,10}\.\d{6}\]"])?;
    let level = one(u, &["(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL)", "(?i:error|warning)", r"\[[a-z]{1,12}\]"])?;
    let rest = one(u, &[":", r" [\w.]{1,60}:", r" \([^)\n]{1,80}\)", r" [^\n]{0,120}\n"])?;
    Ok(format!("{}{time} {level}{rest}", one(u, &[r"\n", "(?m:^)", ""])?))
}
