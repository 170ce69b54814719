use crate::regions::Regions;
use crate::segment_set::SegmentSet;
use crate::segmenter::Segmenter;
use crate::stop_match::Place;
use crate::stop_scanner::StopScanner;
use crate::stop_set::StopSet;
use crate::stream::{AsRegions, Stream};

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
    pub(crate) matched: Option<String>,
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
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            include_stop: self.include_stop,
            start: self.start,
            region: self.cursor.region,
            partial: self.set.as_regions().partial(self.cursor),
            read: self.read,
            matched: self.stop_match().map(|found| found.sequence().into()),
            unused: self.unused.clone().into(),
        }
    }

    fn restore(set: &S, snapshot: &Snapshot) -> Option<Stream<S>> {
        let regions: &Regions = set.as_regions();
        if snapshot.start as usize >= regions.len() {
            return None;
        }
        let mut stream = Stream::new(set, snapshot.start, snapshot.include_stop);
        stream.cursor = regions.resume(snapshot.region, &snapshot.partial)?;
        stream.read = snapshot.read;
        stream.unused = snapshot.unused.as_str().into();
        let least = snapshot.matched.as_ref().unwrap_or(&snapshot.partial);
        let length = Place::after(least);
        if snapshot.read.code_points < length.code_points || snapshot.read.bytes < length.bytes {
            return None;
        }
        match &snapshot.matched {
            Some(sequence) => stream.matched = Some(regions.stop(sequence)?),
            None => stream.hold(&snapshot.partial),
        }
        Some(stream)
    }

    /// Holds what is to be held of `partial`, which was read.
    fn hold(&mut self, partial: &str) {
        let held = self.set.as_regions().held(self.cursor, !self.include_stop);
        self.held.pass(&partial[partial.len() - held..], held);
    }
}
