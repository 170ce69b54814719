//! Where in a stream matches may have begun.
//!
//! A *thread* is a place in the text where a match may have begun, with the state that the table is in since. Threads in
//! one state have the same future. They become a group. The root of the group is its latest thread, which is the
//! last to grow too long. So the group lives as long as its root. The earliest thread that is not too long matches.

use super::alphabet::Kind;
use super::dfa::StateId;
use super::machine::Machine;
use super::threads::{Begun, OVER};
use crate::text::Place;

/// So many roots are read on before equal states are looked for.
const FEW: usize = 12;

/// So many places that are over are kept before they are dropped.
const SPARE: usize = 64;

/// The places where a match may have begun, the earliest first.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// What stands before the next character.
    pub(super) before: Kind,
    /// Where reading stands.
    pub(super) here: Place,
    pub(super) begun: Vec<Begun>,
    /// What began before this index is over.
    first: usize,
    /// The roots of the groups, in order, and the state of each: 0 if it ended and was not dropped yet.
    pub(super) roots: Vec<u32>,
    states: Vec<StateId>,
    /// From so many roots on, equal states are looked for.
    merge_at: usize,
    /// Whether some state may have ended.
    ended: bool,
    /// Whether a state may wait to be confirmed.
    pub(super) waits: bool,
}

impl Places {
    pub(super) fn new() -> Places {
        Places {
            before: Kind::Edge,
            here: Place::default(),
            begun: Vec::new(),
            first: 0,
            roots: Vec::new(),
            states: Vec::new(),
            merge_at: FEW,
            ended: false,
            waits: false,
        }
    }

    /// The pattern that the end of the text confirms, and where its match begins.
    pub(super) fn confirmed_at_end(&self, machine: &Machine) -> Option<(usize, Place)> {
        let told = |state| machine.table.confirmed(state, Kind::Edge);
        self.earliest(told).map(|(pattern, begun)| (pattern, begun.place(self.here)))
    }

    /// Ends every thread; the text before the next character is `text`.
    pub(super) fn forget(&mut self, text: &str) {
        self.clear();
        self.here.pass(text);
        if let Some(&last) = text.as_bytes().last() {
            self.before = Kind::of_last(last);
        }
    }

    pub(super) fn clear(&mut self) {
        self.begun.clear();
        self.first = 0;
        self.roots.clear();
        self.states.clear();
        self.merge_at = FEW;
        self.waits = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Ends what began at the place of a root or earlier. Returns that place, if the text ends at `end`.
    pub(super) fn end_through_root(&mut self, root: usize, end: Place) -> Place {
        self.end_before(root + 1);
        self.begun[root].place(end)
    }

    /// How many bytes were read since the first thread began.
    pub(super) fn held(&self) -> usize {
        self.begun.get(self.first).map_or(0, |begun| self.here.bytes - begun.place(self.here).bytes)
    }

    /// What stands before the first thread.
    pub(super) fn before_first(&self) -> Option<Kind> {
        self.begun.get(self.first).map(|begun| begun.before())
    }

    /// How many bytes were read since each thread began that goes on.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let begun = self.groups().zip(&self.begun[self.first..]);
        begun.filter(|(root, _)| *root != OVER).map(|(_, begun)| self.here.bytes - begun.place(self.here).bytes)
    }

    /// The root of the group of each place from `first` on.
    fn groups(&self) -> impl Iterator<Item = u32> {
        let mut roots: Vec<u32> = self.begun[self.first..].iter().map(|begun| begun.root).collect();
        for index in (0..roots.len()).rev() {
            // A root is later: its own was found already.
            if roots[index] != OVER {
                roots[index] = match roots[index] as usize - self.first {
                    own if own == index => roots[index],
                    later => roots[later],
                };
            }
        }
        roots.into_iter()
    }

    /// Ends what began at `start`, in bytes of the stream, or earlier.
    pub(super) fn end_through(&mut self, start: usize, machine: &Machine) {
        let later = |begun: &Begun| begun.place(self.here).bytes > start;
        let later = self.begun[self.first..].iter().position(later).unwrap_or(self.begun.len() - self.first);
        self.end_before(self.first + later);
        self.settle(self.here, machine);
    }

    /// Ends what began before the index `first`.
    pub(super) fn end_before(&mut self, first: usize) {
        self.first = self.first.max(first);
        let over = self.roots.partition_point(|&root| (root as usize) < self.first);
        for root in self.roots.drain(..over) {
            self.begun[root as usize].root = OVER;
        }
        self.states.drain(..over);
    }

    /// The root of the group of a place; halves the way to it for the next time.
    fn find(&mut self, index: usize) -> u32 {
        let mut at = index;
        loop {
            let root = self.begun[at].root;
            if root == OVER || root as usize == at {
                return root;
            }
            self.begun[at].root = self.begun[root as usize].root;
            at = root as usize;
        }
    }

    /// Drops what is over, so that the first thread is one that goes on. Reading stands at `here`. A thread whose match
    /// would have to hold more than the machine's limit is over before it has so much.
    pub(super) fn settle(&mut self, here: Place, machine: &Machine) {
        self.here = here;
        self.drop_ended();
        while !self.roots.is_empty() && self.is_over(self.first, machine) {
            self.end_before(self.first + 1);
        }
        if self.roots.is_empty() {
            return self.clear();
        }
        if self.first > SPARE && self.first > self.begun.len() / 2 {
            self.compact();
        }
    }

