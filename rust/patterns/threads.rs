//! Reads a stream with a machine.

use super::machine::{Machine, length};
use super::source::Before;
use crate::held::Held;
use crate::stop_match::Place;

/// The most code points that a thread may go on without an explicit limit. Only runs of one kind of character, such as
/// digits, get so far.
pub(crate) const MAX_HELD: usize = 65_536;

/// Up to so many threads, comparing each with each is the quickest way to find equal ones.
const FEW: usize = 8;

/// The places where a match may have begun, the earliest first. No two are in one state: what they have before them is
/// the same then, and the earlier one wins.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    /// What stands before the next character.
    pub(super) before: Before,
    pub(super) list: Vec<Thread>,
    /// The text since the first thread began, for streams that hide no stop and so hold none of it.
    text: Held,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) start: Place,
    /// What stands before it.
    pub(super) before: Before,
    pub(super) state: usize,
}

/// A pattern that matched, where it began in the stream, and where it ends in the text that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternHit {
    pub(crate) pattern: usize,
    pub(crate) start: Place,
    /// In bytes. It ends before the character that confirms it.
    pub(crate) end: usize,
    /// Where the character ends with which it completes, in bytes.
    pub(crate) completed: usize,
}

/// A match that completes with a character.
struct Found {
    pattern: usize,
    start: Place,
    /// Whether it ended before that character.
    confirmed: bool,
}

impl Threads {
    pub(crate) fn new() -> Threads {
        Threads { before: Before::Start, list: Vec::new(), text: Held::default() }
    }

    /// Reads `text`, which begins at `place`, up to the character that completes a match; in unarmed text, all of it.
    pub(crate) fn read(
        &mut self,
        machine: &Machine,
        text: &str,
        place: Place,
        armed: bool,
        max_held: usize,
    ) -> Option<PatternHit> {
        let bytes = text.as_bytes();
        let (mut at, mut here) = (0, place);
        while at < bytes.len() {
            if self.list.is_empty() {
                let passed = self.pass_over(machine, &bytes[at..]);
                here.pass(&text[at..at + passed]);
                at += passed;
                if at == bytes.len() {
                    break;
                }
            }
            let end = at + length(bytes[at]) as usize;
            let found = self.step(machine, &bytes[at..end], here);
            if let Some(found) = found.filter(|_| armed) {
                let Found { pattern, start, confirmed } = found;
                return Some(PatternHit { pattern, start, end: if confirmed { at } else { end }, completed: end });
            }
            here = Place { bytes: here.bytes + end - at, code_points: here.code_points + 1 };
            let too_long = self.list.iter().take_while(|thread| here.code_points - thread.start.code_points > max_held);
            self.list.drain(..too_long.count());
            at = end;
        }
        None
    }

    /// The match that the end of the text, at `place`, confirms.
    pub(crate) fn confirmed_at_end(&self, machine: &Machine) -> Option<PatternHit> {
        self.list.iter().find_map(|thread| {
            let pattern = machine.facts(thread.state).pending_at_end.checked_sub(1)?;
            Some(PatternHit { pattern: pattern as usize, start: thread.start, end: 0, completed: 0 })
        })
    }

    /// Forgets what has begun; the text before the next character is `text`.
    pub(crate) fn forget(&mut self, text: &str) {
        self.list.clear();
        self.look_at(text.as_bytes());
        self.text = Held::default();
    }

    /// How many bytes before `end` the first thread began.
    pub(crate) fn held(&self, end: Place) -> usize {
        self.list.first().map_or(0, |thread| end.bytes - thread.start.bytes)
    }

    /// Keeps the text since the first thread began, of which `delta` is the end.
    pub(crate) fn keep_text(&mut self, delta: &str, held: usize) {
        self.text.pass(delta, held);
    }

    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }

    fn look_at(&mut self, passed: &[u8]) {
        if let Some(&last) = passed.last() {
            self.before = Before::after(last);
        }
    }

    /// Passes over what begins nothing; returns how many bytes that is.
    fn pass_over(&mut self, machine: &Machine, bytes: &[u8]) -> usize {
        let mut before = self.before;
        let begins = |&byte: &u8| {
            let begins = machine.begins(byte, before);
            before = Before::after(byte);
            begins
        };
        let passed = bytes.iter().position(begins).unwrap_or(bytes.len());
        self.look_at(&bytes[..passed]);
        passed
    }

    /// Moves every thread over a character, with one that begins there. Of the matches that complete, the one that
    /// began first is found.
    fn step(&mut self, machine: &Machine, character: &[u8], here: Place) -> Option<Found> {
        if machine.begins(character[0], self.before) {
            let state = machine.start(self.before);
            self.list.push(Thread { start: here, before: self.before, state });
        }
        self.look_at(character);
        let mut found = None;
        for thread in &mut self.list {
            let (next, completed) = advance(machine, thread.state, character);
            if found.is_none() {
                let start = thread.start;
                found = completed.map(|(pattern, confirmed)| Found { pattern, start, confirmed });
            }
            thread.state = next;
        }
        self.list.retain(|thread| thread.state != 0);
        self.merge();
        found
    }

    fn merge(&mut self) {
        if self.list.len() <= FEW {
            for index in (1..self.list.len()).rev() {
                let state = self.list[index].state;
                if self.list[..index].iter().any(|thread| thread.state == state) {
                    self.list.remove(index);
                }
            }
            return;
        }
        let mut order: Vec<(usize, usize)> = self.list.iter().map(|thread| thread.state).zip(0..).collect();
        order.sort_unstable();
        for pair in order.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            self.list[pair[1].1].state = 0;
        }
        self.list.retain(|thread| thread.state != 0);
    }
}

/// The state after a character, 0 if the thread ends; and the pattern that completes with it, if one does, and whether
/// it ended before.
fn advance(machine: &Machine, mut state: usize, character: &[u8]) -> (usize, Option<(usize, bool)>) {
    let pending = machine.facts(state).pending;
    let mut confirms = false;
    for &byte in character {
        let entry = machine.next(state, byte);
        confirms |= entry.confirms();
        state = entry.state();
        if state == 0 {
            break;
        }
    }
    let facts = machine.facts(state);
    let completed = match facts.matched.checked_sub(1) {
        Some(pattern) => Some((pattern as usize, false)),
        None => pending.checked_sub(1).filter(|_| confirms).map(|pattern| (pattern as usize, true)),
    };
    (if facts.live { state } else { 0 }, completed)
}
