//! Compiles the patterns of a set, for each region in which they are live.

use std::collections::{HashSet, TryReserveError};

use super::alphabet::{Alphabet, Kind};
use super::dfa::dfa;
use super::least::{Refined, least};
use super::machine::Machine;
use super::nfa::Nfa;
use super::places::Places;
use super::reader::read;
use super::syntax::{Parsed, parse, too_many_states};
use super::table::StateId;
use crate::automaton::{Automaton, Config, Words};
use crate::error::{ErrorKind, StopSetError};
use crate::room;
use crate::text::{Place, Plain};

/// The tables of fewer characters and classes are small.
const FEW_POSITIONS: usize = 64;

/// The most bytes of a table, and of that of the least hold.
const MOST_TABLE: usize = 2 * MOST_CELLS * size_of::<StateId>();

/// Compiles regions one after the other.
pub(crate) struct Compiler<'a> {
    list: &'a PatternList,
    source: Option<Source>,
    least_work: Work,
    pruning_work: Work,
}

/// What a region reads text with.
pub(crate) struct Compiled {
    /// What is plain text where nothing has begun, neither a string nor a pattern.
    pub(crate) plain: Plain,
    pub(crate) automaton: Automaton,
    /// Which words can never complete.
    pub(crate) pruned: Vec<bool>,
    /// Reads the patterns, where some are live.
    pub(crate) machine: Option<Machine>,
}

/// Some patterns as an automaton, and the machine of a region without strings.
struct Source {
    nfa: Nfa,
    machine: Machine,
}

impl<'a> Compiler<'a> {
    /// A compiler for regions in which strings of so many bytes are live.
    pub(crate) fn new(list: &'a PatternList, strings: usize) -> Result<Compiler<'a>, StopSetError> {
        let source = if list.patterns.is_empty() { None } else { Some(source(list)?) };
        // A string that completes inside a match ends it, but these are too long to look for that.
        if strings > MOST_LEAST_WORK && source.as_ref().is_some_and(|source| source.machine.lives_on) {
            return Err(unbounded(list, None));
        }
        Ok(Compiler { list, source, least_work: Work(MOST_LEAST_WORK), pruning_work: Work(MOST_PRUNING_WORK) })
    }

    /// Compiles a region in which `words` are live, and the patterns too if it is `with_patterns`.
    pub(crate) fn region(
        &mut self,
        words: Words,
        with_patterns: bool,
        config: Config,
    ) -> Result<Compiled, StopSetError> {
        let Some(source) = self.source.as_ref().filter(|_| with_patterns) else {
            let (automaton, pruned) = Automaton::new(words, &[], config)?;
            return Ok(Compiled { plain: automaton.plain().clone(), automaton, pruned, machine: None });
        };
        let mut words = words;
        let literals: Vec<usize> = match self.list.literals().next() {
            None => Vec::new(),
            Some(_) => {
                room::ask(words.len() * (size_of::<&str>() + 2) * 2)?;
                // A string that is a pattern, too, comes first.
                let strings: HashSet<&str> = words.iter().collect();
                self.list.literals().filter(|&index| !strings.contains(&*self.list.patterns[index])).collect()
            }
        };
        words.add_literals(literals.iter().map(|&index| &*self.list.patterns[index]))?;
        // A stop in which a match completes can never fire. A marker can, in unarmed text.
        let is_marker = |index: usize| (words.stops()..words.len()).contains(&index);
        let mut hopeless = room::list(words.len_with_literals())?;
        for (index, text) in words.with_literals().enumerate() {
            hopeless.push(!is_marker(index) && completes_inside(source, text, &mut self.pruning_work));
        }
        let (automaton, pruned) = Automaton::new(words, &hopeless, config)?;
        let mut machine = source.machine_beside(&automaton, self.list.max_held, &mut self.least_work);
        if machine.lives_on {
            return Err(unbounded(self.list, Some(&automaton)));
        }
        machine.shortest = shortest_ends(&automaton)?;
        machine.levels = automaton.levels()?;
        machine.literals = literals.into();
        Ok(Compiled { plain: machine.plain_beside(&automaton), automaton, pruned, machine: Some(machine) })
    }
}

/// The automaton of all patterns of a list. An error names the one that is wrong or too large.
fn source(list: &PatternList) -> Result<Source, StopSetError> {
    let together = || StopSetError::from(ErrorKind::PatternsTooLarge { patterns: list.patterns.len() });
    let mut class_work = Work(MOST_CLASS_WORK);
    let (mut bytes, mut positions) = (0, 0);
    let mut parsed = Vec::new();
    for index in list.expressions() {
        let pattern = &list.patterns[index];
        bytes += pattern.len();
        if bytes > MOST_BYTES {
            return Err(match pattern.len() > MOST_BYTES {
                true => list.refused(index, format!("it is longer than {MOST_BYTES} bytes")),
                false => together(),
            });
        }
        let one = parse(pattern, &mut class_work).map_err(|problem| list.refused(index, problem))?;
        positions += one.positions;
        if positions > MOST_POSITIONS {
            return Err(together());
        }
        parsed.push((index, one));
    }
    if positions > FEW_POSITIONS {
        room::ask(MOST_TABLE)?;
    }
    Source::new(&parsed, list.max_held).map_err(|TooLarge| {
        let longest = (0..parsed.len()).max_by_key(|&at| parsed[at].1.positions).unwrap_or_default();
        let alone = &parsed[longest..=longest];
        // A pattern that is a small part of the set is not tried: the set's many patterns are what is too large.
        let small = 2 * alone[0].1.positions < positions;
        match small || parsed.len() > 1 && Source::new(alone, list.max_held).is_ok() {
            true => together(),
            false => list.refused(alone[0].0, too_many_states(&list.patterns[alone[0].0])),
        }
    })
}

impl Source {
    fn new(patterns: &[(usize, Parsed)], max_held: Option<usize>) -> Result<Source, TooLarge> {
        let mut work = Work(MOST_WORK);
        let nfa = Nfa::new(patterns.iter().map(|(index, pattern)| (*index, &pattern.hir)));
        let alphabet = Alphabet::new(&nfa.sets, nfa.looks, &mut work)?;
        let draft = dfa(&nfa, &alphabet, &mut work)?;
        let machine = Machine::new(&draft, &draft.live(), alphabet, max_held).ok_or(TooLarge)?;
        Ok(Source { nfa, machine })
    }

