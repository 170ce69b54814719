//! Simple, slow programs (references) that do what the library does. They state the rules of matching as directly as
//! possible, and tests compare the library with them.
//!
//! A reference keeps the whole text as one string. After every character it asks, with `ends_with`, which stops and
//! markers complete there. It has no automaton and does not remember where stops begin: it searches the text again.

pub mod pattern;
pub mod patterns;
pub mod patterns_check;
pub mod repeat;
pub mod rewrite;
pub mod segment_pair;
pub mod segments;
pub mod stops;
pub mod token_scanner;
pub mod token_segmenter;
pub mod tokens;

use stopscan::StopMatch;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    pub sequence: String,
    pub visible: bool,
    /// The index of the stop among the hidden stops or, if `visible`, among the visible stops.
    pub index: usize,
    pub offset: usize,
    pub end: usize,
    pub byte_offset: usize,
    pub byte_end: usize,
}

impl From<StopMatch<'_>> for Match {
    fn from(found: StopMatch<'_>) -> Match {
        Match {
            sequence: found.sequence().into(),
            visible: found.visible(),
            index: found.index(),
            offset: found.offset(),
            end: found.end(),
            byte_offset: found.byte_offset(),
            byte_end: found.byte_end(),
        }
    }
}

/// A call of a scanner's or a segmenter's method.
#[derive(Clone, Debug)]
pub enum Op {
    Feed { delta: String, armed: bool },
    Bypass(String),
    Flush,
    Reset,
}

/// The match of `stop` at the end of `text`.
fn match_at_end(text: &str, stop: &str, hidden: &[String], visible: &[String]) -> Match {
    let place = |list: &[String]| list.iter().position(|other| other == stop);
    let (end, byte_end) = (text.chars().count(), text.len());
    Match {
        sequence: stop.into(),
        visible: place(hidden).is_none(),
        index: place(hidden).or(place(visible)).expect("a stop is in a list"),
        offset: end - stop.chars().count(),
        end,
        byte_offset: byte_end - stop.len(),
        byte_end,
    }
}

/// Returns those of `stops` that can fire. A stop can never fire if another stop or a marker (one of `enders`) always
/// completes inside it first.
fn firing<'a>(stops: impl IntoIterator<Item = &'a String>, enders: &[&str]) -> Vec<&'a str> {
    let ends_early = |stop: &str, other: &&str| without_last_character(stop).contains(other);
    stops
        .into_iter()
        .map(String::as_str)
        .filter(|stop: &&str| !enders.iter().any(|other| ends_early(stop, other)))
        .collect()
}

/// The longest of `words` that `seen` ends with, `""` if none.
fn longest_end<'a>(seen: &str, words: impl IntoIterator<Item = &'a str>) -> &'a str {
    words.into_iter().filter(|word| seen.ends_with(word)).max_by_key(|word| word.len()).unwrap_or_default()
}

/// The longest proper prefix of one of `words` that `seen` ends with.
fn longest_beginning<'a>(seen: &str, words: impl IntoIterator<Item = &'a str>) -> &'a str {
    let prefixes = |word: &'a str| word.char_indices().map(move |(length, _)| &word[..length]);
    longest_end(seen, words.into_iter().flat_map(prefixes))
}

fn without_last_character(text: &str) -> &str {
    text.char_indices().next_back().map_or("", |(last, _)| &text[..last])
}
