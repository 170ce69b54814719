//! What compiling patterns costs. Only the tests use this: they check that every step of compiling is counted.

use super::compile::{PatternList, source};
use super::work::{MAX_HOLD_WORK, MAX_WORK, Work};
use crate::automaton::{Automaton, Config, Words};
use crate::graph::Distinct;

/// The patterns and the stop strings of a set with a single region. The caller must not give a pattern twice.
#[doc(hidden)]
pub struct PatternCosts<'a> {
    pub patterns: &'a [&'a str],
    pub visible_patterns: &'a [&'a str],
    pub strings: &'a [&'a str],
    pub max_held: usize,
}

impl PatternCosts<'_> {
    /// Makes the automaton of the patterns with a budget of `limit` units of work. If `limit` is `None`, uses the
    /// budget that sets have. Returns the units that this spends, or `None` if the budget does not suffice or the
    /// patterns are refused.
    pub fn automaton(&self, limit: Option<usize>) -> Option<usize> {
        let limit = limit.unwrap_or(MAX_WORK);
        let mut work = Work::new(limit);
        source(&self.list(), &mut work).ok()?;
        Some(limit - work.left())
    }

    /// Makes the automaton with which streams hold the least text, with a budget of `limit` units of work. If `limit`
    /// is `None`, uses the budget that sets have. Returns the units that this spends, or `None` if the budget does not
    /// suffice or the patterns are refused.
    pub fn least_hold(&self, limit: Option<usize>) -> Option<usize> {
        let list = self.list();
        let source = source(&list, &mut Work::new(MAX_WORK)).ok()?;
        let words = Words::new(self.strings, &[], [].into_iter());
        let config = Config { holds_markers: true, prunes: true, dense_limit: 1 << 16 };
        let (strings, _) = Automaton::new(words, &[], config);
        let limit = limit.unwrap_or(MAX_HOLD_WORK);
        let mut work = Work::new(limit);
        source.least_hold(&strings, &list, &mut work).ok()?;
        Some(limit - work.left())
    }

    fn list(&self) -> PatternList {
        let indices = |texts: &[&str]| (0..texts.len() as u32).collect();
        PatternList::new(
            Distinct { indices: indices(self.patterns), texts: self.patterns.to_vec() },
            Distinct { indices: indices(self.visible_patterns), texts: self.visible_patterns.to_vec() },
            Some(self.max_held),
        )
    }
}