    /// The machine of a region with these strings: that of the least hold, if it is another one and not too large.
    fn machine_beside(&self, strings: &Automaton, max_held: Option<usize>, work: &mut Work) -> Machine {
        let least = Refined::new(&self.nfa, &self.machine.alphabet, strings, work).and_then(|refined| {
            let draft = least(&self.machine.table, strings, &refined, work)?;
            let live = draft.live();
            let machine = Machine::new(&draft, &live, refined.alphabet, max_held).ok_or(TooLarge)?;
            Ok((machine, live))
        });
        match least {
            Ok((machine, live)) if live.contains(&false) => machine,
            Ok((Machine { lives_on, .. }, _)) => {
                let mut machine = self.machine.clone();
                machine.lives_on = lives_on;
                machine
            }
            Err(TooLarge) => self.machine.clone(),
        }
    }
}

/// Whether a match completes inside `stop` before its last character, whatever stands before it. It is not told of a
/// stop that takes more than what is left of `work`: such a stop may be held in vain.
fn completes_inside(source: &Source, stop: &str, work: &mut Work) -> bool {
    let inside = stop.char_indices().next_back().map_or("", |(last, _)| &stop[..last]);
    if work.spend(4 * inside.len() * source.machine.threads.max(1)).is_err() {
        return false;
    }
    Kind::ALL.into_iter().all(|before| {
        let mut places = Places::new();
        places.before = before;
        read(&mut places, &source.machine, inside, Place::default()).is_some()
    })
}

/// For each stop or literal, how many bytes the shortest stop has with which it ends.
fn shortest_ends(automaton: &Automaton) -> Result<Box<[u32]>, TryReserveError> {
    let words = automaton.words();
    let is_stop = |index: &usize| !(words.stops()..words.len()).contains(index);
    let mut order: Vec<usize> = room::list(words.len_with_literals())?;
    order.extend((0..words.len_with_literals()).filter(is_stop));
    order.sort_unstable_by_key(|&stop| words.text(stop).len());
    let mut shortest = room::collect((0..words.len_with_literals()).map(|_| 0))?;
    for stop in order {
        let end = automaton.word_inside(stop).filter(is_stop);
        shortest[stop] = end.map_or(words.text(stop).len() as u32, |end| shortest[end]);
    }
    Ok(shortest.into())
}

/// The error that names the pattern which holds text for ever, beside the strings of a region where they matter.
#[cold]
fn unbounded(list: &PatternList, strings: Option<&Automaton>) -> StopSetError {
    let (mut class_work, mut work) = (Work(MOST_CLASS_WORK), Work(MOST_LEAST_WORK));
    let mut lives_on = |pattern: &usize| {
        let parsed = parse(&list.patterns[*pattern], &mut class_work).ok();
        let source = parsed.and_then(|parsed| Source::new(&[(*pattern, parsed)], list.max_held).ok());
        source.is_some_and(|source| match strings {
            Some(strings) if source.machine.lives_on => source.machine_beside(strings, None, &mut work).lives_on,
            _ => source.machine.lives_on,
        })
    };
    let index = list.expressions().find(|pattern| lives_on(pattern)).unwrap_or_default();
    list.refused(index, "it can hold text for ever; max_held says for how many characters it may".into())
}

/// What has a meaning in a pattern.
const META: [char; 14] = ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// The patterns of a set, and how many code points may be held for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternList {
    pub(crate) patterns: Vec<String>,
    /// Where each stands in the list that the user gave.
    indices: Vec<usize>,
    pub(crate) max_held: Option<usize>,
}

