//! The threads of a stream, and the scan that moves them over text.
//!
//! A *thread* is a place in the text where a match may have begun, and the state that the table has reached since then.
//! Threads in the same state have the same future, and are merged into a *group*. The root of the group is its latest
//! thread. Of all threads of the group, the root is the last to exceed the limit on held text, so the group lives as
//! long as its root. If the group matches, the match begins at the earliest thread that is within the limit.

use super::alphabet::Kind;
use super::dfa::DEAD;
use super::machine::{Cell, Column, Follows, Machine};
use crate::text::Place;

/// With more groups than this, it saves time to merge groups in equal states, and to move eight states at once. With
/// fewer groups, a simple loop is faster.
const FEW: usize = 12;

/// Ended threads are dropped only if there are more of them than this, because dropping them moves all other threads.
const SPARE: usize = 64;

/// The value of `Thread::root` if the thread has ended.
const OVER: u32 = u32::MAX;

/// A place where a match may have begun.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The place in code points, modulo 2^32.
    code_points: u32,
    /// Two numbers in one: the upper 30 bits are the place in bytes, modulo 2^30. The lower two bits are the kind of
    /// the character before the place.
    bytes_and_kind: u32,
    /// Leads to the root of the group. It is the index of a later thread of the group or, for the root, of this thread.
    /// `OVER` if this thread has ended.
    root: u32,
}

impl Thread {
    fn new(here: Place, before: Kind, root: u32) -> Thread {
        Thread { code_points: here.code_points as u32, bytes_and_kind: (here.bytes as u32) << 2 | before as u32, root }
    }

    /// Returns the place where the match may have begun. The stored numbers are remainders, but they suffice, because
    /// the place is less than 2^30 bytes before `end`.
    fn place(self, end: Place) -> Place {
        let code_points = (end.code_points as u32).wrapping_sub(self.code_points) as usize;
        let bytes = ((end.bytes as u32) << 2).wrapping_sub(self.bytes_and_kind & !3) >> 2;
        Place { code_points: end.code_points - code_points, bytes: end.bytes - bytes as usize }
    }

    /// Returns the kind of the character before the place where the match may have begun.
    fn before(self) -> Kind {
        Kind::ALL[(self.bytes_and_kind & 3) as usize]
    }
}

/// The threads of a stream (matches that may have begun), the earliest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    /// The kind of the character before `here`.
    pub(super) before: Kind,
    /// The place of the next character.
    here: Place,
    begun: Vec<Thread>,
    /// The threads before this index have ended.
    first: usize,
    /// Threads in the same state form a group, and the latest of them is its root. `roots` has the index of each root,
    /// sorted, and `states` has the state of each group. A group that has ended has the state `DEAD` until `merge` or
    /// `compact` drops it.
    roots: Vec<u32>,
    states: Vec<Cell>,
    /// If there are more groups than this, groups in equal states are merged. Merging sets `merge_at` to a quarter
    /// more than the number of groups that are left, so that the next merge does not follow at once. A value below
    /// `FEW` counts as `FEW`.
    merge_at: usize,
    /// The bitwise "or" of the cells (states with flags) of all groups. Groups that have ended since the last character
    /// count as well. So if a bit is not set here, it is not set in any cell, but the converse need not hold.
    reached: Cell,
}

impl Threads {
    /// Returns the earliest match that is complete only because the text ends, as for `a$`: its pattern, and the place
    /// where it begins.
    pub(super) fn confirmed_at_end(&self, machine: &Machine) -> Option<(usize, Place)> {
        let pattern_of = |state| machine.table.accepted(state, Follows::Only(Kind::Edge));
        self.earliest(pattern_of).map(|(pattern, begun)| (pattern, begun.place(self.here)))
    }

    /// Ends all threads (unfinished matches). `text` is the text that was read last. Sets `before` to the kind of its
    /// last character.
    pub(super) fn forget(&mut self, text: &str) {
        self.clear();
        self.here.advance(text);
        if let Some(&last) = text.as_bytes().last() {
            self.before = Kind::of_last(last);
        }
    }

