//! Text that passed a stream and that the core has not read yet.

use std::array;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::stream::{Emit, Stream};

/// Bytes of text, eight in a word.
pub(super) struct UnreadText(Box<[AtomicU64]>);

const WORD: usize = size_of::<u64>();

/// The most bytes of a stream with loops: so long is the longest block between two checks for them.
const LOOPS: usize = 128;

/// The most bytes of a stream with patterns alone: a server has many.
const PATTERNS: usize = 32;

impl UnreadText {
    /// What streams need that have patterns or loops.
    pub(super) fn of<E: Emit>(stream: &Stream<E>) -> Option<UnreadText> {
        let graph = stream.graph();
        let bytes = match (graph.repeat(), graph.patterns().patterns.is_empty()) {
            (Some(_), _) => LOOPS,
            (None, false) => PATTERNS,
            (None, true) => return None,
        };
        Some(UnreadText((0..=bytes / WORD).map(|_| AtomicU64::new(0)).collect()))
    }

    /// So many bytes are too many.
    pub(super) fn room(&self) -> usize {
        (self.0.len() - 1) * WORD + 1
    }

    /// Adds `text` behind `length` bytes. What stands behind these is of a text that was read.
    #[inline(never)]
    pub(super) fn push(&self, mut length: usize, text: &str) {
        for bytes in text.as_bytes().chunks(WORD) {
            let (index, shift) = (length / WORD, length % WORD * 8);
            // The last byte stands in for those that are missing: a loop would mispredict its end.
            let new = u64::from_le_bytes(array::from_fn(|at| bytes[at.min(bytes.len() - 1)]));
            if let Some([word, next]) = self.0.get(index..index + 2) {
                let before = word.load(Relaxed) & !(u64::MAX << shift);
                word.store(before | new << shift, Relaxed);
                next.store((new >> 1) >> (63 - shift), Relaxed);
            }
            length += bytes.len();
        }
    }

    /// What `action` does with the first `length` bytes.
    pub(super) fn read<T>(&self, length: usize, action: impl FnOnce(&str) -> T) -> Option<T> {
        let mut bytes = [0; LOOPS + WORD];
        for (part, word) in bytes.chunks_exact_mut(WORD).zip(&self.0) {
            part.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        // Whole texts passed, so that it is text.
        str::from_utf8(bytes.get(..length)?).ok().map(action)
    }
}
