//! The reference for loops, with which the library is compared: the rule of a loop, checked anew at every character.

/// What counts as a loop.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub count: usize,
    pub max_period: usize,
    pub min_length: usize,
}

/// Where the loop ends, how many characters it has, and how many its period has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub end: usize,
    pub length: usize,
    pub period: usize,
}

/// The first loop of `text` that completes at a character with the flag `true`: stops are armed there and may fire.
pub fn first_loop(rule: Rule, text: &[(char, bool)]) -> Option<Found> {
    (1..=text.len()).filter(|end| text[end - 1].1).find_map(|end| loop_at_end(rule, &text[..end]))
}

fn loop_at_end(rule: Rule, text: &[(char, bool)]) -> Option<Found> {
    let end = text.len();
    (1..=rule.max_period.min(end)).find_map(|period| {
        let length = rule.min_length.max(rule.count * period);
        let repeats = |at: usize| text[at].0 == text[at - period].0;
        // The newest characters first: they usually differ, which ends the check early.
        let is_loop = length <= end && (end - length + period..end).rev().all(repeats);
        is_loop.then_some(Found { end, length, period })
    })
}