    fn clear(&mut self) {
        self.begun.clear();
        self.first = 0;
        self.roots.clear();
        self.states.clear();
        self.merge_at = 0;
        self.reached = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// Returns how many bytes ago the earliest match began that may still complete. Returns 0 if there is none.
    pub(super) fn held(&self) -> usize {
        self.begun.get(self.first).map_or(0, |begun| self.here.bytes - begun.place(self.here).bytes)
    }

    /// Returns the kind of the character before the first unfinished match.
    pub(super) fn before_first(&self) -> Option<Kind> {
        self.begun.get(self.first).map(|begun| begun.before())
    }

    /// Returns how many bytes ago each thread (unfinished match) began. Leaves out threads that have ended.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        let begun = self.groups().zip(&self.begun[self.first..]);
        begun
            .filter(|(root, _)| self.state(*root) != DEAD)
            .map(|(_, begun)| self.here.bytes - begun.place(self.here).bytes)
    }

    /// Returns the state of the group with this root, or `DEAD` if the group has ended.
    fn state(&self, root: u32) -> Cell {
        self.roots.binary_search(&root).map_or(DEAD, |group| self.states[group])
    }

    /// Returns the root (the latest thread of its group) of each thread from `first` on, or `OVER` if the thread has
    /// ended.
    fn groups(&self) -> impl Iterator<Item = u32> {
        let mut roots: Vec<u32> = self.begun[self.first..].iter().map(|begun| begun.root).collect();
        for index in (0..roots.len()).rev() {
            // `root` leads to this thread or to a later thread of its group. The loop goes backwards, so the roots of
            // later threads are already known.
            if roots[index] != OVER {
                roots[index] = match roots[index] as usize - self.first {
                    own if own == index => roots[index],
                    later => roots[later],
                };
            }
        }
        roots.into_iter()
    }

    /// Gives up all unfinished matches that began at or before `start`, a place in the stream in bytes.
    pub(super) fn end_through(&mut self, start: usize, machine: &Machine) {
        let later = |begun: &Thread| begun.place(self.here).bytes > start;
        let later = self.begun[self.first..].iter().position(later).unwrap_or(self.begun.len() - self.first);
        self.end_before(self.first + later);
        self.settle(self.here, machine);
    }

    /// Ends the threads (unfinished matches) before the index `first`.
    fn end_before(&mut self, first: usize) {
        let group_of = |first: usize| self.roots.partition_point(|&root| (root as usize) < first);
        let over = group_of(self.first)..group_of(first);
        self.states[over].fill(DEAD);
        self.first = first;
    }

    /// Returns the root of a thread (the latest thread of its group), or `OVER` if the thread has ended. The field
    /// `root` leads to it in one or several steps. The call shortens this chain, so that later calls are faster.
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

    /// Sets the place of the next character to `here`. Then drops the earliest threads one by one, until it meets a
    /// thread that can still match within the limit on held text.
    fn settle(&mut self, here: Place, machine: &Machine) {
        self.here = here;
        while self.first < self.begun.len() && self.is_over(self.first, machine) {
            self.end_before(self.first + 1);
        }
        if self.first == self.begun.len() {
            return self.clear();
        }
        if self.first > SPARE && self.first > self.begun.len() / 2 {
            self.compact();
        }
    }

    /// Returns whether the thread (unfinished match) at `index` can no longer match: it has ended, or its match would
    /// be longer than `max_held` allows.
    fn is_over(&mut self, index: usize, machine: &Machine) -> bool {
        let root = self.find(index);
        let state = self.state(root);
        let read = (self.here.code_points as u32).wrapping_sub(self.begun[index].code_points) as usize;
        state == DEAD || read + machine.table.needs(state) > machine.max_held
    }

