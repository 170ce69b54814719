//! Compiles the patterns of a set for each region of an answer (such as its reasoning) in which they can fire.

use std::collections::HashSet;

use super::alphabet::{Alphabet, Kind};
use super::determinize::determinize;
use super::dfa::{DEAD, Dfa};
use super::hold::{LETTER, least_hold};
use super::machine::Machine;
use super::nfa::Nfa;
use super::places::{Places, scan_unarmed};
use super::syntax::{Parsed, parse, too_large};
use super::work::{
    MAX_BYTES, MAX_CLASS_WORK, MAX_HOLD_WORK, MAX_POSITIONS, MAX_PRUNING_WORK, MAX_THREADS, MAX_WORK, TooLarge, Work,
};
use crate::automaton::{Automaton, Config, Words};
use crate::error::{ErrorKind, StopSetError};
use crate::room;
use crate::text::{Place, Plain};

/// If the patterns of a set have at most this many characters and classes, they need little memory, so they are
/// compiled without a check that there is enough.
const FEW_POSITIONS: usize = 64;

/// The most memory that compiling patterns takes, in bytes.
const MAX_MEMORY: usize = 12 << 20;

/// Compiles the regions of a set, one after the other. All regions together spend from two budgets: `hold_work` and
/// `pruning_work`.
pub(crate) struct Compiler<'a> {
    list: &'a PatternList,
    source: Option<Source>,
    hold_work: Work,
    pruning_work: Work,
}

/// A compiled region: the automaton of its stop strings and markers, and the machine (a table) of its patterns.
pub(crate) struct Compiled {
    /// Recognises text in which no string and no match begins. Use it only while no string and no match has begun.
    pub(crate) plain: Plain,
    pub(crate) automaton: Automaton,
    /// For each word (stop string, marker or literal) of `automaton`, whether it can never complete because another
    /// word always completes inside it.
    pub(crate) pruned: Vec<bool>,
    /// The table of the patterns. `None` if no pattern can fire in the region.
    pub(crate) machine: Option<Machine>,
}

/// The automaton of the patterns that are not plain text, and the machine (its table) for a region that has no strings.
/// A set has one `Source`, from which `machine_with` makes the machines of the regions that have strings.
pub(super) struct Source {
    dfa: Dfa,
    machine: Machine,
    /// The index of a pattern for which ordinary text could be held back for ever, if there is one.
    endless: Option<usize>,
}

