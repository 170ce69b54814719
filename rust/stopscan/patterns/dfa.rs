//! The deterministic automaton of patterns: what a match that began at a place has read since.

use super::alphabet::{Alphabet, ClassId};
use super::work::{Lists, MAX_CELLS, MAX_STATES, MAX_THREADS, TooLarge, Work};

/// The number of a state.
pub(super) type StateId = u16;

/// The state from which nothing can match.
pub(super) const DEAD: StateId = 0;

/// The patterns that a state accepts, as their index plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Accept {
    /// The pattern that has matched, whatever comes next. No transition leads on.
    pub(super) now: u32,
    /// The pattern that the next character confirms, by its kind, or the end of the text.
    pub(super) confirmed: [u32; 4],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) class: ClassId,
    pub(super) target: StateId,
}

/// An automaton over classes of characters. State 0 is the dead one.
#[derive(Debug)]
pub(super) struct Dfa {
    transitions: Lists<Transition>,
    accepts: Vec<Accept>,
    /// The first state of a match, by the kind of what stands before.
    pub(super) starts: [StateId; 4],
}

/// An automaton without states from which nothing can match. States that accept nothing come before the others.
#[derive(Debug)]
pub(super) struct Trimmed {
    pub(super) dfa: Dfa,
    /// The first state that accepts something.
    pub(super) first_accepting: usize,
    /// For each state, how many characters it needs at least besides the one that completes a match.
    pub(super) needs: Vec<u32>,
    /// Whether states were left out.
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

    /// Whether nothing can match.
    pub(super) fn is_dead(&self) -> bool {
        self.starts == [DEAD; 4]
    }

    /// Adds a state that accepts nothing yet.
    pub(super) fn add_state(&mut self, work: &mut Work) -> Result<StateId, TooLarge> {
        work.spend(1)?;
        self.accepts.push(Accept::default());
        Ok(self.accepts.len() as StateId - 1)
    }

    /// Adds a transition from the first state whose transitions were not closed.
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

    /// Leaves out the states from which nothing can match, and puts those that accept nothing first.
    pub(super) fn trim(self, work: &mut Work) -> Result<Trimmed, TooLarge> {
        let distances = self.distances(work)?;
        let is_live = |state: &StateId| distances[*state as usize] != u32::MAX;
        let mut order = vec![DEAD];
        let (mut silent, mut accepting) = (Vec::new(), Vec::new());
        for state in (1..self.len() as StateId).filter(is_live) {
            let accepts = self.accept(state, work)? != Accept::default();
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
            dfa.set_accept(number, self.accept(state, work)?);
            for &Transition { class, target } in self.transitions(state, work)? {
                if numbers[target as usize] != DEAD {
                    dfa.add_transition(class, numbers[target as usize], work)?;
                }
            }
            dfa.close_transitions();
        }
        dfa.starts = self.starts.map(|state| numbers[state as usize]);
        // A thread that has matched is over, however little it held.
        let needs = order.iter().map(|&state| distances[state as usize].wrapping_sub(1)).collect();
        Ok(Trimmed { lost_states: dfa.len() < self.len(), dfa, first_accepting, needs })
    }

    /// For each state, how many characters complete a match at least; `u32::MAX` if none do.
    fn distances(&self, work: &mut Work) -> Result<Vec<u32>, TooLarge> {
        let sources = self.sources(work)?;
        let mut distances = work.vec(u32::MAX, self.len())?;
        let (mut nearest, mut next) = (Vec::new(), Vec::new());
        for state in 1..self.len() as StateId {
            let accept = self.accept(state, work)?;
            if accept.now != 0 {
                nearest.push(state);
            } else if accept != Accept::default() {
                next.push(state); // the character that confirms it may be the next
            }
        }
        for distance in 0.. {
            if nearest.is_empty() && next.is_empty() {
                break;
            }
            for state in std::mem::replace(&mut nearest, std::mem::take(&mut next)) {
                work.spend(1)?;
                // A state that several ways lead to is in the list several times.
                if distances[state as usize] != u32::MAX {
                    continue;
                }
                distances[state as usize] = distance;
                let sources = sources.get(state as usize, work)?;
                nearest.extend(sources.iter().filter(|&&source| distances[source as usize] == u32::MAX));
            }
        }
        Ok(distances)
    }

    /// For each state, the states that lead to it, each once.
    fn sources(&self, work: &mut Work) -> Result<Lists<StateId>, TooLarge> {
        let mut last_source = work.vec(DEAD, self.len())?;
        let mut pairs = Vec::new();
        for source in 1..self.len() as StateId {
            for &Transition { target, .. } in self.transitions(source, work)? {
                if std::mem::replace(&mut last_source[target as usize], source) != source {
                    pairs.push((target, source));
                }
            }
        }
        Lists::grouped(self.len(), &pairs, work)
    }

