//! What compiling patterns may cost. They come from the users of a server, so it is counted before it is done.

/// The most text that is parsed, in bytes.
pub(super) const MOST_BYTES: usize = 1 << 15;

/// The most characters and classes of a set's patterns, repetitions written out.
pub(super) const MOST_POSITIONS: usize = 3_072;

/// The most steps that classes take to make: a code point under `(?i)` is one, and so is each pair of
/// items; a class alone is two hundred, a letter under `(?i)` one hundred.
pub(super) const MOST_CLASS_WORK: usize = 300_000;

/// The most steps that an automaton takes to build.
pub(super) const MOST_WORK: usize = 45_000;

/// The most steps for the tables of the least hold, all regions together.
pub(super) const MOST_LEAST_WORK: usize = 30_000;

/// The most bytes of stops that are searched for matches in them, times the threads for which that is done.
pub(super) const MOST_PRUNING_WORK: usize = 1_000_000;

/// The most states of a table, and the most cells.
pub(super) const MOST_STATES: usize = 8_192;
pub(super) const MOST_CELLS: usize = 1 << 20;

/// The most places of a text in which a match may have begun and be in different states: each costs every character
/// about a nanosecond.
pub(super) const MOST_THREADS: usize = 1_000;

/// Steps that are left.
pub(super) struct Work(pub(super) usize);

/// More steps were needed than there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

impl Work {
    #[inline]
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(steps).ok_or(TooLarge)?;
        Ok(())
    }
}
