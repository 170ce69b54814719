//! The last tokens of a stream, if a word has begun in them and the core does not know.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::Vocabulary;
use crate::automaton::State;

/// A line break, or a bracket, begins a word again and again that goes on for no more tokens than these.
const MOST: usize = 4;

#[derive(Default)]
pub(super) struct UnreadTokens {
    /// The state of the automaton behind them; the root if there are none.
    state: AtomicU32,
    len: AtomicU32,
    ids: [AtomicU32; MOST],
}

impl UnreadTokens {
    pub(super) fn state(&self) -> State {
        self.state.load(Relaxed)
    }

    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = u32> {
        self.ids[..self.len()].iter().map(|id| id.load(Relaxed))
    }

    pub(super) fn has_room(&self) -> bool {
        self.len() < MOST
    }

    /// What `action` does with their text and `text` behind it, and with the length of theirs; `None` if there is no
    /// memory for it.
    pub(super) fn with_text<T>(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        action: impl FnOnce(&str, usize) -> T,
    ) -> Option<T> {
        let texts = || self.ids().map(|id| vocabulary.text(id));
        let length = texts().map(str::len).sum();
        let mut joined = String::new();
        joined.try_reserve_exact(length + text.len()).ok()?;
        texts().chain([text]).for_each(|text| joined.push_str(text));
        Some(action(&joined, length))
    }

    pub(super) fn push(&self, id: u32, state: State) {
        if let Some(last) = self.ids.get(self.len()) {
            last.store(id, Relaxed);
            self.len.store(self.len() as u32 + 1, Relaxed);
            self.state.store(state, Relaxed);
        }
    }

    pub(super) fn forget(&self) {
        self.len.store(0, Relaxed);
        self.state.store(0, Relaxed);
    }

    fn len(&self) -> usize {
        (self.len.load(Relaxed) as usize).min(MOST)
    }
}