    /// For each class of an alphabet, whether a match may begin with one of its characters.
    pub(super) fn first_classes(&self, alphabet: &Alphabet, work: &mut Work) -> Result<Vec<bool>, TooLarge> {
        let mut begins = work.vec(false, alphabet.len())?;
        for start in self.starts {
            for &Transition { class, .. } in self.transitions(start, work)? {
                begins[class as usize] = true;
            }
        }
        Ok(begins)
    }

    /// Refuses an automaton with which a stream could have more than `MAX_THREADS` threads in different states, if
    /// matches begin with the classes that `begins` marks.
    ///
    /// The oldest thread has read the first characters of all later ones. So there are at most as many threads as the
    /// path of the oldest has transitions with such a class. Behind a cycle with such a transition this bounds nothing,
    /// and each state there counts.
    pub(super) fn check_threads(&self, begins: &[bool], work: &mut Work) -> Result<(), TooLarge> {
        if self.len() <= MAX_THREADS {
            return Ok(());
        }
        let Components { component, count, .. } = self.components(work)?;
        let members: Vec<(u16, StateId)> =
            (0..self.len() as StateId).filter_map(|state| Some((component[state as usize]?, state))).collect();
        let members = Lists::grouped(count as usize, &members, work)?;
        let mut threads = work.vec(0, count as usize)?;
        let mut behind_cycle = work.vec(false, count as usize)?;
        let mut states_behind = 0;
        // Components have smaller numbers than those that lead to them.
        for number in (0..count).rev() {
            let states = members.get(number as usize, work)?;
            for &state in states {
                for &Transition { class, target } in self.transitions(state, work)? {
                    behind_cycle[number as usize] |=
                        begins[class as usize] && component[target as usize] == Some(number);
                }
            }
            if behind_cycle[number as usize] {
                states_behind += states.len();
            }
            for &state in states {
                for &Transition { class, target } in self.transitions(state, work)? {
                    let Some(other) = component[target as usize].filter(|&other| other != number) else {
                        continue;
                    };
                    behind_cycle[other as usize] |= behind_cycle[number as usize];
                    let more = threads[number as usize] + usize::from(begins[class as usize]);
                    threads[other as usize] = more.max(threads[other as usize]);
                }
            }
        }
        let before = (0..count as usize).filter(|&number| !behind_cycle[number]).map(|number| threads[number]).max();
        if states_behind + before.unwrap_or_default() > MAX_THREADS { Err(TooLarge) } else { Ok(()) }
    }

    /// The strongly connected components of the states that can be reached, by Tarjan's algorithm.
    fn components(&self, work: &mut Work) -> Result<Components, TooLarge> {
        let mut found = Components {
            low: work.vec(0, self.len())?,
            component: work.vec(None, self.len())?,
            open: Vec::new(),
            count: 0,
        };
        let mut met = 0;
        for root in self.starts {
            if root == DEAD || found.low[root as usize] != 0 {
                continue;
            }
            // The states that are entered, when each was met, and which of its transitions is next.
            let mut entered = Vec::new();
            let mut enter = Some(root);
            loop {
                if let Some(state) = enter.take() {
                    met += 1;
                    found.low[state as usize] = met;
                    found.open.push(state);
                    entered.push((state, met, 0));
                }
                let Some((state, when, at)) = entered.last_mut() else {
                    break;
                };
                let (state, when) = (*state, *when);
                if let Some(Transition { target, .. }) = self.transitions.item(state as usize, *at, work)? {
                    if found.low[target as usize] == 0 {
                        enter = Some(target); // the transition is looked at again when it is left
                        continue;
                    }
                    *at += 1;
                    if found.component[target as usize].is_none() {
                        found.low[state as usize] = found.low[state as usize].min(found.low[target as usize]);
                    }
                } else {
                    entered.pop();
                    if found.low[state as usize] == when {
                        found.close(state);
                    }
                }
            }
        }
        Ok(found)
    }
}

struct Components {
    /// The earliest open state that each was seen to lead to, by when it was met; 0 before.
    low: Vec<u32>,
    component: Vec<Option<u16>>,
    open: Vec<StateId>,
    count: u16,
}

impl Components {
    /// The states that were met since `state` are a component.
    fn close(&mut self, state: StateId) {
        while let Some(member) = self.open.pop() {
            self.component[member as usize] = Some(self.count);
            if member == state {
                break;
            }
        }
        self.count += 1;
    }
}
