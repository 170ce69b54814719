//! Makes the automaton of patterns with the *least hold*: text is held for an unfinished match only as long as the
//! match can still be the stop that completes first.
//!
//! A *thread* is an unfinished match. A state of this automaton stands for the text that a thread has read since it
//! began, and for the stop strings and the later matches that have begun in this text. If one of them completes first,
//! the match can no longer fire, so the thread ends and no text is held for it.

use super::alphabet::{Alphabet, ClassId, Kind, Part};
use super::dfa::{DEAD, Dfa, StateId, Transition};
use super::machine::Table;
use super::work::{Lists, Numbers, TooLarge, Work};
use crate::automaton::{Automaton, ROOT, State};

/// To sort the characters of the strings costs this many units of work for each byte of the strings.
pub(super) const LETTER: usize = 8;

/// Each byte that the strings' automaton reads costs this many units of work.
const BYTE: usize = 4;

/// Makes an automaton that matches as `dfa` does, but ends an unfinished match as soon as another stop completes first.
/// Also returns the alphabet of the new automaton. In it, each character of `strings` has a separate class.
pub(super) fn least_hold(
    dfa: &Dfa,
    table: &Table,
    alphabet: &Alphabet,
    strings: &Automaton,
    work: &mut Work,
) -> Result<(Dfa, Alphabet), TooLarge> {
    let letters = letters_of(strings, work)?;
    let (refined, parts) = alphabet.with_letters(&letters, work)?;
    let kinds = (0..alphabet.len() as ClassId).map(|class| alphabet.kind(class)).collect();
    let later = Later { table, kinds, sets: Numbers::default(), steps: Vec::new() };
    let (states, held) = (Numbers::default(), Dfa::new());
    let mut hold = LeastHold { dfa, alphabet, strings, letters, parts, later, nothing: 0, states, held };
    hold.add_starts(work)?;
    let mut state = 1;
    while state < hold.states.len() {
        hold.held.check_size(&refined)?;
        hold.add_transitions(state as StateId, work)?;
        state += 1;
    }
    Ok((hold.held, refined))
}

/// Returns the characters of `strings`, sorted.
fn letters_of(strings: &Automaton, work: &mut Work) -> Result<Vec<char>, TooLarge> {
    let mut letters = Vec::new();
    for word in strings.words().with_literals() {
        work.spend(LETTER * word.len())?;
        letters.extend(word.chars());
    }
    letters.sort_unstable();
    letters.dedup();
    Ok(letters)
}

/// Makes the automaton `held` from the automaton `dfa`. With `held`, streams hold the least text.
struct LeastHold<'a> {
    dfa: &'a Dfa,
    alphabet: &'a Alphabet,
    strings: &'a Automaton,
    /// The characters of `strings`, sorted. In the new automaton, each of them has a separate class.
    letters: Vec<char>,
    /// For each class of characters of `alphabet`, the classes of the new automaton into which it is split.
    parts: Lists<Part>,
    later: Later<'a>,
    /// The number that the empty set of matches has in `later`.
    nothing: u32,
    /// The keys of the states of `held`.
    states: Numbers,
    held: Dfa,
}

impl LeastHold<'_> {
    /// Adds the dead state and the states in which a match begins.
    fn add_starts(&mut self, work: &mut Work) -> Result<(), TooLarge> {
        self.states.number(&[], work)?; // the dead state
        self.nothing = self.later.number(&[], work)?;
        let table = self.later.table;
        for before in Kind::ALL.into_iter().filter(|&before| table.start(before) != DEAD) {
            let key = Key { own: table.start(before), later: self.nothing, strings: ROOT, is_whole: true };
            self.held.starts[before as usize] = key.number(&mut self.states, &mut self.held, work)?;
        }
        Ok(())
    }

    /// Adds what `state` accepts, its transitions, and the states to which they lead.
    fn add_transitions(&mut self, state: StateId, work: &mut Work) -> Result<(), TooLarge> {
        let (dfa, key) = (self.dfa, Key::of(self.states.get(state.into(), work)?));
        let accept = dfa.accept(key.own, work)?;
        self.held.set_accept(state, accept);
        for &transition in dfa.transitions(key.own, work)? {
            let kind = self.alphabet.kind(transition.class);
            if accept.confirmed[kind as usize] == 0 {
                self.add_parts(key, transition, work)?;
            }
        }
        self.held.close_transitions();
        Ok(())
    }

    /// Copies `transition`, which leaves the state `key`, to the new automaton. If its class of characters is split
    /// into new classes, adds a transition for each of them. Leaves out the classes whose characters complete another
    /// stop before the match.
    fn add_parts(&mut self, key: Key, transition: Transition, work: &mut Work) -> Result<(), TooLarge> {
        let own = transition.target;
        let matches = self.dfa.accept(own, work)?.now != 0;
        let later = match matches {
            true => Some(self.nothing),
            false => self.later.step(key.later, transition.class, work)?,
        };
        let Some(later) = later else {
            return Ok(()); // a match that began later completes first
        };
        let mut last = None;
        for &part in self.parts.get(transition.class as usize, work)? {
            let read = match part.letter {
                Some(letter) => key.string_step(self.letters[letter as usize], self.strings, work)?,
                None => ALL_FORGOTTEN,
            };
            // A string that completes here ends the match, so its class gets no transition. But if the match completes
            // here as well, and began before the string, the match fires.
            if read.completes && (read.is_whole || !matches) {
                continue;
            }
            let read = if matches { ALL_FORGOTTEN } else { read };
            let next = Key { own, later, strings: read.next, is_whole: read.is_whole };
            let target = match last {
                Some((same, target)) if same == next => target,
                _ => next.number(&mut self.states, &mut self.held, work)?,
            };
            last = Some((next, target));
            self.held.add_transition(part.class, target, work)?;
        }
        Ok(())
    }
}

