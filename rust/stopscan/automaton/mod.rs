//! The Aho-Corasick automaton: dense rows of transitions for the shallow states, sparse edges for the deep ones.
//!
//! A state stands for the longest suffix of the text read so far that is the beginning of a word (a stop or marker).
//! States are numbered breadth first. So the children of a state are neighbours, and the fallback of a state (to which
//! its failure link leads) has a smaller number than the state. The states that real text visits most come first, and
//! get the dense rows.

use std::ops::Range;
use std::sync::OnceLock;

use crate::text::Plain;

mod prefilter;
mod trie;
mod words;

use prefilter::Prefilter;
use trie::Trie;
pub(crate) use words::{WordKind, Words};

/// A state, stored as its index times the width of a dense row. This product is the place in `Automaton::dense` at
/// which the row of the state begins, so a step to the next state is one addition and one load.
pub(crate) type State = u32;

/// The state before any text.
pub(crate) const ROOT: State = 0;

/// A bit of a transition: set if a word (a stop or marker) completes in the state to which the transition leads.
const HIT: u32 = 1 << 31;

/// The most transitions that the dense rows of a set have together. A transition has 4 bytes, so the rows take at most
/// 4 MiB. That is enough for all states of a thousand ordinary stops.
pub(crate) const DENSE_LIMIT: usize = 1 << 20;

/// For text of at least this many bytes, the prefilter (a vector search for the beginnings of words) is faster than
/// reading byte by byte.
const LONG: usize = 128;

/// In the tables `outputs` and `markers` of the automaton, a word (a stop or marker) is stored as its index plus one; 0
/// stands for "no word".
const NONE: u32 = 0;

type Columns = [u8; 256];

/// The options of an automaton.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Whether text that may become a marker is held back, because markers are taken out of the output.
    pub(crate) holds_markers: bool,
    /// Whether to leave out words (stops and markers) that can never complete, because another word always completes
    /// first inside them.
    pub(crate) prunes: bool,
    /// The most items of `Automaton::dense`.
    pub(crate) dense_limit: usize,
}

#[derive(Debug)]
pub(crate) struct Automaton {
    pub(crate) words: Words,
    /// For each word, the longest marker that completes at the end of the word, if stops are ignored. For a marker this
    /// is the marker itself. For a stop it is the longest marker with which the stop ends.
    markers: Vec<u32>,
    plain: Plain,
    /// The column of each byte in a dense row; column 0 is for bytes that occur in no word (stop or marker).
    columns: Columns,
    /// A dense row has `1 << shift` columns.
    shift: u32,
    /// The dense rows of the first states, one after another. For each column, a row has the next state, and `HIT` if a
    /// word completes in the next state.
    dense: Vec<u32>,
    /// The children of state `s` are `first_child[s]..first_child[s + 1]`, in the order of the bytes that lead to them.
    first_child: Vec<u32>,
    /// The byte that leads to each state from its parent.
    labels: Vec<u8>,
    /// For each state, its fallback: the state with the longest text that is a proper suffix of the text of this state.
    fallbacks: Vec<u32>,
    /// For each state, the longest word (stop or marker) that completes there.
    outputs: Vec<u32>,
    /// For each state, how many bytes at the end of the text are held: the length of the longest suffix that may still
    /// become a hidden stop, or a marker that is taken out.
    holds: Vec<u32>,
    /// The same as `holds`, but counts only markers. It is used in streams in which every stop is visible. Empty if no
    /// marker is taken out.
    marker_holds: Vec<u32>,
    prefilter: OnceLock<Option<Prefilter>>,
}