    /// Drops the threads before `first`.
    fn compact(&mut self) {
        self.drop_ended();
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

    /// Drops the roots whose group has ended.
    fn drop_ended(&mut self) {
        for (&root, &state) in self.roots.iter().zip(&self.states) {
            if state == DEAD {
                self.begun[root as usize].root = OVER;
            }
        }
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        let mut kept = 0;
        for index in 0..self.states.len() {
            (self.states[kept], self.roots[kept]) = (self.states[index], self.roots[index]);
            kept += usize::from(self.states[index] != DEAD);
        }
        self.states.truncate(kept);
        self.roots.truncate(kept);
    }

    /// Moves all unfinished matches over a character.
    #[inline]
    fn advance(&mut self, column: Column<'_>) {
        self.reached = if self.states.len() > FEW {
            advance_many(&mut self.states, column)
        } else {
            self.states.iter_mut().fold(0, |reached, state| {
                *state = column.target(*state);
                reached | *state
            })
        };
        if self.reached == DEAD && !self.states.is_empty() {
            self.clear();
        }
    }

    /// Returns `false` if no match is complete before one of the characters in `follows`. If it returns `true`, a match
    /// may be complete, and the caller must check the states. This check is fast.
    #[inline(always)]
    fn may_accept(&self, follows: Follows) -> bool {
        self.reached & follows.bits() == follows.bits()
    }

    /// Begins a thread (a possible match) at `here`. `state` is the state after the first character of the match.
    #[inline]
    fn begin(&mut self, here: Place, state: Cell) {
        self.reached |= state;
        let index = self.begun.len() as u32;
        self.begun.push(Thread::new(here, self.before, index));
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
        if self.roots.len() > self.merge_at.max(FEW) {
            self.merge();
        }
    }

    /// Ends the matches that began more than `most` code points before `here`.
    #[inline(always)]
    fn limit(&mut self, here: Place, most: usize) {
        let too_long = |begun: &Thread| (here.code_points as u32).wrapping_sub(begun.code_points) as usize > most;
        let over = self.begun[self.first..].iter().take_while(|begun| too_long(begun)).count();
        if over > 0 {
            self.end_before(self.first + over);
            if self.first > 64 * SPARE && self.first > self.begun.len() / 2 {
                self.compact();
            }
        }
    }

    /// Joins the groups that are in the same state into one group. Its root is the latest of their roots.
    fn merge(&mut self) {
        self.drop_ended();
        if self.roots.len() * 5 <= self.merge_at.max(FEW) * 4 {
            return; // dropping ended roots made enough room
        }
        // Sorts the groups by their states. The state and the index of a group are packed into one integer, the state
        // in the upper half. Sorting pairs would need twice as much machine code.
        let mut order: Vec<u64> =
            self.states.iter().zip(0..).map(|(&state, group)| u64::from(state) << 32 | group).collect();
        order.sort_unstable();
        let (state, group) = (|word: u64| word >> 32, |word: u64| word as u32 as usize);
        for pair in order.windows(2).filter(|pair| state(pair[0]) == state(pair[1])) {
            let (earlier, later) = (group(pair[0]), group(pair[1]));
            self.begun[self.roots[earlier] as usize].root = self.roots[later];
            self.states[earlier] = DEAD;
        }
        self.drop_empty();
        self.merge_at = self.roots.len() + self.roots.len() / 4;
    }

    /// Returns the earliest thread that has matched, with the index of its pattern. `pattern_of` takes a state, and
    /// returns the pattern that has matched in it, as its index plus one, or 0 if none has.
    fn earliest(&self, pattern_of: impl Fn(Cell) -> u32) -> Option<(usize, Thread)> {
        if !self.states.iter().any(|&state| pattern_of(state) != 0) {
            return None;
        }
        self.groups().zip(&self.begun[self.first..]).find_map(|(root, &begun)| {
            let pattern = pattern_of(self.state(root)).checked_sub(1)?;
            Some((pattern as usize, begun))
        })
    }

    /// The number of bytes that `self` takes.
    pub(super) fn size(&self) -> usize {
        self.begun.len() * size_of::<Thread>() + self.roots.len() * (size_of::<u32>() + size_of::<Cell>())
    }

    /// The most bytes of memory that `self` allocates when `bytes` more bytes of text are read.
    pub(super) fn growth(&self, bytes: usize) -> usize {
        let threads = self.begun.len() + bytes;
        if threads > self.begun.capacity() { 2 * threads * size_of::<Thread>() } else { 0 }
    }
}

/// Moves many states over a character, eight at a time. That takes three quarters of the time that a plain loop takes.
#[inline(never)]
fn advance_many(states: &mut [Cell], column: Column<'_>) -> Cell {
    let mut reached = 0;
    let mut eights = states.chunks_exact_mut(8);
    for eight in &mut eights {
        let next: [Cell; 8] = std::array::from_fn(|index| column.target(eight[index]));
        eight.copy_from_slice(&next);
        reached |= next.into_iter().fold(0, |reached, state| reached | state);
    }
    for state in eights.into_remainder() {
        *state = column.target(*state);
        reached |= *state;
    }
    reached
}

/// Returns the end of the last block of states that contains a state with all of `bits`, or 0 if no block does. A block
/// has 16 states, which vector instructions check at once.
#[inline(never)]
fn end_of_last_with(bits: Cell, states: &[Cell]) -> usize {
    let without = |block: &&[Cell]| block.iter().fold(true, |none, state| none & (state & bits != bits));
    states.len() - states.rchunks(16).take_while(without).map(<[Cell]>::len).sum::<usize>()
}

/// A match that completed. `end` and `completed` are offsets in the scanned text, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PatternHit {
    pub(crate) pattern: usize,
    /// The place in the stream where the match begins.
    pub(crate) start: Place,
    /// Where the match ends. This may be before `completed`: a match of `a\b` ends before the character that completes
    /// it.
    pub(crate) end: usize,
    /// The end of the character that completes the match.
    pub(crate) completed: usize,
}

