//! Finds in long text where a word (a stop or marker) may begin, with the vector search of the aho-corasick crate.

use aho_corasick::packed::{Config, MatchKind, Searcher};

use super::{Automaton, ROOT, State, Words};

/// The prefilter compares only the first `PREFIX` bytes of each word (stop or marker). So it loses little time on text
/// that begins like a word and then differs. The automaton compares the rest, in linear time.
const PREFIX: usize = 8;

/// The prefilter jumps from one possible beginning of a stop or marker to the next. It is used as long as its jumps
/// skip at least this many bytes on average. With shorter jumps, reading byte by byte is faster.
const WORTH: usize = 48;

/// After this many jumps, their average length is compared with `WORTH` for the first time.
const TRIAL: usize = 16;

#[derive(Debug)]
pub(crate) struct Prefilter {
    searcher: Searcher,
    /// The length of the longest prefix that is compared, in bytes.
    longest: usize,
}

impl Prefilter {
    /// Makes a prefilter for `words` (stops and markers). Returns `None` if the vector search cannot be used: there are
    /// too many words, or the processor is not supported.
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
    /// Scans `text` up to the first byte that completes a word (a stop or marker), as `walk` does, but jumps over text
    /// in which no word begins, as long as jumping is faster.
    ///
    /// In the state `ROOT`, where no word has begun, the prefilter finds the next place where the text has the prefix
    /// of a word. The scan jumps to this place.
    pub(super) fn leap(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        let Some(prefilter) = self.prefilter.get_or_init(|| Prefilter::new(&self.words)) else {
            return self.walk(state, text);
        };
        // `text` may end in the middle of a prefix, which the vector search does not find. Such a prefix begins at
        // `last` or later, so the text from `last` on is read byte by byte.
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
