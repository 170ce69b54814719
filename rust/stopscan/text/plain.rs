//! Recognises plain text: short text in which nothing begins. At an automaton's root, reading it changes nothing.

use super::code_points;

/// Marks a byte that begins a word.
const BEGINS: u8 = 1;

/// Marks a byte of a code point that has several.
const NOT_ASCII: u8 = 2;

#[derive(Clone, Debug)]
pub(crate) struct Plain {
    marks: [u8; 256],
    filter: u64,
}

impl Plain {
    /// Text is plain if it has none of the bytes of `begins`.
    pub(crate) fn new(begins: impl IntoIterator<Item = u8>) -> Plain {
        let mut marks = [0; 256];
        marks[0x80..].fill(NOT_ASCII);
        for byte in begins {
            marks[byte as usize] |= BEGINS;
        }
        Plain { filter: super::shape::filter((0..=u8::MAX).filter(|&byte| marks[byte as usize] & BEGINS != 0)), marks }
    }

    /// What the shape of a text passes that is plain whatever else it has.
    pub(crate) fn filter(&self) -> u64 {
        self.filter
    }

    #[inline(always)]
    pub(crate) fn begins(&self, byte: u8) -> bool {
        self.marks[byte as usize] & BEGINS != 0
    }

    /// How many code points `delta` has, if it is plain. Most deltas of most streams are.
    #[inline(always)]
    pub(crate) fn code_points(&self, delta: &str) -> Option<usize> {
        let text = delta.as_bytes();
        // Deltas differ in length, and a loop over their bytes would mispredict its end each time. Up to 8 bytes, the
        // last one stands in for those that are missing; further, two blocks that may overlap cover the text.
        let marks = match text.len() {
            0 => 0,
            1..=8 => (0..8).fold(0, |marks, at| marks | self.mark(text[at.min(text.len() - 1)])),
            9..=16 => self.block_marks::<8>(text),
            17..=32 => self.block_marks::<16>(text),
            _ => return None,
        };
        match marks {
            0 => Some(text.len()),
            mark if mark & BEGINS == 0 => Some(code_points(delta)),
            _ => None,
        }
    }

    #[inline(always)]
    fn block_marks<const N: usize>(&self, text: &[u8]) -> u8 {
        match (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            (Some(&first), Some(&last)) => self.marks(first) | self.marks(last),
            _ => BEGINS, // too short for a block: read it the long way
        }
    }

    #[inline(always)]
    fn mark(&self, byte: u8) -> u8 {
        self.marks[byte as usize]
    }

    #[inline(always)]
    fn marks<const N: usize>(&self, bytes: [u8; N]) -> u8 {
        bytes.into_iter().fold(0, |marks, byte| marks | self.mark(byte))
    }
}
