//! Makes the deterministic automaton of patterns from the nondeterministic one.

use super::alphabet::{Alphabet, ClassId, Kind, holds};
use super::dfa::{Accept, Dfa, StateId};
use super::nfa::{Nfa, Node};
use super::work::{Lists, Numbers, TooLarge, Work};

/// Stands for any kind of character, in a state for which the kind of the last character does not matter.
const ANY_BEFORE: u32 = Kind::ALL.len() as u32;

/// Makes the deterministic automaton of `nfa`. Adds to `visits` how often each node of `nfa` was visited. If the
/// automaton is too large, `visits` shows which pattern is the reason.
pub(super) fn determinize(
    nfa: &Nfa,
    alphabet: &Alphabet,
    visits: &mut [u32],
    work: &mut Work,
) -> Result<Dfa, TooLarge> {
    let mut builder = Builder {
        nfa,
        alphabet,
        classes: alphabet.classes_of(nfa, work)?,
        rounds: work.vec(0, nfa.len())?,
        visits,
        work,
        round: 0,
        states: Numbers::default(),
        targets: Numbers::default(),
        state_of_targets: Vec::new(),
        dfa: Dfa::new(),
        reached: Vec::new(),
        stack: Vec::new(),
        next: vec![Vec::new(); alphabet.len()],
    };
    builder.states.number(&[], builder.work)?; // the dead state
    for before in Kind::ALL {
        builder.dfa.starts[before as usize] = builder.state(&mut vec![nfa.start], before)?;
    }
    let mut state = 1;
    while state < builder.states.len() {
        builder.dfa.check_size(alphabet)?;
        builder.expand(state as StateId)?;
        state += 1;
    }
    Ok(builder.dfa)
}

/// Builds the DFA. A state stands for a set of nodes of `nfa`, and is stored as a list: the sorted nodes, then the kind
/// of the last character that was read. If this kind does not matter to any of the nodes, `ANY_BEFORE` is stored
/// instead. The list has only nodes that read a character, wait at a look-around, or have matched.
struct Builder<'a> {
    nfa: &'a Nfa,
    alphabet: &'a Alphabet,
    /// For each set of characters of `nfa`, the classes of which it consists.
    classes: Lists<ClassId>,
    work: &'a mut Work,
    visits: &'a mut [u32],
    /// The last round (call of `closure`) in which each node was met, so that no node is visited twice in a round.
    rounds: Vec<u32>,
    round: u32,
    /// Gives each state a number. A state is a list of nodes.
    states: Numbers,
    /// A cache for the results of `Builder::state`. `targets` numbers the lists of arguments (nodes, and the kind of a
    /// character) with which it was called. `state_of_targets[n]` is the result for the list with the number `n`.
    targets: Numbers,
    state_of_targets: Vec<StateId>,
    dfa: Dfa,
    /// The nodes that the last closure reached.
    reached: Vec<u32>,
    stack: Vec<u32>,
    /// The nodes to which each class of characters leads from the state that `expand` is working on.
    next: Vec<Vec<u32>>,
}

