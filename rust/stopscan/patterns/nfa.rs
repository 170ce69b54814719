//! The patterns of a set as one nondeterministic automaton, whose nodes read sets of characters.

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

use super::work::{Lists, Numbers, TooLarge, Work};

#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    /// A node that reads one character of the set with the index `set`, and goes on at the node `next`.
    Read {
        set: u32,
        next: u32,
    },
    /// A node that reads nothing and goes on at several nodes. They are the list with this index in `Nfa::splits`.
    Split(u32),
    Look {
        look: Look,
        next: u32,
    },
    /// The pattern with this index has matched.
    Match(u32),
}

#[derive(Default)]
pub(super) struct Nfa {
    nodes: Vec<Node>,
    /// For each pattern, where its nodes end in `nodes`. The nodes of a pattern are neighbours.
    pattern_ends: Vec<usize>,
    splits: Lists<u32>,
    /// The sets of characters. A set is stored as the first and last code point of each of its ranges, in order.
    sets: Numbers,
    /// The node at which matching begins. It leads to the first node of each pattern.
    pub(super) start: u32,
    pub(super) looks: bool,
}

impl Nfa {
    pub(super) fn new<'a>(
        patterns: impl IntoIterator<Item = (usize, &'a Hir)>,
        work: &mut Work,
    ) -> Result<Nfa, TooLarge> {
        let mut nfa = Nfa::default();
        let mut starts = Vec::new();
        for (index, hir) in patterns {
            let end = nfa.add(Node::Match(index as u32), work)?;
            starts.push(nfa.compile(hir, end, work)?);
            nfa.pattern_ends.push(nfa.nodes.len());
        }
        nfa.start = nfa.split(&starts, work)?;
        Ok(nfa)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// `counts` has a number for each node. Returns for each pattern the sum of the numbers of its nodes.
    pub(super) fn sums(&self, counts: &[u32]) -> Vec<usize> {
        let begins = [0].into_iter().chain(self.pattern_ends.iter().copied());
        let sum = |(begin, &end): (usize, &usize)| counts[begin..end].iter().map(|&count| count as usize).sum();
        begins.zip(&self.pattern_ends).map(sum).collect()
    }

    #[inline]
    pub(super) fn node(&self, node: u32, work: &mut Work) -> Result<Node, TooLarge> {
        work.spend(1)?;
        Ok(self.nodes[node as usize])
    }

    /// Returns the nodes to which the split with this number leads.
    pub(super) fn branches(&self, split: u32, work: &mut Work) -> Result<&[u32], TooLarge> {
        self.splits.get(split as usize, work)
    }

    /// The number of sets of characters.
    pub(super) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// Returns the first and last code points of each range of a set, in order.
    pub(super) fn set(&self, set: usize, work: &mut Work) -> Result<&[[u32; 2]], TooLarge> {
        Ok(self.sets.get(set as u32, work)?.as_chunks().0)
    }

    fn add(&mut self, node: Node, work: &mut Work) -> Result<u32, TooLarge> {
        work.spend(1)?;
        self.nodes.push(node);
        Ok(self.nodes.len() as u32 - 1)
    }

    fn split(&mut self, nodes: &[u32], work: &mut Work) -> Result<u32, TooLarge> {
        let split = self.splits.add(nodes, work)?;
        self.add(Node::Split(split), work)
    }

    /// Adds a node that reads a character in `ranges` and goes on at the node `next`.
    fn add_read(&mut self, ranges: &[u32], next: u32, work: &mut Work) -> Result<u32, TooLarge> {
        let (set, _) = self.sets.number(ranges, work)?;
        self.add(Node::Read { set, next }, work)
    }

    /// Adds nodes that match `hir` (a parsed pattern, or a part of one) and then go on at the node `next`. Returns the
    /// node at which `hir` begins.
    fn compile(&mut self, hir: &Hir, next: u32, work: &mut Work) -> Result<u32, TooLarge> {
        work.spend(1)?;
        match hir.kind() {
            HirKind::Empty => Ok(next),
            HirKind::Literal(literal) => {
                let text = String::from_utf8_lossy(&literal.0);
                text.chars()
                    .rev()
                    .try_fold(next, |next, letter| self.add_read(&[letter.into(), letter.into()], next, work))
            }
            HirKind::Class(class) => self.add_read(&ranges(class), next, work),
            HirKind::Look(look) => {
                self.looks = true;
                self.add(Node::Look { look: *look, next }, work)
            }
            HirKind::Capture(capture) => self.compile(&capture.sub, next, work),
            HirKind::Concat(parts) => parts.iter().rev().try_fold(next, |next, part| self.compile(part, next, work)),
            HirKind::Alternation(branches) => {
                let starts: Result<Vec<_>, _> =
                    branches.iter().map(|branch| self.compile(branch, next, work)).collect();
                self.split(&starts?, work)
            }
            HirKind::Repetition(repetition) => self.repeat(repetition, next, work),
        }
    }

    fn repeat(&mut self, repetition: &Repetition, next: u32, work: &mut Work) -> Result<u32, TooLarge> {
        let mut at = next;
        match repetition.max {
            Some(max) => {
                for _ in repetition.min..max {
                    let body = self.compile(&repetition.sub, at, work)?;
                    at = self.split(&[body, next], work)?;
                }
            }
            None => {
                at = self.split(&[], work)?;
                let body = self.compile(&repetition.sub, at, work)?;
                self.nodes[at as usize] = Node::Split(self.splits.add(&[body, next], work)?);
            }
        }
        (0..repetition.min).try_fold(at, |at, _| self.compile(&repetition.sub, at, work))
    }
}

fn ranges(class: &Class) -> Vec<u32> {
    match class {
        Class::Unicode(class) => class.iter().flat_map(|range| [range.start().into(), range.end().into()]).collect(),
        Class::Bytes(class) => class.iter().flat_map(|range| [range.start().into(), range.end().into()]).collect(),
    }
}