/// The next character.
#[derive(Clone, Copy)]
struct Next<'a> {
    kind: Kind,
    /// The length of the character in bytes.
    length: usize,
    /// For each state, the state to which the character leads.
    column: Column<'a>,
}

impl PatternHit {
    /// Returns a key for sorting: of several matches, the one with the least key fires. The parts of the key are, in
    /// this order: where the match completes, where it begins, where it ends, and its rank. The rank of a pattern is
    /// its index in the list plus one. The rank of a stop string is 0.
    pub(super) fn order(&self) -> (usize, usize, usize, usize) {
        (self.completed, self.start.bytes, self.end, self.pattern + 1)
    }
}

struct Scan<'a> {
    threads: &'a mut Threads,
    machine: &'a Machine,
    text: &'a str,
    /// The number of bytes that were scanned.
    at: usize,
    /// The place in the stream after the scanned bytes.
    here: Place,
}

/// Scans `text`, which begins at `place`, up to the first character that completes a match. Returns the match.
pub(super) fn scan(threads: &mut Threads, machine: &Machine, text: &str, place: Place) -> Option<PatternHit> {
    let mut scan = Scan { threads, machine, text, at: 0, here: place };
    let mut hit = None;
    while let Some(next) = scan.next() {
        hit = scan.confirmed(next).or_else(|| scan.step(next));
        if hit.is_some() {
            break;
        }
    }
    scan.threads.settle(scan.here, machine);
    hit
}

/// Scans all of `text`, in which stops are ignored. `place` is where `text` begins. When a match completes, gives up
/// the unfinished matches that contain it. Returns the last place in the stream, in bytes, at which a completed match
/// begins.
pub(super) fn scan_unarmed(threads: &mut Threads, machine: &Machine, text: &str, place: Place) -> Option<usize> {
    let mut scan = Scan { threads, machine, text, at: 0, here: place };
    let mut latest = None;
    while let Some(next) = scan.next() {
        let confirmed = scan.end_through(Follows::Only(next.kind));
        scan.advance(next, true);
        let matched = scan.end_through(Follows::Anything);
        latest = latest.max(confirmed).max(matched);
        scan.threads.limit(scan.here, machine.max_held);
    }
    scan.threads.settle(scan.here, machine);
    latest
}