impl Automaton {
    /// Makes the automaton of `words` (stops and markers), which must be distinct and not empty. Leaves out words that
    /// can never complete. In some words, a pattern always completes first: the caller marks them in `hopeless`. In
    /// others, another word always completes first: this function finds them, and the returned list has `true` for
    /// them.
    pub(crate) fn new(words: Words, hopeless: &[bool], config: Config) -> (Automaton, Vec<bool>) {
        let mut order: Vec<u32> = (0..words.len_with_literals() as u32).collect();
        order.retain(|&word| hopeless.get(word as usize) != Some(&true));
        order.sort_unstable_by(|&one, &other| words.compare(one, other));
        let (mut automaton, pruned) = Trie::new(&words, &order, config).build();
        if pruned.contains(&true) {
            // A stream would hold text at the states of a pruned word (stop or marker), although the word can never
            // complete. Build the automaton again without the pruned words.
            order.retain(|&word| !pruned[word as usize]);
            drop(automaton);
            (automaton, _) = Trie::new(&words, &order, config).build();
        }
        automaton.words = words;
        (automaton, pruned)
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Recognises text that has no byte with which a word (a stop or marker) begins. In the state `ROOT`, such text
    /// need not be scanned.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &Plain {
        &self.plain
    }

    /// Scans `text` up to the first byte that completes a word (a stop or marker). Returns the number of bytes up to
    /// and with this byte.
    #[inline]
    pub(crate) fn advance(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        if text.len() >= LONG {
            return self.leap(state, text);
        }
        self.walk(state, text)
    }

    /// Scans `text` up to the first byte that completes a marker or, if `armed`, a stop. Returns the index of the word
    /// that completed, and where it ends in `text`, in bytes.
    #[inline]
    pub(crate) fn scan(&self, state: &mut State, text: &str, armed: bool) -> Option<(usize, usize)> {
        let mut end = 0;
        loop {
            end += self.advance(state, &text.as_bytes()[end..])?;
            if let Some(index) = self.completed(*state, armed) {
                return Some((index, end));
            }
            // A stop completed in unarmed text, in which no stop fires. Go on.
        }
    }

    /// Returns the index of the longest word (stop or marker) that completes at `state`. If `armed` is false, only
    /// markers count.
    pub(crate) fn completed(&self, state: State, armed: bool) -> Option<usize> {
        let longest = self.outputs[self.number(state)];
        let output = match longest.checked_sub(1) {
            Some(word) if !armed => self.markers[word as usize],
            _ => longest,
        };
        output.checked_sub(1).map(|word| word as usize)
    }

    /// Returns how many bytes at the end of the text must be held, because they may become a hidden stop or a marker
    /// that is taken out. If `hides_stops` is false, stops stay in the output, so bytes are held only for markers.
    #[inline]
    pub(crate) fn held(&self, state: State, hides_stops: bool) -> usize {
        if state == ROOT {
            return 0;
        }
        let number = self.number(state);
        match hides_stops {
            true => self.holds[number] as usize,
            false => self.marker_holds.get(number).map_or(0, |&held| held as usize),
        }
    }

    /// Returns the state after one more byte, and whether a word (a stop or marker) completes there.
    pub(crate) fn follow(&self, state: State, byte: u8) -> (State, bool) {
        let next = self.step(state, byte);
        (next & !HIT, next & HIT != 0)
    }

    /// Returns whether the text of `next` is the text of `state`, followed by `byte`.
    pub(crate) fn extends(&self, state: State, byte: u8, next: State) -> bool {
        self.child(self.number(state), byte) == Some(self.number(next))
    }

    /// Returns whether the whole text of `state` is a word (a stop or marker).
    pub(crate) fn is_word(&self, state: State) -> bool {
        let number = self.number(state);
        self.outputs[number] != NONE && self.outputs[number] != self.outputs[self.fallbacks[number] as usize]
    }

    /// Returns the longest other stop or marker with which the text of `word` (a stop or marker) ends.
    pub(crate) fn word_inside(&self, word: usize) -> Option<usize> {
        let state = self.state(self.words.text(word).as_bytes())?;
        let output = self.outputs[self.fallbacks[self.number(state)] as usize];
        output.checked_sub(1).map(|word| word as usize)
    }

