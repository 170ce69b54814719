//! What an automaton can be told not to do before it reads anything: to have many threads, or to hold text for ever.

use super::alphabet::Alphabet;
use super::draft::{Draft, Table};

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
