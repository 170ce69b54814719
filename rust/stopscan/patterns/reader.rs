//! Reads a text with a machine.

use super::alphabet::Kind;
use super::dfa::StateId;
use super::machine::Machine;
use super::places::Places;
use crate::text::Place;

/// A match that completes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) pattern: usize,
    pub(super) start: Place,
    /// Where it ends, and where the character ends with which it completes: in bytes of the text that was read.
    pub(super) end: usize,
    pub(super) completed: usize,
}

/// The next character.
#[derive(Clone, Copy)]
struct Next<'a> {
    kind: Kind,
    /// How many bytes it has.
    length: usize,
    /// Where it leads to from each state.
    column: &'a [StateId],
}

struct Reader<'a> {
    places: &'a mut Places,
    machine: &'a Machine,
    text: &'a str,
    /// How many bytes were read.
    at: usize,
    /// Where in the stream that is.
    here: Place,
}

/// Reads `text`, which begins at `place`, up to the character that completes a match.
pub(super) fn read(places: &mut Places, machine: &Machine, text: &str, place: Place) -> Option<Hit> {
    let mut reader = Reader { places, machine, text, at: 0, here: place };
    let mut hit = None;
    while let Some(next) = reader.next() {
        hit = reader.confirmed(next).or_else(|| reader.step(next));
        if hit.is_some() {
            break;
        }
    }
    reader.places.settle(reader.here, machine);
    hit
}

/// As `read`, where matches end nothing but what contains them. Returns where the latest that completed began, in bytes
/// of the stream.
pub(super) fn read_unarmed(places: &mut Places, machine: &Machine, text: &str, place: Place) -> Option<usize> {
    let mut reader = Reader { places, machine, text, at: 0, here: place };
    let mut latest = None;
    while let Some(next) = reader.next() {
        let confirmed = reader.end_through(|state| machine.table.confirmed(state, next.kind));
        reader.advance(next);
        let matched = reader.end_through(|state| machine.table.matched(state));
        latest = latest.max(confirmed).max(matched);
        reader.limit();
    }
    reader.places.settle(reader.here, machine);
    latest
}

impl<'a> Reader<'a> {
    /// The next character that matters: what begins nothing is passed over while nothing has begun.
    fn next(&mut self) -> Option<Next<'a>> {
        if self.places.is_empty() {
            let passed = &self.text[self.at..];
            let passed = &passed[..self.machine.count_plain(passed.as_bytes())];
            if !passed.is_empty() {
                self.here.pass(passed);
                self.at += passed.len();
                self.places.forget(passed);
            }
        }
        let character = self.text[self.at..].chars().next()?;
        Some(Next {
            kind: Kind::of(character),
            length: character.len_utf8(),
            column: self.machine.table.column(self.machine.alphabet.class(character)),
        })
    }

    /// The match that the next character confirms. One that began earlier and completes with it comes first.
    fn confirmed(&mut self, next: Next<'_>) -> Option<Hit> {
        if !self.places.waits {
            return None;
        }
        let table = &self.machine.table;
        let (pattern, begun) = self.places.earliest(|state| table.confirmed(state, next.kind))?;
        let (start, completed) = (begun.place(self.here), self.at + next.length);
        let confirmed = Hit { pattern, start, end: self.at, completed };
        match self.places.earliest(|state| table.matched(next.column[state as usize])) {
            Some((pattern, begun)) if begun.place(self.here).bytes < start.bytes => {
                Some(Hit { pattern, start: begun.place(self.here), end: completed, completed })
            }
            _ => Some(confirmed),
        }
    }

    /// Reads the next character. Returns the match that it completes.
    fn step(&mut self, next: Next<'_>) -> Option<Hit> {
        self.advance(next);
        let table = &self.machine.table;
        if self.places.waits
            && let Some((pattern, begun)) = self.places.earliest(|state| table.matched(state))
        {
            return Some(Hit { pattern, start: begun.place(self.here), end: self.at, completed: self.at });
        }
        self.limit();
        None
    }

    #[inline]
    fn advance(&mut self, next: Next<'_>) {
        let mut greatest = self.places.advance(next.column);
        let begins = next.column[self.machine.table.start(self.places.before) as usize];
        if begins != 0 {
            greatest = greatest.max(begins);
            self.places.begin(self.here, begins);
        }
        self.places.waits = self.machine.table.accepts(greatest);
        self.places.before = next.kind;
        self.here = Place { code_points: self.here.code_points + 1, bytes: self.here.bytes + next.length };
        self.at += next.length;
    }

    /// Ends what contains the matches of which `told` says the patterns. Returns where the latest of them begins.
    fn end_through(&mut self, told: impl Fn(StateId) -> u32) -> Option<usize> {
        if !self.places.waits {
            return None;
        }
        let root = self.places.latest(told)?;
        Some(self.places.end_through_root(root, self.here).bytes)
    }

    fn limit(&mut self) {
        self.places.limit(self.here, self.machine.max_held);
    }
}

/// Begins threads at `starts`, bytes of `text`, which begins at `place`, and reads it. `None` if one of them ends.
pub(super) fn replay(
    places: &mut Places,
    machine: &Machine,
    text: &str,
    mut place: Place,
    starts: &[usize],
) -> Option<()> {
    let mut left = starts.iter().copied().peekable();
    for (at, character) in text.char_indices() {
        let column = machine.table.column(machine.alphabet.class(character));
        let mut greatest = places.advance(column);
        if left.next_if_eq(&at).is_some() {
            let state = column[machine.table.start(places.before) as usize];
            if state == 0 {
                return None;
            }
            greatest = greatest.max(state);
            places.begin(place, state);
        }
        places.waits = machine.table.accepts(greatest);
        places.before = Kind::of(character);
        place = Place { code_points: place.code_points + 1, bytes: place.bytes + character.len_utf8() };
    }
    places.settle(place, machine);
    (left.next().is_none() && places.all().count() == starts.len()).then_some(())
}
