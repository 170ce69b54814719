//! A simple search for loops (text that repeats itself), with which the library's search is compared. At every
//! character, it checks from scratch whether the text ends with a loop.

/// The rule that says what a loop is.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub count: usize,
    pub max_period: usize,
    pub min_length: usize,
}

/// A loop: its end, its length, and the length of the block that it repeats (its period), all in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub end: usize,
    pub length: usize,
    pub period: usize,
}

/// Returns the first loop in `text` that completes at an armed character. Each character comes with a flag: whether it
/// is armed, which means that a loop may fire there.
pub fn first_loop(rule: Rule, text: &[(char, bool)]) -> Option<Found> {
    (1..=text.len()).filter(|end| text[end - 1].1).find_map(|end| loop_at_end(rule, &text[..end]))
}

fn loop_at_end(rule: Rule, text: &[(char, bool)]) -> Option<Found> {
    let end = text.len();
    (1..=rule.max_period.min(end)).find_map(|period| {
        let length = rule.min_length.max(rule.count * period);
        let repeats = |at: usize| text[at].0 == text[at - period].0;
        // Compares each character with the one that is a period earlier, the newest first. In most texts the newest
        // ones differ, so the comparison ends early.
        let is_loop = length <= end && (end - length + period..end).rev().all(repeats);
        is_loop.then_some(Found { end, length, period })
    })
}
