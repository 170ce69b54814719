//! The deterministic automaton of patterns. A state stands for the text that a match has read since it began.

use super::alphabet::{Alphabet, ClassId};
use super::work::{Lists, MAX_CELLS, MAX_STATES, TooLarge, Work};

pub(super) type StateId = u16;

/// The state from which nothing can match.
pub(super) const DEAD: StateId = 0;

/// The patterns that a state accepts. A pattern is stored as its index plus one, and 0 stands for no pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accept {
    /// The pattern that has matched, whatever comes next. The match is then over, so the state has no transitions.
    pub(super) now: u32,
    /// The pattern that has matched, for each kind that the next character may have. A match of `END\b`, for example,
    /// depends on the next character. `Kind::Edge` stands for the end of the text.
    pub(super) confirmed: [u32; 4],
}

impl Accept {
    /// Leaves out all patterns but the first `count`.
    fn only_first(self, count: usize) -> Accept {
        let only = |pattern: u32| if pattern as usize > count { 0 } else { pattern };
        Accept { now: only(self.now), confirmed: self.confirmed.map(only) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) class: ClassId,
    pub(super) target: StateId,
}

/// An automaton over classes of characters. State 0 is the dead state, from which no match is possible.
#[derive(Debug)]
pub(super) struct Dfa {
    transitions: Lists<Transition>,
    accepts: Vec<Accept>,
    /// The state in which a match begins, for each kind of the character before the match.
    pub(super) starts: [StateId; 4],
}

/// An automaton without useless states: a match is possible from every state except the dead one. The states that
/// accept something come last.
#[derive(Debug)]
pub(super) struct Trimmed {
    pub(super) dfa: Dfa,
    /// The first state that accepts something.
    pub(super) first_accepting: usize,
    /// For each state, how many characters must follow, at least, before the character that completes a match.
    pub(super) needs: Vec<u32>,
    /// Whether `Dfa::trim` left out states, because no match was possible from them.
    pub(super) lost_states: bool,
}

impl Dfa {
    /// An automaton with the dead state only.
    pub(super) fn new() -> Dfa {
        let mut transitions = Lists::default();
        transitions.close();
        Dfa { transitions, accepts: vec![Accept::default()], starts: [DEAD; 4] }
    }

    pub(super) fn len(&self) -> usize {
        self.accepts.len()
    }

    /// Adds a state that accepts nothing yet.
    pub(super) fn add_state(&mut self, work: &mut Work) -> Result<StateId, TooLarge> {
        work.spend(1)?;
        self.accepts.push(Accept::default());
        Ok(self.accepts.len() as StateId - 1)
    }

    /// Adds a transition that leaves the current state. `close_transitions` makes the next state the current one.
    pub(super) fn add_transition(&mut self, class: ClassId, target: StateId, work: &mut Work) -> Result<(), TooLarge> {
        self.transitions.push(Transition { class, target }, work)
    }

    pub(super) fn close_transitions(&mut self) {
        self.transitions.close();
    }

