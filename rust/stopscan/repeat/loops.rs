use super::search::{ROW, Run, continues, continuing, first_copy, run_length, squares};
use super::{Loop, Repeat};
use crate::snapshot::{Reader, Writer};

/// Finds the loops (text that repeats again and again) in one stream. It needs no set of stops, only a [`Repeat`].
///
/// ```
/// use stopscan::{Loops, Repeat};
///
/// let mut loops = Loops::new(&Repeat::default());
/// let found = (1..).find_map(|line| loops.feed("I will now fix the bug.\n", true).map(|found| (line, found)));
/// let (line, found) = found.unwrap();
/// assert_eq!((line, found.end, found.period, found.length), (11, 16, 24, 256));
/// ```
#[derive(Clone, Debug)]
pub struct Loops {
    repeat: Repeat,
    block: usize,
    /// The end of the text that was read: as much as later searches for loops need.
    text: Vec<u8>,
    /// The number of bytes that were read before `text`.
    base: usize,
    /// While `text` has fewer bytes than this, new text is only kept: no search for loops is due, and no loop can
    /// complete.
    limit: usize,
    /// A place in `text`. All `runs` (text that repeats and may become a loop) are known to go on up to this place.
    followed: usize,
    /// The number of bytes of `text` that are not the first byte of a character. Bytes that came after the last search
    /// for loops are not counted yet.
    continuing: usize,
    runs: Vec<Run>,
}

/// The maximum of the argument `divisible` of `Repeat::reach`. Greater values are not needed: with this one, `reach`
/// already returns the longest period that is allowed.
const MAX_DIVISIBLE: u32 = 16;

impl Loops {
    /// Makes the state of a stream that has not read any text.
    pub fn new(repeat: &Repeat) -> Loops {
        let (text, runs) = (Vec::new(), Vec::new());
        Loops { repeat: *repeat, block: repeat.block(), text, base: 0, limit: 0, followed: 0, continuing: 0, runs }
    }

    /// Reads `text`, and returns the loop that completes first in it. After a loop, forgets all text that was read.
    ///
    /// If `armed` is false, no loop completes in `text`, but `text` can be a part of a loop. A loop that had to wait
    /// for this reason completes at the first character that is read with `armed` and continues the loop.
    #[inline]
    pub fn feed(&mut self, text: &str, armed: bool) -> Option<Loop> {
        if self.add(text) { None } else { self.scan(text, armed) }
    }

    /// Fast path: if no search for loops is due and no loop can complete in `text`, adds `text` to the kept text and
    /// returns `true`. Otherwise changes nothing and returns `false`.
    #[inline]
    pub(crate) fn add(&mut self, text: &str) -> bool {
        let keeps = self.text.len() + text.len() < self.limit;
        if keeps {
            self.text.extend_from_slice(text.as_bytes());
        }
        keeps
    }

    /// Forgets the text that was read, so that it cannot be a part of a later loop.
    pub fn forget(&mut self) {
        self.text.clear();
        self.runs.clear();
        (self.base, self.limit, self.followed, self.continuing) = (0, 0, 0, 0);
        self.text.shrink_to(2 * self.keep()); // text that is not ASCII may have needed more
    }

