use std::array;
use std::ops::RangeInclusive;

use super::Repeat;

/// The number of periods that `equal` tests at once. A period is the distance in bytes after which text repeats.
pub(super) const ROW: usize = 64;

/// Finds *squares*: places where `text` ends with the same bytes twice. The length of one copy is the period. The *run*
/// of a period is the number of bytes at the end of `text` that equal the bytes one period before them.
///
/// For each of the `periods` with a square, the shortest first, calls `found` with the period and the length of its
/// run. Skips runs that are shorter than `least` bytes.
pub(super) fn squares(text: &[u8], periods: RangeInclusive<usize>, least: usize, mut found: impl FnMut(usize, usize)) {
    let (mut period, last) = periods.into_inner();
    let places = [0, 3, 7, 1].map(|part| (least - 1) * part / 7);
    let mut budget = last + ROW;
    while period <= last {
        let next = period + ROW;
        let mut row = if next + least > text.len() { u64::MAX } else { equal(text, period, places) };
        while row != 0 && period + row.trailing_zeros() as usize <= last {
            let period = period + row.trailing_zeros() as usize;
            let length = run_length(text, period, 0);
            if length >= least.max(period) {
                found(period, length);
            }
            budget = budget.saturating_sub(length / 8);
            row &= row - 1;
        }
        period = next;
        if budget == 0 {
            return all_squares(text, period..=last, least, found);
        }
    }
}

/// A fast check of `ROW` periods, from `period` on. Returns a bit for each period, the lowest bit for the shortest. The
/// bit is set if the bytes at all four `places` equal the bytes one period before them. A place is counted from the end
/// of `text`.
#[inline]
fn equal(text: &[u8], period: usize, places: [usize; 4]) -> u64 {
    let newest = places.map(|place| text[text.len() - 1 - place]);
    let earlier = places.map(|place| {
        let end = text.len() - place - period;
        text[..end].last_chunk::<ROW>().expect("the text is long enough")
    });
    let lanes: [u8; ROW] = array::from_fn(|lane| {
        let equal = |place: usize| earlier[place][lane] == newest[place];
        (equal(0) & equal(1) & equal(2) & equal(3)).into()
    });
    let words = || lanes.as_chunks().0.iter().map(|lanes| u64::from_le_bytes(*lanes));
    if words().fold(0, |any, word| any | word) == 0 {
        return 0;
    }
    // A word has eight bytes, each of them 0 or 1. The multiplication moves these eight bits into the highest byte. The
    // bit of the last byte becomes the lowest.
    words().fold(0, |bits, word| bits << 8 | word.wrapping_mul(0x8040_2010_0804_0201) >> 56)
}

/// Returns how many bytes at the end of `text` equal the bytes that are `period` bytes before them. The last `known`
/// bytes are known to be equal, and are not compared.
#[inline]
pub(super) fn run_length(text: &[u8], period: usize, mut known: usize) -> usize {
    let (new, old) = (&text[period..], &text[..text.len() - period]);
    while let (Some(new), Some(old)) = (word(new, known), word(old, known)) {
        let differing = new ^ old;
        if differing != 0 {
            return known + differing.leading_zeros() as usize / 8;
        }
        known += 8;
    }
    let equal = |back: &usize| new[new.len() - 1 - back] == old[old.len() - 1 - back];
    known + (known..old.len()).take_while(equal).count()
}

/// Leaves out the last `skipped` bytes of `bytes`, and returns the last eight of the others as a little-endian number.
/// Returns `None` if there are fewer than eight.
#[inline]
fn word(bytes: &[u8], skipped: usize) -> Option<u64> {
    bytes[..bytes.len() - skipped].last_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// Does the same as `squares`, but in linear time for every text: with the Z algorithm, on the text read backwards.
#[cold]
fn all_squares(text: &[u8], periods: RangeInclusive<usize>, least: usize, mut found: impl FnMut(usize, usize)) {
    let mut runs = vec![0; periods.end() + 1];
    // The window of the Z algorithm: the earlier run that reaches back farthest in the text. Lengths of runs that lie
    // inside it need not be computed again.
    let (mut from, mut to) = (0, 0);
    for period in 1..=*periods.end() {
        let mut known = 0;
        if period < to {
            known = runs[period - from].min(to - period);
        }
        if period + known >= to {
            known = run_length(text, period, known);
            (from, to) = (period, period + known);
        }
        runs[period] = known;
        if periods.contains(&period) && known >= least.max(period) {
            found(period, known);
        }
    }
}

/// Text that repeats with one period, and becomes a loop if it goes on for long enough. Places are counted in bytes
/// from the first byte that `Loops` has read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The period in bytes.
    pub(super) period: usize,
    /// The place where the first copy of the repeated text begins.
    pub(super) start: usize,
    /// The place where the run becomes a loop, if it goes on up to there.
    pub(super) fires: usize,
    /// The period in characters.
    pub(super) characters: usize,
}

impl Run {
    /// Makes the run (text that repeats) with this period that begins at `start` and goes on to the end of `text`.
    /// `base` is the place where `text` begins. Returns `None` if the period has more characters than `repeat` allows.
    pub(super) fn new(repeat: &Repeat, text: &[u8], base: usize, period: usize, start: usize) -> Option<Run> {
        let newest = (base + text.len() - start) / period - 1;
        let copy = &text[start + newest * period - base..][..period];
        let characters = period - continuing(copy);
        if characters > repeat.max_period {
            return None;
        }
        let length = repeat.length(characters);
        let cut = copy.iter().enumerate().filter(|(_, byte)| !continues(**byte)).nth(length % characters);
        let bytes = (length / characters).saturating_mul(period).saturating_add(cut?.0);
        Some(Run { period, start, fires: start.saturating_add(bytes), characters })
    }

    /// Returns how many bytes of `text`, from the index `from` on, continue the run: they equal the bytes one period
    /// before them, up to the first that differs.
    pub(super) fn lasts(&self, text: &[u8], from: usize) -> usize {
        let (new, before) = (&text[from..], &text[from - self.period..text.len() - self.period]);
        match new == before {
            true => new.len(),
            false => new.iter().zip(before).take_while(|(new, before)| new == before).count(),
        }
    }
}

/// Returns where a run (text that repeats) begins. The last `length` bytes of `text` equal the bytes one period before
/// them, so the run begins one period before these last bytes. If this place is inside a character, the run begins at
/// the next character.
pub(super) fn first_copy(text: &[u8], period: usize, length: usize) -> usize {
    let cut = text[text.len() - length..].iter().take_while(|byte| continues(**byte)).count();
    text.len() - length + cut - period
}

/// Whether a byte of UTF-8 continues a character.
pub(super) fn continues(byte: u8) -> bool {
    (byte as i8) < -64
}

pub(super) fn continuing(bytes: &[u8]) -> usize {
    let parts = bytes.chunks(255);
    parts.map(|part| part.iter().map(|byte| continues(*byte) as u8).sum::<u8>() as usize).sum()
}
