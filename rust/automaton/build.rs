//! Compiles an automaton.

use std::ops::Range;
use std::sync::OnceLock;

use super::{Automaton, BEGINS, Columns, DENSE_LIMIT, HIT, NONE, NOT_ASCII, ROOT};
use crate::patterns::{Kind, Patterns};

/// Builds the states level by level from the sorted patterns: a state is the range of patterns that begin with it.
pub(super) struct Builder<'a> {
    patterns: &'a Patterns,
    order: &'a [u32],
    pruned: Vec<bool>,
    automaton: Automaton,
}

impl<'a> Builder<'a> {
    pub(super) fn new(patterns: &'a Patterns, order: &'a [u32]) -> Builder<'a> {
        let (columns, shift) = columns(patterns);
        let mut marks = [0; 256];
        marks[0x80..].fill(NOT_ASCII);
        for &pattern in order {
            marks[patterns.text(pattern as usize).as_bytes()[0] as usize] |= BEGINS;
        }
        let automaton = Automaton {
            patterns: Patterns::default(),
            markers: vec![NONE; patterns.len()],
            columns,
            marks,
            shift,
            dense: Vec::new(),
            // The root, without children yet.
            first_child: vec![1],
            labels: vec![0],
            fallbacks: vec![0],
            outputs: vec![NONE],
            holds: vec![0],
            prefilter: OnceLock::new(),
        };
        Builder { patterns, order, pruned: vec![false; patterns.len()], automaton }
    }

    /// The automaton, and which patterns can never fire.
    pub(super) fn build(mut self) -> (Automaton, Vec<bool>) {
        let mut level: Vec<Range<usize>> = std::iter::once(0..self.order.len()).collect();
        let mut first = 0;
        for depth in 0.. {
            let mut below = Vec::new();
            for (parent, range) in (first..).zip(&level) {
                self.add_children(parent, range.clone(), depth, &mut below);
                self.automaton.first_child.push(self.automaton.labels.len() as u32);
                self.add_row(parent);
            }
            first += level.len();
            if below.is_empty() {
                break;
            }
            level = below;
        }
        (self.automaton, self.pruned)
    }

    fn bytes(&self, at: usize) -> &'a [u8] {
        self.patterns.text(self.order[at] as usize).as_bytes()
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
        let hold = match self.holds(range, depth) {
            true => depth as u32,
            false => self.automaton.holds[fallback],
        };
        self.push_state(label, fallback as u32, output, hold);
    }

    /// Notes that `pattern` completes at a state with this fallback; returns it as an output.
    fn add_output(&mut self, pattern: u32, fallback: usize) -> u32 {
        let markers = &mut self.automaton.markers;
        markers[pattern as usize] = match self.patterns.kind(pattern as usize) {
            Kind::Marker => pattern + 1,
            _ => match self.automaton.outputs[fallback].checked_sub(1) {
                Some(suffix) => markers[suffix as usize],
                None => NONE,
            },
        };
        pattern + 1
    }

    /// Prunes the patterns of `range` that go on after `output` completed inside them: they can never complete. Only
    /// a marker that contains a stop can: in unarmed text.
    fn prune(&mut self, range: Range<usize>, depth: usize, output: u32) {
        let marker_completes = self.automaton.markers[output as usize - 1] != NONE;
        for at in range {
            let pattern = self.order[at] as usize;
            if self.bytes(at).len() > depth && (marker_completes || self.patterns.kind(pattern) != Kind::Marker) {
                self.pruned[pattern] = true;
            }
        }
    }

    /// Whether the state of `range` is a proper prefix of a hidden stop that can fire.
    fn holds(&self, mut range: Range<usize>, depth: usize) -> bool {
        range.any(|at| {
            let pattern = self.order[at] as usize;
            !self.pruned[pattern] && self.patterns.kind(pattern) == Kind::Hidden && self.bytes(at).len() > depth
        })
    }

    fn push_state(&mut self, label: u8, fallback: u32, output: u32, hold: u32) {
        self.automaton.labels.push(label);
        self.automaton.fallbacks.push(fallback);
        self.automaton.outputs.push(output);
        self.automaton.holds.push(hold);
    }

    /// Gives the state its dense row while there is room: its fallback's row, overwritten by its own children.
    fn add_row(&mut self, number: usize) {
        let automaton = &mut self.automaton;
        let width = 1 << automaton.shift;
        let row = number * width;
        if row != automaton.dense.len() || row + width > DENSE_LIMIT {
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

/// A column for each byte that stands in a pattern, and the base-2 logarithm of the row width they need.
fn columns(patterns: &Patterns) -> (Columns, u32) {
    let mut columns = [0; 256];
    for byte in (0..patterns.len()).flat_map(|pattern| patterns.text(pattern).bytes()) {
        columns[byte as usize] = 1;
    }
    let mut count = 1;
    for column in columns.iter_mut().filter(|column| **column != 0) {
        *column = count; // UTF-8 uses fewer than 255 byte values
        count += 1;
    }
    (columns, u32::from(count).next_power_of_two().trailing_zeros())
}
