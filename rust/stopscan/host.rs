//! What a host needs that keeps streams in objects of another language, beside what programs in Rust need.
//!
//! The commonest text is plain: nothing begins in it, and reading it changes only how much was read. A host that pays
//! for a lock, or for a string, looks at such a text first ([`Set::plain_length`], [`Shape`], [`Set::skim`]), counts it,
//! and tells the stream later with [`Stream::skip`].

use std::collections::TryReserveError;
use std::sync::Arc;

use crate::graph::Graph;
use crate::tokens::Decoded;
use crate::{Emit, Options, Set, Stream, TokenOptions, TokenStream};

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

impl<E: Emit> Stream<E> {
    /// The set that it reads with.
    pub fn set(&self) -> &Set<E> {
        &self.set
    }

    /// The options that it began with.
    pub fn options(&self) -> Options {
        let options = Options::default().include_stop(self.include_stop);
        match self.start {
            0 => options,
            // Regions that are named after markers need not have names of their own.
            1 if self.graph().protected().is_some() => options.start_protected(true),
            node => options.region(self.graph().name(node)),
        }
    }

    /// About how many bytes of text the stream keeps.
    pub fn size(&self) -> usize {
        self.held().len() + self.unused().len() + self.history.as_ref().map_or(0, |history| history.size())
    }

    /// Checks that the memory for reading a delta of `bytes` bytes can be had, by allocating and freeing it. Without
    /// memory, reading a delta ends the process, so a host that has an error of its own asks first.
    ///
    /// # Errors
    /// If there is not enough memory.
    #[inline]
    pub fn ask_memory(&self, bytes: usize) -> Result<(), TryReserveError> {
        let history = self.history.as_ref().map_or(0, |history| history.growth(bytes));
        // What a pattern matched is copied, and what follows a stop; and text that is taken out of a delta. A host's text
        // may have four bytes a character.
        crate::room::ask(self.held.growth(bytes) + 7 * bytes + 4 * self.held.len() + history)
    }
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

impl<E: Emit, D: Decode> TokenStream<E, D> {
    /// The stream of its text.
    pub fn text(&self) -> &Stream<E> {
        &self.decoded.stream
    }

    pub fn text_mut(&mut self) -> &mut Stream<E> {
        &mut self.decoded.stream
    }

    /// The options that it began with: sorted ids, and without the prompt.
    #[doc(hidden)]
    pub fn options(&self) -> &Arc<TokenOptions> {
        &self.decoded.options
    }

    /// Whether nothing is begun: no character, no stop, no end.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.decoder.is_idle() && self.decoded.stream.is_idle() && self.finish().is_none()
    }

    /// Counts tokens as read; their text was plain, and [`Stream::skip`] counts it.
    pub fn skip_tokens(&mut self, tokens: usize) {
        let Decoded { stream, ledger, .. } = &mut self.decoded;
        ledger.skip(stream.open().region, tokens);
    }
}
