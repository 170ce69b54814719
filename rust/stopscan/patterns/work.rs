//! The cost of compiling patterns: the limits, the budget, and the lists that spend from it.
//!
//! Patterns come from the users of servers, and no pattern may make a server slow. So every step of compiling them is
//! counted before it is done, and a set that would take more steps than its budget is refused. An automaton is stored
//! in [`Lists`], and [`Numbers`] gives its states their numbers. Both types can be read only by methods that spend from
//! a budget, so no code can forget to count its steps.

use std::mem::size_of;
use std::ops::Range;

/// The most bytes of patterns that are parsed for a set. Patterns that are plain text are not parsed.
pub(super) const MAX_BYTES: usize = 1 << 13;

/// The most characters and classes of a set's patterns, with repetitions written out: 3 for `a{3}`.
pub(super) const MAX_POSITIONS: usize = 3_072;

/// The most steps to make the classes, such as `[a-z]`, of a set's patterns. Each pair of items of a class counts as
/// one step, and so does each code point under `(?i)`. In addition, a class costs 200 steps, and a letter under `(?i)`
/// costs 100.
pub(super) const MAX_CLASS_WORK: usize = 300_000;

/// The budget for the automaton of a set, in units of work. A unit is ten to twenty instructions.
pub(super) const MAX_WORK: usize = 600_000;

/// The budget, in units of work, for the automata that `hold.rs` makes. All regions of a set share it.
pub(super) const MAX_HOLD_WORK: usize = 400_000;

/// The budget, in units of work, for finding stops that can never fire, because a match of a pattern always completes
/// inside them. All regions of a set share it.
pub(super) const MAX_PRUNING_WORK: usize = 200_000;

/// The most states of an automaton, and the most cells of its table.
pub(super) const MAX_STATES: usize = 8_192;
pub(super) const MAX_CELLS: usize = 1 << 20;

/// The most threads (matches that may have begun) of a stream. With each thread, reading a character takes half a
/// nanosecond longer.
pub(super) const MAX_THREADS: usize = 1_000;

/// One unit of a budget pays for this many bytes of a new vector. So a budget also bounds the memory.
const BYTES_PER_UNIT: usize = 32;

/// Looking up a list in `Numbers` costs this many units of work, and one more unit for each item of the list.
const LOOKUP: usize = 4;

/// A budget: the number of units that are left.
pub(super) struct Work(usize);

/// The error if the budget does not suffice, or if there are too many states, cells of the table, or threads
/// (unfinished matches).
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

impl Work {
    pub(super) fn new(units: usize) -> Work {
        Work(units)
    }

    /// Takes `units` from the budget. If fewer are left, returns the error and changes nothing.
    #[inline]
    pub(super) fn spend(&mut self, units: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(units).ok_or(TooLarge)?;
        Ok(())
    }

    /// Sorts a list and drops repetitions.
    pub(super) fn sort(&mut self, list: &mut Vec<u32>) -> Result<(), TooLarge> {
        self.spend(list.len() * list.len().checked_ilog2().unwrap_or_default() as usize / 2)?;
        list.sort_unstable();
        list.dedup();
        Ok(())
    }

    /// Returns a vector of `count` equal items, such as the cells of a table.
    pub(super) fn vec<T: Clone>(&mut self, item: T, count: usize) -> Result<Vec<T>, TooLarge> {
        self.spend(count * size_of::<T>() / BYTES_PER_UNIT)?;
        Ok(vec![item; count])
    }

    pub(super) fn left(&self) -> usize {
        self.0
    }
}

/// Lists of items, all in one array. Reading a list spends from a budget.
#[derive(Clone, Debug)]
pub(super) struct Lists<T> {
    items: Vec<T>,
    /// The end of each list in `items`.
    ends: Vec<u32>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { items: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    /// Adds an item to the last list, which `close` has not ended yet.
    #[inline]
    pub(super) fn push(&mut self, item: T, work: &mut Work) -> Result<(), TooLarge> {
        work.spend(1)?;
        self.items.push(item);
        Ok(())
    }

    /// Ends the last list. The next item begins another list.
    pub(super) fn close(&mut self) {
        self.ends.push(self.items.len() as u32);
    }

    /// Adds a list. Returns its number.
    pub(super) fn add(&mut self, items: &[T], work: &mut Work) -> Result<u32, TooLarge> {
        work.spend(1 + items.len())?;
        self.items.extend_from_slice(items);
        self.close();
        Ok(self.ends.len() as u32 - 1)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the items of a list.
    #[inline]
    pub(super) fn get(&self, list: usize, work: &mut Work) -> Result<&[T], TooLarge> {
        let range = self.range(list);
        work.spend(1 + range.len())?;
        Ok(&self.items[range])
    }

    #[inline]
    fn range(&self, list: usize) -> Range<usize> {
        let begin = if list == 0 { 0 } else { self.ends[list - 1] };
        begin as usize..self.ends[list] as usize
    }
}

/// Gives a number to each list of items. Equal lists get the same number. It is a hash table whose keys (the lists) all
/// lie in one array.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    lists: Lists<u32>,
    hashes: Vec<u32>,
    /// The slots of the hash table, whose count is a power of two. A used slot has the number of a list plus one. A
    /// free slot has 0.
    slots: Vec<u32>,
}

impl Numbers {
    /// Returns the number of a list, and whether the list is new.
    pub(super) fn number(&mut self, list: &[u32], work: &mut Work) -> Result<(u32, bool), TooLarge> {
        work.spend(LOOKUP + list.len())?;
        if 2 * self.lists.len() >= self.slots.len() {
            self.grow(work)?;
        }
        let hash = hash(list);
        let mut slot = hash as usize % self.slots.len();
        while let Some(number) = self.slots[slot].checked_sub(1) {
            work.spend(1)?;
            if self.hashes[number as usize] == hash && self.lists.get(number as usize, work)? == list {
                return Ok((number, false));
            }
            slot = (slot + 1) % self.slots.len();
        }
        let number = self.lists.add(list, work)?;
        self.hashes.push(hash);
        self.slots[slot] = number + 1;
        Ok((number, true))
    }

    pub(super) fn len(&self) -> usize {
        self.lists.len()
    }

    /// Returns the list with this number.
    pub(super) fn get(&self, number: u32, work: &mut Work) -> Result<&[u32], TooLarge> {
        self.lists.get(number as usize, work)
    }

    fn grow(&mut self, work: &mut Work) -> Result<(), TooLarge> {
        work.spend(self.hashes.len())?;
        self.slots = work.vec(0, (2 * self.slots.len()).max(64))?;
        for (number, &hash) in (1..).zip(&self.hashes) {
            let mut slot = hash as usize % self.slots.len();
            while self.slots[slot] != 0 {
                work.spend(1)?;
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = number;
        }
        Ok(())
    }
}

fn hash(list: &[u32]) -> u32 {
    let step = |hash: u64, &item: &u32| (hash.rotate_left(5) ^ u64::from(item)).wrapping_mul(0x517C_C1B7_2722_0A95);
    (list.iter().fold(list.len() as u64, step) >> 32) as u32
}