impl<'a> Compiler<'a> {
    /// Makes a compiler. `strings` is the number of bytes of all stops that are strings.
    pub(crate) fn new(list: &'a PatternList, strings: usize) -> Result<Compiler<'a>, StopSetError> {
        let mut work = Work::new(MAX_WORK);
        let source = if list.patterns.is_empty() { None } else { Some(source(list, &mut work)?) };
        let mut hold_work = Work::new(MAX_HOLD_WORK);
        if let Some(pattern) = source.as_ref().and_then(|source| source.endless) {
            // The set may still be fine: a stop string may end each match before the match holds text for ever. But if
            // there are too many bytes of strings, checking that costs more than the budget, so refuse the set.
            if LETTER * strings > MAX_HOLD_WORK {
                return Err(unbounded(list, pattern));
            }
            // If the set is refused in the end, the refusal must be as fast as any other: use only the rest of
            // `MAX_WORK`.
            hold_work = Work::new(work.left().min(MAX_HOLD_WORK));
        }
        Ok(Compiler { list, source, hold_work, pruning_work: Work::new(MAX_PRUNING_WORK) })
    }

    /// Compiles a region whose stop strings and markers are `words`. The patterns can fire in it if `with_patterns` is
    /// true.
    pub(crate) fn region(
        &mut self,
        words: Words,
        with_patterns: bool,
        config: Config,
    ) -> Result<Compiled, StopSetError> {
        let Some(source) = self.source.as_ref().filter(|_| with_patterns) else {
            let (automaton, pruned) = Automaton::new(words, &[], config);
            return Ok(Compiled { plain: automaton.plain().clone(), automaton, pruned, machine: None });
        };
        let mut words = words;
        let mut literals: Vec<usize> = self.list.literals().collect();
        if !literals.is_empty() {
            // A plain-text pattern that is also given as a string counts only as the string.
            let strings: HashSet<&str> = words.iter().collect();
            literals.retain(|&index| !strings.contains(&*self.list.patterns[index]));
        }
        words.add_literals(literals.iter().map(|&index| &*self.list.patterns[index]));
        // A stop string never fires if a match always completes inside it. A marker can complete nevertheless, because
        // in unarmed text the match does not fire.
        let is_marker = |index: usize| (words.stops()..words.len()).contains(&index);
        let mut hopeless = Vec::with_capacity(words.len_with_literals());
        for (index, text) in words.with_literals().enumerate() {
            hopeless.push(!is_marker(index) && source.completes_inside(text, &mut self.pruning_work));
        }
        let (automaton, pruned) = Automaton::new(words, &hopeless, config);
        let (mut machine, endless) = source.machine_with(&automaton, self.list.max_held, &mut self.hold_work);
        if let Some(pattern) = endless {
            return Err(unbounded(self.list, pattern));
        }
        machine.shortest = shortest_ends(&automaton);
        machine.levels = automaton.levels();
        machine.literals = literals.into();
        Ok(Compiled { plain: machine.plain_with(&automaton), automaton, pruned, machine: Some(machine) })
    }
}

/// Makes the automaton of the patterns that are not plain text. If the automaton is too large because of a single
/// pattern, the error names this pattern.
pub(super) fn source(list: &PatternList, work: &mut Work) -> Result<Source, StopSetError> {
    let together = || StopSetError::from(ErrorKind::PatternsTooLarge { patterns: list.patterns.len() });
    let mut class_work = Work::new(MAX_CLASS_WORK);
    let (mut bytes, mut positions) = (0, 0);
    let mut parsed = Vec::new();
    for index in list.expressions() {
        let pattern = &list.patterns[index];
        bytes += pattern.len();
        if bytes > MAX_BYTES {
            return Err(match pattern.len() > MAX_BYTES {
                true => list.refused(index, format!("it is longer than {MAX_BYTES} bytes")),
                false => together(),
            });
        }
        let one = parse(pattern, &mut class_work).map_err(|problem| list.refused(index, problem))?;
        positions += one.positions;
        if positions > MAX_POSITIONS {
            return Err(together());
        }
        parsed.push((index, one));
    }
    if positions > FEW_POSITIONS {
        room::ask(MAX_MEMORY)?;
    }
    let mut costs: Vec<usize> = parsed.iter().map(|(_, pattern)| pattern.positions).collect();
    Source::new(&parsed, list.max_held, &mut costs, work).map_err(|TooLarge| {
        let most = (0..costs.len()).max_by_key(|&at| costs[at]).unwrap_or_default();
        // The error names one pattern if it has more than three quarters of the costs.
        match 4 * costs[most] > 3 * costs.iter().sum::<usize>() {
            true => {
                let (index, pattern) = &parsed[most];
                list.refused(*index, too_large(&list.patterns[*index], &pattern.ast))
            }
            false => together(),
        }
    })
}

impl Source {
    /// Makes the automaton. Sets `costs` to how often each pattern's nodes were visited, even if the DFA is too large.
    fn new(
        patterns: &[(usize, Parsed)],
        max_held: Option<usize>,
        costs: &mut Vec<usize>,
        work: &mut Work,
    ) -> Result<Source, TooLarge> {
        let nfa = Nfa::new(patterns.iter().map(|(index, pattern)| (*index, &pattern.hir)), work)?;
        let alphabet = Alphabet::new(&nfa, work)?;
        let mut visits = work.vec(0, nfa.len())?;
        let dfa = determinize(&nfa, &alphabet, &mut visits, work);
        *costs = nfa.sums(&visits);
        let trimmed = dfa?.trim(work)?;
        let machine = Machine::new(&trimmed, alphabet, max_held, work)?;
        let endless = if max_held.is_none() { machine.endless_pattern(work)? } else { None };
        Ok(Source { dfa: trimmed.dfa, machine, endless })
    }

    /// Returns the machine of a region with these strings, and the pattern, if any, for which text could be held back
    /// for ever. If the machine of `least_hold` holds less text and is not too large, returns that machine instead.
    fn machine_with(&self, strings: &Automaton, max_held: Option<usize>, work: &mut Work) -> (Machine, Option<usize>) {
        if self.dfa.starts == [DEAD; 4] {
            return (self.machine.clone(), None); // all patterns are plain text
        }
        let least = self.least_hold(strings, max_held, work);
        least.unwrap_or_else(|TooLarge| (self.machine.clone(), self.endless))
    }

