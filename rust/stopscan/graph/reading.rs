//! Reads a text at the nodes of a graph: strings, patterns and loops, whatever completes first.

use super::{Beside, Graph, Node};
use crate::automaton::{ROOT, State};
use crate::patterns::{Found, PatternHit, Threads};
use crate::repeat::Loop;
use crate::text::Place;

/// Where reading stands: at which node, and in what state of its automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    #[doc(hidden)]
    pub node: u32,
    #[doc(hidden)]
    pub state: State,
}

/// A word of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) node: u32,
    pub(crate) index: u32,
}

/// What completed.
pub(crate) enum Completed {
    Stop(Word),
    /// A marker that does not stay.
    Marker(Word),
    Pattern(PatternHit),
    Loop(Loop),
}

/// What completed, and where it ends in the text that was read, in bytes.
pub(crate) struct Completion {
    pub(crate) completed: Completed,
    pub(crate) end: usize,
}

/// What completes next: nothing that a caller is told if it is a marker that stays.
struct Next {
    completed: Option<Completed>,
    /// Where it ends, and where the character ends with which it completes.
    end: usize,
    character: usize,
}

impl Cursor {
    /// The start of a node.
    pub fn start(node: u32) -> Cursor {
        Cursor { node, state: ROOT }
    }
}

impl Graph {
    /// Reads `text`, which begins at `place`, up to the first character that completes a stop, if `armed`, or a marker
    /// that does not stay. Behind a marker, the cursor is where the marker leads.
    #[inline]
    pub(crate) fn read(
        &self,
        cursor: &mut Cursor,
        beside: Option<&mut Beside>,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Completion> {
        match beside {
            None => self.read_words(cursor, text, armed),
            Some(beside) => self.read_all(cursor, beside, text, place, armed),
        }
    }

    /// As `read`, for sets of strings alone.
    #[inline]
    pub(crate) fn read_words(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Completion> {
        let mut end = 0;
        loop {
            let automaton = &self.node(cursor.node).automaton;
            let (index, length) = automaton.read(&mut cursor.state, &text[end..], armed)?;
            end += length;
            if let Some(completed) = self.arrive(cursor, index) {
                return Some(Completion { completed, end });
            }
        }
    }

    fn read_all(
        &self,
        cursor: &mut Cursor,
        beside: &mut Beside,
        text: &str,
        mut place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let mut end = 0;
        loop {
            let rest = &text[end..];
            let node = cursor.node;
            let found = self.find_next(cursor, beside.threads.as_mut(), rest, place, armed);
            if let Some(loops) = &mut beside.loops {
                // With the same character, a string, a pattern or a marker comes first.
                let (until, first) = found.as_ref().map_or((rest.len(), true), |found| (found.character, false));
                let looped = loops.go_on(&rest[..until], armed).filter(|found| first || found.end < until);
                if let Some(found) = looped {
                    *cursor = Cursor::start(node);
                    return Some(Completion { end: end + found.end, completed: Completed::Loop(found) });
                }
            }
            let found = found?;
            end += found.end;
            if let Some(completed) = found.completed {
                return Some(Completion { completed, end });
            }
            beside.forget_loops();
            place.pass(&rest[..found.end]);
        }
    }

    /// Reads `text`, which begins at `place`, is all of a live `marker`, and came as one token: no stop, no pattern and no
    /// other marker completes before its last character. There rule 1 decides.
    pub(crate) fn read_marker(
        &self,
        cursor: &mut Cursor,
        mut beside: Option<&mut Beside>,
        (text, marker): (&str, Word),
        place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let inside = text.char_indices().next_back().map_or(0, |(last, _)| last);
        let mut threads = beside.as_mut().and_then(|beside| beside.threads.as_mut());
        let (mut end, mut at) = (0, place);
        while end < inside {
            let rest = &text[end..inside];
            let passed = match self.find_completed(cursor, threads.as_deref_mut(), rest, at, false) {
                Some(Found::Word { end, .. }) => &rest[..end],
                _ => rest,
            };
            end += passed.len();
            at.pass(passed);
        }
        match self.find_completed(cursor, threads, &text[inside..], at, armed) {
            Some(Found::Word { index, .. }) if self.words(marker.node).text(index).len() > text.len() => {
                let completed = self.arrive(cursor, index)?;
                return Some(Completion { completed, end: text.len() });
            }
            Some(Found::Pattern(hit)) if (hit.start.bytes, inside + hit.end) < (place.bytes, text.len()) => {
                return Some(Completion { end: inside + hit.end, completed: Completed::Pattern(hit) });
            }
            _ => {}
        }
        if let Some(beside) = beside {
            beside.forget(text);
        }
        let completed = self.arrive(cursor, marker.index as usize)?;
        Some(Completion { completed, end: text.len() })
    }

    /// Whether a marker completes if `text` comes next.
    pub(crate) fn completes_marker(&self, mut cursor: Cursor, text: &str) -> bool {
        self.node(cursor.node).automaton.read(&mut cursor.state, text, false).is_some()
    }

    /// The next string, pattern or marker that completes.
    fn find_next(
        &self,
        cursor: &mut Cursor,
        threads: Option<&mut Threads>,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Next> {
        Some(match self.find_completed(cursor, threads, text, place, armed)? {
            Found::Word { index, end } => Next { completed: self.arrive(cursor, index), end, character: end },
            Found::Pattern(hit) => {
                Next { completed: Some(Completed::Pattern(hit)), end: hit.end, character: hit.completed }
            }
        })
    }

    /// The next word or pattern that completes. The cursor stays at its node.
    fn find_completed(
        &self,
        cursor: &mut Cursor,
        threads: Option<&mut Threads>,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Found> {
        let Node { automaton, machine, .. } = self.node(cursor.node);
        match threads {
            None => automaton.read(&mut cursor.state, text, armed).map(|(index, end)| Found::Word { index, end }),
            Some(threads) => threads.read_beside(automaton, machine.as_ref(), &mut cursor.state, text, place, armed),
        }
    }

    /// What it means that a word completes. Behind a marker, the cursor is where the marker leads.
    #[inline]
    fn arrive(&self, cursor: &mut Cursor, index: usize) -> Option<Completed> {
        let Node { automaton, leads, .. } = self.node(cursor.node);
        let word = Word { node: cursor.node, index: index as u32 };
        let Some(marker) = index.checked_sub(automaton.words().stops()) else {
            return Some(Completed::Stop(word));
        };
        *cursor = Cursor::start(leads[marker].node);
        (!self.stay).then_some(Completed::Marker(word))
    }

    /// The node after the assistant's own part of a prompt.
    pub(crate) fn node_after(&self, prefix: &str) -> u32 {
        let mut cursor = Cursor::default();
        let mut rest = prefix;
        while let Some(marker) = self.read_words(&mut cursor, rest, false) {
            rest = &rest[marker.end..];
        }
        cursor.node
    }
}
