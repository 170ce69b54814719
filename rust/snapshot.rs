use crate::patterns::{Begun, Threads};
use crate::regions::Regions;
use crate::segment_set::SegmentSet;
use crate::segmenter::Segmenter;
use crate::stop_match::Place;
use crate::stop_scanner::StopScanner;
use crate::stop_set::StopSet;
use crate::stream::{AsRegions, Fired, FiredStop, More, Stream};

/// The state of a stream, to go on with elsewhere: in another process, on another machine, in another version.
///
/// It does not depend on how the set was compiled, but the set must be of the same stops and markers. With the feature
/// `serde` it can be written and read.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let set = StopSet::new(["END"])?;
/// let mut scanner = StopScanner::new(&set);
/// scanner.feed("The EN");
/// let snapshot = scanner.snapshot();
///
/// let mut elsewhere = StopScanner::restore(&StopSet::new(["END"])?, &snapshot).unwrap();
/// assert_eq!(elsewhere.feed("D").stop_match.unwrap().offset(), 4);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot {
    pub(crate) include_stop: bool,
    /// The region in which the stream began, by its place in the set.
    pub(crate) start: u32,
    /// The region that is open.
    pub(crate) region: u32,
    /// The longest suffix of the text that begins a stop or marker; the held text is a suffix of it.
    pub(crate) partial: String,
    /// How much text was read.
    pub(crate) read: Place,
    /// What the set's patterns have begun.
    pub(crate) begun: Option<Begun>,
    /// The text of the stop that fired, and the pattern's place if it is one.
    pub(crate) fired: Option<(String, Option<usize>)>,
    pub(crate) unused: String,
}

impl StopScanner {
    /// The state of the stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.snapshot(), scanner.clone().snapshot());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.stream.snapshot()
    }

    /// The scanner that `snapshot` is of, or `None` if no scanner with these stops gives such a one.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("EN");
    /// assert!(StopScanner::restore(&StopSet::new(["other"])?, &scanner.snapshot()).is_none());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn restore(stops: &StopSet, snapshot: &Snapshot) -> Option<StopScanner> {
        Some(StopScanner { stream: Stream::restore(stops, snapshot)? })
    }
}

impl Segmenter {
    /// The state of the stream.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let segmenter = Segmenter::new(&SegmentSet::builder().region("a", [("|", "a")]).build()?);
    /// assert_eq!(segmenter.snapshot(), segmenter.clone().snapshot());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.stream.snapshot()
    }

    /// The segmenter that `snapshot` is of, or `None` if no segmenter with this set gives such a one.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("||", "b")]).region("b", [("||", "a")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("one|");
    /// let mut elsewhere = Segmenter::restore(&set, &segmenter.snapshot()).unwrap();
    /// assert_eq!(elsewhere.feed("|two").into_iter().next().unwrap().region, "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn restore(segments: &SegmentSet, snapshot: &Snapshot) -> Option<Segmenter> {
        Some(Segmenter { stream: Stream::restore(segments, snapshot)? })
    }
}

impl<S: AsRegions> Stream<S> {
    pub(crate) fn snapshot(&self) -> Snapshot {
        let kept = |threads: &Threads| match self.include_stop {
            true => threads.begun(threads.text(), self.read),
            false => threads.begun(self.held.as_str(), self.read),
        };
        let fired = self.fired().map(|fired| match &fired.stop {
            FiredStop::Word(word) => (self.set.as_regions().text(*word).into(), None),
            FiredStop::Pattern { index, sequence } => (sequence.clone().into(), Some(*index)),
        });
        Snapshot {
            include_stop: self.include_stop,
            start: self.start,
            region: self.cursor.region,
            partial: self.set.as_regions().partial(self.cursor),
            read: self.read,
            begun: self.threads().map(kept),
            fired,
            unused: self.unused().into(),
        }
    }

    pub(crate) fn restore(set: &S, snapshot: &Snapshot) -> Option<Stream<S>> {
        let regions: &Regions = set.as_regions();
        if snapshot.start as usize >= regions.len() {
            return None;
        }
        let mut stream = Stream::new(set, snapshot.start, snapshot.include_stop);
        stream.cursor = regions.resume(snapshot.region, &snapshot.partial)?;
        stream.read = snapshot.read;
        let least = snapshot.fired.as_ref().map_or(&snapshot.partial, |fired| &fired.0);
        let length = Place::after(least);
        if snapshot.read.code_points < length.code_points || snapshot.read.bytes < length.bytes {
            return None;
        }
        match &snapshot.fired {
            Some(fired) => stream.end(fired, &snapshot.unused)?,
            None => stream.resume(snapshot)?,
        }
        Some(stream)
    }

    fn end(&mut self, (sequence, pattern): &(String, Option<usize>), unused: &str) -> Option<()> {
        let regions = self.set.as_regions();
        let stop = match *pattern {
            None => FiredStop::Word(regions.stop(sequence)?),
            Some(index) if index < regions.patterns().patterns.len() => {
                FiredStop::Pattern { index, sequence: sequence.as_str().into() }
            }
            Some(_) => return None,
        };
        self.more = Some(Box::new(More { threads: None, fired: Some(Fired { stop, unused: unused.into() }) }));
        Some(())
    }

    /// Begins again what was begun, and holds what is to be held of it.
    fn resume(&mut self, Snapshot { partial, begun, .. }: &Snapshot) -> Option<()> {
        let regions = self.set.as_regions();
        let mut held = regions.held(self.cursor, !self.include_stop);
        let mut text = partial.as_str();
        match (&mut self.more, begun) {
            (None, None) => {}
            (Some(more), Some(begun)) => {
                let machine = regions.machine(self.cursor.region);
                more.threads = Some(Threads::resume(machine, begun, self.read, self.include_stop)?);
                if !self.include_stop && begun.text.len() > held {
                    (text, held) = (&begun.text, begun.text.len());
                }
            }
            _ => return None,
        }
        self.held.pass(text.get(text.len() - held..)?, held);
        Some(())
    }
}
