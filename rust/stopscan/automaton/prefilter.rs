//! Finds in long text where a word may begin, with the vector search of the aho-corasick crate.

use aho_corasick::packed::{Config, MatchKind, Searcher};

use super::{Automaton, ROOT, State, Words};

/// Only this many bytes of a word are compared, so that a near miss costs no more than that: the full comparison
/// is the automaton's, which is linear.
const PREFIX: usize = 8;

/// A jump must be worth its start-up: this many bytes, on average.
const WORTH: usize = 48;

/// Jumps that may be short before they are judged.
const TRIAL: usize = 16;

#[derive(Debug)]
pub(crate) struct Prefilter {
    searcher: Searcher,
    /// The longest prefix that is compared, in bytes.
    longest: usize,
}

impl Prefilter {
    /// A prefilter for `words`, or `None` when they are too many for the vector search.
    pub(crate) fn new(words: &Words) -> Option<Prefilter> {
        let mut prefixes: Vec<&[u8]> = words.with_literals().map(prefix).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let longest = prefixes.iter().map(|prefix| prefix.len()).max()?;
        let searcher = Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(prefixes).build()?;
        Some(Prefilter { searcher, longest })
    }

    pub(crate) fn jumps(&self) -> Jumps<'_> {
        Jumps { prefilter: self, bytes: 0, count: 0 }
    }
}

fn prefix(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(PREFIX)]
}

/// Where to read on.
pub(crate) enum Jump {
    /// A word may begin here.
    Candidate(usize),
    /// From here, read all the rest: it is too short to search, or searching does not pay.
    Rest(usize),
}

/// The jumps made in one text, and whether they pay.
pub(crate) struct Jumps<'a> {
    prefilter: &'a Prefilter,
    bytes: usize,
    count: usize,
}

impl Jumps<'_> {
    /// Jumps from `at` to where a word may begin. The last bytes, where a compared prefix may be incomplete, are
    /// the rest.
    pub(crate) fn next(&mut self, text: &[u8], at: usize) -> Jump {
        if self.count >= TRIAL && self.bytes < self.count * WORTH {
            return Jump::Rest(at);
        }
        // Among the last bytes a word may begin further left than any whole prefix that stands there.
        let rest = at.max((text.len() + 1).saturating_sub(self.prefilter.longest));
        let found = match self.prefilter.searcher.find_in(text, (at..text.len()).into()) {
            Some(found) if found.start() < rest => found,
            _ => return Jump::Rest(rest),
        };
        self.bytes += found.start() - at;
        self.count += 1;
        Jump::Candidate(found.start())
    }
}

impl Automaton {
    /// As `walk`, but jumps over the text in which no word begins.
    ///
    /// The prefilter finds where a word's first bytes stand. Between the root and that place no state but the
    /// root matters, because an occurrence that completes first cannot begin before the leftmost candidate.
    pub(super) fn leap(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        let prefilter = self.prefilter.get_or_init(|| Prefilter::new(&self.words));
        let Some(prefilter) = prefilter else {
            return self.walk(state, text);
        };
        let mut jumps = prefilter.jumps();
        let mut at = 0;
        while at < text.len() {
            if *state == ROOT {
                match jumps.next(text, at) {
                    Jump::Candidate(place) => at = place,
                    Jump::Rest(place) => return Some(place + self.walk(state, &text[place..])?),
                }
            }
            let byte = at;
            at += 1;
            if self.walk(state, &text[byte..at]).is_some() {
                return Some(at);
            }
        }
        None
    }
}
