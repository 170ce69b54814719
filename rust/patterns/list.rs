use std::collections::HashSet;

use crate::error::{ErrorKind, StopSetError};
use crate::room::{self, NoRoom};

/// What has a meaning in a pattern.
const META: [char; 14] = ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// The patterns of a set, and how many code points may be held for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternList {
    pub(crate) patterns: Vec<String>,
    /// Where each stands in the list that the user gave.
    indices: Vec<usize>,
    pub(crate) max_held: Option<usize>,
}

impl PatternList {
    pub(crate) fn extend<I>(&mut self, patterns: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.patterns.extend(patterns.into_iter().map(|pattern| pattern.as_ref().to_owned()));
    }

    /// The same, each pattern once.
    pub(crate) fn distinct(&self) -> Result<PatternList, NoRoom> {
        // For the copies, and what tells them apart.
        room::ask(self.patterns.iter().map(|pattern| pattern.len() + 128).sum())?;
        let mut seen = HashSet::new();
        let distinct = self.patterns.iter().enumerate().filter(|(_, pattern)| seen.insert(*pattern));
        let (indices, patterns) = distinct.map(|(index, pattern)| (index, pattern.clone())).unzip();
        Ok(PatternList { patterns, indices, max_held: self.max_held })
    }

    /// The patterns that are plain text, by their index. They are read like strings: nothing of them needs to be parsed.
    pub(super) fn literals(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| self.is_literal(pattern))
    }

    /// The other patterns.
    pub(super) fn expressions(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| !self.is_literal(pattern))
    }

    fn is_literal(&self, pattern: usize) -> bool {
        let text = &self.patterns[pattern];
        let plain = !text.is_empty() && !text.contains(META);
        // All but the last character of a match is held.
        plain && self.max_held.is_none_or(|most| text.chars().nth(most.saturating_add(1)).is_none())
    }

    /// Where a pattern stands in the list that the user gave.
    pub(crate) fn index(&self, pattern: usize) -> usize {
        self.indices[pattern]
    }

    /// The error that says what is wrong with a pattern, and where it stands in the list that the user gave.
    #[cold]
    pub(super) fn refused(&self, pattern: usize, problem: String) -> StopSetError {
        let (index, pattern) = (self.indices[pattern], self.patterns[pattern].clone());
        ErrorKind::Pattern { index, pattern, problem }.into()
    }
}