    /// Refuses more states than an automaton over `alphabet` may have.
    pub(super) fn check_size(&self, alphabet: &Alphabet) -> Result<(), TooLarge> {
        let states = self.len();
        if states > MAX_STATES || states * alphabet.len() > MAX_CELLS { Err(TooLarge) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn transitions(&self, state: StateId, work: &mut Work) -> Result<&[Transition], TooLarge> {
        self.transitions.get(state as usize, work)
    }

    #[inline]
    pub(super) fn accept(&self, state: StateId, work: &mut Work) -> Result<Accept, TooLarge> {
        work.spend(1)?;
        Ok(self.accepts[state as usize])
    }

    pub(super) fn set_accept(&mut self, state: StateId, accept: Accept) {
        self.accepts[state as usize] = accept;
    }

    /// Makes an automaton of only the first `patterns` patterns. Leaves out the states from which none of them can
    /// match. The states that accept one of them come last.
    pub(super) fn trim(&self, patterns: usize, work: &mut Work) -> Result<Trimmed, TooLarge> {
        let distances = self.distances(patterns, work)?;
        let is_live = |state: &StateId| distances[*state as usize] != u32::MAX;
        let mut order = vec![DEAD];
        let (mut silent, mut accepting) = (Vec::new(), Vec::new());
        for state in (1..self.len() as StateId).filter(is_live) {
            let accepts = self.accept(state, work)?.only_first(patterns) != Accept::default();
            if accepts { accepting.push(state) } else { silent.push(state) }
        }
        let first_accepting = 1 + silent.len();
        order.append(&mut silent);
        order.append(&mut accepting);
        let mut numbers = work.vec(DEAD, self.len())?;
        for (number, &state) in (0..).zip(&order) {
            numbers[state as usize] = number;
        }
        let mut dfa = Dfa::new();
        for &state in &order[1..] {
            let number = dfa.add_state(work)?;
            dfa.set_accept(number, self.accept(state, work)?.only_first(patterns));
            for &Transition { class, target } in self.transitions(state, work)? {
                if numbers[target as usize] != DEAD {
                    dfa.add_transition(class, numbers[target as usize], work)?;
                }
            }
            dfa.close_transitions();
        }
        dfa.starts = self.starts.map(|state| numbers[state as usize]);
        // The distance of a state is the least number of characters that complete a match. It is 0 if a pattern has
        // matched. `wrapping_sub` turns 0 into `u32::MAX`, which exceeds every limit on held text. So a thread
        // (unfinished match) that reaches such a state ends.
        let needs = order.iter().map(|&state| distances[state as usize].wrapping_sub(1)).collect();
        Ok(Trimmed { lost_states: dfa.len() < self.len(), dfa, first_accepting, needs })
    }

    /// For each state, returns the least number of characters that complete a match of one of the first `patterns`
    /// patterns. If none of them can match, this is `u32::MAX`.
    ///
    /// Passes over all states, from the last to the first, until no distance changes. Most transitions lead to a later
    /// state, so a few passes suffice.
    fn distances(&self, patterns: usize, work: &mut Work) -> Result<Vec<u32>, TooLarge> {
        let mut distances = work.vec(u32::MAX, self.len())?;
        loop {
            let mut back = Vec::new();
            for state in (1..self.len() as StateId).rev() {
                let accept = self.accept(state, work)?.only_first(patterns);
                let mut distance = match accept.now {
                    0 if accept == Accept::default() => u32::MAX,
                    0 => 1, // there is a match if certain characters follow
                    _ => 0,
                };
                for &Transition { target, .. } in self.transitions(state, work)? {
                    distance = distance.min(distances[target as usize].saturating_add(1));
                    if target < state && back.last() != Some(&(state, target)) {
                        back.push((state, target));
                    }
                }
                distances[state as usize] = distance;
            }
            let settled = |&(from, to)| distances[from as usize] <= distances[to as usize].saturating_add(1);
            if back.iter().all(settled) {
                return Ok(distances);
            }
        }
    }

    /// Returns for each class of an alphabet whether a match may begin with one of its characters.
    pub(super) fn first_classes(&self, alphabet: &Alphabet, work: &mut Work) -> Result<Vec<bool>, TooLarge> {
        let mut begins = work.vec(false, alphabet.len())?;
        for start in self.starts {
            for &Transition { class, .. } in self.transitions(start, work)? {
                begins[class as usize] = true;
            }
        }
        Ok(begins)
    }

    /// Refuses an automaton with which a stream could have more than `limit` threads (unfinished matches) in different
    /// states. `begins` marks the classes of characters with which a match can begin.
    ///
    /// Each later thread begins with a character of a marked class, and the oldest thread has read this character, too.
    /// So the stream has at most as many threads as the oldest thread has made transitions with marked classes. On a
    /// cycle of states, the oldest thread can make any number of these transitions. But threads in the same state count
    /// once, so each state on a cycle or after a cycle counts as one thread. A state that leads to itself only with
    /// unmarked classes is not a cycle here, because no thread begins with their characters.
    pub(super) fn check_threads(&self, begins: &[bool], limit: usize, work: &mut Work) -> Result<(), TooLarge> {
        if self.len() <= limit {
            return Ok(());
        }
        let lengthens =
            |state, transition: &&Transition| transition.target != state || begins[transition.class as usize];
        // Sorts the states topologically. `open[state]` counts the transitions to this state from states that were not
        // handled yet. A state is handled when its count reaches 0, so a state on a cycle or after one is never
        // handled.
        let mut open = work.vec(0_u32, self.len())?;
        for state in 1..self.len() as StateId {
            for transition in self.transitions(state, work)?.iter().filter(|transition| lengthens(state, transition)) {
                open[transition.target as usize] += 1;
            }
        }
        let mut threads = work.vec(0, self.len())?;
        let mut ready: Vec<StateId> = (1..self.len() as StateId).filter(|&state| open[state as usize] == 0).collect();
        let (mut most, mut handled) = (0, 1);
        while let Some(state) = ready.pop() {
            let before = threads[state as usize];
            most = before.max(most);
            handled += 1;
            for transition in self.transitions(state, work)?.iter().filter(|transition| lengthens(state, transition)) {
                let target = transition.target as usize;
                threads[target] = threads[target].max(before + usize::from(begins[transition.class as usize]));
                open[target] -= 1;
                if open[target] == 0 {
                    ready.push(transition.target);
                }
            }
        }
        if most + self.len() - handled > limit { Err(TooLarge) } else { Ok(()) }
    }
}
