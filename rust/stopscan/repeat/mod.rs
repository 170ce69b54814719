//! Loops: text that repeats its last block again and again, found at the first character that proves the repetition.
//!
//! [`Repeat`] says what counts as a loop. Take the last `max(count * p, min_length)` characters of a text. The text
//! loops with the period `p` if each of these characters, except the first `p`, equals the character `p` places before
//! it. To test every period at every character, a thousand comparisons a character would be needed. So [`Loops`] does
//! three things instead:
//!
//! 1. **Checks.** A loop has a long *run*: bytes that equal the bytes one period before them. With the defaults, the
//!    run of a complete loop has at least 192 bytes. A check searches for runs every 96 bytes (`Repeat::block`). So the
//!    last check before the loop completes finds at least 96 bytes of the run. A longer period needs a longer run:
//!    periods above 96 are searched at every second check, those above 192 at every fourth, and so on
//!    (`Repeat::reach`). A check only finds runs that are at least as long as their period. The text then ends with a
//!    *square*: the same bytes twice.
//! 2. **Search** (`search.rs`). A check compares four of the last bytes with the bytes one period before them, for
//!    64 periods at once. If all four are equal, the length of the run is measured. If very many periods pass this
//!    test, as in a text that was made to be slow, all runs are measured in one pass, in linear time (a Z function).
//! 3. **Runs.** The few squares that a check finds are followed: new text is compared with the text one period before
//!    it, and a run that breaks is dropped. The comparison waits for the next check, or for the first place where a run
//!    can become a loop, if this comes earlier.
//!
//! All three work on bytes of UTF-8. A loop begins with the first byte of a character, and so do all of its copies. So
//! the bytes of a loop repeat if and only if its characters do. Characters matter for three things: where a run begins,
//! how many characters a period has, and so how many bytes a loop has.
//!
//! The kept text is about three times as long as the longest period: two periods for a square, and one for the text
//! until the next check. The less of the kept text is ASCII, the more bytes a period of `max_period` characters has.

mod loops;
mod search;

use std::cmp::Ordering;

use crate::error::{ErrorKind, StopSetError};

pub use loops::Loops;

/// A stop that fires when the text loops: when a block of at most `max_period` characters has come `count` times in a
/// row. All copies together must have at least `min_length` characters, so a short block must come more often.
///
/// The number of copies need not be whole. With the defaults, a loop needs at least 256 characters. A block of 50
/// characters is a loop if the text ends with five whole copies, and before them come the last 6 characters of another
/// copy.
///
/// ```
/// use stopscan::Repeat;
///
/// assert_eq!(Repeat::default(), Repeat::new(4, 1024, 256)?);
/// assert_eq!(Repeat::new(2, 1024, 256).unwrap_err().to_string(), "repeat: count must be at least 3, not 2");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    count: usize,
    max_period: usize,
    min_length: usize,
}

impl Repeat {
    /// Makes a stop for `count` copies (3 or more) of a block. The block may have at most `max_period` characters (1 to
    /// 65,536). All copies together must have at least `min_length` characters (32 or more).
    pub fn new(count: usize, max_period: usize, min_length: usize) -> Result<Repeat, StopSetError> {
        let at_least = |name, value: usize, least| match value.cmp(&least) {
            Ordering::Less => Err(ErrorKind::Repeat { name, value, limit: least, bound: "at least" }),
            _ => Ok(()),
        };
        at_least("count", count, 3)?;
        at_least("max_period", max_period, 1)?;
        at_least("min_length", min_length, 32)?;
        if max_period > MAX_PERIOD {
            let (name, value) = ("max_period", max_period);
            return Err(ErrorKind::Repeat { name, value, limit: MAX_PERIOD, bound: "at most" }.into());
        }
        Ok(Repeat { count, max_period, min_length })
    }

    /// The number of copies of a block that make a loop.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The most characters that the repeated block may have.
    pub fn max_period(&self) -> usize {
        self.max_period
    }

    /// The fewest characters that all copies of the block must have together.
    pub fn min_length(&self) -> usize {
        self.min_length
    }

    /// How many characters a loop has, at least, if it repeats a block of `period` characters.
    fn length(&self, period: usize) -> usize {
        self.count.saturating_mul(period).max(self.min_length)
    }

    /// The number of bytes from one check (search for loops) to the next. It is half the length of the shortest
    /// possible loop without the first copy of its repeated text, but at most `MAX_BLOCK`.
    fn block(&self) -> usize {
        let least = self.min_length - self.min_length / self.count;
        least.div_ceil(2).min(MAX_BLOCK)
    }

    /// Returns the longest period for which a check (search for loops) looks. The checks are numbered, and `divisible`
    /// is how often the number of this check can be divided by two. Long periods are looked for only at checks with a
    /// high `divisible`, because these checks are rare.
    ///
    /// Take a period of at least `block` bytes. Two successive checks that look for it are at most `count - 2` periods
    /// apart. So such a check comes between the end of the second copy of a loop and the end of its last copy. The two
    /// checks are also at most `longest` bytes apart (the longest period that is allowed). So the kept text still has
    /// the first two copies.
    fn reach(&self, divisible: u32, longest: usize) -> usize {
        let distance = self.block() << divisible;
        if self.count == 3 {
            return (2 * distance).min(longest);
        }
        if 2 * distance > longest { longest } else { distance }
    }
}

impl Default for Repeat {
    fn default() -> Repeat {
        Repeat { count: 4, max_period: 1024, min_length: 256 }
    }
}

/// A loop that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loop {
    /// Where the loop ends: the number of bytes from the beginning of the text that was passed to `feed`.
    pub end: usize,
    /// The length of the loop in code points: `count` periods, or `min_length` if that is more.
    pub length: usize,
    /// The period: the number of code points after which the text repeats.
    pub period: usize,
    /// The text of the loop.
    pub sequence: String,
}

const MAX_PERIOD: usize = 65_536;

/// The most bytes between two searches for loops. With a greater distance, streams would keep more text, and the
/// searches would not be cheaper.
const MAX_BLOCK: usize = 128;
