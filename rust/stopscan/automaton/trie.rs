//! Compiles an automaton: builds the trie of the words (stops and markers) level by level, and finds the fallback of
//! each state.

use std::ops::Range;
use std::sync::OnceLock;

use super::{Automaton, Columns, Config, HIT, NONE, ROOT, WordKind, Words};
use crate::text::Plain;

/// Builds the states level by level from the sorted words (stops and markers), whose indices are in `order`. A state
/// that is still to be built is represented by a range of `order`: the words that begin with the text of the state.
pub(super) struct Trie<'a> {
    words: &'a Words,
    order: &'a [u32],
    dense_limit: usize,
    holds_markers: bool,
    prunes: bool,
    pruned: Vec<bool>,
    automaton: Automaton,
}

impl<'a> Trie<'a> {
    pub(super) fn new(words: &'a Words, order: &'a [u32], config: Config) -> Trie<'a> {
        fn list<T>(root: T, states: usize) -> Vec<T> {
            let mut list = Vec::with_capacity(states);
            list.push(root);
            list
        }

        let holds_markers = config.holds_markers && words.len() > words.stops();
        let (columns, shift) = columns(words);
        let states = states(words, order);
        let automaton = Automaton {
            words: Words::default(),
            markers: vec![NONE; words.len_with_literals()],
            plain: Plain::new(order.iter().map(|&word| words.text(word as usize).as_bytes()[0])),
            columns,
            shift,
            dense: Vec::with_capacity((states << shift).min(config.dense_limit)),
            // The first item of each list belongs to the root state. No child of the root is added yet.
            first_child: list(1, states),
            labels: list(0, states),
            fallbacks: list(0, states),
            outputs: list(NONE, states),
            holds: list(0, states),
            marker_holds: if holds_markers { list(0, states) } else { Vec::new() },
            prefilter: OnceLock::new(),
        };
        let pruned = vec![false; words.len_with_literals()];
        let Config { prunes, dense_limit, .. } = config;
        Trie { words, order, dense_limit, holds_markers, prunes, pruned, automaton }
    }

    /// Returns the automaton. Also returns for each word (stop or marker) whether it was pruned: it can never complete,
    /// because another word completes inside it first.
    pub(super) fn build(mut self) -> (Automaton, Vec<bool>) {
        let (mut level, mut below) = (Vec::new(), Vec::new());
        level.push(0..self.order.len());
        let mut first = 0;
        for depth in 0.. {
            for (parent, range) in (first..).zip(level.drain(..)) {
                self.add_children(parent, range, depth, &mut below);
                self.automaton.first_child.push(self.automaton.labels.len() as u32);
                self.add_row(parent);
            }
            if below.is_empty() {
                break;
            }
            first = self.automaton.labels.len() - below.len();
            std::mem::swap(&mut level, &mut below);
        }
        (self.automaton, self.pruned)
    }

    fn bytes(&self, at: usize) -> &'a [u8] {
        self.words.text(self.order[at] as usize).as_bytes()
    }

    fn add_children(&mut self, parent: usize, range: Range<usize>, depth: usize, below: &mut Vec<Range<usize>>) {
        let mut at = range.start;
        while at < range.end {
            if self.bytes(at).len() == depth || self.pruned[self.order[at] as usize] {
                at += 1;
                continue;
            }
            let label = self.bytes(at)[depth];
            let group = (at + 1..range.end).take_while(|&next| self.bytes(next)[depth] == label);
            let child = at..at + 1 + group.count();
            at = child.end;
            self.add_child(parent, label, child.clone(), depth + 1);
            below.push(child);
        }
    }

    fn add_child(&mut self, parent: usize, label: u8, range: Range<usize>, depth: usize) {
        let fallback = match parent {
            0 => 0,
            _ => self.automaton.step(self.automaton.fallbacks[parent] << self.automaton.shift, label) & !HIT,
        };
        let fallback = self.automaton.number(fallback);
        let output = match self.bytes(range.start).len() == depth {
            true => self.add_output(self.order[range.start], fallback),
            false => self.automaton.outputs[fallback],
        };
        if output != NONE && self.prunes {
            self.prune(range.clone(), depth, output);
        }
        self.add_holds(range, depth, fallback);
        self.automaton.labels.push(label);
        self.automaton.fallbacks.push(fallback as u32);
        self.automaton.outputs.push(output);
    }

    /// Adds `word` (a stop or marker), which completes at a new state. Stores in `markers` the longest marker with
    /// which the word ends. Returns what `outputs` stores for the new state. `fallback` is the fallback of the new
    /// state.
    fn add_output(&mut self, word: u32, fallback: usize) -> u32 {
        let markers = &mut self.automaton.markers;
        markers[word as usize] = match self.words.kind(word as usize) {
            WordKind::Marker => word + 1,
            _ => match self.automaton.outputs[fallback].checked_sub(1) {
                Some(suffix) => markers[suffix as usize],
                None => NONE,
            },
        };
        word + 1
    }

    /// Prunes words (stops and markers) that can never complete. All words of `range` begin with the same `depth`
    /// bytes, and the word `output` completes at the end of these bytes. So all words of `range` with more than `depth`
    /// bytes are pruned. Exception: if `output` is a stop that does not end with a marker, longer markers are kept,
    /// because they can complete in text in which no stop fires.
    fn prune(&mut self, range: Range<usize>, depth: usize, output: u32) {
        let marker_completes = self.automaton.markers[output as usize - 1] != NONE;
        for at in range {
            let word = self.order[at] as usize;
            if self.bytes(at).len() > depth && (marker_completes || self.words.kind(word) != WordKind::Marker) {
                self.pruned[word] = true;
            }
        }
    }

    /// Stores how many bytes are held in a new state. If the text of the state may become a hidden stop or a marker
    /// that is taken out, the whole text is held (`depth` bytes). Otherwise as many bytes are held as in the state
    /// `fallback`. `range` has the words that begin with the text.
    fn add_holds(&mut self, range: Range<usize>, depth: usize, fallback: usize) {
        let holds_stops = self.begins(range.clone(), depth, WordKind::Hidden);
        let holds_markers = self.holds_markers && self.begins(range, depth, WordKind::Marker);
        let automaton = &mut self.automaton;
        let depth = depth as u32;
        automaton.holds.push(if holds_stops || holds_markers { depth } else { automaton.holds[fallback] });
        if let Some(&held) = automaton.marker_holds.get(fallback) {
            automaton.marker_holds.push(if holds_markers { depth } else { held });
        }
    }

    /// Returns whether the text of a state can become a longer word of this `kind`. Pruned words do not count. `depth`
    /// is the length of the text in bytes. `order[range]` are all words that begin with the text.
    fn begins(&self, mut range: Range<usize>, depth: usize, kind: WordKind) -> bool {
        range.any(|at| {
            let word = self.order[at] as usize;
            !self.pruned[word] && self.words.kind(word) == kind && self.bytes(at).len() > depth
        })
    }

    /// Adds the dense row of a state, if there is still room: copies the row of its fallback, and then sets the
    /// transitions to the children of the state.
    fn add_row(&mut self, number: usize) {
        let automaton = &mut self.automaton;
        let width = 1 << automaton.shift;
        let row = number * width;
        if row != automaton.dense.len() || row + width > self.dense_limit {
            return;
        }
        if number == 0 {
            automaton.dense.resize(width, ROOT);
        } else {
            let fallback = automaton.fallbacks[number] as usize * width;
            automaton.dense.extend_from_within(fallback..fallback + width);
        }
        for child in automaton.first_child[number]..automaton.first_child[number + 1] {
            let column = automaton.columns[automaton.labels[child as usize] as usize];
            automaton.dense[row + column as usize] = automaton.transition(child as usize);
        }
    }
}

/// Returns an upper bound of the number of states: one for the root and, for each word (stop or marker), one for each
/// byte after the prefix that the word shares with the previous word in `order`.
fn states(words: &Words, order: &[u32]) -> usize {
    let mut before = "";
    let added = |&word: &u32| {
        let (text, other) = (words.text(word as usize), before);
        before = text;
        text.len() - text.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
    };
    1 + order.iter().map(added).sum::<usize>()
}

/// Returns a column for each byte that occurs in a word (a stop or marker). Also returns the base-2 logarithm of the
/// width of a row.
fn columns(words: &Words) -> (Columns, u32) {
    let mut columns = [0; 256];
    for byte in words.with_literals().flat_map(str::bytes) {
        columns[byte as usize] = 1;
    }
    let mut count = 1;
    for column in columns.iter_mut().filter(|column| **column != 0) {
        *column = count; // fits: UTF-8 uses fewer than 255 byte values
        count += 1;
    }
    (columns, u32::from(count).next_power_of_two().trailing_zeros())
}
