//! What a host needs that keeps streams in objects of another language, beside what programs in Rust need.
//!
//! The commonest text is plain: nothing begins in it, and reading it changes only how much was read. A host that pays
//! for a lock, or for a string, looks at such a text first ([`Set::plain_length`], [`Shape`], [`Set::skim`]), counts it,
//! and tells the stream later with [`Stream::skip`].

use crate::graph::Graph;
use crate::{Emit, Set, Stream};

pub use crate::graph::Cursor;
pub use crate::room::ask as ask_memory;
pub use crate::snapshot::{Reader, Writer};
pub use crate::text::{NOTHING_PASSES, Place, Shape, code_points};
pub use crate::tokens::{Decode, Native, Sink, end_bit};
pub use crate::vocabulary::TokenKind;
#[cfg(feature = "serde")]
pub use crate::vocabulary::tokenizer_json::read as read_tokenizer_json;

/// Texts that are longer are not skimmed: other threads are to run meanwhile.
const LONG: usize = 1_024;

#[doc(hidden)]
impl<E: Emit> Set<E> {
    /// The number of nodes: of regions and their states.
    pub fn nodes(&self) -> u32 {
        self.graph().len() as u32
    }

    /// The place of a node's region among [`Set::regions`].
    pub fn region_of(&self, node: u32) -> usize {
        self.graph().region(node) as usize
    }

    /// How long `text` is, if reading it at a node where nothing has begun changes only how much was read.
    #[inline(always)]
    pub fn plain_length(&self, node: u32, text: &str) -> Option<Place> {
        let graph = self.graph();
        graph.plain_length(node, text).or_else(|| begins_in_vain(graph, node, text))
    }

    /// Whether streams have to see plain text, too: patterns look behind, and loops are found in all text.
    pub fn needs_text(&self) -> bool {
        !self.graph().patterns().patterns.is_empty() || self.graph().repeat().is_some()
    }

    /// The bits of [`Shape`] that a text must not have to be plain at this node.
    pub fn filter(&self, node: u32) -> u64 {
        self.graph().plain(node).filter()
    }

    /// Where reading `text` leads from `cursor`, if nothing completes in it. It is for sets without patterns and loops.
    pub fn skim(&self, mut cursor: Cursor, text: &str) -> Option<Cursor> {
        let node = cursor.node;
        let completed = self.graph().scan_words(&mut cursor, text, true);
        (completed.is_none() && cursor.node == node).then_some(cursor)
    }

    /// How many bytes are held at `cursor`.
    pub fn held_at(&self, cursor: Cursor, include_stop: bool) -> usize {
        self.graph().held(cursor, !include_stop)
    }
}

/// As for plain text, but for text in which words begin, and none completes or goes on. Behind a marker much changes, even
/// if it leads back: patterns are live there, and the history of loops begins anew.
#[inline(never)]
fn begins_in_vain(graph: &Graph, node: u32, text: &str) -> Option<Place> {
    if text.len() >= LONG {
        return None;
    }
    let (automaton, machine) = graph.machines(node);
    let mut state = 0;
    let completed = machine.is_some() || automaton.scan(&mut state, text, true).is_some();
    (!completed && state == 0).then(|| Place::after(text))
}

#[doc(hidden)]
impl<E: Emit> Stream<E> {
    /// The node at which it is, if nothing has begun there.
    #[inline(always)]
    pub fn idle_node(&self) -> Option<u32> {
        self.is_idle().then_some(self.cursor.node)
    }

    /// The node at which it is.
    pub fn node(&self) -> u32 {
        self.cursor.node
    }

    /// How many parts came before the open one.
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Counts text of this length as read; it was plain.
    pub fn skip(&mut self, length: Place) {
        self.read = self.read + length;
    }

    /// Reads plain text of this length for patterns and loops, unless a loop may complete in it; returns whether it did.
    #[inline(always)]
    pub fn skip_text(&mut self, text: &str, length: Place) -> bool {
        let skipped = self.history.as_mut().is_none_or(|history| history.try_note_plain(text));
        if skipped {
            self.read = self.read + length;
        }
        skipped
    }
}