/// A state of the new automaton. It stands for an unfinished match in the state `own` of the given automaton, and for
/// the stops that have begun in the text of this match.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    own: StateId,
    /// The states of the matches that began later than this one. They are a set, which is stored as its number in
    /// `Later::sets`.
    later: u32,
    strings: State,
    /// Whether the string of the state `strings` began where this match began. If not, it began later, inside the
    /// match.
    is_whole: bool,
}

impl Key {
    fn of(list: &[u32]) -> Key {
        match *list {
            [own, later, strings] => Key { own: (own >> 1) as StateId, later, strings, is_whole: own & 1 != 0 },
            _ => Key { own: DEAD, later: 0, strings: ROOT, is_whole: false },
        }
    }

    /// Returns the number of the state that this key describes. Adds the state to `dfa` if it is new.
    fn number(self, states: &mut Numbers, dfa: &mut Dfa, work: &mut Work) -> Result<StateId, TooLarge> {
        let list = [u32::from(self.own) << 1 | u32::from(self.is_whole), self.later, self.strings];
        let (number, is_new) = states.number(&list, work)?;
        if is_new {
            dfa.add_state(work)?;
        }
        Ok(number as StateId)
    }
}

/// The matches that begin inside the match of a `Key`. Their states form sets, and each set has a number. Also caches
/// to which set each class of characters leads.
struct Later<'a> {
    table: &'a Table,
    kinds: Vec<Kind>,
    /// The states of each set, sorted. Every set except the empty one contains a start state, because another match may
    /// begin at the next character.
    sets: Numbers,
    /// A cache of the steps of each set, over each class of characters. A step leads to another set, and is stored as
    /// the number of this set plus two. It is `COMPLETES` if a character of the class completes a match, and `UNKNOWN`
    /// if it was not computed yet.
    steps: Vec<u32>,
}

const UNKNOWN: u32 = 0;
const COMPLETES: u32 = 1;

impl Later<'_> {
    fn number(&mut self, states: &[u32], work: &mut Work) -> Result<u32, TooLarge> {
        let (number, is_new) = self.sets.number(states, work)?;
        if is_new {
            work.spend(1 + self.kinds.len() / 8)?;
            self.steps.resize(self.steps.len() + self.kinds.len(), UNKNOWN);
        }
        Ok(number)
    }

    /// Returns the set of states to which a character of `class` leads from the states of `set`, or `None` if this
    /// character completes a match.
    fn step(&mut self, set: u32, class: ClassId, work: &mut Work) -> Result<Option<u32>, TooLarge> {
        let at = set as usize * self.kinds.len() + class as usize;
        work.spend(1)?;
        if self.steps[at] == UNKNOWN {
            let next = self.find(set, class, work)?;
            self.steps[at] = next.map_or(COMPLETES, |next| next + 2);
        }
        Ok(self.steps[at].checked_sub(2))
    }

    fn find(&mut self, set: u32, class: ClassId, work: &mut Work) -> Result<Option<u32>, TooLarge> {
        let kind = self.kinds[class as usize];
        let states = self.sets.get(set, work)?;
        let mut reached = Vec::with_capacity(states.len() + 1);
        for &state in states {
            let next = self.table.next(class, state as StateId, work)?;
            let confirmed = self.table.accept(state as StateId).confirmed[kind as usize];
            if confirmed != 0 || self.table.accept(next).now != 0 {
                return Ok(None);
            }
            if next != DEAD {
                reached.push(next.into());
            }
        }
        reached.push(self.table.start(kind).into());
        work.sort(&mut reached)?;
        self.number(&reached, work).map(Some)
    }
}

/// A step of the strings' automaton over one character.
#[derive(Clone, Copy)]
struct StringStep {
    next: State,
    /// If `completes` is false: whether the string of the state `next` began where the match began. If `completes` is
    /// true: whether the whole text of the match is a stop string or a marker, and not a literal (a pattern that is
    /// plain text).
    is_whole: bool,
    completes: bool,
}

/// A step to the root of the strings' automaton, which forgets all strings that have begun. A character that occurs in
/// no string takes this step. So does a character that completes the match, because strings do not matter after that.
const ALL_FORGOTTEN: StringStep = StringStep { next: ROOT, is_whole: false, completes: false };

impl Key {
    /// Returns the step of the strings' automaton over `letter`, the next character of the text.
    fn string_step(self, letter: char, strings: &Automaton, work: &mut Work) -> Result<StringStep, TooLarge> {
        let mut step = StringStep { next: self.strings, is_whole: self.is_whole, completes: false };
        for &byte in letter.encode_utf8(&mut [0; 4]).as_bytes() {
            work.spend(BYTE)?;
            let (next, completes) = strings.follow(step.next, byte);
            let is_whole = step.is_whole && strings.extends(step.next, byte, next);
            step = StringStep { next, is_whole, completes };
        }
        if step.completes && step.is_whole {
            // If the whole text of the match is a stop string or a marker, this string wins, and the match ends:
            // `is_whole` stays true. Otherwise `is_whole` becomes false, so that a match that completes here is kept.
            // There are two such cases. The whole text may be a literal (a pattern that is plain text): then the order
            // of the patterns decides, which is not known here. Or the string or literal that completes is only the
            // end of the text.
            let is_string = |word: usize| word < strings.words().len() && strings.is_word(step.next);
            step.is_whole = strings.completed(step.next, true).is_none_or(is_string);
        }
        Ok(step)
    }
}
