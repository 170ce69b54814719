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
}

fn prefix(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(PREFIX)]
}

impl Automaton {
    /// As `walk`, but jumps over the text in which no word begins, as long as that pays.
    ///
    /// The prefilter finds where a word's first bytes stand. Between the root and that place no state but the
    /// root matters, because an occurrence that completes first cannot begin before the leftmost candidate.
    pub(super) fn leap(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        let Some(prefilter) = self.prefilter.get_or_init(|| Prefilter::new(&self.words)) else {
            return self.walk(state, text);
        };
        // Among the last bytes a word may begin further left than any whole prefix that stands there.
        let last = (text.len() + 1).saturating_sub(prefilter.longest);
        let (mut at, mut jumps, mut jumped) = (0, 0, 0);
        while at < text.len() {
            if *state == ROOT {
                let pays = jumps < TRIAL || jumped >= jumps * WORTH;
                let found = if pays { prefilter.searcher.find_in(text, (at..text.len()).into()) } else { None };
                let Some(start) = found.map(|found| found.start()).filter(|&start| start < last) else {
                    let rest = if pays { at.max(last) } else { at };
                    return Some(rest + self.walk(state, &text[rest..])?);
                };
                jumped += start - at;
                jumps += 1;
                at = start;
            }
            at += 1;
            if self.walk(state, &text[at - 1..at]).is_some() {
                return Some(at);
            }
        }
        None
    }
}