impl Builder<'_> {
    /// Finds the nodes that can be reached from the nodes `from` without reading a character, and stores them in
    /// `reached`.
    ///
    /// `before` is the kind of the last character. `behind` is the kind of the next character, or `None` if it is not
    /// known yet. They decide whether a look-around such as `\b` is passed. If a look-around depends on an unknown
    /// character, the search stops there, and the node of the look-around is added to `reached`.
    fn closure(&mut self, from: &[u32], before: Kind, behind: Option<Kind>) -> Result<(), TooLarge> {
        self.round += 1;
        self.reached.clear();
        self.stack.clear();
        self.stack.extend_from_slice(from);
        while let Some(node) = self.stack.pop() {
            self.work.spend(2)?;
            if std::mem::replace(&mut self.rounds[node as usize], self.round) == self.round {
                continue;
            }
            self.visits[node as usize] += 1;
            match self.nfa.node(node, self.work)? {
                Node::Split(split) => self.stack.extend_from_slice(self.nfa.branches(split, self.work)?),
                Node::Look { look, next } => {
                    let ways = behind.as_ref().map_or(&Kind::ALL[..], std::slice::from_ref);
                    match ways.iter().filter(|&&behind| holds(look, before, behind)).count() {
                        0 => {}
                        count if count == ways.len() => self.stack.push(next),
                        _ => self.reached.push(node),
                    }
                }
                Node::Read { .. } | Node::Match(_) => self.reached.push(node),
            }
        }
        self.work.sort(&mut self.reached)
    }

    /// Returns the state of the automaton for `nodes`, which must be sorted, after a character of the kind `before`.
    /// Overwrites `nodes`.
    fn state(&mut self, nodes: &mut Vec<u32>, before: Kind) -> Result<StateId, TooLarge> {
        nodes.push(if self.nfa.looks { before as u32 } else { ANY_BEFORE });
        let (target, is_new) = self.targets.number(nodes, self.work)?;
        if !is_new {
            return Ok(self.state_of_targets[target as usize]);
        }
        nodes.pop();
        self.closure(nodes, before, None)?;
        let mut reached = std::mem::take(&mut self.reached);
        let (mut matched, mut waits) = (None, false);
        for &node in &reached {
            match self.nfa.node(node, self.work)? {
                // If several patterns match, the first in the list counts. The match ends here, even if the pattern
                // also matches more text.
                Node::Match(pattern) if matched.is_none_or(|(first, _)| pattern < first) => {
                    matched = Some((pattern, node));
                }
                Node::Look { .. } => waits = true,
                _ => {}
            }
        }
        if let Some((_, node)) = matched {
            reached = vec![node];
            waits = false;
        }
        reached.push(if waits { before as u32 } else { ANY_BEFORE });
        let (state, is_new) = self.states.number(&reached, self.work)?;
        if is_new {
            self.dfa.add_state(self.work)?;
        }
        self.state_of_targets.push(state as StateId);
        self.reached = reached;
        Ok(state as StateId)
    }

    /// Finds the patterns that a state accepts, and the states to which it leads.
    fn expand(&mut self, state: StateId) -> Result<(), TooLarge> {
        let mut nodes = self.states.get(state.into(), self.work)?.to_vec();
        let before = nodes.pop().and_then(|before| Kind::ALL.get(before as usize).copied());
        // If a pattern has matched in a state, the state has only the node of this match: `Builder::state` drops all
        // others.
        let matched = if nodes.len() == 1 { self.patterns(&nodes)?.pop() } else { None };
        match (before, matched) {
            (Some(before), _) => self.look(state, &nodes, before)?,
            (None, Some(now)) => self.dfa.set_accept(state, Accept { now, ..Accept::default() }),
            (None, None) => self.collect_targets(&nodes, None)?,
        }
        self.work.spend(self.next.len())?;
        for class in 0..self.next.len() {
            if self.next[class].is_empty() {
                continue;
            }
            let mut nodes = std::mem::take(&mut self.next[class]);
            self.work.sort(&mut nodes)?;
            let target = self.state(&mut nodes, self.alphabet.kind(class as ClassId))?;
            self.dfa.add_transition(class as ClassId, target, self.work)?;
            nodes.clear();
            self.next[class] = nodes;
        }
        self.dfa.close_transitions();
        Ok(())
    }

    /// Called by `expand` for a state in which a look-around, such as `\b`, depends on the next character. Tries each
    /// kind that this character may have.
    fn look(&mut self, state: StateId, nodes: &[u32], before: Kind) -> Result<(), TooLarge> {
        let mut all = Vec::new();
        for behind in Kind::ALL {
            self.closure(nodes, before, Some(behind))?;
            let reached = self.reached.clone();
            all.push((self.patterns(&reached)?, reached));
        }
        let mut accept = Accept::default();
        for &pattern in &all[0].0 {
            self.work.spend(all.iter().map(|(patterns, _)| patterns.len()).sum())?;
            if all.iter().all(|(patterns, _)| patterns.contains(&pattern)) && !(1..=pattern).contains(&accept.now) {
                accept.now = pattern;
            }
        }
        if accept.now == 0 {
            for (behind, (patterns, nodes)) in Kind::ALL.into_iter().zip(&all) {
                match patterns.iter().min() {
                    Some(&pattern) => accept.confirmed[behind as usize] = pattern,
                    None => self.collect_targets(nodes, Some(behind))?,
                }
            }
        }
        self.dfa.set_accept(state, accept);
        Ok(())
    }

    /// Returns the patterns that have matched at one of `nodes`, each as its index plus one.
    fn patterns(&mut self, nodes: &[u32]) -> Result<Vec<u32>, TooLarge> {
        let mut patterns = Vec::new();
        for &node in nodes {
            if let Node::Match(pattern) = self.nfa.node(node, self.work)? {
                patterns.push(pattern + 1);
            }
        }
        Ok(patterns)
    }

    /// For each class of characters, adds to `self.next` the nodes to which the class leads from `nodes`. If `kind` is
    /// given, does so only for classes of this kind.
    fn collect_targets(&mut self, nodes: &[u32], kind: Option<Kind>) -> Result<(), TooLarge> {
        for &node in nodes {
            let Node::Read { set, next } = self.nfa.node(node, self.work)? else {
                continue;
            };
            for &class in self.classes.get(set as usize, self.work)? {
                if kind.is_none_or(|kind| self.alphabet.kind(class) == kind) {
                    self.next[class as usize].push(next);
                }
            }
        }
        Ok(())
    }
}
