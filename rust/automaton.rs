//! The Aho-Corasick automaton: dense rows for the shallow states, sparse edges for the deep ones.
//!
//! A state is the longest suffix of the text that begins a pattern. States are numbered breadth first, which makes
//! every part of this file small: the children of a state are neighbours, a state's fallback has a smaller number,
//! and the states that real text visits most come first and get the dense rows.

use std::array;
use std::sync::OnceLock;

use crate::patterns::Patterns;
use crate::prefilter::{Prefilter, Skip};
use crate::stop_match::code_points;

mod build;

use build::Builder;

/// A state's number times the row width, so that a step is one addition and one load.
pub(crate) type State = u32;

/// The state before any text.
pub(crate) const ROOT: State = 0;

/// Set in a transition whose target completes a pattern.
const HIT: u32 = 1 << 31;

/// The most dense transitions (4 MiB of them): enough for all states of a thousand ordinary stops.
const DENSE_LIMIT: usize = 1 << 20;

/// Marks a byte that begins a pattern.
const BEGINS: u8 = 1;

/// Marks a byte of a code point that has several.
const NOT_ASCII: u8 = 2;

/// From this many bytes on, a prefilter beats the walk.
const LONG: usize = 128;

/// Patterns are referred to by their index plus one; this is no pattern.
const NONE: u32 = 0;

type Columns = [u8; 256];

#[derive(Debug)]
pub(crate) struct Automaton {
    patterns: Patterns,
    /// For each pattern, the longest marker among its suffixes, itself included.
    markers: Vec<u32>,
    /// The column of each byte in a dense row; column 0 is for bytes of no pattern.
    columns: Columns,
    /// `BEGINS` and `NOT_ASCII` of each byte.
    marks: [u8; 256],
    /// A dense row has `1 << shift` columns.
    shift: u32,
    /// The transitions of the first states, fallbacks resolved.
    dense: Vec<u32>,
    /// The children of state `s` are `first_child[s]..first_child[s + 1]`, in the order of their labels.
    first_child: Vec<u32>,
    /// The byte that leads to each state from its parent.
    labels: Vec<u8>,
    /// The state of the longest proper suffix that is a state too.
    fallbacks: Vec<u32>,
    /// The longest pattern that completes at each state.
    outputs: Vec<u32>,
    /// How many bytes at the end of each state's text are a proper prefix of a hidden stop.
    holds: Vec<u32>,
    prefilter: OnceLock<Option<Prefilter>>,
}

impl Automaton {
    /// The automaton of `patterns`, which are distinct and not empty.
    pub(crate) fn new(patterns: Patterns) -> Automaton {
        let mut order: Vec<u32> = (0..patterns.len() as u32).collect();
        order.sort_unstable_by_key(|&pattern| patterns.text(pattern as usize));
        let (mut automaton, pruned) = Builder::new(&patterns, &order).build();
        if pruned.contains(&true) {
            // A pruned stop must not hold text either, so its states may not exist: build again without it.
            order.retain(|&pattern| !pruned[pattern as usize]);
            (automaton, _) = Builder::new(&patterns, &order).build();
        }
        automaton.patterns = patterns;
        automaton
    }

    pub(crate) fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// How many code points `text` has, if it is short and no pattern begins in it: at the root, reading it changes
    /// nothing. Most deltas of most streams are like this.
    #[inline(always)]
    pub(crate) fn skip(&self, text: &[u8]) -> Option<usize> {
        // Deltas differ in length, and a loop over their bytes would mispredict its end each time. Up to 8 bytes, the
        // last one stands in for those that are missing; further, two blocks that may overlap cover the text.
        let marks = match text.len() {
            0 => 0,
            1..=8 => self.marks(array::from_fn::<u8, 8, _>(|at| text[at.min(text.len() - 1)])),
            9..=16 => self.block_marks::<8>(text),
            17..=32 => self.block_marks::<16>(text),
            _ => return None,
        };
        match marks {
            0 => Some(text.len()),
            mark if mark & BEGINS == 0 => Some(code_points(text)),
            _ => None,
        }
    }

