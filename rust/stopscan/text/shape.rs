//! What is known of a text without a look at it: the kinds of its bytes, and how many bytes there are.

/// A set of kinds of bytes in the low 48 bits, then in 8 each how many bytes there are and how many of them continue a
/// code point. It is one word: with it beside the pointer to its string, a token costs one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

/// The kind of each byte: most that stops begin with are alone in theirs.
const KINDS: [u8; 256] = kinds();

/// This kind is of no byte: it marks text that has to be read.
const UNKNOWN: u8 = 47;

/// The kind of the bytes that continue a code point: no word begins with one, and no filter has it.
const CONTINUES: u8 = 48;

const FILTER: u64 = (1 << 48) - 1;

/// The filter that no text passes.
pub const NOTHING_PASSES: u64 = u64::MAX;

impl Shape {
    /// Text that has to be read.
    pub const UNKNOWN: Shape = Shape(FILTER);

    #[doc(hidden)]
    pub fn of(text: &str) -> Shape {
        let continued = text.bytes().filter(|&byte| KINDS[byte as usize] == CONTINUES).count();
        match u8::try_from(text.len()) {
            Ok(bytes @ 1..) => Shape(kinds_of(text.bytes()) | u64::from(bytes) << 48 | (continued as u64) << 56),
            _ => Shape::UNKNOWN,
        }
    }

    /// Whether the text has none of the bytes of a filter.
    #[inline(always)]
    pub fn passes(self, filter: u64) -> bool {
        self.0 & filter == 0
    }

    #[inline(always)]
    #[doc(hidden)]
    pub fn bytes(self) -> usize {
        (self.0 >> 48 & 0xFF) as usize
    }

    /// How many bytes continue a code point.
    #[inline(always)]
    pub fn continued(self) -> usize {
        (self.0 >> 56) as usize
    }
}

/// The filter that text passes which has none of `bytes`.
pub(crate) fn filter(bytes: impl IntoIterator<Item = u8>) -> u64 {
    1 << UNKNOWN | kinds_of(bytes)
}

fn kinds_of(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0, |kinds, byte| kinds | 1 << KINDS[byte as usize]) & FILTER
}

/// Newline, blank and each punctuation mark a kind; digits 1, upper case 5, lower case 4, lead bytes 2, all others 1.
const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut next = 0;
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b'A'..=b'Z' => 36 + byte as u8 % 5,
            b'a'..=b'z' => 41 + byte as u8 % 4,
            b'0'..=b'9' => 35,
            b'\n' | b' '..=b'~' => {
                next += 1;
                next
            }
            0x80..=0xBF => CONTINUES,
            0xC0..=0xDF => 45,
            0xE0..=0xFF => 46,
            _ => 0,
        };
        byte += 1;
    }
    kinds
}