    /// Whether the thread at an index has ended, or is to be longer than the limit before it can match.
    fn is_over(&mut self, index: usize, machine: &Machine) -> bool {
        let root = self.find(index);
        let Ok(group) = self.roots.binary_search(&root) else {
            return true;
        };
        let read = (self.here.code_points as u32).wrapping_sub(self.begun[index].code_points) as usize;
        read + machine.table.needs(self.states[group]) > machine.max_held
    }

    fn compact(&mut self) {
        let over = self.first as u32;
        self.begun.drain(..self.first);
        for begun in self.begun.iter_mut().filter(|begun| begun.root != OVER) {
            begun.root -= over;
        }
        for root in &mut self.roots {
            *root -= over;
        }
        self.first = 0;
    }

    /// Drops the roots whose state ended.
    fn drop_ended(&mut self) {
        if !std::mem::take(&mut self.ended) {
            return;
        }
        for (&root, &state) in self.roots.iter().zip(&self.states) {
            if state == 0 {
                self.begun[root as usize].root = OVER;
            }
        }
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        let mut kept = 0;
        for index in 0..self.states.len() {
            (self.states[kept], self.roots[kept]) = (self.states[index], self.roots[index]);
            kept += usize::from(self.states[index] != 0);
        }
        self.states.truncate(kept);
        self.roots.truncate(kept);
    }

    /// Moves every thread over a character; `column` is where its class leads to from each state. Returns the greatest
    /// state: the states that tell something are the greatest ones.
    #[inline]
    pub(super) fn advance(&mut self, column: &[StateId]) -> StateId {
        let (mut greatest, mut least) = (0, StateId::MAX);
        for state in &mut self.states {
            *state = column[*state as usize];
            (greatest, least) = (greatest.max(*state), least.min(*state));
        }
        self.ended |= least == 0;
        if greatest == 0 && !self.states.is_empty() {
            self.clear();
        }
        greatest
    }

    /// Begins a thread at `here`, in the state behind its first character.
    #[inline]
    pub(super) fn begin(&mut self, here: Place, state: StateId) {
        let index = self.begun.len() as u32;
        self.begun.push(Begun::new(here, self.before, index));
        match (self.roots.last_mut(), self.states.last()) {
            (Some(root), Some(&other)) if other == state => {
                self.begun[*root as usize].root = index;
                *root = index;
            }
            _ => {
                self.roots.push(index);
                self.states.push(state);
            }
        }
        if self.roots.len() > self.merge_at {
            self.merge();
        }
    }

    /// Ends what began more than `most` code points before `here`.
    #[inline]
    pub(super) fn limit(&mut self, here: Place, most: usize) {
        let too_long = |begun: &Begun| (here.code_points as u32).wrapping_sub(begun.code_points) as usize > most;
        let over = self.begun[self.first..].iter().take_while(|begun| too_long(begun)).count();
        if over > 0 {
            self.end_before(self.first + over);
            if self.first > 64 * SPARE && self.first > self.begun.len() / 2 {
                self.compact();
            }
        }
    }

    /// Makes one group of those in one state. The latest is its root.
    pub(super) fn merge(&mut self) {
        self.drop_ended();
        if self.roots.len() * 5 <= self.merge_at * 4 {
            return; // those that ended made room
        }
        // A state above, its group below: one word is sorted in half of the code that a pair takes.
        let mut order: Vec<u64> =
            self.states.iter().zip(0..).map(|(&state, group)| u64::from(state) << 32 | group).collect();
        order.sort_unstable();
        let (state, group) = (|word: u64| word >> 32, |word: u64| word as u32 as usize);
        for pair in order.windows(2).filter(|pair| state(pair[0]) == state(pair[1])) {
            let (earlier, later) = (group(pair[0]), group(pair[1]));
            self.begun[self.roots[earlier] as usize].root = self.roots[later];
            self.states[earlier] = 0;
        }
        self.drop_empty();
        self.merge_at = (self.roots.len() + self.roots.len() / 4).max(FEW);
    }

    /// The earliest place for whose state `told` says a pattern, its index plus one; and that pattern's index.
    pub(super) fn earliest(&self, told: impl Fn(StateId) -> u32) -> Option<(usize, Begun)> {
        if !self.states.iter().any(|&state| told(state) != 0) {
            return None;
        }
        self.groups().zip(&self.begun[self.first..]).find_map(|(root, &begun)| {
            let group = self.roots.binary_search(&root).ok()?;
            let pattern = told(self.states[group]).checked_sub(1)?;
            Some((pattern as usize, begun))
        })
    }

    /// The latest root for whose state `told` says a pattern.
    pub(super) fn latest(&self, told: impl Fn(StateId) -> u32) -> Option<usize> {
        let group = self.states.iter().rposition(|&state| told(state) != 0)?;
        Some(self.roots[group] as usize)
    }
}

impl Places {
    /// How many bytes the places have.
    pub(super) fn size(&self) -> usize {
        self.begun.len() * size_of::<Begun>() + self.roots.len() * (size_of::<u32>() + size_of::<StateId>())
    }

    /// How many bytes the places grow by at most with so many bytes of text.
    pub(super) fn growth(&self, bytes: usize) -> usize {
        /// More are never kept, with the limit of the library.
        const MOST: usize = 1 << 18;

        let places = self.begun.len() + bytes.min(MOST);
        if places > self.begun.capacity() { 2 * places * size_of::<Begun>() } else { 0 }
    }
}
