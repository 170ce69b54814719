//! The text of a stream: positions in it, the held text, and fast checks whether a stop or marker begins in a delta.

use std::ops::Add;

/// A position in the text of a stream, or the length of a text: in code points and in bytes of UTF-8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    #[doc(hidden)]
    pub code_points: usize,
    #[doc(hidden)]
    pub bytes: usize,
}

impl Place {
    #[doc(hidden)]
    pub fn after(text: &str) -> Place {
        Place { code_points: code_points(text), bytes: text.len() }
    }

    /// Returns the position at which `text` begins if it ends at this position.
    pub(crate) fn before(self, text: &str) -> Place {
        let length = Place::after(text);
        Place { code_points: self.code_points - length.code_points, bytes: self.bytes - length.bytes }
    }

    #[inline]
    pub(crate) fn advance(&mut self, text: &str) {
        self.code_points += code_points(text);
        self.bytes += text.len();
    }
}

impl Add for Place {
    type Output = Place;

    fn add(self, length: Place) -> Place {
        Place { code_points: self.code_points + length.code_points, bytes: self.bytes + length.bytes }
    }
}

/// Returns the number of code points of `text`: counts the bytes that do not continue a character.
pub fn code_points(text: &str) -> usize {
    text.bytes().filter(|byte| byte & 0xC0 != 0x80).count()
}

/// `Held::begin` does not shrink a buffer of at most this many bytes.
const SPARE: usize = 64;

/// The held text, as a queue: new text is appended to `buffer`, and `start` moves past text that is released. So held
/// text need not be copied for each delta.
#[derive(Debug, Default)]
pub(crate) struct Held {
    buffer: String,
    /// Where the held text begins in `buffer`. The text before this place was released.
    start: usize,
}

impl Clone for Held {
    /// Copies only the held text. The buffer may also have much released text, until `begin` drops it.
    fn clone(&self) -> Held {
        Held { buffer: self.as_str().to_owned(), start: 0 }
    }
}

/// The text that becomes safe to emit when a stream reads a delta. If no text was held, it is the beginning of the
/// delta. Otherwise it is in the buffer of `Held`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Released {
    /// The range of the text in the buffer of `Held`. Empty if no text was held. It is stored as two offsets, because a
    /// slice would borrow the buffer.
    from: usize,
    to: usize,
    /// The number of bytes at the beginning of the delta that are released.
    pub(crate) of_delta: usize,
}

impl Released {
    /// Returns a `Released` that is the whole delta. Call this only if no text was held.
    #[inline(always)]
    pub(crate) fn all_of(delta: &str) -> Released {
        Released { of_delta: delta.len(), ..Released::default() }
    }

    pub(crate) fn is_empty(self) -> bool {
        !self.is_of_buffer() && self.of_delta == 0
    }

    pub(crate) fn is_of_buffer(self) -> bool {
        self.from != self.to
    }
}

impl Held {
    /// The most bytes that are allocated if `bytes` more bytes are appended to the buffer. 0 if it has room for them.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        let needed = self.buffer.len() + bytes;
        if needed > self.buffer.capacity() { 2 * needed } else { 0 }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.buffer[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The text that `delta` has just released.
    #[inline(always)]
    pub(crate) fn text<'a>(&'a self, released: Released, delta: &'a str) -> &'a str {
        match released.is_of_buffer() {
            true => &self.buffer[released.from..released.to],
            false => &delta[..released.of_delta],
        }
    }

    /// Call this before text is read. If at least half of the buffer is released text, drops this text and moves the
    /// held text to the front, so a call never moves more bytes than it drops. Also frees the memory that a long delta
    /// needed.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.start > 0 && self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.capacity() > SPARE {
                self.buffer.shrink_to(SPARE.max(4 * self.buffer.len()));
            }
        }
    }

    /// Appends `delta` and releases all but the last `kept` bytes.
    #[inline]
    pub(crate) fn push(&mut self, delta: &str, kept: usize) -> Released {
        let before = self.len();
        if before == 0 {
            let of_delta = delta.len() - kept;
            if kept > 0 {
                self.buffer.push_str(&delta[of_delta..]);
            }
            return Released { of_delta, ..Released::default() };
        }
        self.buffer.push_str(delta);
        let from = self.start;
        self.start = self.buffer.len() - kept;
        Released { from, to: self.start, of_delta: (self.start - from).saturating_sub(before) }
    }

    /// Appends `through`, which ends with a stop or marker, to the held text. Drops its last `cut` bytes, and releases
    /// everything before them.
    pub(crate) fn cut(&mut self, through: &str, cut: usize) -> Released {
        let kept = self.len() + through.len() - cut;
        match kept.checked_sub(self.len()) {
            Some(kept_of_through) => self.push(&through[..kept_of_through], 0),
            None => {
                let from = self.start;
                self.start = self.buffer.len();
                Released { from, to: from + kept, of_delta: 0 }
            }
        }
    }
}

/// A flag of a byte: a stop or marker may begin with it.
const BEGINS: u8 = 1;

/// A flag of a byte: it belongs to a code point of several bytes.
const NOT_ASCII: u8 = 2;

