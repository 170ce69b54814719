//! An automaton over classes of characters while it is built, and the table that comes of it.

use super::alphabet::Alphabet;
use super::alphabet::ClassId;
use super::alphabet::Kind;
use super::compile::MOST_CELLS;
use super::compile::MOST_STATES;
use super::compile::TooLarge;

/// The number of a state.
pub(super) type StateId = u16;

/// What a state tells. Patterns are referred to by their index plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The pattern that has matched, whatever comes next.
    pub(super) matched: u32,
    /// The pattern that a character of each kind, or the end of the text, confirms.
    pub(super) pending: [u32; 4],
}

/// States with the steps between them.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Vec<(ClassId, StateId)>>,
    pub(super) facts: Vec<Facts>,
    /// The first state of a match, by the kind of what stands before.
    pub(super) starts: [StateId; 4],
}

/// State 0 is none. The states that tell nothing come before those that tell something.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Where a class leads to from each state, class by class: all threads of a stream read the same character.
    next: Vec<StateId>,
    states: usize,
    /// The first state that tells something.
    telling: StateId,
    facts: Vec<Facts>,
    /// How many characters each state needs at least, besides the one that completes a match: these would be held.
    needs: Vec<u32>,
    pub(super) starts: [StateId; 4],
}

impl Draft {
    pub(super) fn add(&mut self, facts: Facts) -> StateId {
        self.steps.push(Vec::new());
        self.facts.push(facts);
        self.facts.len() as StateId - 1
    }

    pub(super) fn check_size(&self, alphabet: &Alphabet) -> Result<(), TooLarge> {
        let states = self.facts.len();
        if states > MOST_STATES || states * alphabet.len() > MOST_CELLS { Err(TooLarge) } else { Ok(()) }
    }

    /// For each state, the states that lead to it.
    fn sources(&self) -> Vec<Vec<usize>> {
        let mut sources = vec![Vec::new(); self.facts.len()];
        for (source, steps) in self.steps.iter().enumerate() {
            for &(_, target) in steps {
                if sources[target as usize].last() != Some(&source) {
                    sources[target as usize].push(source);
                }
            }
        }
        sources
    }

    /// For each state, how many characters it needs at least, besides the one that completes a match.
    fn needs(&self) -> Vec<u32> {
        let sources = self.sources();
        let mut needs = vec![u32::MAX; self.facts.len()];
        let mut level = Vec::new();
        for (state, facts) in self.facts.iter().enumerate() {
            if facts.pending != [0; 4] {
                level.push(state); // the character that confirms it may be the next
            }
            if facts.matched != 0 {
                level.extend(&sources[state]);
            }
        }
        for least in 0.. {
            // Marked while they are kept, so that a state that several ways lead to is here once.
            level.retain(|&state| {
                let new = needs[state] == u32::MAX;
                if new {
                    needs[state] = least;
                }
                new
            });
            if level.is_empty() {
                break;
            }
            level = level.iter().flat_map(|&state| &sources[state]).copied().collect();
        }
        needs
    }

    /// For each state, whether something can complete from it on.
    pub(super) fn live(&self) -> Vec<bool> {
        let mut sources = self.sources();
        let mut live = vec![false; self.facts.len()];
        let mut found: Vec<usize> = (0..live.len()).filter(|&state| self.facts[state] != Facts::default()).collect();
        while let Some(state) = found.pop() {
            if !std::mem::replace(&mut live[state], true) {
                found.append(&mut sources[state]);
            }
        }
        live
    }

    /// For each class, whether a match may begin with one of its characters.
    pub(super) fn begins(&self, alphabet: &Alphabet, live: &[bool]) -> Vec<bool> {
        let mut begins = vec![false; alphabet.len()];
        for &(class, target) in self.starts.iter().flat_map(|&start| &self.steps[start as usize]) {
            begins[class as usize] |= live[target as usize];
        }
        begins
    }

    /// The table of the `live` states.
    pub(super) fn table(&self, alphabet: &Alphabet, live: &[bool]) -> Table {
        let tells = |state: &usize| self.facts[*state] != Facts::default();
        let (telling, silent): (Vec<usize>, Vec<usize>) = (0..live.len()).filter(|&state| live[state]).partition(tells);
        let mut numbers = vec![0; live.len()];
        for (number, &state) in (1..).zip(silent.iter().chain(&telling)) {
            numbers[state] = number;
        }
        let states = 1 + silent.len() + telling.len();
        let mut next = vec![0; states * alphabet.len()];
        for &state in silent.iter().chain(&telling) {
            for &(class, target) in &self.steps[state] {
                next[class as usize * states + numbers[state] as usize] = numbers[target as usize];
            }
        }
        let needs = self.needs();
        Table {
            needs: [0].into_iter().chain(silent.iter().chain(&telling).map(|&state| needs[state])).collect(),
            next,
            states,
            telling: 1 + silent.len() as StateId,
            facts: telling.iter().map(|&state| self.facts[state]).collect(),
            starts: self.starts.map(|state| numbers[state as usize]),
        }
    }
}

impl Table {
    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// Where a class leads to from each state.
    #[inline(always)]
    pub(super) fn column(&self, class: ClassId) -> &[StateId] {
        &self.next[class as usize * self.states..][..self.states]
    }

    pub(super) fn next(&self, class: ClassId, state: StateId) -> StateId {
        self.column(class)[state as usize]
    }

