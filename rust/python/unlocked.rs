//! The state of a stream that calls use without the stream's lock: how much plain text was read without it, and which
//! tokens the core must still read. Plain text is text in which no stop or marker begins. The core is the stream behind
//! the lock.
//!
//! Whenever CPython makes or frees an object, it may run finalizers and other threads, which may use the stream. So no
//! function may read the state, call CPython, and then write the state. Only the functions of this file write the
//! state, and none of them can call CPython, because this file does not use PyO3. Callers make Python objects
//! afterwards, of the values that these functions return.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use stopscan::host::{Cursor, NOTHING_PASSES, Place, Shape, ask_memory, code_points};
use stopscan::{Emit, Set, Vocabulary};

/// The state of the fast path, which reads plain text without the lock of the stream. `U` is `UnreadTokens` for a
/// stream of tokens, and `()` for a stream of deltas.
///
/// The fields that plain text needs come first, so that they share one cache line.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Unlocked<U> {
    /// The number of bytes that were read without the lock and not yet reported to the core (the stream behind the
    /// lock).
    passed: AtomicUsize,
    /// If the shape of a text (the kinds of its bytes) passes this filter, no stop or marker begins in the text.
    filter: AtomicU64,
    /// How many of the `passed` bytes are continuation bytes of UTF-8: not the first byte of a character.
    continued: AtomicUsize,
    /// The index of the current node (a region, or a state of a region) plus 1. It is 0 while the fast path is closed.
    node: AtomicU32,
    /// The part (see `Segmenter`) to which the next text belongs. Only valid while the fast path is open.
    part: AtomicU32,
    pub(crate) unread: U,
}

impl<U> Unlocked<U> {
    /// Closes the fast path, so that calls must take the lock. Returns the length of the text that was read without the
    /// lock.
    pub(crate) fn close(&self) -> Place {
        let (bytes, continued) = (self.passed.swap(0, Relaxed), self.continued.swap(0, Relaxed));
        self.node.store(0, Relaxed);
        self.filter.store(NOTHING_PASSES, Relaxed);
        Place { bytes, code_points: bytes - continued }
    }

    /// Opens the fast path of a stream that is at `node` and in `part`. Call this only if no stop or marker has begun.
    /// Text whose shape (the kinds of its bytes) passes `filter` is plain.
    pub(crate) fn open(&self, node: u32, part: u32, filter: u64) {
        self.node.store(node + 1, Relaxed);
        self.part.store(part, Relaxed);
        self.filter.store(filter, Relaxed);
    }

    /// Returns the current node if the fast path is open. Returns `None` if it is closed.
    #[inline(always)]
    pub(crate) fn idle_node(&self) -> Option<u32> {
        self.node.load(Relaxed).checked_sub(1)
    }

    #[inline(always)]
    pub(crate) fn part(&self) -> u32 {
        self.part.load(Relaxed)
    }

    /// Counts a text of this many `bytes` as read. `continued` of them are continuation bytes of UTF-8.
    #[inline(always)]
    pub(crate) fn count(&self, bytes: usize, continued: usize) {
        self.passed.store(self.passed.load(Relaxed) + bytes, Relaxed);
        if continued > 0 {
            self.continued.store(self.continued.load(Relaxed) + continued, Relaxed);
        }
    }
}

/// The most tokens in `UnreadTokens::ids`. A line break or a bracket often looks like the beginning of a stop, but the
/// next few tokens mostly show that it is not. If they do not, the core (the stream behind the lock) reads the tokens.
const MOST: usize = 4;

/// Counts the tokens that were fed to a stream. Also keeps the ids of the tokens that the core (the stream behind the
/// lock) has not read yet, because a stop or marker may have begun in the first of them.
#[derive(Default)]
pub(crate) struct UnreadTokens {
    /// How many tokens were fed, whether the core has read them or not.
    seen: AtomicUsize,
    /// The state of the automaton that finds stops and markers, after it read `ids`. The root (0) if there are no ids.
    state: AtomicU32,
    len: AtomicU32,
    ids: [AtomicU32; MOST],
}

impl UnreadTokens {
    #[inline(always)]
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Relaxed)
    }

    /// Sets the count of fed tokens. Call this after the core (the stream behind the lock) has read all of them.
    pub(crate) fn set_seen(&self, seen: usize) {
        self.seen.store(seen, Relaxed);
    }

    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = u32> {
        self.ids[..self.len()].iter().map(|id| id.load(Relaxed))
    }

    pub(crate) fn forget(&self) {
        self.len.store(0, Relaxed);
        self.state.store(0, Relaxed);
    }

    fn push(&self, id: u32, state: u32) {
        if let Some(last) = self.ids.get(self.len()) {
            last.store(id, Relaxed);
            self.len.store(self.len() as u32 + 1, Relaxed);
            self.state.store(state, Relaxed);
        }
    }

    fn len(&self) -> usize {
        (self.len.load(Relaxed) as usize).min(MOST)
    }

    /// Counts one more token.
    #[inline(always)]
    pub(crate) fn add(&self) {
        self.seen.store(self.seen() + 1, Relaxed);
    }
}

impl Unlocked<UnreadTokens> {
    /// Fast path for a token. `shape` is the length of its text and the kinds of its bytes. If no stop or marker can
    /// begin in the text, counts the token and returns the current node: all of the text is safe to emit. Otherwise
    /// returns `None` and changes nothing.
    #[inline(always)]
    pub(crate) fn pass(&self, shape: Shape) -> Option<u32> {
        if !shape.passes(self.filter.load(Relaxed)) {
            return None;
        }
        self.count(shape.bytes(), shape.continued());
        self.unread.add();
        Some(self.node.load(Relaxed).wrapping_sub(1)) // the filter lets text pass only if a node is open
    }

    /// Fast path for a token in which a stop or marker may begin or go on. `node` is the current node. Returns the text
    /// that is safe to emit: the held text and the text of the token, without the end that must be held now. Returns
    /// `None` and changes nothing if a stop or marker completes in the token, or if one stays unfinished for more than
    /// `MOST` tokens.
    pub(crate) fn walk<'a, E: Emit>(
        &self,
        set: &Set<E>,
        node: u32,
        include_stop: bool,
        vocabulary: &'a Vocabulary,
        id: u32,
    ) -> Option<Cow<'a, str>> {
        let (unread, text) = (&self.unread, vocabulary.text(id));
        let before = Cursor { node, state: unread.state.load(Relaxed) };
        let after = set.skim(before, text)?;
        let goes_on = after != Cursor::start(node);
        if goes_on && unread.len() == MOST {
            return None;
        }
        let texts = || unread.ids().map(|id| vocabulary.text(id)).chain([text]);
        let safe = match (set.held_at(before, include_stop), set.held_at(after, include_stop)) {
            (0, kept) => text[..text.len() - kept].into(),
            (held, kept) => {
                ask_memory(2 * texts().map(str::len).sum::<usize>()).ok()?;
                let mut safe: String = texts().collect();
                safe.drain(..safe.len() - text.len() - held);
                safe.truncate(safe.len() - kept);
                safe.into()
            }
        };
        if goes_on {
            unread.push(id, after.state);
            self.filter.store(NOTHING_PASSES, Relaxed);
        } else {
            texts().for_each(|text| self.count(text.len(), text.len() - code_points(text)));
            unread.forget();
            self.filter.store(set.filter(node), Relaxed);
        }
        unread.add();
        Some(safe)
    }
}