    /// Returns the state as bytes, which [`from_bytes`](Loops::from_bytes) reads. They contain the kept text, the
    /// number of bytes that were read before it, and the periods and starts of the runs.
    ///
    /// ```
    /// use stopscan::{Loops, Repeat};
    ///
    /// let repeat = Repeat::new(3, 10, 32)?;
    /// let mut loops = Loops::new(&repeat);
    /// assert_eq!(loops.feed(&"-".repeat(31), true), None);
    ///
    /// let mut elsewhere = Loops::from_bytes(&repeat, &loops.to_bytes()).unwrap();
    /// assert_eq!(elsewhere.feed("-", true).unwrap().length, 32);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn to_bytes(&self) -> Vec<u8> {
        let lasts = |run: &&Run| self.followed + run.lasts(&self.text, self.followed) == self.text.len();
        let runs: Vec<_> = self.runs.iter().filter(lasts).flat_map(|run| [run.period, run.start]).collect();
        let mut writer = Writer::default();
        [self.base, runs.len()].into_iter().chain(runs).for_each(|number| writer.number(number));
        writer.0.extend(&self.text);
        writer.0
    }

    /// Reads the state that `to_bytes` returned, or returns `None` if `to_bytes` cannot have returned these bytes for
    /// this `repeat`.
    pub fn from_bytes(repeat: &Repeat, bytes: &[u8]) -> Option<Loops> {
        let mut loops = Loops::new(repeat);
        let mut reader = Reader(bytes);
        loops.base = reader.number()?;
        let runs: Vec<_> = (0..reader.count()?).map(|_| reader.number()).collect::<Option<_>>()?;
        loops.text = reader.0.to_vec();
        loops.followed = loops.text.len();
        loops.is_text_possible().then_some(())?;
        for run in runs.chunks(2) {
            let &[period, start] = run else { return None };
            loops.runs.push(loops.run(period, start)?);
        }
        Some(loops)
    }

    /// Returns whether a stream with these settings can have kept `self.text`, which was read from a snapshot. Also
    /// computes `continuing` from this text.
    fn is_text_possible(&mut self) -> bool {
        let (text, base) = (&self.text, self.base);
        let Some(end) = base.checked_add(text.len()).filter(|end| *end <= isize::MAX as usize) else { return false };
        let cut = text.iter().take(3).take_while(|byte| base > 0 && continues(**byte)).count();
        self.continuing = continuing(&text[..(end / self.block * self.block).saturating_sub(base)]);
        let least = if base == 0 { 0 } else { 3 * self.repeat.max_period.max(self.block) };
        let most = 3 * (4 * self.repeat.max_period).max(self.block) + ROW; // a character has at most 4 bytes
        let length = least..most + most / 4 + self.block;
        length.contains(&self.text.len()) && str::from_utf8(&self.text[cut..]).is_ok()
    }

    /// Returns the run (text that repeats) that has this `period` and begins at `start`, or `None` if the kept text has
    /// no run there.
    fn run(&self, period: usize, start: usize) -> Option<Run> {
        let (text, base) = (&self.text, self.base);
        if !(1..=text.len() / 2).contains(&period) || start > self.end() - period {
            return None;
        }
        let length = run_length(text, period, 0);
        let is_whole = length < text.len() - period || start >= base;
        if length < period.max(self.block) || (is_whole && start != base + first_copy(text, period, length)) {
            return None;
        }
        Run::new(&self.repeat, text, base, period, start)
    }

    #[inline(never)]
    fn scan(&mut self, text: &str, armed: bool) -> Option<Loop> {
        let first = text.chars().next()?.len_utf8();
        let armed_from = if armed { self.end() + first } else { usize::MAX };
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (length, check) = (self.text.len(), self.next_check());
            self.reserve(check);
            let (piece, after) = rest.split_at(rest.len().min(check - length));
            self.text.extend_from_slice(piece);
            rest = after;
            let mut fired = self.follow(armed_from);
            if self.text.len() == check {
                let end = self.end();
                let found = self.check().iter().filter(|run| run.fires.max(armed_from) == end);
                fired = found.map(|run| (end, *run)).chain(fired).min_by_key(|(end, run)| (*end, run.period));
            }
            if let Some((end, run)) = fired {
                let unread = self.end() - end + rest.len();
                self.text.truncate(end - self.base);
                let found = self.found(&run, text.len() - unread);
                self.forget();
                return Some(found);
            }
            if self.text.len() == check {
                self.compact();
            }
        }
        let fires = self.runs.iter().map(|run| run.fires.saturating_sub(self.base));
        self.limit = fires.fold(self.next_check(), usize::min);
        self.reserve(self.limit);
        None
    }

    /// The number of bytes that the state takes, roughly.
    pub(crate) fn size(&self) -> usize {
        self.text.len() + self.runs.len() * size_of::<Run>()
    }

    /// The number of bytes that were read.
    fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// The number of bytes that `text` has when the next search for loops is due.
    fn next_check(&self) -> usize {
        (self.end() / self.block + 1) * self.block - self.base
    }

    /// Follows each run (text that repeats) through the new text: compares the new bytes with the bytes one period
    /// before. Drops the runs that do not go on. If runs become loops, returns the first of them, and the place where
    /// its loop completes.
    fn follow(&mut self, armed_from: usize) -> Option<(usize, Run)> {
        let Loops { ref text, base, followed, ref mut runs, .. } = *self;
        let mut first: Option<(usize, Run)> = None;
        runs.retain(|run| {
            let lasts = run.lasts(text, followed);
            let end = run.fires.max(armed_from);
            let is_first = first.is_none_or(|(other, of)| (end, run.period) < (other, of.period));
            if end <= base + followed + lasts && is_first {
                first = Some((end, *run));
            }
            followed + lasts == text.len()
        });
        self.followed = text.len();
        first
    }

    /// Searches for *squares* (the same bytes twice) at the end of the text. Each new square may become a loop: adds a
    /// run for it to `runs`, and returns the new runs.
    fn check(&mut self) -> &[Run] {
        self.continuing += continuing(&self.text[self.text.len() - self.block..]);
        let (followed, longest) = (self.runs.len(), self.longest());
        let Loops { repeat, block, ref text, base, ref mut runs, .. } = *self;
        let doubled = ((base + text.len()) / block).trailing_zeros().min(MAX_DIVISIBLE);
        let last = repeat.reach(doubled, longest).min(text.len() / 2).min(text.len() - block);
        // Skip the periods with which the search would only find a known run again. Let the known run have a period `p`
        // of at most `block` bytes, and `k` bytes with its first copy. A run with the period `q` that the search finds
        // has at least `block` bytes after its first copy, so it has at least `p + q` bytes. If `q` is at most `k - p`,
        // the known run also has `p + q` bytes. Both runs end where the text ends, so they share these `p + q` bytes,
        // and repeat the same text (theorem of Fine and Wilf).
        let known = runs.iter().filter(|run| run.period <= block);
        let known = known.map(|run| base + text.len() - run.start - run.period).max().unwrap_or(0);
        squares(text, known + 1..=last, block, |period, length| {
            let start = base + first_copy(text, period, length);
            // Leave out the period of a known run. Also leave out a multiple of it if the known run begins where the
            // new one begins, or earlier: the known run then becomes a loop first, or at the same place.
            let is_known = |run: &Run| period % run.period == 0 && (run.start <= start || run.period == period);
            if !runs.iter().any(is_known) {
                runs.extend(Run::new(&repeat, text, base, period, start));
            }
        });
        &self.runs[followed..]
    }

    /// The most bytes that `max_period` characters of the kept text can have.
    fn longest(&self) -> usize {
        self.repeat.max_period + self.continuing.min(3 * self.repeat.max_period)
    }

    /// How many bytes at the end of the text to keep for later searches. This is the sum of twice the longest period, of
    /// as much text again, because the next search comes only then, and of `ROW`, because searches read rows of bytes.
    fn keep(&self) -> usize {
        3 * self.longest().max(self.block) + ROW
    }

    /// Drops the text that no later search for loops reads.
    fn compact(&mut self) {
        let keep = self.keep();
        if self.text.len() >= keep + keep / 4 {
            let gone = self.text.len() - keep;
            self.continuing -= continuing(&self.text[..gone]);
            self.text.drain(..gone);
            self.base += gone;
            self.followed -= gone;
        }
    }

    /// Makes room for `length` bytes of text. Doubles the capacity, but not beyond the most bytes that are kept.
    fn reserve(&mut self, length: usize) {
        if self.text.capacity() < length {
            let most = self.keep() + self.keep() / 4 + self.block;
            let goal = (2 * self.text.capacity()).min(most).max(length);
            self.text.reserve_exact(goal - self.text.len());
        }
    }

    /// Makes the `Loop` to report for `run`, which has just become a loop. The loop ends where the kept text ends.
    /// `end` is the value for `Loop::end`.
    fn found(&self, run: &Run, end: usize) -> Loop {
        let Run { characters: period, .. } = *run;
        let length = self.repeat.length(period);
        let copy = str::from_utf8(&self.text[self.text.len() - run.period..]).expect("a period is whole characters");
        let cut = copy.char_indices().rev().take(length % period).last().map_or(copy.len(), |(at, _)| at);
        Loop { end, length, period, sequence: copy[cut..].to_owned() + &copy.repeat(length / period) }
    }
}
