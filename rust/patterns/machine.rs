//! The table that streams are read with: the patterns' automaton beside all that could complete first.
//!
//! A *thread* is a place in the text where a match may have begun, and a state of this table. The state tells what the
//! patterns have read since that place, and also what every other stop and marker has read since then: so it tells
//! whether a match that began there can still be the one that completes first.

use std::collections::HashMap;

use regex_automata::Anchored;
use regex_automata::util::primitives::StateID;

use super::source::{Before, Source};
use crate::automaton::{Automaton, ROOT, State};

/// The most states of a table.
const MOST_STATES: usize = 3_000;

/// An entry for a byte that ends a thread.
pub(super) const DEAD: Entry = Entry(0);

/// Where a byte leads to, and what it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(u32);

impl Entry {
    const CONFIRMS: u32 = 1;
    const BEATEN: u32 = 2;
    const SHIFT: u32 = 2;

    fn new(state: usize, confirms: bool, beaten: bool) -> Entry {
        let confirms = if confirms { Entry::CONFIRMS } else { 0 };
        let beaten = if beaten { Entry::BEATEN } else { 0 };
        Entry(((state as u32) << Entry::SHIFT) | confirms | beaten)
    }

    /// The next state, 0 if there is none.
    #[inline(always)]
    pub(super) fn state(self) -> usize {
        (self.0 >> Entry::SHIFT) as usize
    }

    /// Whether the byte confirms a match that ended before it.
    #[inline(always)]
    pub(super) fn confirms(self) -> bool {
        self.0 & Entry::CONFIRMS != 0
    }

    /// Whether something that began later completes with the character that the byte ends.
    fn beaten(self) -> bool {
        self.0 & Entry::BEATEN != 0
    }
}

#[derive(Debug)]
pub(crate) struct Machine {
    /// The column of each byte.
    columns: [u8; 256],
    width: usize,
    entries: Vec<Entry>,
    states: Vec<Facts>,
    /// The first state of a thread, by what stands before it.
    starts: [usize; 4],
    /// For each byte, the kinds of `Before` behind which a thread may begin with it, a bit for each.
    begins: [u8; 256],
}

/// What is true of a state. Patterns are referred to by their index plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// The pattern that has matched, whatever comes next.
    pub(super) matched: u32,
    /// The pattern that a byte which confirms one confirms.
    pub(super) pending: u32,
    /// The pattern that the end of the text confirms.
    pub(super) pending_at_end: u32,
    /// Whether a match that began with the thread can still be the first to complete.
    pub(super) live: bool,
}

impl Machine {
    pub(crate) fn new(source: &mut Source, automaton: &Automaton) -> Option<Machine> {
        Builder::new(source, automaton).build()
    }

    #[inline(always)]
    pub(super) fn next(&self, state: usize, byte: u8) -> Entry {
        self.entries[state * self.width + self.columns[byte as usize] as usize]
    }

    #[inline(always)]
    pub(super) fn facts(&self, state: usize) -> Facts {
        self.states[state]
    }

    #[inline(always)]
    pub(super) fn start(&self, before: Before) -> usize {
        self.starts[before as usize]
    }

    #[inline(always)]
    pub(super) fn begins(&self, byte: u8, before: Before) -> bool {
        self.begins[byte as usize] >> (before as usize) & 1 != 0
    }

    /// The state after `text`, unless the thread ends in it.
    pub(super) fn read(&self, mut state: usize, text: &str) -> Option<usize> {
        for &byte in text.as_bytes() {
            state = self.next(state, byte).state();
        }
        (state != 0).then_some(state)
    }

    /// Whether a thread can live on for ever through ordinary text: through words with spaces between, or through
    /// ideographs with their full stops.
    pub(crate) fn lives_on(&self) -> bool {
        let words = ('a'..='z').chain('A'..='Z').map(|letter| format!("{letter} "));
        words.chain(["字。".into()]).any(|text| self.lives_on_through(&text))
    }

    /// Whether a thread can live on while `text` is repeated.
    fn lives_on_through(&self, text: &str) -> bool {
        // Each state has one successor. From every state on, the states are followed until one was met before: in this
        // round, then it is a circle.
        let mut met_in_round = vec![0; self.states.len()];
        (1..self.states.len()).any(|round| {
            let mut state = round;
            while met_in_round[state] == 0 {
                met_in_round[state] = round;
                match self.survivor(state, text) {
                    Some(next) => state = next,
                    None => return false,
                }
            }
            met_in_round[state] == round
        })
    }

    /// The state after `text`, if nothing completes in it and a match that began with the thread still can.
    fn survivor(&self, mut state: usize, text: &str) -> Option<usize> {
        for &byte in text.as_bytes() {
            let entry = self.next(state, byte);
            state = entry.state();
            // A match of the thread itself is among those that begin anywhere behind its beginning.
            if entry.beaten() || state == 0 {
                return None;
            }
        }
        Some(state)
    }
}

/// Where the construction stands: the patterns anchored at the thread's beginning and begun anywhere behind it, the
/// strings and whether what they have read is all of the thread, how many bytes of a character are still to come, and
/// whether something else completes with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    own: StateID,
    others: StateID,
    strings: State,
    all_of_it: bool,
    to_come: u8,
    beaten: bool,
}

struct Builder<'a> {
    source: &'a mut Source,
    automaton: &'a Automaton,
    columns: [u8; 256],
    /// A byte of each column.
    bytes: Vec<u8>,
    places: Vec<Place>,
    numbers: HashMap<Place, usize>,
    entries: Vec<Entry>,
    states: Vec<Facts>,
}

