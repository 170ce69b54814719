//! Fast paths for hosts: bindings that keep streams in objects of another language, behind a lock. A Rust program needs
//! none of them.
//!
//! Most text is plain: no stop or marker begins in it, and reading it changes only how much was read. A host looks for
//! plain text first ([`Set::plain_length`], [`Shape`], [`Set::skim`]), because plain text can be emitted without taking
//! the lock, or without making a new string. The host counts this text itself, and reports the count to the stream
//! later, with [`Stream::skip`].

use crate::graph::Graph;
use crate::{Emit, RewriteSet, Rewriter, Set, Stream};

pub use crate::graph::Cursor;
pub use crate::room::ask as ask_memory;
pub use crate::snapshot::{Reader, Writer};
pub use crate::text::{NOTHING_PASSES, Place, Shape, code_points};
pub use crate::tokens::{Decode, Native, Sink, end_bit};
pub use crate::vocabulary::TokenKind;
#[cfg(feature = "serde")]
pub use crate::vocabulary::tokenizer_json::read as read_tokenizer_json;

/// For text of at least this many bytes, `plain_length` returns `None`. The host then calls `feed`, and lets other
/// threads run meanwhile.
const LONG: usize = 1_024;

#[doc(hidden)]
impl<E: Emit> Set<E> {
    /// The number of nodes. A node is a state of a region, and most regions have one state.
    pub fn nodes(&self) -> u32 {
        self.graph().len() as u32
    }

    /// Returns the index of a node's region in [`Set::regions`].
    pub fn region_of(&self, node: u32) -> usize {
        self.graph().region(node) as usize
    }

    /// Fast path for `text` that comes at the current `node`, when no stop or marker has begun. Returns the length of
    /// `text` if no stop or marker completes in it or is unfinished at its end. All of the text is then safe to emit.
    /// The stream only has to count it and, if the set has patterns or loops, to note it for them.
    ///
    /// Returns `None` for any other text, and for long text. If `node` has patterns, also returns `None` for text in
    /// which a stop or marker may begin.
    #[inline(always)]
    pub fn plain_length(&self, node: u32, text: &str) -> Option<Place> {
        let graph = self.graph();
        graph.plain_length(node, text).or_else(|| begins_in_vain(graph, node, text))
    }

    /// Whether streams need plain text (in which no stop or marker begins) itself, and not only its length. Patterns
    /// need the last character of the text, and loops need all of it.
    pub fn needs_text(&self) -> bool {
        !self.graph().patterns().patterns.is_empty() || self.graph().repeat().is_some()
    }

    /// Returns a filter: if the [`Shape`] of a text passes it, no stop or marker of `node` begins in the text.
    pub fn filter(&self, node: u32) -> u64 {
        self.graph().plain(node).filter()
    }

    /// Returns the cursor (place in the automaton) after `text`. Returns `None` if a stop completes in `text`, a marker
    /// is taken out of it, or a marker leads to another node. Call this only for sets without patterns and loops.
    pub fn skim(&self, mut cursor: Cursor, text: &str) -> Option<Cursor> {
        let node = cursor.node;
        let completed = self.graph().scan_words(&mut cursor, text, true);
        (completed.is_none() && cursor.node == node).then_some(cursor)
    }

    /// Returns how many bytes are held at `cursor`.
    pub fn held_at(&self, cursor: Cursor, include_stop: bool) -> usize {
        self.graph().held(cursor, !include_stop)
    }
}

/// Returns the length of `text` if stops or markers may begin in it, but none completes in it or is unfinished at its
/// end. Returns `None` for any other text, for long text, and if the node has patterns. A marker that leads back to
/// `node` also counts as completed, because after it the search for loops begins anew.
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
    /// The node of the stream, if no stop or marker has begun and no stop has fired.
    #[inline(always)]
    pub fn idle_node(&self) -> Option<u32> {
        self.is_idle().then_some(self.cursor.node)
    }

    /// The node that the stream is at: a state of a region.
    pub fn node(&self) -> u32 {
        self.cursor.node
    }

    /// The number of parts before the current part. Markers separate the parts.
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Counts text of this `length` as read. Call this only if no stop or marker completes in this text or is
    /// unfinished at its end.
    pub fn skip(&mut self, length: Place) {
        self.read = self.read + length;
    }

    /// Reads plain `text` of this `length`: counts it, notes it for patterns and loops, and returns `true`. But if a
    /// loop may complete in the text, changes nothing and returns `false`.
    #[inline(always)]
    pub fn skip_text(&mut self, text: &str, length: Place) -> bool {
        let skipped = self.history.as_mut().is_none_or(|history| history.try_note_plain(text));
        if skipped {
            self.read = self.read + length;
        }
        skipped
    }
}

#[doc(hidden)]
impl RewriteSet {
    /// Whether `text` is short and no key (text to replace) begins in it. A rewriter that holds nothing returns such
    /// text unchanged.
    #[inline(always)]
    pub fn is_plain(&self, text: &str) -> bool {
        self.0.trie().plain().code_points(text).is_some()
    }
}

#[doc(hidden)]
impl Rewriter {
    /// Whether nothing is held.
    pub fn is_idle(&self) -> bool {
        self.node == 0
    }
}
