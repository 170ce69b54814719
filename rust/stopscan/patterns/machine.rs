//! The table with which streams scan the text of a region for patterns.

use std::sync::Arc;

use super::alphabet::{Alphabet, ClassId, Kind};
use super::dfa::{Accept, DEAD, StateId, Transition, Trimmed};
use super::work::{MAX_STATES, TooLarge, Work};
use crate::automaton::{Automaton, State};
use crate::text::Plain;

/// The most code points that are held back for a match if the user gives no limit. A pattern is refused if ordinary
/// text could be held back for it for ever. So only unusual text, such as a long row of digits, can reach this limit.
const MAX_HELD: usize = 65_536;

/// The greatest value of `max_held`: a greater value is lowered to this one. No stream holds back so much text, so it
/// is as good as no limit. Visible patterns use it, too, because no text is held back for them.
pub(super) const ANY_LENGTH: usize = 1 << 27;

/// An entry of the table: a state, and three flags in the highest bits. Each flag says whether a pattern has matched if
/// the next character is of a certain kind: a line feed, a `Kind::Word` or a `Kind::Other`.
///
/// A stream combines the cells of all unfinished matches with a bitwise "or". Usually the result already shows that no
/// match is complete, so that no single cell has to be checked.
pub(super) type Cell = u16;

/// The bits of a cell (an entry of the table) that are the state.
const STATE: Cell = MAX_STATES as Cell - 1;
const _: () = assert!(MAX_STATES == 1 << (Cell::BITS - 3), "a cell has a state and three bits more");

/// The characters that may come next.
#[derive(Clone, Copy)]
pub(super) enum Follows {
    Anything,
    /// The next character has this kind. If the kind is `Kind::Edge`, the text ends here.
    Only(Kind),
}

impl Follows {
    /// Returns the flags that a cell (an entry of the table) has if a pattern has matched, whichever of the characters
    /// in `self` comes next. The converse does not hold: a cell may have these flags without a match.
    #[inline(always)]
    pub(super) fn bits(self) -> Cell {
        match self {
            Follows::Anything => !STATE,
            Follows::Only(Kind::Edge) => 0,
            Follows::Only(kind) => (STATE + 1) << kind as Cell,
        }
    }
}

/// The transitions of an automaton as a dense table. A state has the same number in the table as in the automaton.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// For each class of characters and each state, the next state as a [`Cell`]. The items of one class are neighbours
    /// in memory, because all unfinished matches of a stream read the same character.
    next: Vec<Cell>,
    states: usize,
    /// The first state that accepts something.
    first_accepting: StateId,
    accepts: Vec<Accept>,
    needs: Vec<u32>,
    starts: [StateId; 4],
}

impl Table {
    fn new(trimmed: &Trimmed, alphabet: &Alphabet, work: &mut Work) -> Result<Table, TooLarge> {
        let dfa = &trimmed.dfa;
        let states = dfa.len();
        let mut accepts = Vec::new();
        let mut cells = work.vec(DEAD, states)?;
        for (state, cell) in (0..).zip(&mut cells) {
            *cell = state;
            if usize::from(state) >= trimmed.first_accepting {
                let accept = dfa.accept(state, work)?;
                *cell |= accept.bits();
                accepts.push(accept);
            }
        }
        let mut next = work.vec(DEAD, states * alphabet.len())?;
        for state in 1..states {
            for &Transition { class, target } in dfa.transitions(state as StateId, work)? {
                next[class as usize * states + state] = cells[target as usize];
            }
        }
        work.spend(states)?;
        let first_accepting = trimmed.first_accepting as StateId;
        Ok(Table { next, states, first_accepting, accepts, needs: trimmed.needs.clone(), starts: dfa.starts })
    }