    /// Returns the first state whose text has 0 bytes, the first state whose text has 1 byte, and so on. States are
    /// sorted by the lengths of their texts.
    pub(crate) fn levels(&self) -> Box<[State]> {
        let below = |&number: &u32| {
            Some(self.first_child[number as usize]).filter(|&below| (below as usize) < self.labels.len())
        };
        std::iter::successors(Some(0), below).map(|number| number << self.shift).collect()
    }

    /// Returns the state with the longest text that is a proper suffix of the text of `state`.
    pub(crate) fn fallback(&self, state: State) -> State {
        self.fallbacks[self.number(state)] << self.shift
    }

    /// Returns the text of `state`.
    pub(crate) fn text(&self, state: State) -> Vec<u8> {
        let mut number = self.number(state);
        let mut bytes = Vec::new();
        while number != 0 {
            bytes.push(self.labels[number]);
            number = self.first_child.partition_point(|&first| first as usize <= number) - 1;
        }
        bytes.reverse();
        bytes
    }

    /// Returns the state whose text is `text`, if there is one.
    pub(crate) fn state(&self, text: &[u8]) -> Option<State> {
        let mut number = 0;
        for &byte in text {
            number = self.child(number, byte)?;
        }
        Some((number as u32) << self.shift)
    }

    #[inline]
    fn number(&self, state: State) -> usize {
        (state >> self.shift) as usize
    }

    #[inline]
    fn walk(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        let mut current = *state;
        let mut at = 0;
        while at < text.len() {
            if current == ROOT {
                // Most bytes begin no word (stop or marker). Skip them without a transition, because each transition
                // has to wait for the one before it.
                match text[at..].iter().position(|&byte| self.plain.begins(byte)) {
                    Some(passed) => at += passed,
                    None => break,
                }
            }
            current = self.step(current, text[at]);
            at += 1;
            if current & HIT != 0 {
                *state = current & !HIT;
                return Some(at);
            }
        }
        *state = current;
        None
    }

    #[inline]
    fn step(&self, state: State, byte: u8) -> u32 {
        let column = self.columns[byte as usize];
        match self.dense.get(state as usize + column as usize) {
            Some(&next) => next,
            None => self.sparse_step(state, byte),
        }
    }

    /// Steps from a state without a dense row: follows the edge of the state for `byte`. If there is none, tries the
    /// fallback of the state, and so on, up to a state with a dense row. The cost is linear in the length of the text:
    /// a byte makes the text of the state at most one byte longer, and each fallback makes it shorter.
    #[cold]
    fn sparse_step(&self, state: State, byte: u8) -> u32 {
        let mut number = self.number(state);
        loop {
            if let Some(child) = self.child(number, byte) {
                return self.transition(child);
            }
            number = self.fallbacks[number] as usize;
            let row = number << self.shift;
            if row < self.dense.len() {
                return self.dense[row + self.columns[byte as usize] as usize];
            }
        }
    }

    /// The number of states.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The numbers of the children of a state.
    #[inline]
    pub(crate) fn children(&self, number: usize) -> Range<usize> {
        self.first_child[number] as usize..self.first_child[number + 1] as usize
    }

    /// The byte that leads to a state from its parent.
    pub(crate) fn label(&self, number: usize) -> u8 {
        self.labels[number]
    }

    /// If the whole text of a state is a word (a stop or marker), returns the index of this word.
    pub(crate) fn whole_word(&self, number: usize) -> Option<usize> {
        let output = Some(self.outputs[number]).filter(|&word| word != self.outputs[self.fallbacks[number] as usize]);
        output?.checked_sub(1).map(|word| word as usize)
    }

    /// Returns the number of the child to which `byte` leads from the state `number`, if there is one.
    #[inline]
    pub(crate) fn child(&self, number: usize, byte: u8) -> Option<usize> {
        let children = self.children(number);
        let at = self.labels[children.clone()].binary_search(&byte).ok()?;
        Some(children.start + at)
    }

    fn transition(&self, number: usize) -> u32 {
        let hit = if self.outputs[number] == NONE { 0 } else { HIT };
        (number as u32) << self.shift | hit
    }
}