    /// Whether `state` has matched, or waits to be confirmed; so does a greater one, and a smaller one does not.
    #[inline(always)]
    pub(super) fn tells(&self, state: StateId) -> bool {
        state >= self.telling
    }

    /// How many characters a state needs at least, besides the one that completes a match.
    pub(super) fn needs(&self, state: StateId) -> usize {
        self.needs[state as usize] as usize
    }

    fn facts(&self, state: StateId) -> Facts {
        match state.checked_sub(self.telling) {
            Some(index) => self.facts[index as usize],
            None => Facts::default(),
        }
    }

    /// The pattern that has matched, its index plus one, or 0.
    #[inline]
    pub(super) fn matched(&self, state: StateId) -> u32 {
        self.facts(state).matched
    }

    /// The pattern that a character of a kind confirms, its index plus one, or 0.
    #[inline]
    pub(super) fn confirmed(&self, state: StateId, kind: Kind) -> u32 {
        self.facts(state).pending[kind as usize]
    }
}

/// At most so many places of a text, where matches have begun, are in different states at once.
///
/// A place has read the first character of every later one. So the way of the oldest has as many such characters as
/// there are places; only behind a circle with one this says nothing, and there every state may be taken.
pub(super) fn most_threads(draft: &Draft, live: &[bool], begins: &[bool]) -> usize {
    let steps = |state: usize| draft.steps[state].iter().filter(|step| live[step.1 as usize]);
    let (component, count) = components(draft, live);
    let mut members = vec![Vec::new(); count];
    for (state, &component) in component.iter().enumerate() {
        if let Some(component) = component {
            members[component].push(state);
        }
    }
    // Components have smaller numbers than those that lead to them.
    let mut places = vec![0; count];
    let mut behind_circle = vec![false; count];
    for number in (0..count).rev() {
        let all_steps = || members[number].iter().flat_map(|&state| steps(state));
        let leads_to = |target: u16| component[target as usize].unwrap_or(number);
        behind_circle[number] |= all_steps().any(|&(class, to)| begins[class as usize] && leads_to(to) == number);
        for &(class, target) in all_steps() {
            let target = leads_to(target);
            behind_circle[target] |= behind_circle[number];
            if target != number {
                places[target] = places[target].max(places[number] + usize::from(begins[class as usize]));
            }
        }
    }
    let behind: usize = (0..count).filter(|&number| behind_circle[number]).map(|number| members[number].len()).sum();
    let before = (0..count).filter(|&number| !behind_circle[number]).map(|number| places[number]).max();
    behind + before.unwrap_or_default()
}

/// The strongly connected component of each live state that can be reached, by Tarjan's algorithm; and how many there
/// are.
fn components(draft: &Draft, live: &[bool]) -> (Vec<Option<usize>>, usize) {
    let mut found =
        Components { low: vec![0; live.len()], component: vec![None; live.len()], open: Vec::new(), count: 0 };
    let mut met = 0;
    for root in draft.starts.map(usize::from) {
        if !live[root] || found.low[root] != 0 {
            continue;
        }
        // The states that are entered, when each was met, and which of its steps is next.
        let mut entered = Vec::new();
        let mut enter = Some(root);
        loop {
            if let Some(state) = enter.take() {
                met += 1;
                found.low[state] = met;
                found.open.push(state);
                entered.push((state, met, 0));
            }
            let Some((state, when, step)) = entered.last_mut() else {
                break;
            };
            let (state, when) = (*state, *when);
            if let Some(&(_, target)) = draft.steps[state].get(*step) {
                let target = target as usize;
                if live[target] && found.low[target] == 0 {
                    enter = Some(target); // and the step is looked at again behind it
                    continue;
                }
                *step += 1;
                if live[target] && found.component[target].is_none() {
                    found.low[state] = found.low[state].min(found.low[target]);
                }
            } else {
                entered.pop();
                if found.low[state] == when {
                    found.close(state);
                }
            }
        }
    }
    (found.component, found.count)
}

struct Components {
    /// The earliest open state that each was seen to lead to, by when it was met; 0 before.
    low: Vec<usize>,
    component: Vec<Option<usize>>,
    open: Vec<usize>,
    count: usize,
}

impl Components {
    /// The states that were met since `state` are a component.
    fn close(&mut self, state: usize) {
        while let Some(member) = self.open.pop() {
            self.component[member] = Some(self.count);
            if member == state {
                break;
            }
        }
        self.count += 1;
    }
}

/// Whether a match can go on for ever through ordinary text: through words with spaces between, or through ideographs
/// with their full stops.
pub(super) fn lives_on(table: &Table, alphabet: &Alphabet) -> bool {
    let letters = ('a'..='z').chain('A'..='Z').map(|letter| [letter, ' ']);
    let mut texts = Vec::new();
    for text in letters.chain([['字', '。']]).map(|text| text.map(|c| alphabet.class(c))) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.iter().any(|text| {
        // Each state has one successor. From every state on, the states are followed until one was met before: in this
        // round, then it is a circle.
        let mut met_in_round = vec![0; table.states()];
        (1..table.states()).any(|round| {
            let mut state = round;
            while met_in_round[state] == 0 {
                met_in_round[state] = round;
                state = text.iter().fold(state, |state, &class| table.next(class, state as u16) as usize);
                if state == 0 {
                    return false;
                }
            }
            met_in_round[state] == round
        })
    })
}