    /// Returns the part of the table for characters of `class`. For each state, this part has a [`Cell`] with the next
    /// state.
    #[inline(always)]
    pub(super) fn column(&self, class: ClassId) -> Column<'_> {
        Column(&self.next[class as usize * self.states..][..self.states])
    }

    /// Returns the state to which `class` leads from `state`. Spends from the budget `work`, so it is for code that
    /// compiles patterns. Streams use `column`, which spends nothing.
    #[inline]
    pub(super) fn next(&self, class: ClassId, state: StateId, work: &mut Work) -> Result<StateId, TooLarge> {
        work.spend(1)?;
        Ok(self.column(class).target(state) & STATE)
    }

    /// Returns whether `state` accepts something. Accepting states have the greatest numbers.
    fn accepts(&self, state: StateId) -> bool {
        state >= self.first_accepting
    }

    /// Returns how many characters, at least, a match in the state of `cell` still has to read before the character
    /// that completes it. These characters count towards the limit on held text.
    pub(super) fn needs(&self, cell: Cell) -> usize {
        self.needs[(cell & STATE) as usize] as usize
    }

    /// Returns the state of a match that has read no character yet and begins after a character of the kind `before`.
    #[inline(always)]
    pub(super) fn start(&self, before: Kind) -> StateId {
        self.starts[before as usize]
    }

    /// Returns the pattern that has matched in the state of `cell`, if the next character is one of those in `follows`.
    /// The pattern is given as its index plus one, and 0 means that none has matched.
    #[inline]
    pub(super) fn accepted(&self, cell: Cell, follows: Follows) -> u32 {
        if cell & follows.bits() != follows.bits() {
            return 0;
        }
        let accept = self.accept(cell & STATE);
        match follows {
            Follows::Anything => accept.now,
            Follows::Only(kind) => accept.confirmed[kind as usize],
        }
    }

    pub(super) fn accept(&self, state: StateId) -> Accept {
        match state.checked_sub(self.first_accepting) {
            Some(index) => self.accepts[index as usize],
            None => Accept::default(),
        }
    }

    /// Finds a state to which ordinary text leads back again and again, so that the text could be held back for ever.
    /// As ordinary text, tries each letter with spaces between, such as `e e e …`, and also `字。字。…`.
    fn endless(&self, alphabet: &Alphabet, work: &mut Work) -> Result<Option<StateId>, TooLarge> {
        let letters = ('a'..='z').chain('A'..='Z').map(|letter| [letter, ' ']);
        let mut texts = Vec::new();
        for text in letters.chain([['字', '。']]).map(|text| text.map(|character| alphabet.class(character))) {
            work.spend(1 + texts.len())?;
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        for text in texts {
            // Looks for a cycle. Each round begins at a state and goes from state to state, reading `text` at each
            // step. It ends at a state that was met before. If that state was met in the same round, it is on a cycle.
            let mut met_in_round = work.vec(0, self.states)?;
            for round in 1..self.states {
                let mut state = round;
                while state != 0 && met_in_round[state] == 0 {
                    met_in_round[state] = round;
                    let middle = self.next(text[0], state as StateId, work)?;
                    state = self.next(text[1], middle, work)?.into();
                }
                if state != 0 && met_in_round[state] == round {
                    return Ok(Some(state as StateId));
                }
            }
        }
        Ok(None)
    }

    /// Returns the index of a pattern that can match from `state` on, after as few characters as possible.
    fn pattern_from(&self, mut state: StateId, work: &mut Work) -> Result<usize, TooLarge> {
        while !self.accepts(state) {
            let mut nearest = state;
            for class in 0..(self.next.len() / self.states) as ClassId {
                let next = self.next(class, state, work)?;
                if self.accepts(next) {
                    nearest = next;
                    break;
                }
                if next != DEAD && self.needs(next) < self.needs(nearest) {
                    nearest = next;
                }
            }
            state = nearest;
        }
        let Accept { now, confirmed } = self.accept(state);
        let patterns = [now].into_iter().chain(confirmed).filter_map(|pattern| pattern.checked_sub(1));
        Ok(patterns.min().unwrap_or_default() as usize)
    }
}

/// The part of a table for the characters of one class.
#[derive(Clone, Copy)]
pub(super) struct Column<'a>(&'a [Cell]);

impl Column<'_> {
    /// Returns the next state, as a cell, for a match in the state of `cell` that reads a character of this class.
    #[inline(always)]
    pub(super) fn target(self, cell: Cell) -> Cell {
        self.0[(cell & STATE) as usize]
    }
}

impl Accept {
    fn bits(self) -> Cell {
        let confirmed = Kind::ALL.into_iter().filter(|&kind| self.now != 0 || self.confirmed[kind as usize] != 0);
        confirmed.fold(0, |bits, kind| bits | Follows::Only(kind).bits())
    }
}

