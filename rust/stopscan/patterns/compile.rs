//! Compiles the patterns of a set for each region of an answer (such as its reasoning) in which they can fire.

use std::collections::HashSet;
use std::sync::Arc;

use super::alphabet::{Alphabet, Kind};
use super::determinize::determinize;
use super::dfa::{Dfa, Trimmed};
use super::hold::{LETTER, least_hold};
use super::machine::{ANY_LENGTH, Machine, Machines};
use super::nfa::Nfa;
use super::syntax::{Parsed, parse, too_large};
use super::threads::{Threads, scan_unarmed};
use super::work::{
    MAX_BYTES, MAX_CLASS_WORK, MAX_HOLD_WORK, MAX_POSITIONS, MAX_PRUNING_WORK, MAX_THREADS, MAX_WORK, TooLarge, Work,
};
use crate::automaton::{Automaton, Config, Words};
use crate::error::{ErrorKind, Role, StopSetError};
use crate::graph::Distinct;
use crate::room;
use crate::text::{Place, Plain};

/// If the patterns of a set have at most this many characters and classes, they need little memory. They are then
/// compiled without a check that there is enough.
const FEW_POSITIONS: usize = 64;

/// The patterns of a set are compiled with at most this many bytes of memory.
const MAX_MEMORY: usize = 12 << 20;

/// Compiles the regions of a set, one after the other. The budgets `hold_work` and `pruning_work` limit the work for
/// all regions together.
pub(crate) struct Compiler<'a> {
    list: &'a PatternList,
    source: Option<Source>,
    hold_work: Work,
    pruning_work: Work,
}

/// A compiled region: the automaton of its stop strings and markers, and the machines (tables) of its patterns.
pub(crate) struct Compiled {
    /// Recognises text in which no string and no match of a pattern begins. Use it only if none has begun in earlier
    /// text.
    pub(crate) plain: Plain,
    pub(crate) automaton: Automaton,
    /// For each word (stop string, marker or literal) of `automaton`, whether it can never complete because another
    /// word always completes inside it.
    pub(crate) pruned: Vec<bool>,
    /// The machines that find the patterns. `None` if no pattern can fire in the region.
    pub(crate) machines: Option<Machines>,
}

/// What the regions of a set share: the automaton of the patterns that are not plain text, and the machines (tables)
/// with which streams find these patterns. For the patterns whose matches are cut from the output, `hidden_with` may
/// make another machine for a region, with which less text is held.
pub(super) struct Source {
    /// The automaton of all patterns, hidden and visible. A match that completes ends every unfinished match that
    /// contains it. So visible patterns also decide for how long text is held for a hidden pattern.
    dfa: Dfa,
    all: Machine,
    hidden: Option<Machine>,
    visible: Option<Machine>,
    /// The index of a hidden pattern for which ordinary text could be held back for ever, if there is one.
    endless: Option<usize>,
    /// The most threads (unfinished matches) of each machine.
    threads: usize,
}

