//! The deterministic automaton of patterns: what a match that began at a place has read since.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::alphabet::{Alphabet, ClassId};
use super::alphabet::{Kind, holds};
use super::compile::{TooLarge, Work};
use super::nfa::{Nfa, Node};
use super::table::{Draft, Facts, StateId};

/// Builds the automaton. An error also tells of which pattern most nodes were visited.
pub(super) fn dfa(nfa: &Nfa, alphabet: &Alphabet, work: &mut Work) -> Result<Draft, TooLarge> {
    let classes = alphabet.classes_of(&nfa.sets, work)?;
    let mut builder = Builder {
        nfa,
        alphabet,
        classes,
        work,
        visits: vec![0; nfa.nodes.len()],
        round: 0,
        numbers: Map::default(),
        known: Map::default(),
        keys: Vec::new(),
        draft: Draft::default(),
        targets: vec![Vec::new(); alphabet.len()],
    };
    for before in Kind::ALL {
        builder.draft.starts[before as usize] = builder.number(&[nfa.start], before)?;
    }
    let mut done = 0;
    while done < builder.keys.len() {
        builder.draft.check_size(alphabet)?;
        builder.expand(done)?;
        done += 1;
    }
    Ok(builder.draft)
}

/// A state: the nodes that read a character, wait for what looks around, or have matched, in order; and what stands
/// before, if it matters to one of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    nodes: Box<[u32]>,
    before: Option<Kind>,
}

struct Builder<'a> {
    nfa: &'a Nfa,
    alphabet: &'a Alphabet,
    /// The classes of each of the automaton's sets.
    classes: Vec<Vec<ClassId>>,
    work: &'a mut Work,
    /// The round in which each node was visited last.
    visits: Vec<u32>,
    round: u32,
    numbers: Map<Key, StateId>,
    /// The state of nodes whose closure was found before.
    known: Map<Key, StateId>,
    keys: Vec<Key>,
    draft: Draft,
    /// The nodes to which each class leads from the state that is expanded.
    targets: Vec<Vec<u32>>,
}

impl Builder<'_> {
    /// The nodes reached from `from` without reading a character. Those that look around are passed if they hold; where
    /// that depends on what stands behind, and it is not known, they stay.
    fn closure(&mut self, from: &[u32], before: Kind, behind: Option<Kind>) -> Result<Vec<u32>, TooLarge> {
        self.round += 1;
        let mut reached = Vec::new();
        let mut stack = from.to_vec();
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut self.visits[node as usize], self.round) == self.round {
                continue;
            }
            self.work.spend(1)?;
            match &self.nfa.nodes[node as usize] {
                Node::Split(nodes) => stack.extend_from_slice(nodes),
                Node::Look { look, next } => {
                    let ways = behind.as_ref().map_or(&Kind::ALL[..], std::slice::from_ref);
                    match ways.iter().filter(|&&behind| holds(*look, before, behind)).count() {
                        0 => {}
                        count if count == ways.len() => stack.push(*next),
                        _ => reached.push(node),
                    }
                }
                Node::Read { .. } | Node::Match(_) => reached.push(node),
            }
        }
        reached.sort_unstable();
        Ok(reached)
    }

    /// The number of the state that is reached at the nodes `from`.
    fn number(&mut self, from: &[u32], before: Kind) -> Result<StateId, TooLarge> {
        let known = Key { nodes: from.into(), before: self.nfa.looks.then_some(before) };
        if let Some(&number) = self.known.get(&known) {
            return Ok(number);
        }
        let mut nodes = self.closure(from, before, None)?;
        if let Some(pattern) = self.matched(&nodes) {
            // A match ends a thread, whatever else it could become.
            nodes.retain(|&node| matches!(self.nfa.nodes[node as usize], Node::Match(other) if other == pattern));
        }
        let before = self.waits(&nodes).then_some(before);
        let key = Key { nodes: nodes.into(), before };
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                let number = self.draft.add(Facts::default());
                self.numbers.insert(key.clone(), number);
                self.keys.push(key);
                number
            }
        };
        self.known.insert(known, number);
        Ok(number)
    }

    /// The first pattern that has matched at one of `nodes`.
    fn matched(&self, nodes: &[u32]) -> Option<u32> {
        self.patterns(nodes).min()
    }

    fn patterns(&self, nodes: &[u32]) -> impl Iterator<Item = u32> {
        nodes.iter().filter_map(|&node| match self.nfa.nodes[node as usize] {
            Node::Match(pattern) => Some(pattern),
            _ => None,
        })
    }

    /// Whether what stands behind matters to one of `nodes`.
    fn waits(&self, nodes: &[u32]) -> bool {
        nodes.iter().any(|&node| matches!(self.nfa.nodes[node as usize], Node::Look { .. }))
    }

    /// Finds what a state tells, and where it leads to.
    fn expand(&mut self, state: usize) -> Result<(), TooLarge> {
        let Key { nodes, before } = self.keys[state].clone();
        if let Some(pattern) = self.matched(&nodes) {
            self.draft.facts[state].matched = pattern + 1;
            return Ok(());
        }
        match before {
            None => self.aim(&nodes, None)?,
            Some(before) => self.look(state, &nodes, before)?,
        }
        for class in 0..self.targets.len() {
            if self.targets[class].is_empty() {
                continue;
            }
            let mut nodes = std::mem::take(&mut self.targets[class]);
            nodes.sort_unstable();
            nodes.dedup();
            self.work.spend(1)?;
            let target = self.number(&nodes, self.alphabet.kind(class as ClassId))?;
            self.draft.steps[state].push((class as ClassId, target));
            nodes.clear();
            self.targets[class] = nodes;
        }
        Ok(())
    }

    /// As `expand`, for a state to which it matters what stands behind.
    fn look(&mut self, state: usize, nodes: &[u32], before: Kind) -> Result<(), TooLarge> {
        let mut reached = Vec::new();
        for behind in Kind::ALL {
            reached.push(self.closure(nodes, before, Some(behind))?);
        }
        let everywhere =
            |pattern: &u32| reached.iter().all(|nodes| self.patterns(nodes).any(|other| other == *pattern));
        if let Some(pattern) = self.patterns(&reached[0]).filter(everywhere).min() {
            self.draft.facts[state].matched = pattern + 1;
            return Ok(());
        }
        for (behind, nodes) in Kind::ALL.into_iter().zip(reached) {
            match self.matched(&nodes) {
                Some(pattern) => self.draft.facts[state].pending[behind as usize] = pattern + 1,
                None => self.aim(&nodes, Some(behind))?,
            }
        }
        Ok(())
    }

    /// Notes where the characters of a kind, or of all, lead to from `nodes`.
    fn aim(&mut self, nodes: &[u32], kind: Option<Kind>) -> Result<(), TooLarge> {
        for &node in nodes {
            let Node::Read { set, next } = self.nfa.nodes[node as usize] else {
                continue;
            };
            let classes = &self.classes[set as usize];
            self.work.spend(classes.len())?;
            for &class in classes {
                if kind.is_none_or(|kind| self.alphabet.kind(class) == kind) {
                    self.targets[class as usize].push(next);
                }
            }
        }
        Ok(())
    }
}

/// Hashes what the library makes itself.
#[derive(Clone, Copy, Default)]
pub(super) struct QuickHasher(u64);

pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}