/// The machines that find the patterns of a region, and tables about the region's words (stop strings, markers and
/// literals).
#[derive(Debug)]
pub(crate) struct Machines {
    /// The machine of the hidden patterns that are not plain text. `None` if there are none.
    pub(super) hidden: Option<Machine>,
    /// The machine of the visible patterns that are not plain text.
    pub(super) visible: Option<Machine>,
    /// The result of `shortest_ends`: for each word (stop string, marker or literal), the length in bytes of the
    /// shortest stop at the end of the word.
    pub(super) shortest: Box<[u32]>,
    /// `levels[n]` is the first state of the strings' automaton that stands for a text of `n` bytes.
    pub(super) levels: Box<[State]>,
    /// For each literal of the region (a pattern that is plain text), its index in the list of patterns.
    pub(super) literals: Box<[usize]>,
}

/// The table of patterns, and which bytes can begin a match.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) alphabet: Arc<Alphabet>,
    pub(super) table: Arc<Table>,
    /// The most code points that a match may have before its last character. A longer match is given up.
    pub(super) max_held: usize,
    begins: [bool; 256],
    /// The byte with which all matches begin, if there is only one such byte.
    only: Option<u8>,
}

impl Machine {
    /// Makes the machine of an automaton. Returns an error if more than `threads` matches could be in progress at the
    /// same time.
    pub(super) fn new(
        trimmed: &Trimmed,
        alphabet: Arc<Alphabet>,
        max_held: Option<usize>,
        threads: usize,
        work: &mut Work,
    ) -> Result<Machine, TooLarge> {
        let begins = trimmed.dfa.first_classes(&alphabet, work)?;
        trimmed.dfa.check_threads(&begins, threads, work)?;
        let table = Table::new(trimmed, &alphabet, work)?;
        let begins = alphabet.first_bytes(&begins, work)?;
        let mut beginnings = (0..=255).filter(|&byte: &u8| begins[byte as usize]);
        let only = beginnings.next().filter(|_| beginnings.next().is_none());
        Ok(Machine {
            alphabet,
            table: Arc::new(table),
            max_held: max_held.unwrap_or(MAX_HELD).min(ANY_LENGTH),
            begins,
            only,
        })
    }

    /// Returns the index of a pattern for which ordinary text could be held back for ever, or `None` if there is none.
    /// If there is one, but the budget `work` is too small to find out which, returns 0.
    pub(super) fn endless_pattern(&self, work: &mut Work) -> Result<Option<usize>, TooLarge> {
        let state = self.table.endless(&self.alphabet, work)?;
        Ok(state.map(|state| self.table.pattern_from(state, work).unwrap_or_default()))
    }

    /// Returns the number of bytes before the first byte that can begin a match.
    #[inline]
    pub(super) fn count_plain(&self, bytes: &[u8]) -> usize {
        let begins = match self.only {
            Some(only) => position(only, bytes),
            None => bytes.iter().position(|&byte| self.begins[byte as usize]),
        };
        begins.unwrap_or(bytes.len())
    }
}

impl Machines {
    /// Returns the machines that exist: the machine of the hidden patterns, then the machine of the visible patterns.
    pub(super) fn all(&self) -> impl Iterator<Item = &Machine> {
        self.hidden.iter().chain(&self.visible)
    }

    /// Returns a recogniser of text in which no match and no string of `automaton` can begin.
    pub(super) fn plain_with(&self, automaton: &Automaton) -> Plain {
        let begins = |byte: &u8| self.all().any(|one| one.begins[*byte as usize]) || automaton.plain().begins(*byte);
        Plain::new((0..=u8::MAX).filter(begins))
    }

    /// Returns the length in bytes of the text for which `state` stands. It is a state of the strings' automaton, so it
    /// stands for the beginning of a string.
    pub(super) fn length(&self, state: State) -> usize {
        self.levels.partition_point(|&first| first <= state) - 1
    }
}

/// Returns the first place of `byte` in `bytes`. Uses vector instructions to skip the blocks that lack this byte.
fn position(byte: u8, bytes: &[u8]) -> Option<usize> {
    let without = |block: &&[u8]| !block.iter().fold(false, |found, &other| found | (other == byte));
    let passed = bytes.chunks_exact(16).take_while(without).count() * 16;
    Some(passed + bytes[passed..].iter().position(|&other| other == byte)?)
}