impl PatternList {
    pub(crate) fn extend<I>(&mut self, patterns: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.patterns.extend(patterns.into_iter().map(|pattern| pattern.as_ref().to_owned()));
    }

    /// The same, each pattern once.
    pub(crate) fn distinct(&self) -> Result<PatternList, TryReserveError> {
        // For the copies, and what tells them apart.
        room::ask(self.patterns.iter().map(|pattern| pattern.len() + 128).sum())?;
        let mut seen = HashSet::new();
        let distinct = self.patterns.iter().enumerate().filter(|(_, pattern)| seen.insert(*pattern));
        let (indices, patterns) = distinct.map(|(index, pattern)| (index, pattern.clone())).unzip();
        Ok(PatternList { patterns, indices, max_held: self.max_held })
    }

    /// The patterns that are plain text, by their index. They are read like strings: nothing of them needs to be parsed.
    pub(super) fn literals(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| self.is_literal(pattern))
    }

    /// The other patterns.
    pub(super) fn expressions(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| !self.is_literal(pattern))
    }

    fn is_literal(&self, pattern: usize) -> bool {
        let text = &self.patterns[pattern];
        let plain = !text.is_empty() && !text.contains(META);
        // All but the last character of a match is held.
        plain && self.max_held.is_none_or(|most| text.chars().nth(most.saturating_add(1)).is_none())
    }

    /// Where a pattern stands in the list that the user gave.
    pub(crate) fn index(&self, pattern: usize) -> usize {
        self.indices[pattern]
    }

    /// The error that says what is wrong with a pattern, and where it stands in the list that the user gave.
    #[cold]
    pub(super) fn refused(&self, pattern: usize, problem: String) -> StopSetError {
        let (index, pattern) = (self.indices[pattern], self.patterns[pattern].clone());
        ErrorKind::Pattern { index, pattern, problem }.into()
    }
}

/// The most text that is parsed, in bytes.
pub(super) const MOST_BYTES: usize = 1 << 15;

/// The most characters and classes of a set's patterns, repetitions written out.
pub(super) const MOST_POSITIONS: usize = 3_072;

/// The most steps that classes take to make: a code point under `(?i)` is one, and so is each pair of
/// items; a class alone is two hundred, a letter under `(?i)` one hundred.
pub(super) const MOST_CLASS_WORK: usize = 300_000;

/// The most steps that an automaton takes to build.
pub(super) const MOST_WORK: usize = 45_000;

/// The most steps for the tables of the least hold, all regions together.
pub(super) const MOST_LEAST_WORK: usize = 30_000;

/// The most bytes of stops that are searched for matches in them, times the threads for which that is done.
pub(super) const MOST_PRUNING_WORK: usize = 1_000_000;

/// The most states of a table, and the most cells.
pub(super) const MOST_STATES: usize = 8_192;
pub(super) const MOST_CELLS: usize = 1 << 20;

/// The most places of a text in which a match may have begun and be in different states: each costs every character
/// about a nanosecond.
pub(super) const MOST_THREADS: usize = 1_000;

/// Steps that are left.
pub(super) struct Work(pub(super) usize);

/// More steps were needed than there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

impl Work {
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(steps).ok_or(TooLarge)?;
        Ok(())
    }
}
