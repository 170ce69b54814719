//! The least hold: threads whose match can no longer be the first to complete hold no text.
//!
//! Each state of this automaton is what a match has read since its beginning, and also what has begun later, strings
//! and matches. Where one of those completes first, the thread ends.

use super::alphabet::Kind;
use super::alphabet::{Alphabet, ClassId};
use super::compile::{TooLarge, Work};
use super::dfa::Map;
use super::nfa::Nfa;
use super::table::{Draft, Facts, StateId, Table};
use crate::automaton::{Automaton, ROOT, State};

/// The classes of `own`, and of those the characters of strings apart.
pub(super) struct Refined {
    pub(super) alphabet: Alphabet,
    classes: Vec<Refinement>,
}

struct Refinement {
    /// The class that it is part of.
    whole: ClassId,
    /// The only character in it, if a string has that.
    letter: Option<char>,
    kind: Kind,
}

impl Refined {
    pub(super) fn new(
        nfa: &Nfa,
        alphabet: &Alphabet,
        strings: &Automaton,
        work: &mut Work,
    ) -> Result<Refined, TooLarge> {
        let mut letters = Vec::new();
        for word in strings.words().with_literals() {
            work.spend(word.len())?;
            letters.extend(word.chars());
        }
        letters.sort_unstable();
        letters.dedup();
        let mut sets = nfa.sets.clone();
        sets.extend(letters.iter().map(|&letter| vec![(letter as u32, letter as u32)]));
        let refined = Alphabet::new(&sets, nfa.looks, work)?;
        let classes = (0..refined.len() as ClassId).map(|class| {
            let example = char::from_u32(refined.example(class));
            Refinement {
                whole: example.map_or(0, |example| alphabet.class(example)),
                letter: example.filter(|example| letters.binary_search(example).is_ok()),
                kind: refined.kind(class),
            }
        });
        Ok(Refined { classes: classes.collect(), alphabet: refined })
    }
}

/// What a thread has read, and what has begun in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    own: StateId,
    /// The states of the matches that began later, in order.
    later: Box<[StateId]>,
    /// The start of those that begin next.
    start: StateId,
    strings: State,
    /// Whether what the strings have read is all of the thread.
    whole: bool,
}

struct Builder<'a> {
    table: &'a Table,
    strings: &'a Automaton,
    work: &'a mut Work,
    numbers: Map<Key, StateId>,
    keys: Vec<Key>,
    draft: Draft,
}

/// The automaton of threads that may still be the first to complete, out of that of all threads.
pub(super) fn least(table: &Table, strings: &Automaton, refined: &Refined, work: &mut Work) -> Result<Draft, TooLarge> {
    let (numbers, keys, draft) = (Map::default(), Vec::new(), Draft::default());
    let mut builder = Builder { table, strings, work, numbers, keys, draft };
    for before in Kind::ALL {
        let own = table.starts[before as usize];
        let key = Key { own, later: [].into(), start: 0, strings: ROOT, whole: true };
        builder.draft.starts[before as usize] = builder.number(key)?;
    }
    let mut done = 0;
    while done < builder.keys.len() {
        builder.draft.check_size(&refined.alphabet)?;
        let key = builder.keys[done].clone();
        for (class, refinement) in (0..).zip(&refined.classes) {
            if let Some(target) = builder.step(&key, refinement)? {
                let target = builder.number(target)?;
                builder.draft.steps[done].push((class, target));
            }
        }
        done += 1;
    }
    Ok(builder.draft)
}

impl Builder<'_> {
    fn number(&mut self, key: Key) -> Result<StateId, TooLarge> {
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(number);
        }
        self.work.spend(1 + key.later.len())?;
        let facts = Facts {
            matched: self.table.matched(key.own),
            pending: Kind::ALL.map(|kind| self.table.confirmed(key.own, kind)),
        };
        let number = self.draft.add(facts);
        self.numbers.insert(key.clone(), number);
        self.keys.push(key);
        Ok(number)
    }

    /// Where a thread stands after a character, unless it ends, or something that began later completes first.
    fn step(
        &mut self,
        key: &Key,
        Refinement { whole: class, letter, kind }: &Refinement,
    ) -> Result<Option<Key>, TooLarge> {
        let own = self.table.next(*class, key.own);
        if own == 0 || self.table.confirmed(key.own, *kind) != 0 {
            return Ok(None);
        }
        let (strings, whole, string) = self.strings_step(key, *letter);
        if self.table.matched(own) != 0 {
            // A string that is all of the match comes first.
            let matched = Key { own, later: [].into(), start: 0, strings: ROOT, whole: false };
            return Ok((!string || !whole).then_some(matched));
        }
        self.work.spend(1 + key.later.len())?;
        let mut later = Vec::with_capacity(key.later.len() + 1);
        for &state in key.later.iter().chain([&key.start]) {
            let next = self.table.next(*class, state);
            if self.table.confirmed(state, *kind) != 0 || self.table.matched(next) != 0 {
                return Ok(None);
            }
            if next != 0 {
                later.push(next);
            }
        }
        if string {
            return Ok(None);
        }
        later.sort_unstable();
        later.dedup();
        let start = self.table.starts[*kind as usize];
        Ok(Some(Key { own, later: later.into(), start, strings, whole }))
    }

    /// What the strings have read after a character, whether that is all of the thread, and whether one completes; if
    /// one is all of the thread and completes, `whole` still holds.
    fn strings_step(&self, key: &Key, letter: Option<char>) -> (State, bool, bool) {
        let Some(letter) = letter else {
            return (ROOT, false, false);
        };
        let (mut strings, mut whole, mut completes) = (key.strings, key.whole, false);
        for &byte in letter.encode_utf8(&mut [0; 4]).as_bytes() {
            let (next, hit) = self.strings.follow(strings, byte);
            whole &= self.strings.extends(strings, byte, next);
            (strings, completes) = (next, hit);
        }
        // A pattern that is plain text comes before another one or behind, and holds as much.
        let is_string = |word: usize| word < self.strings.words().len() && self.strings.is_word(strings);
        let whole = whole && self.strings.completed(strings, true).is_none_or(is_string);
        (strings, whole, completes)
    }
}