impl<'a> Compiler<'a> {
    /// Makes a compiler. `strings` is the number of bytes of all stops that are strings.
    pub(crate) fn new(list: &'a PatternList, strings: usize) -> Result<Compiler<'a>, StopSetError> {
        let mut work = Work::new(MAX_WORK);
        let source = if list.patterns.is_empty() { None } else { Some(source(list, &mut work)?) };
        let mut hold_work = Work::new(MAX_HOLD_WORK);
        if let Some(pattern) = source.as_ref().and_then(|source| source.endless) {
            // Text could be held for this pattern for ever, unless a stop string ends each long match. `region` checks
            // this for each region, and the check costs more if the strings are longer. If the check would exceed its
            // budget, refuse the pattern now.
            if LETTER * strings > MAX_HOLD_WORK {
                return Err(unbounded(list, pattern));
            }
            // Limit the check to what is left of `MAX_WORK`, so that it takes no longer to refuse this set than to
            // refuse any other set.
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
            return Ok(Compiled { plain: automaton.plain().clone(), automaton, pruned, machines: None });
        };
        let mut words = words;
        let mut literals: Vec<usize> = self.list.literals().collect();
        if !literals.is_empty() {
            // A plain-text pattern that is also given as a string counts only as the string.
            let strings: HashSet<&str> = words.iter().collect();
            literals.retain(|&index| !strings.contains(&*self.list.patterns[index]));
        }
        let visible = literals.iter().filter(|&&index| self.list.is_visible(index)).count();
        words.add_literals(literals.iter().map(|&index| &*self.list.patterns[index]), visible);
        // A stop string never fires if a match of a pattern always completes inside it, so leave it out. Keep every
        // marker, though: in text in which no stop may fire, the match is ignored, and the marker completes.
        let is_marker = |index: usize| (words.stops()..words.len()).contains(&index);
        let mut hopeless = Vec::with_capacity(words.len_with_literals());
        for (index, text) in words.with_literals().enumerate() {
            hopeless.push(!is_marker(index) && source.completes_inside(text, &mut self.pruning_work));
        }
        let (automaton, pruned) = Automaton::new(words, &hopeless, config);
        let (hidden, endless) = source.hidden_with(&automaton, self.list, &mut self.hold_work);
        if let Some(pattern) = endless {
            return Err(unbounded(self.list, pattern));
        }
        let machines = Machines {
            hidden,
            visible: source.visible.clone(),
            shortest: shortest_ends(&automaton),
            levels: automaton.levels(),
            literals: literals.into(),
        };
        Ok(Compiled { plain: machines.plain_with(&automaton), automaton, pruned, machines: Some(machines) })
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
    Source::new(&parsed, list, &mut costs, work).map_err(|TooLarge| {
        let most = (0..costs.len()).max_by_key(|&at| costs[at]).unwrap_or_default();
        // If one pattern causes more than three quarters of the costs, the error names this pattern.
        match 4 * costs[most] > 3 * costs.iter().sum::<usize>() {
            true => {
                let (index, pattern) = &parsed[most];
                list.refused(*index, too_large(&list.patterns[*index], &pattern.ast))
            }
            false => together(),
        }
    })
}

/// Makes the automaton of `patterns`. Sets `costs` to the cost of each pattern: how often `determinize` visited the
/// pattern's nodes. If the automaton is too large, the costs show which pattern is the reason.
fn automaton(
    patterns: &[(usize, Parsed)],
    costs: &mut Vec<usize>,
    work: &mut Work,
) -> Result<(Trimmed, Arc<Alphabet>), TooLarge> {
    let nfa = Nfa::new(patterns.iter().map(|(index, pattern)| (*index, &pattern.hir)), work)?;
    let alphabet = Alphabet::new(&nfa, work)?;
    let mut visits = work.vec(0, nfa.len())?;
    let dfa = determinize(&nfa, &alphabet, &mut visits, work);
    *costs = nfa.sums(&visits);
    Ok((dfa?.trim(usize::MAX, work)?, Arc::new(alphabet)))
}

impl Source {
    /// Makes the automata of `patterns` and their machines (tables). Sets `costs` to the cost of each pattern: how
    /// often `determinize` visited the pattern's nodes. If an automaton is too large, the costs show which pattern is
    /// the reason.
    fn new(
        patterns: &[(usize, Parsed)],
        list: &PatternList,
        costs: &mut Vec<usize>,
        work: &mut Work,
    ) -> Result<Source, TooLarge> {
        let visible = &patterns[patterns.partition_point(|(index, _)| !list.is_visible(*index))..];
        // If a set has hidden and visible patterns, a stream scans with two machines, one for each kind. Each of them
        // may have half of the allowed threads (unfinished matches). The machine `all`, which has both kinds of
        // patterns, then only serves to compile regions, so its threads need no limit.
        let mixed = !visible.is_empty() && visible.len() < patterns.len();
        let threads = if mixed { MAX_THREADS / 2 } else { MAX_THREADS };
        let (trimmed, alphabet) = automaton(patterns, costs, work)?;
        let max_held = if visible.len() == patterns.len() { Some(ANY_LENGTH) } else { list.max_held };
        let all = Machine::new(&trimmed, alphabet, max_held, if mixed { usize::MAX } else { threads }, work)?;
        let (hidden, visible) = match (visible, mixed) {
            (_, true) => {
                let hidden = trimmed.dfa.trim(list.hidden, work)?;
                let hidden = Machine::new(&hidden, all.alphabet.clone(), list.max_held, threads, work)?;
                let (visible, alphabet) = automaton(visible, &mut Vec::new(), work)?;
                (Some(hidden), Some(Machine::new(&visible, alphabet, Some(ANY_LENGTH), threads, work)?))
            }
            ([], _) => (Some(all.clone()).filter(|_| !patterns.is_empty()), None),
            _ => (None, Some(all.clone())),
        };
        let endless = match &hidden {
            Some(hidden) if list.max_held.is_none() => hidden.endless_pattern(work)?,
            _ => None,
        };
        Ok(Source { dfa: trimmed.dfa, all, hidden, visible, endless, threads })
    }

    /// Returns the machine that finds the hidden patterns in a region with these strings. Also returns the index of a
    /// hidden pattern for which text could be held for ever, if there is one.
    ///
    /// Once a string or another match completes inside a match, no text needs to be held for that match. `least_hold`
    /// makes a machine for the region that takes this into account. If that machine is too large or costs too much to
    /// make, returns the machine and the index that all regions share: `hidden` and `endless`.
    fn hidden_with(
        &self,
        strings: &Automaton,
        list: &PatternList,
        work: &mut Work,
    ) -> (Option<Machine>, Option<usize>) {
        if self.hidden.is_none() {
            return (None, None);
        }
        self.least_hold(strings, list, work).unwrap_or_else(|TooLarge| (self.hidden.clone(), self.endless))
    }

    pub(super) fn least_hold(
        &self,
        strings: &Automaton,
        list: &PatternList,
        work: &mut Work,
    ) -> Result<(Option<Machine>, Option<usize>), TooLarge> {
        let Machine { table, alphabet, .. } = &self.all;
        let (dfa, alphabet) = least_hold(&self.dfa, table, alphabet, strings, work)?;
        let trimmed = dfa.trim(list.hidden, work)?;
        if !trimmed.lost_states && self.endless.is_none() {
            return Ok((self.hidden.clone(), None));
        }
        let machine = Machine::new(&trimmed, Arc::new(alphabet), list.max_held, self.threads, work)?;
        let endless = if self.endless.is_some() { machine.endless_pattern(work)? } else { None };
        Ok((if trimmed.lost_states { Some(machine) } else { self.hidden.clone() }, endless))
    }

    /// Returns `true` if `stop` can never fire: a match of a pattern always completes before the last character of
    /// `stop`, whatever text comes before `stop`. Returns `false` if the budget `work` is too small for this check.
    fn completes_inside(&self, stop: &str, work: &mut Work) -> bool {
        let inside = stop.char_indices().next_back().map_or("", |(last, _)| &stop[..last]);
        // The cost of one byte of the stop, in units of work. It grows with the length of the stop, because a
        // longer stop can have more unfinished matches.
        let units = 2 + inside.len().min(MAX_THREADS) / 8;
        work.spend(Kind::ALL.len() * inside.len() * units).is_ok()
            && Kind::ALL.into_iter().all(|before| {
                let completes = |machine: &Machine| {
                    let mut threads = Threads::default();
                    threads.before = before;
                    // `scan` would give the same result as `scan_unarmed`. But the compiler inlines `scan` only as long
                    // as it has one caller, and inlining makes streams faster.
                    scan_unarmed(&mut threads, machine, inside, Place::default()).is_some()
                };
                self.hidden.iter().chain(&self.visible).any(completes)
            })
    }
}

/// For each word (stop, marker or plain-text pattern) of `automaton`, finds the shortest stop at the end of the word,
/// and returns its length in bytes. This stop may be the word itself, or a pattern that is plain text. The item of a
/// marker is 0.
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
#[derive(Debug)]
pub(crate) struct PatternList {
    /// The distinct patterns: the hidden ones, then the visible ones.
    pub(crate) patterns: Vec<String>,
    /// How many of them are hidden.
    pub(crate) hidden: usize,
    /// The index of each pattern in the list that the user gave.
    indices: Vec<u32>,
    pub(crate) max_held: Option<usize>,
}

impl PatternList {
    pub(crate) fn new(hidden: Distinct<'_>, visible: Distinct<'_>, max_held: Option<usize>) -> PatternList {
        let patterns = hidden.texts.iter().chain(&visible.texts).map(|&pattern| pattern.into()).collect();
        let indices = [hidden.indices, visible.indices].concat();
        PatternList { patterns, hidden: hidden.texts.len(), indices, max_held }
    }

    /// Returns the hidden or the visible patterns.
    pub(crate) fn of_kind(&self, visible: bool) -> impl Iterator<Item = &str> {
        let (hidden, others) = self.patterns.split_at(self.hidden);
        if visible { others } else { hidden }.iter().map(String::as_str)
    }

    /// Whether the text of a match of this pattern stays in the output.
    pub(crate) fn is_visible(&self, pattern: usize) -> bool {
        pattern >= self.hidden
    }

    /// Returns the indices of the patterns that are plain text. They are found like strings, so they are not parsed.
    pub(super) fn literals(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| self.is_literal(pattern))
    }

    /// Returns the indices of the patterns that are not plain text.
    pub(super) fn expressions(&self) -> impl Iterator<Item = usize> {
        (0..self.patterns.len()).filter(|&pattern| !self.is_literal(pattern))
    }

    /// Whether a pattern is plain text: it matches only itself.
    pub(crate) fn is_literal(&self, pattern: usize) -> bool {
        let text = &self.patterns[pattern];
        let plain = !text.is_empty() && !text.contains(META);
        // A string is held until its last character comes. If `max_held` does not allow that for a hidden pattern, the
        // pattern cannot be found like a string.
        let fits = |most: usize| self.is_visible(pattern) || text.chars().nth(most.saturating_add(1)).is_none();
        plain && self.max_held.is_none_or(fits)
    }

    /// Takes the index of a pattern in `patterns`, and returns its index in the list that the user gave.
    pub(crate) fn index(&self, pattern: usize) -> usize {
        self.indices[pattern] as usize
    }

    /// Returns the error that says what is wrong with a pattern, with its index in the list that the user gave.
    #[cold]
    pub(super) fn refused(&self, pattern: usize, problem: String) -> StopSetError {
        let role = if self.is_visible(pattern) { Role::VisiblePattern } else { Role::Pattern };
        let (index, pattern) = (self.index(pattern), self.patterns[pattern].clone());
        ErrorKind::Pattern { role, index, pattern, problem }.into()
    }
}
