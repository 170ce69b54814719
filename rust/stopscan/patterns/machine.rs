//! What a region reads its patterns with.

use std::sync::Arc;

use super::alphabet::Alphabet;
use super::alphabet::Kind;
use super::compile::MOST_THREADS;
use super::table::{Draft, StateId, Table};
use super::table::{lives_on, most_threads};
use crate::automaton::{Automaton, State};
use crate::text::Plain;

/// The most code points that are held without an explicit limit. Only runs of one kind of character, such as digits, get
/// so far.
const MAX_HELD: usize = 65_536;

/// A limit of more is none: no stream holds as much.
const ANY_LENGTH: usize = 1 << 27;

/// The table of a region's patterns, and which bytes can begin a match.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(super) alphabet: Arc<Alphabet>,
    pub(super) table: Arc<Table>,
    /// How many code points may be held for a match.
    pub(super) max_held: usize,
    /// How many threads there can be.
    pub(super) threads: usize,
    /// Whether ordinary text can keep a match alive for ever.
    pub(super) lives_on: bool,
    /// For each word of the region, how many bytes the shortest stop has with which it ends.
    pub(super) shortest: Box<[u32]>,
    /// The first state of the region's strings for each length of text.
    pub(super) levels: Box<[State]>,
    /// The pattern that each of its literals is.
    pub(super) literals: Box<[usize]>,
    begins: [bool; 256],
    /// The only byte with which matches begin, if there is but one.
    only: Option<u8>,
}

impl Machine {
    /// The machine of the states that are `live`, unless it may have too many threads.
    pub(super) fn new(draft: &Draft, live: &[bool], alphabet: Alphabet, max_held: Option<usize>) -> Option<Machine> {
        let begins = draft.begins(&alphabet, live);
        let threads = most_threads(draft, live, &begins);
        if threads > MOST_THREADS {
            return None;
        }
        let table = draft.table(&alphabet, live);
        let lives_on = max_held.is_none() && lives_on(&table, &alphabet);
        let max_held = max_held.unwrap_or(MAX_HELD).min(ANY_LENGTH);
        let begins = bytes(&alphabet, &begins);
        let mut beginnings = (0..=255).filter(|&byte: &u8| begins[byte as usize]);
        let only = beginnings.next().filter(|_| beginnings.next().is_none());
        let (alphabet, table) = (Arc::new(alphabet), Arc::new(table));
        Some(Machine {
            alphabet,
            table,
            max_held,
            threads,
            lives_on,
            shortest: [].into(),
            levels: [].into(),
            literals: [].into(),
            begins,
            only,
        })
    }

    /// What is plain text beside the strings of `automaton`.
    pub(super) fn plain_beside(&self, automaton: &Automaton) -> Plain {
        let begins = |byte: &u8| self.begins[*byte as usize] || automaton.plain().begins(*byte);
        Plain::new((0..=u8::MAX).filter(begins))
    }

    /// How many bytes begin no match.
    #[inline]
    pub(super) fn pass_over(&self, bytes: &[u8]) -> usize {
        let begins = match self.only {
            Some(only) => position(only, bytes),
            None => bytes.iter().position(|&byte| self.begins[byte as usize]),
        };
        begins.unwrap_or(bytes.len())
    }

    /// How many bytes of text a state of the region's strings has.
    pub(super) fn length(&self, state: State) -> usize {
        self.levels.partition_point(|&first| first <= state) - 1
    }

    /// The first state of a match behind what stands before.
    #[inline(always)]
    pub(super) fn start(&self, before: Kind) -> StateId {
        self.table.starts[before as usize]
    }
}

/// Where `byte` stands first. Blocks without it are passed over with vector instructions.
fn position(byte: u8, bytes: &[u8]) -> Option<usize> {
    let without = |block: &&[u8]| !block.iter().fold(false, |found, &other| found | (other == byte));
    let passed = bytes.chunks_exact(16).take_while(without).count() * 16;
    Some(passed + bytes[passed..].iter().position(|&other| other == byte)?)
}

/// Which bytes begin a character of the classes that are marked.
fn bytes(alphabet: &Alphabet, marked: &[bool]) -> [bool; 256] {
    let mut bytes = [false; 256];
    for byte in 0..=0xF4_u8 {
        let (first, last) = match u32::from(byte) {
            ascii @ ..0x80 => (ascii, ascii),
            0x80..0xC2 => continue, // they begin no character
            lead @ ..0xE0 => ((lead & 0x1F) << 6, (lead & 0x1F) << 6 | 0x3F),
            lead @ ..0xF0 => ((lead & 0x0F) << 12, (lead & 0x0F) << 12 | 0xFFF),
            lead => ((lead & 0x07) << 18, (lead & 0x07) << 18 | 0x3FFFF),
        };
        bytes[byte as usize] = alphabet.classes_between(first, last).iter().any(|&class| marked[class as usize]);
    }
    bytes
}
