//! Compiles an automaton: the trie of its words, level by level, and the fallbacks between its branches.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::OnceLock;

use super::{Automaton, Columns, Config, HIT, NONE, ROOT, WordKind, Words};
use crate::room;
use crate::text::Plain;

/// Builds the states level by level from the sorted words: a state is the range of words that begin with it.
pub(super) struct Trie<'a> {
    words: &'a Words,
    order: &'a [u32],
    config: Config,
    pruned: Vec<bool>,
    automaton: Automaton,
}

impl<'a> Trie<'a> {
    pub(super) fn new(words: &'a Words, order: &'a [u32], config: Config) -> Result<Trie<'a>, TryReserveError> {
        let (columns, shift) = columns(words);
        let automaton = Automaton {
            words: Words::default(),
            markers: room::collect((0..words.len_with_literals()).map(|_| NONE))?,
            plain: Plain::new(order.iter().map(|&word| words.text(word as usize).as_bytes()[0])),
            columns,
            shift,
            dense: Vec::new(),
            // The root, without children yet.
            first_child: vec![1],
            labels: vec![0],
            fallbacks: vec![0],
            outputs: vec![NONE],
            holds: vec![0],
            marker_holds: Vec::new(),
            prefilter: OnceLock::new(),
        };
        let pruned = room::collect((0..words.len_with_literals()).map(|_| false))?;
        let mut trie = Trie { words, order, config, pruned, automaton };
        trie.automaton.marker_holds.extend(trie.holds_markers().then_some(0));
        trie.reserve()?;
        Ok(trie)
    }

    /// Asks for the room of all states before the first is made.
    fn reserve(&mut self) -> Result<(), TryReserveError> {
        let states = self.states();
        let dense = (states << self.automaton.shift).min(self.config.dense_limit);
        let holds_markers = self.holds_markers();
        let Automaton { dense: rows, first_child, labels, fallbacks, outputs, holds, marker_holds, .. } =
            &mut self.automaton;
        rows.try_reserve_exact(dense)?;
        labels.try_reserve_exact(states)?;
        for numbers in [first_child, fallbacks, outputs, holds] {
            numbers.try_reserve_exact(states)?;
        }
        marker_holds.try_reserve_exact(if holds_markers { states } else { 0 })?;
        Ok(())
    }

    /// How many states there are at most: one for each byte of a word but those with which the word before it in order
    /// begins, too.
    fn states(&self) -> usize {
        let alike = |at: usize| {
            let before = at.checked_sub(1).map_or(&[][..], |before| self.bytes(before));
            self.bytes(at).iter().zip(before).take_while(|(one, other)| one == other).count()
        };
        1 + (0..self.order.len()).map(|at| self.bytes(at).len() - alike(at)).sum::<usize>()
    }

    /// The automaton, and which words can never complete.
    pub(super) fn build(mut self) -> Result<(Automaton, Vec<bool>), TryReserveError> {
        // A level has at most as many states as there are words.
        let (mut level, mut below) = (room::list(self.order.len().max(1))?, room::list(self.order.len())?);
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
        Ok((self.automaton, self.pruned))
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
        if output != NONE {
            self.prune(range.clone(), depth, output);
        }
        self.add_holds(range, depth, fallback);
        self.automaton.labels.push(label);
        self.automaton.fallbacks.push(fallback as u32);
        self.automaton.outputs.push(output);
    }

    /// Notes that `word` completes at a state with this fallback; returns it as an output.
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

    /// Prunes the words of `range` that go on after `output` completed inside them: they can never complete. Only
    /// a marker that contains a stop can: in unarmed text.
    fn prune(&mut self, range: Range<usize>, depth: usize, output: u32) {
        let marker_completes = self.automaton.markers[output as usize - 1] != NONE;
        for at in range {
            let word = self.order[at] as usize;
            if self.bytes(at).len() > depth && (marker_completes || self.words.kind(word) != WordKind::Marker) {
                self.pruned[word] = true;
            }
        }
    }

    /// Notes how much is held at the state of `range`: all of it, or as much as at its fallback.
    fn add_holds(&mut self, range: Range<usize>, depth: usize, fallback: usize) {
        let holds_stops = self.begins(range.clone(), depth, WordKind::Hidden);
        let holds_markers = self.holds_markers() && self.begins(range, depth, WordKind::Marker);
        let automaton = &mut self.automaton;
        let depth = depth as u32;
        automaton.holds.push(if holds_stops || holds_markers { depth } else { automaton.holds[fallback] });
        if let Some(&held) = automaton.marker_holds.get(fallback) {
            automaton.marker_holds.push(if holds_markers { depth } else { held });
        }
    }

    fn holds_markers(&self) -> bool {
        self.config.holds_markers && self.words.len() > self.words.stops()
    }

    /// Whether the state of `range` is a proper prefix of a word of this `kind` that can complete.
    fn begins(&self, mut range: Range<usize>, depth: usize, kind: WordKind) -> bool {
        range.any(|at| {
            let word = self.order[at] as usize;
            !self.pruned[word] && self.words.kind(word) == kind && self.bytes(at).len() > depth
        })
    }

    /// Gives the state its dense row while there is room: its fallback's row, overwritten by its own children.
    fn add_row(&mut self, number: usize) {
        let automaton = &mut self.automaton;
        let width = 1 << automaton.shift;
        let row = number * width;
        if row != automaton.dense.len() || row + width > self.config.dense_limit {
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

/// A column for each byte that stands in a word, and the base-2 logarithm of the row width they need.
fn columns(words: &Words) -> (Columns, u32) {
    let mut columns = [0; 256];
    for byte in words.with_literals().flat_map(str::bytes) {
        columns[byte as usize] = 1;
    }
    let mut count = 1;
    for column in columns.iter_mut().filter(|column| **column != 0) {
        *column = count; // UTF-8 uses fewer than 255 byte values
        count += 1;
    }
    (columns, u32::from(count).next_power_of_two().trailing_zeros())
}