// `next` and `advance` have `inline(always)`, because without it, scanning a delta takes a fifth longer if the set has
// patterns.
impl<'a> Scan<'a> {
    /// Returns the next character. While no match has begun, skips text in which none can begin.
    #[inline(always)]
    fn next(&mut self) -> Option<Next<'a>> {
        if self.threads.is_empty() {
            let rest = &self.text[self.at..];
            let skipped = &rest[..self.machine.count_plain(rest.as_bytes())];
            if !skipped.is_empty() {
                self.here.advance(skipped);
                self.at += skipped.len();
                self.threads.forget(skipped);
            }
        }
        let character = self.text[self.at..].chars().next()?;
        Some(Next {
            kind: Kind::of(character),
            length: character.len_utf8(),
            column: self.machine.table.column(self.machine.alphabet.class(character)),
        })
    }

    /// Returns the match that ends before the next character but is complete only because of that character, as for
    /// `a\b`. If the character also completes a match that began earlier, returns that match instead.
    fn confirmed(&mut self, next: Next<'_>) -> Option<PatternHit> {
        let follows = Follows::Only(next.kind);
        if !self.threads.may_accept(follows) {
            return None;
        }
        let table = &self.machine.table;
        let (pattern, begun) = self.threads.earliest(|state| table.accepted(state, follows))?;
        let (start, completed) = (begun.place(self.here), self.at + next.length);
        let confirmed = PatternHit { pattern, start, end: self.at, completed };
        match self.threads.earliest(|state| table.accepted(next.column.target(state), Follows::Anything)) {
            Some((pattern, begun)) if begun.place(self.here).bytes < start.bytes => {
                Some(PatternHit { pattern, start: begun.place(self.here), end: completed, completed })
            }
            _ => Some(confirmed),
        }
    }

    /// Moves the unfinished matches over the next character. Returns the match that this character completes.
    fn step(&mut self, next: Next<'_>) -> Option<PatternHit> {
        self.advance(next, true);
        let table = &self.machine.table;
        if self.threads.may_accept(Follows::Anything)
            && let Some((pattern, begun)) = self.threads.earliest(|state| table.accepted(state, Follows::Anything))
        {
            return Some(PatternHit { pattern, start: begun.place(self.here), end: self.at, completed: self.at });
        }
        self.threads.limit(self.here, self.machine.max_held);
        None
    }

    /// Moves the unfinished matches over the next character. If `begins` is true and a match can begin with this
    /// character, adds a new match.
    #[inline(always)]
    fn advance(&mut self, next: Next<'_>, begins: bool) {
        self.threads.advance(next.column);
        let first = next.column.target(self.machine.table.start(self.threads.before));
        if begins && first != DEAD {
            self.threads.begin(self.here, first);
        }
        self.threads.before = next.kind;
        self.here = Place { code_points: self.here.code_points + 1, bytes: self.here.bytes + next.length };
        self.at += next.length;
    }

    /// Finds the matches that are complete before one of the characters in `follows`, and takes the one that began
    /// last. Ends it, and also all matches that began before it, because they contain it. Returns the place where it
    /// began.
    fn end_through(&mut self, follows: Follows) -> Option<usize> {
        if !self.threads.may_accept(follows) {
            return None;
        }
        let table = &self.machine.table;
        let states = &self.threads.states[..end_of_last_with(follows.bits(), &self.threads.states)];
        let group = states.iter().rposition(|&state| table.accepted(state, follows) != 0)?;
        let root = self.threads.roots[group] as usize;
        self.threads.end_before(root + 1);
        Some(self.threads.begun[root].place(self.here).bytes)
    }
}

/// Restores unfinished matches: scans `text`, and begins a match at each of `starts`, which are offsets in `text`, in
/// bytes. `place` is where `text` begins. Returns `None` if no match can begin at one of `starts`, or if a match ends
/// before the end of `text`.
pub(super) fn replay(
    threads: &mut Threads,
    machine: &Machine,
    text: &str,
    place: Place,
    starts: &[usize],
) -> Option<()> {
    let mut scan = Scan { threads, machine, text, at: 0, here: place };
    let mut left = starts.iter().peekable();
    while let Some(next) = scan.next() {
        let begins = left.next_if_eq(&&scan.at).is_some();
        scan.advance(next, begins);
    }
    scan.threads.settle(scan.here, machine);
    (left.next().is_none() && threads.all().count() == starts.len()).then_some(())
}
