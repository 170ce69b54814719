use crate::error::StopSetError;
use crate::held::Released;
use crate::stop_match::StopMatch;
use crate::stop_set::{Options, StopSet};
use crate::stream::{Face, Stream};

/// Scans one stream: deltas in, safe text out.
///
/// What it returns, joined, is the text before the stop, or all of it. Text is held only while it is a proper prefix of
/// a hidden stop. Cloning it costs the held text and some counters, so that a host can go back to before a step.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// assert_eq!(scanner.feed("The E").text, "The ");
/// assert_eq!(scanner.feed("ast. EN").text, "East. ");
/// let last = scanner.feed("D and more");
/// assert_eq!((last.text, last.stop_match.unwrap().offset()), ("", 10));
/// assert_eq!(scanner.unused(), " and more");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct StopScanner {
    pub(crate) stream: Stream<StopSet>,
}

/// What a scanner gives for a delta.
///
/// ```
/// use stopscan::{Output, StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// let Output { text, stop_match, released, .. } = scanner.feed("Text EN");
/// assert_eq!((text, released), ("Text ", 5)); // the other two bytes are held
/// assert!(stop_match.is_none());
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output<'a> {
    /// The text that is safe to emit: the delta itself when nothing is held before or after.
    pub text: &'a str,
    /// The stop that has fired. The stream is over then.
    pub stop_match: Option<StopMatch<'a>>,
    /// How many bytes of this delta are in `text`; what `text` has before them was held.
    pub released: usize,
}

impl StopScanner {
    /// A scanner at the start of a stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed("text").text, "text");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn new(stops: &StopSet) -> StopScanner {
        StopScanner { stream: Stream::new(stops, 0, false) }
    }

    /// A scanner at the start of a stream, with other options than the default ones.
    ///
    /// # Errors
    /// When it should begin in a protected region and the set has none.
    ///
    /// ```
    /// use stopscan::{Options, StopScanner, StopSet};
    ///
    /// let options = Options { include_stop: true, ..Options::default() };
    /// let mut scanner = StopScanner::with_options(&StopSet::new(["END"])?, options)?;
    /// assert_eq!(scanner.feed("The END.").text, "The END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn with_options(stops: &StopSet, options: Options) -> Result<StopScanner, StopSetError> {
        let start = stops.start(options)?;
        Ok(StopScanner { stream: Stream::new(stops, start, options.include_stop) })
    }

    /// The text that is safe to emit now that `delta` was read, and the stop if it has fired. After that there is no
    /// more text.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed("THEN").text, "TH");
    /// assert_eq!(scanner.feed(" we").text, "EN we");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    #[inline]
    pub fn feed<'a>(&'a mut self, delta: &'a str) -> Output<'a> {
        let released = self.read(delta, true);
        self.output(delta, released)
    }

    /// As [`StopScanner::feed`], but stops that complete inside `delta` are ignored. One that completes later, in
    /// armed text, fires although it began here. Markers work as ever.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed_unarmed("END, EN").text, "END, ");
    /// assert!(scanner.feed("D").stop_match.is_some());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    #[inline]
    pub fn feed_unarmed<'a>(&'a mut self, delta: &'a str) -> Output<'a> {
        let released = self.read(delta, false);
        self.output(delta, released)
    }

    /// The held text and `text`, which is not scanned; the partial match is forgotten. An open region stays open.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed("THE").text, "TH");
    /// assert_eq!(scanner.bypass("END").text, "EEND");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn bypass<'a>(&'a mut self, text: &'a str) -> Output<'a> {
        let released = match self.stream.has_fired() {
            true => Released::default(),
            false => self.stream.bypass(text),
        };
        self.output(text, released)
    }

    /// The held text, at the end of the stream. No stop spans a flush; a pattern that ends with `\b` may complete here.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed("THE").text, "TH");
    /// assert_eq!(scanner.flush().text, "E");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn flush(&mut self) -> Output<'_> {
        let released = self.stream.flush();
        self.output("", released)
    }

    /// Goes back to the start of a stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("END");
    /// scanner.reset();
    /// assert!(scanner.stop_match().is_none());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn reset(&mut self) {
        self.stream.reset();
    }

    /// The stop that fired.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The END");
    /// assert_eq!(scanner.stop_match().unwrap().sequence(), "END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.stream.stop_match()
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("THEN");
    /// assert_eq!(scanner.held(), "EN");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn held(&self) -> &str {
        self.stream.held.as_str()
    }

    /// What followed the stop in the delta that completed it.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The END, and more");
    /// assert_eq!(scanner.unused(), ", and more");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn unused(&self) -> &str {
        self.stream.unused()
    }

    /// The stops it scans for.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.stops().len(), 1);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stops(&self) -> &StopSet {
        &self.stream.set
    }

    #[inline]
    fn output<'a>(&'a self, delta: &'a str, released: Released) -> Output<'a> {
        let text = self.stream.held.text(released, delta);
        Output { text, stop_match: self.stop_match(), released: released.of_delta }
    }

    #[inline]
    fn read(&mut self, delta: &str, armed: bool) -> Released {
        let stream = &mut self.stream;
        if stream.pass_plain(delta) {
            return Released::all_of(delta);
        }
        if stream.has_fired() {
            return Released::default();
        }
        match stream.next_stop(delta, armed) {
            Some(stop) => stream.stop(delta, stop),
            None => stream.pass(delta),
        }
    }
}

impl Face for StopScanner {
    type Set = StopSet;

    fn stream(&self) -> &Stream<StopSet> {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream<StopSet> {
        &mut self.stream
    }
}
