use crate::automaton::ROOT;
use crate::held::Held;
use crate::set::{Cursor, Hit, StopSet};
use crate::stop_match::{StopMatch, code_points};

#[cfg(feature = "python")]
pub(crate) mod snapshot;

/// Scans one stream: deltas in, safe text out.
///
/// What it returns, joined, is the text before the stop, or all of it. Text is held only while it is a proper prefix of
/// a hidden stop.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// assert_eq!(scanner.feed("The E"), "The ");
/// assert_eq!(scanner.feed("ast. EN"), "East. ");
/// assert_eq!(scanner.feed("D and more"), "");
/// assert_eq!(scanner.stop_match().unwrap().offset(), 10);
/// assert_eq!(scanner.unused(), " and more");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopScanner {
    stops: StopSet,
    include_stop: bool,
    start: Cursor,
    cursor: Cursor,
    held: Held,
    /// How much text was read, in code points.
    read: usize,
    /// The stop that fired. Its end is `read`: nothing is read after it.
    matched: Option<u32>,
    unused: Box<str>,
}

impl StopScanner {
    /// A scanner at the start of a stream.
    pub fn new(stops: &StopSet) -> StopScanner {
        StopScanner::from_cursor(stops, Cursor::default())
    }

    pub(crate) fn from_cursor(stops: &StopSet, start: Cursor) -> StopScanner {
        StopScanner {
            stops: stops.clone(),
            include_stop: false,
            start,
            cursor: start,
            held: Held::default(),
            read: 0,
            matched: None,
            unused: Box::default(),
        }
    }

    /// The same scanner, with every stop visible or as the set says.
    pub fn include_stop(mut self, include_stop: bool) -> StopScanner {
        self.include_stop = include_stop;
        self
    }

    /// A scanner that begins inside the first protected region, for chat templates that put the opening marker into
    /// the prompt; `None` if the set protects no region.
    pub fn start_protected(stops: &StopSet) -> Option<StopScanner> {
        Some(StopScanner::from_cursor(stops, stops.start(true)?))
    }

    /// The text that is safe to emit now that `delta` was read: `delta` itself when nothing is held before or after.
    /// After a match it is empty.
    #[inline]
    pub fn feed<'a>(&'a mut self, delta: &'a str) -> &'a str {
        self.read(delta, true)
    }

    /// As [`StopScanner::feed`], but stops that complete inside `delta` are ignored. One that completes later, in
    /// armed text, fires although it began here. Markers work as ever.
    #[inline]
    pub fn feed_unarmed<'a>(&'a mut self, delta: &'a str) -> &'a str {
        self.read(delta, false)
    }

    /// The held text and `text`, which is not scanned; the partial match is forgotten. An open region stays open.
    pub fn bypass<'a>(&'a mut self, text: &'a str) -> &'a str {
        if self.matched.is_some() {
            return "";
        }
        self.cursor.state = ROOT;
        self.read += code_points(text.as_bytes());
        self.held.pass(text, 0)
    }

    /// The held text, at the end of the stream. No stop spans a flush.
    pub fn flush(&mut self) -> &str {
        self.bypass("")
    }

    /// Goes back to the start of a stream.
    pub fn reset(&mut self) {
        self.cursor = self.start;
        self.held.clear();
        self.read = 0;
        self.matched = None;
        self.unused = Box::default();
    }

    /// The stop that fired.
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.matched.map(|pattern| self.stops.stop_match(pattern as usize, self.read))
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    pub fn held(&self) -> &str {
        self.held.as_str()
    }

    /// What followed the stop in the delta that completed it.
    pub fn unused(&self) -> &str {
        &self.unused
    }

    /// The stops it scans for.
    pub fn stops(&self) -> &StopSet {
        &self.stops
    }

    /// Whether the scanner is in ordinary text after no partial match: nothing is held, and nothing has fired.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.cursor == Cursor::default() && self.matched.is_none()
    }

    /// Counts text that was skipped while the scanner was idle.
    #[cfg(feature = "python")]
    pub(crate) fn add_skipped(&mut self, code_points: usize) {
        self.read += code_points;
    }

    #[inline]
    fn read<'a>(&'a mut self, delta: &'a str, armed: bool) -> &'a str {
        if self.is_idle()
            && let Some(code_points) = self.stops.skip(delta)
        {
            self.read += code_points;
            return delta;
        }
        if self.matched.is_some() {
            return "";
        }
        if let Some(hit) = self.stops.search(&mut self.cursor, delta, armed) {
            return self.stop(delta, hit);
        }
        self.read += code_points(delta.as_bytes());
        self.held.pass(delta, self.hold())
    }

    /// How many bytes of the text may still turn into a hidden stop.
    #[inline]
    fn hold(&self) -> usize {
        if self.cursor.state == ROOT || self.include_stop {
            return 0;
        }
        self.stops.automaton(self.cursor).hold(self.cursor.state)
    }

    /// Ends the stream at a stop that ends in `delta`. It may have begun in the held text.
    #[cold]
    fn stop<'a>(&'a mut self, delta: &'a str, hit: Hit) -> &'a str {
        let (through, unused) = delta.split_at(hit.end);
        self.read += code_points(through.as_bytes());
        self.matched = Some(hit.pattern as u32);
        self.unused = unused.into();
        let kept = self.held.len() + through.len() - self.stops.cut_bytes(hit.pattern, self.include_stop);
        let kept_of_delta = kept.saturating_sub(self.held.len());
        self.held.truncate(kept);
        self.held.pass(&through[..kept_of_delta], 0)
    }
}