/// Recognises plain text: short text without the first byte of any stop or marker. If no stop or marker has begun
/// before, such text need not be scanned.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    marks: [u8; 256],
    filter: u64,
}

impl Plain {
    /// Makes a recogniser of text that has none of the bytes `begins`. These are the first bytes of stops and markers.
    pub(crate) fn new(begins: impl IntoIterator<Item = u8>) -> Plain {
        let mut marks = [0; 256];
        marks[0x80..].fill(NOT_ASCII);
        for byte in begins {
            marks[byte as usize] |= BEGINS;
        }
        Plain { filter: filter((0..=u8::MAX).filter(|&byte| marks[byte as usize] & BEGINS != 0)), marks }
    }

    /// Returns a filter for the fast check `Shape::passes`. If a text passes it, no stop or marker begins in the text.
    pub(crate) fn filter(&self) -> u64 {
        self.filter
    }

    #[inline(always)]
    pub(crate) fn begins(&self, byte: u8) -> bool {
        self.marks[byte as usize] & BEGINS != 0
    }

    /// Returns the number of code points of `delta` if it is plain: it has at most 32 bytes, and none of them is the
    /// first byte of a stop or marker. Otherwise returns `None`.
    #[inline(always)]
    pub(crate) fn code_points(&self, delta: &str) -> Option<usize> {
        let text = delta.as_bytes();
        // Each of these loops has a fixed number of rounds. Deltas differ in length, so for a loop with as many rounds
        // as bytes, the processor would often guess wrong when it ends. For less than 8 bytes, the last byte is read
        // several times. Text of more than 8 bytes is read as two blocks, which may overlap.
        let marks = match text.len() {
            0 => 0,
            1..=8 => (0..8).fold(0, |marks, at| marks | self.marks[text[at.min(text.len() - 1)] as usize]),
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
            _ => BEGINS, // too short for a block, so not known to be plain
        }
    }

    #[inline(always)]
    fn marks<const N: usize>(&self, bytes: [u8; N]) -> u8 {
        bytes.into_iter().fold(0, |marks, byte| marks | self.marks[byte as usize])
    }
}

/// A summary of a text: which kinds of bytes it has, and how many bytes. If the summary shows that no stop or marker
/// begins in the text, a caller that keeps the shape of each token's text need not read the text.
///
/// The low 48 bits are a set of kinds. The next 8 bits are the number of bytes, and the last 8 the number of bytes that
/// continue a code point. A shape fits in 64 bits, so that a token's shape and its string pointer share a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

/// The kind of each byte: a number that similar bytes share. Newline and each punctuation mark have a kind of their
/// own, because most stops begin with one of them.
const KINDS: [u8; 256] = kinds();

/// A kind that no byte has. It stands for text whose kinds of bytes are not known. No filter lets such text pass, so
/// the text itself has to be read.
const UNKNOWN: u8 = 47;

/// The kind of the bytes that continue a code point. Filters ignore it: no stop or marker begins with such a byte.
const CONTINUES: u8 = 48;

const FILTER: u64 = (1 << 48) - 1;

/// A filter that no text passes.
pub const NOTHING_PASSES: u64 = u64::MAX;

impl Shape {
    /// The shape of empty text and of text of more than 255 bytes. It passes no filter, so the text itself has to be
    /// read.
    pub const UNKNOWN: Shape = Shape(FILTER);

    #[doc(hidden)]
    pub fn of(text: &str) -> Shape {
        let continued = text.bytes().filter(|&byte| KINDS[byte as usize] == CONTINUES).count();
        match u8::try_from(text.len()) {
            Ok(bytes @ 1..) => Shape(kinds_of(text.bytes()) | u64::from(bytes) << 48 | (continued as u64) << 56),
            _ => Shape::UNKNOWN,
        }
    }

    /// Returns true only if the text has none of the bytes from which `filter` was made. If it returns false, the text
    /// may have one of these bytes, or another byte of the same kind.
    #[inline(always)]
    pub fn passes(self, filter: u64) -> bool {
        self.0 & filter == 0
    }

    #[inline(always)]
    #[doc(hidden)]
    pub fn bytes(self) -> usize {
        (self.0 >> 48 & 0xFF) as usize
    }

    /// The number of bytes that continue a code point.
    #[inline(always)]
    pub fn continued(self) -> usize {
        (self.0 >> 56) as usize
    }
}

/// Returns a filter for `Shape::passes`: text with one of `bytes` does not pass it. As several bytes share a kind, some
/// text without these bytes does not pass either.
pub(crate) fn filter(bytes: impl IntoIterator<Item = u8>) -> u64 {
    1 << UNKNOWN | kinds_of(bytes)
}

fn kinds_of(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0, |kinds, byte| kinds | 1 << KINDS[byte as usize]) & FILTER
}

/// Returns the kind of each byte: a number that similar bytes share. Newline, space and each punctuation mark have a
/// kind of their own. All digits have one kind, and all other control characters have one. Upper case letters share 5
/// kinds, lower case letters share 4, and the first bytes of characters that are not ASCII share 2.
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
