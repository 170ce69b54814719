//! The patterns of a set as one nondeterministic automaton, over sets of characters.

use std::collections::HashMap;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// The first and last code points of each range of a set of characters, in order.
pub(super) type Ranges = Vec<(u32, u32)>;

#[derive(Debug)]
pub(super) enum Node {
    /// Reads a character of the set of this number.
    Read {
        set: u32,
        next: u32,
    },
    Split(Vec<u32>),
    Look {
        look: Look,
        next: u32,
    },
    /// The pattern of this index has matched.
    Match(u32),
}

#[derive(Default)]
pub(super) struct Nfa {
    pub(super) nodes: Vec<Node>,
    pub(super) sets: Vec<Ranges>,
    /// Where the patterns begin.
    pub(super) start: u32,
    pub(super) looks: bool,
    numbers: HashMap<Ranges, u32>,
}

impl Nfa {
    pub(super) fn new<'a>(patterns: impl IntoIterator<Item = (usize, &'a Hir)>) -> Nfa {
        let mut nfa = Nfa::default();
        let mut starts = Vec::new();
        for (index, hir) in patterns {
            let end = nfa.add(Node::Match(index as u32));
            starts.push(nfa.compile(hir, end));
        }
        nfa.start = nfa.add(Node::Split(starts));
        nfa
    }

    fn add(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// A node that reads a character in `ranges` and goes on at `next`.
    fn read(&mut self, ranges: Ranges, next: u32) -> u32 {
        let set = match self.numbers.get(&ranges) {
            Some(&set) => set,
            None => {
                let set = self.sets.len() as u32;
                self.sets.push(ranges.clone());
                self.numbers.insert(ranges, set);
                set
            }
        };
        self.add(Node::Read { set, next })
    }

    /// Where to begin in order to read `hir` and go on at `next`.
    fn compile(&mut self, hir: &Hir, next: u32) -> u32 {
        match hir.kind() {
            HirKind::Empty => next,
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                text.chars().rev().fold(next, |next, letter| self.read(vec![(letter as u32, letter as u32)], next))
            }
            HirKind::Class(class) => self.read(ranges(class), next),
            HirKind::Look(look) => {
                self.looks = true;
                self.add(Node::Look { look: *look, next })
            }
            HirKind::Capture(capture) => self.compile(&capture.sub, next),
            HirKind::Concat(parts) => parts.iter().rev().fold(next, |next, part| self.compile(part, next)),
            HirKind::Alternation(branches) => {
                let starts = branches.iter().map(|branch| self.compile(branch, next)).collect();
                self.add(Node::Split(starts))
            }
            HirKind::Repetition(repetition) => self.repeat(repetition, next),
        }
    }

    fn repeat(&mut self, repetition: &Repetition, next: u32) -> u32 {
        let mut at = next;
        match repetition.max {
            Some(max) => {
                for _ in repetition.min..max {
                    let body = self.compile(&repetition.sub, at);
                    at = self.add(Node::Split(vec![body, next]));
                }
            }
            None => {
                at = self.add(Node::Split(Vec::new()));
                let body = self.compile(&repetition.sub, at);
                self.nodes[at as usize] = Node::Split(vec![body, next]);
            }
        }
        (0..repetition.min).fold(at, |at, _| self.compile(&repetition.sub, at))
    }
}

fn ranges(class: &Class) -> Ranges {
    match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start() as u32, range.end() as u32)).collect(),
        Class::Bytes(class) => class.iter().map(|range| (range.start().into(), range.end().into())).collect(),
    }
}