    pub(super) fn least_hold(
        &self,
        strings: &Automaton,
        max_held: Option<usize>,
        work: &mut Work,
    ) -> Result<(Machine, Option<usize>), TooLarge> {
        let Machine { table, alphabet, .. } = &self.machine;
        let (dfa, alphabet) = least_hold(&self.dfa, table, alphabet, strings, work)?;
        let trimmed = dfa.trim(work)?;
        if !trimmed.lost_states && self.endless.is_none() {
            return Ok((self.machine.clone(), None));
        }
        let machine = Machine::new(&trimmed, alphabet, max_held, work)?;
        let endless = if self.endless.is_some() { machine.endless_pattern(work)? } else { None };
        Ok((if trimmed.lost_states { machine } else { self.machine.clone() }, endless))
    }

    /// Returns whether a match completes before the last character of `stop`, whatever text comes before `stop`. Also
    /// returns `false` if `work` may not suffice for the check; then text may be held back for `stop`, although `stop`
    /// never fires.
    fn completes_inside(&self, stop: &str, work: &mut Work) -> bool {
        let inside = stop.char_indices().next_back().map_or("", |(last, _)| &stop[..last]);
        // A match may begin at each character, and each match adds a little to the cost of each later character.
        let units = 2 + inside.len().min(MAX_THREADS) / 8;
        work.spend(Kind::ALL.len() * inside.len() * units).is_ok()
            && Kind::ALL.into_iter().all(|before| {
                let mut places = Places::default();
                places.before = before;
                // A call of `scan` would also do, but `scan` is inlined only while it has a single caller.
                scan_unarmed(&mut places, &self.machine, inside, Place::default()).is_some()
            })
    }
}

/// Returns for each word the length in bytes of the shortest stop that is a suffix of the word or the word itself. A
/// stop is a stop string or the literal of a pattern. For a marker the length is 0.
fn shortest_ends(automaton: &Automaton) -> Box<[u32]> {
    let words = automaton.words();
    let is_stop = |index: &usize| !(words.stops()..words.len()).contains(index);
    let mut order: Vec<usize> = (0..words.len_with_literals()).filter(is_stop).collect();
    order.sort_unstable_by_key(|&stop| words.text(stop).len());
    let mut shortest = vec![0; words.len_with_literals()];
    for stop in order {
        let end = automaton.word_inside(stop).filter(is_stop);
        shortest[stop] = end.map_or(words.text(stop).len() as u32, |end| shortest[end]);
    }
    shortest.into()
}

/// The error for a pattern for which text can be held back for ever.
#[cold]
fn unbounded(list: &PatternList, pattern: usize) -> StopSetError {
    list.refused(pattern, "it can hold text for ever; set max_held to limit how much".into())
}

/// The characters that have a special meaning in patterns.
const META: [char; 14] = ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// The patterns of a set, and how many code points of text may be held back for a match.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternList {
    pub(crate) patterns: Vec<String>,
    /// The index of each pattern in the list that the user gave. Filled only in the lists that `distinct` returns.
    indices: Vec<usize>,
    pub(crate) max_held: Option<usize>,
}

impl PatternList {
    pub(crate) fn extend(&mut self, patterns: impl IntoIterator<Item: AsRef<str>>) {
        self.patterns.extend(patterns.into_iter().map(|pattern| pattern.as_ref().to_owned()));
    }

    /// Returns the list without repetitions.
    pub(crate) fn distinct(&self) -> PatternList {
        let mut seen = HashSet::new();
        let distinct = self.patterns.iter().enumerate().filter(|(_, pattern)| seen.insert(*pattern));
        let (indices, patterns) = distinct.map(|(index, pattern)| (index, pattern.clone())).unzip();
        PatternList { patterns, indices, max_held: self.max_held }
    }

    /// Returns the indices of the patterns that are plain text. They are found like strings, so they are not parsed.
    pub(super) fn literals(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| self.is_literal(pattern))
    }

    /// Returns the indices of the patterns that are not plain text.
    pub(super) fn expressions(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| !self.is_literal(pattern))
    }

    fn is_literal(&self, pattern: usize) -> bool {
        let text = &self.patterns[pattern];
        let plain = !text.is_empty() && !text.contains(META);
        // All but the last character of a literal may be held, so `max_held` must allow that many characters.
        plain && self.max_held.is_none_or(|most| text.chars().nth(most.saturating_add(1)).is_none())
    }

    /// Returns the index that a pattern of this list has in the list that the user gave.
    pub(crate) fn index(&self, pattern: usize) -> usize {
        self.indices[pattern]
    }

    /// Returns the error that says what is wrong with a pattern, with its index in the list that the user gave.
    #[cold]
    pub(super) fn refused(&self, pattern: usize, problem: String) -> StopSetError {
        let (index, pattern) = (self.indices[pattern], self.patterns[pattern].clone());
        ErrorKind::Pattern { index, pattern, problem }.into()
    }
}
