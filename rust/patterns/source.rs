//! The automaton of a set's patterns, as regex-automata builds it, and what it says of a state.

use std::collections::HashMap;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::Hir;

use super::syntax::parse;

/// The most memory that building may take, in bytes: patterns come from the users of a server.
const NFA_LIMIT: usize = 1 << 20;
const DETERMINIZE_LIMIT: usize = 4 << 20;
const DFA_LIMIT: usize = 1 << 20;

/// What stands before a text, as far as the beginning of a pattern looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing: it is the beginning of the stream.
    Start,
    LineFeed,
    Word,
    Other,
}

impl Before {
    pub(crate) const ALL: [Before; 4] = [Before::Start, Before::LineFeed, Before::Word, Before::Other];

    pub(crate) fn after(byte: u8) -> Before {
        match byte {
            b'\n' => Before::LineFeed,
            b'_' => Before::Word,
            _ if byte.is_ascii_alphanumeric() => Before::Word,
            _ => Before::Other,
        }
    }

    fn byte(self) -> Option<u8> {
        match self {
            Before::Start => None,
            Before::LineFeed => Some(b'\n'),
            Before::Word => Some(b'a'),
            Before::Other => Some(b' '),
        }
    }
}

pub(crate) struct Source {
    dfa: dense::DFA<Vec<u32>>,
    /// A byte of each class that the automaton tells apart.
    classes: Vec<u8>,
    /// What was asked of a state before.
    certain: HashMap<StateID, Vec<u32>>,
}

/// Why some patterns have no automaton.
pub(crate) enum Refusal {
    /// What is wrong with the pattern of this index.
    Pattern(usize, String),
    /// They need too large a one, together or already one of them.
    TooLarge,
}

impl Source {
    pub(crate) fn new(patterns: &[String]) -> Result<Source, Refusal> {
        let parsed = patterns
            .iter()
            .enumerate()
            .map(|(index, pattern)| parse(pattern).map_err(|problem| Refusal::Pattern(index, problem)));
        let dfa = dfa(&parsed.collect::<Result<Vec<_>, _>>()?).ok_or(Refusal::TooLarge)?;
        let classes = dfa.byte_classes().representatives(0..=255).filter_map(|unit| unit.as_u8()).collect();
        Ok(Source { dfa, classes, certain: HashMap::new() })
    }

    pub(super) fn start(&self, before: Before, anchored: Anchored) -> StateID {
        let config = start::Config::new().look_behind(before.byte()).anchored(anchored);
        self.dfa.start_state(&config).expect("both kinds of start are built, and no byte quits")
    }

    pub(super) fn class(&self, byte: u8) -> u8 {
        self.dfa.byte_classes().get(byte)
    }

    pub(super) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.dfa.next_state(state, byte)
    }

    pub(super) fn is_dead(&self, state: StateID) -> bool {
        self.dfa.is_dead_state(state)
    }

    /// Whether a match completes inside `text` before its last character, whatever stands before it.
    pub(crate) fn completes_inside(&mut self, text: &str) -> bool {
        let Some((last, _)) = text.char_indices().next_back() else {
            return false;
        };
        Before::ALL.into_iter().all(|before| {
            let mut state = self.start(before, Anchored::No);
            text.as_bytes()[..last].iter().any(|&byte| {
                let next = self.next(state, byte);
                let completes = self.confirmed(state, next).is_some() || self.matched(next).is_some();
                state = next;
                completes
            })
        })
    }

    /// The first pattern that has matched before `state`, whatever comes next.
    pub(super) fn matched(&mut self, state: StateID) -> Option<u32> {
        self.certain(state).first().copied()
    }

    /// The first pattern whose match before `state` is certain only now that `next` came of it.
    pub(super) fn confirmed(&mut self, state: StateID, next: StateID) -> Option<u32> {
        let here = self.patterns_at(next);
        let certain = self.certain(state);
        here.into_iter().find(|pattern| !certain.contains(pattern))
    }

    /// As `confirmed`, at the end of the text.
    pub(super) fn confirmed_at_end(&mut self, state: StateID) -> Option<u32> {
        self.confirmed(state, self.dfa.next_eoi_state(state))
    }

    /// The patterns that have matched before `state`, whatever comes next.
    ///
    /// These automata report a match one byte late, so that they know what stands behind it. Here it is asked for each
    /// byte that may come, and for the end of the text.
    fn certain(&mut self, state: StateID) -> &[u32] {
        if !self.certain.contains_key(&state) {
            let mut certain = self.patterns_at(self.dfa.next_eoi_state(state));
            for &byte in &self.classes {
                if certain.is_empty() {
                    break;
                }
                let here = self.patterns_at(self.dfa.next_state(state, byte));
                certain.retain(|pattern| here.contains(pattern));
            }
            self.certain.insert(state, certain);
        }
        &self.certain[&state]
    }

    fn patterns_at(&self, state: StateID) -> Vec<u32> {
        let count = if self.dfa.is_match_state(state) { self.dfa.match_len(state) } else { 0 };
        let mut patterns: Vec<u32> = (0..count).map(|index| self.dfa.match_pattern(state, index).as_u32()).collect();
        patterns.sort_unstable();
        patterns
    }
}

fn dfa(hirs: &[Hir]) -> Option<dense::DFA<Vec<u32>>> {
    let config = thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(NFA_LIMIT));
    let nfa = thompson::Compiler::new().configure(config).build_many_from_hir(hirs).ok()?;
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Both)
        .accelerate(false)
        .determinize_size_limit(Some(DETERMINIZE_LIMIT))
        .dfa_size_limit(Some(DFA_LIMIT));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}