    #[inline(always)]
    fn block_marks<const N: usize>(&self, text: &[u8]) -> u8 {
        match (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            (Some(&first), Some(&last)) => self.marks(first) | self.marks(last),
            _ => BEGINS, // too short for a block: read it the long way
        }
    }

    #[inline(always)]
    fn marks<const N: usize>(&self, bytes: [u8; N]) -> u8 {
        bytes.iter().fold(0, |marks, &byte| marks | self.marks[byte as usize])
    }

    /// Reads `text` up to the first byte that completes a pattern; returns how many bytes that took.
    #[inline]
    pub(crate) fn advance(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        if text.len() >= LONG {
            return self.leap(state, text);
        }
        self.walk(state, text)
    }

    /// The pattern that completes at `state`: the longest of all, or in unarmed text of the markers.
    pub(crate) fn completed(&self, state: State, armed: bool) -> Option<usize> {
        let longest = self.outputs[self.number(state)];
        let output = match longest.checked_sub(1) {
            Some(pattern) if !armed => self.markers[pattern as usize],
            _ => longest,
        };
        output.checked_sub(1).map(|pattern| pattern as usize)
    }

    /// How many bytes at the end of the text read so far may still turn into a hidden stop.
    #[inline]
    pub(crate) fn hold(&self, state: State) -> usize {
        self.holds[self.number(state)] as usize
    }

    /// The text of `state`.
    #[cfg(feature = "python")]
    pub(crate) fn text(&self, state: State) -> String {
        let mut number = self.number(state);
        let mut bytes = Vec::new();
        while number != 0 {
            bytes.push(self.labels[number]);
            number = self.first_child.partition_point(|&first| first as usize <= number) - 1;
        }
        bytes.reverse();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[cfg(feature = "python")]
    /// The state whose text is `text`, if there is one.
    pub(crate) fn state(&self, text: &str) -> Option<State> {
        let mut number = 0;
        for &byte in text.as_bytes() {
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
                // Most text begins no pattern, and here no byte waits for the transition of the one before.
                match text[at..].iter().position(|&byte| self.marks[byte as usize] & BEGINS != 0) {
                    Some(skipped) => at += skipped,
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

    /// As `walk`, but skips the text in which no pattern begins.
    ///
    /// The prefilter finds where a pattern's first bytes stand. Between the root and that place no state but the
    /// root matters, because an occurrence that completes first cannot begin before the leftmost candidate.
    fn leap(&self, state: &mut State, text: &[u8]) -> Option<usize> {
        let prefilter = self.prefilter.get_or_init(|| Prefilter::new(&self.patterns));
        let Some(prefilter) = prefilter else {
            return self.walk(state, text);
        };
        let mut skips = prefilter.skips();
        let mut at = 0;
        while at < text.len() {
            if *state == ROOT {
                match skips.next(text, at) {
                    Skip::Candidate(place) => at = place,
                    Skip::Rest(place) => return Some(place + self.walk(state, &text[place..])?),
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

    #[inline]
    fn step(&self, state: State, byte: u8) -> u32 {
        let column = self.columns[byte as usize];
        match self.dense.get(state as usize + column as usize) {
            Some(&next) => next,
            None => self.sparse_step(state, byte),
        }
    }

    /// A step from a state without a row: by an edge, or from a fallback, at last the root, which has a row. Every byte read deepens the state by at
    /// most one and every fallback makes it shallower, so a text of n bytes takes at most 2n edges and fallbacks.
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

    fn child(&self, number: usize, byte: u8) -> Option<usize> {
        let children = self.first_child[number] as usize..self.first_child[number + 1] as usize;
        let at = self.labels[children.clone()].binary_search(&byte).ok()?;
        Some(children.start + at)
    }

    fn transition(&self, number: usize) -> u32 {
        let hit = if self.outputs[number] == NONE { 0 } else { HIT };
        (number as u32) << self.shift | hit
    }
}