impl<'a> Builder<'a> {
    fn new(source: &'a mut Source, automaton: &'a Automaton) -> Builder<'a> {
        let mut builder = Builder {
            source,
            automaton,
            columns: [0; 256],
            bytes: Vec::new(),
            places: Vec::new(),
            numbers: HashMap::new(),
            entries: Vec::new(),
            states: vec![Facts::default()],
        };
        let mut columns = HashMap::new();
        for byte in 0..=255_u8 {
            let kind = (builder.source.class(byte), automaton.column(byte), length(byte));
            let column = *columns.entry(kind).or_insert_with(|| {
                builder.bytes.push(byte);
                builder.bytes.len() as u8 - 1
            });
            builder.columns[byte as usize] = column;
        }
        builder
    }

    fn build(mut self) -> Option<Machine> {
        let starts = Before::ALL.map(|before| {
            let own = self.source.start(before, Anchored::Yes);
            let others = self.source.start(before, Anchored::No);
            self.number(Place { own, others, strings: ROOT, all_of_it: true, to_come: 0, beaten: false })
        });
        let width = self.bytes.len();
        self.entries = vec![DEAD; width]; // of state 0
        let mut done = 0;
        while done < self.places.len() {
            if self.places.len() > MOST_STATES {
                return None;
            }
            for column in 0..width {
                let entry = self.entry(self.places[done], self.bytes[column]);
                self.entries.push(entry);
            }
            done += 1;
        }
        self.find_live();
        self.drop_hopeless();
        let (columns, entries, states) = (self.columns, self.entries, self.states);
        let mut machine = Machine { columns, width, entries, states, starts, begins: [0; 256] };
        for byte in 0..=255_u8 {
            for before in Before::ALL {
                let begins = machine.next(machine.start(before), byte) != DEAD;
                machine.begins[byte as usize] |= u8::from(begins) << (before as usize);
            }
        }
        Some(machine)
    }

    /// Marks the states from which the thread can complete a match before anything else completes. It is found
    /// backwards, from the steps that complete one.
    fn find_live(&mut self) {
        let width = self.bytes.len();
        let mut sources: Vec<Vec<usize>> = vec![Vec::new(); self.states.len()];
        let mut found = Vec::new();
        for (index, &entry) in self.entries.iter().enumerate() {
            let (source, target) = (index / width, entry.state());
            if entry.confirms() || self.states[target].matched != 0 {
                // Whatever else completes with this character began later, unless a string is all of the thread.
                if !self.is_string(target) {
                    found.push(source);
                }
            } else if target != 0 && !entry.beaten() {
                sources[target].push(source);
            }
        }
        while let Some(state) = found.pop() {
            if !self.states[state].live {
                self.states[state].live = true;
                found.append(&mut sources[state]);
            }
        }
    }

    /// Whether all of the thread is a string that completes, which is at least as long as any match.
    fn is_string(&self, state: usize) -> bool {
        let place = self.places[state - 1];
        place.all_of_it && self.automaton.is_word(place.strings)
    }

    /// Makes the steps dead that lead to where a thread has neither completed a match nor ever will.
    fn drop_hopeless(&mut self) {
        for entry in &mut self.entries {
            let target = entry.state();
            let Facts { live, matched, .. } = self.states[target];
            if target != 0 && self.places[target - 1].to_come == 0 && !live && matched == 0 {
                *entry = Entry::new(0, entry.confirms(), false);
            }
        }
    }

    /// The number of the state of `place`; 0 is none.
    fn number(&mut self, place: Place) -> usize {
        if let Some(&number) = self.numbers.get(&place) {
            return number;
        }
        self.places.push(place);
        let number = self.places.len();
        self.numbers.insert(place, number);
        let index = |pattern: Option<u32>| pattern.map_or(0, |index| index + 1);
        let whole = place.to_come == 0;
        let matched = if whole { index(self.source.matched(place.own)) } else { 0 };
        let pending_at_end = if whole { index(self.source.confirmed_at_end(place.own)) } else { 0 };
        self.states.push(Facts { matched, pending: 0, pending_at_end, live: false });
        number
    }

    fn entry(&mut self, place: Place, byte: u8) -> Entry {
        let own = self.source.next(place.own, byte);
        let others = self.source.next(place.others, byte);
        let (strings, completes) = self.automaton.follow(place.strings, byte);
        let confirmed = self.source.confirmed(place.own, own);
        if let Some(pattern) = confirmed {
            let number = self.numbers[&place];
            self.states[number].pending = pattern + 1;
        }
        if self.source.is_dead(own) {
            return DEAD;
        }
        let to_come = match place.to_come {
            0 => length(byte) - 1,
            left => left - 1,
        };
        let beaten = place.beaten
            || completes
            || self.source.confirmed(place.others, others).is_some()
            || (to_come == 0 && self.source.matched(others).is_some());
        let all_of_it = place.all_of_it && self.automaton.extends(place.strings, byte, strings);
        let whole = to_come == 0;
        let next = Place { own, others, strings, all_of_it, to_come, beaten: beaten && !whole };
        Entry::new(self.number(next), confirmed.is_some(), beaten && whole)
    }
}

/// How many bytes the character has that begins with this byte.
pub(super) fn length(byte: u8) -> u8 {
    match byte {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}
