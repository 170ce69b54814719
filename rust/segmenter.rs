use std::borrow::Cow;
use std::iter;
use std::option;
use std::vec;

use crate::error::{ErrorKind, StopSetError};
use crate::held::Released;
use crate::regions::{Completed, Completion};
use crate::segment_set::SegmentSet;
use crate::stop_match::{StopMatch, code_points};
use crate::stream::{AsRegions, Face, Stream};
use crate::words::Kind;

/// Cuts one stream into segments: deltas in, safe text with its region out.
///
/// Markers are taken out of the text. The segments of all deltas, neighbours of one region joined, do not depend on how
/// the text is cut into deltas. Text is held only while it is a proper prefix of a live marker or of a hidden stop.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let mut answer = String::new();
/// for delta in ["<thi", "nk>Is it 5?</", "think>It is ", "6."] {
///     for segment in segmenter.feed(delta) {
///         if segment.region == "answer" {
///             answer += &segment.text;
///         }
///     }
/// }
/// assert_eq!(answer, "It is 6.");
/// assert!(segmenter.flush().into_iter().next().is_none()); // nothing is held
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Segmenter {
    pub(crate) stream: Stream<SegmentSet>,
}

/// Text of one region.
///
/// ```
/// use stopscan::{Segment, SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder().region("line", [("\n", "line")]).build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let Segment { region, text } = segmenter.feed("one\n").into_iter().next().unwrap();
/// assert_eq!((region, &*text), ("line", "one"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The name of the region.
    pub region: &'a str,
    /// The text, which is never empty. It is borrowed unless it is put together from several pieces.
    pub text: Cow<'a, str>,
}

/// The segments that a segmenter gives for a delta: none is empty, and no two neighbours are of one region.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).stop(["END"]).build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let segments = segmenter.feed("one|two END");
/// assert_eq!(segments.stop_match().unwrap().offset(), 8);
/// assert_eq!(segments.into_iter().map(|segment| segment.region).collect::<String>(), "ab");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Segments<'a> {
    /// Most deltas give one segment.
    first: Option<Segment<'a>>,
    rest: Vec<Segment<'a>>,
    stop_match: Option<StopMatch<'a>>,
}

impl<'a> Segments<'a> {
    /// The stop that has fired. The stream is over then.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).stop(["END"]).build()?;
    /// assert_eq!(Segmenter::new(&set).feed("END").stop_match().unwrap().sequence(), "END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'a>> {
        self.stop_match
    }

    pub(crate) fn new(stop_match: Option<StopMatch<'a>>) -> Segments<'a> {
        Segments { stop_match, ..Segments::default() }
    }

    pub(crate) fn push(&mut self, region: &'a str, text: Cow<'a, str>) {
        if text.is_empty() {
            return;
        }
        match self.rest.last_mut().or(self.first.as_mut()) {
            None => self.first = Some(Segment { region, text }),
            Some(last) if last.region == region => last.text.to_mut().push_str(&text),
            Some(_) => self.rest.push(Segment { region, text }),
        }
    }
}

impl<'a> IntoIterator for Segments<'a> {
    type Item = Segment<'a>;
    type IntoIter = iter::Chain<option::IntoIter<Segment<'a>>, vec::IntoIter<Segment<'a>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl Segmenter {
    /// A segmenter at the start of a stream, in the first region.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert_eq!(Segmenter::new(&set).region(), "a");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn new(segments: &SegmentSet) -> Segmenter {
        Segmenter { stream: Stream::new(segments, 0, false) }
    }

    /// A segmenter at the start of a stream that begins in another region, such as [`SegmentSet::region_after`] tells;
    /// `include_stop` makes every stop visible.
    ///
    /// # Errors
    /// When there is no such region.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert_eq!(Segmenter::beginning_in(&set, "b", false)?.region(), "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn beginning_in(segments: &SegmentSet, region: &str, include_stop: bool) -> Result<Segmenter, StopSetError> {
        match segments.region(region) {
            Some(start) => Ok(Segmenter { stream: Stream::new(segments, start, include_stop) }),
            None => Err(ErrorKind::UnknownRegion { name: region.into(), given_by: "region".into() }.into()),
        }
    }

    /// The segments that are safe to emit now that `delta` was read. After a match there are none.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("||", "b")]).region("b", [("||", "a")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// assert_eq!(segmenter.feed("one|").into_iter().next().unwrap().text, "one");
    /// assert_eq!(segmenter.feed("|two").into_iter().next().unwrap().region, "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn feed<'a>(&'a mut self, delta: &'a str) -> Segments<'a> {
        self.read(delta, true)
    }

    /// As [`Segmenter::feed`], but stops that complete inside `delta` are ignored. One that completes later, in armed
    /// text, fires although it began here. Markers work as ever.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).stop(["END"]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// assert!(segmenter.feed_unarmed("END, EN").stop_match().is_none());
    /// assert!(segmenter.feed("D").stop_match().is_some());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn feed_unarmed<'a>(&'a mut self, delta: &'a str) -> Segments<'a> {
        self.read(delta, false)
    }

    /// The held text, at the end of the stream: it belongs to the region that is open. No stop and no marker spans a
    /// flush.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("answer", [("<think>", "answer")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// assert_eq!(segmenter.feed("1 <").into_iter().next().unwrap().text, "1 ");
    /// assert_eq!(segmenter.flush().into_iter().next().unwrap().text, "<");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn flush(&mut self) -> Segments<'_> {
        let released = self.stream.flush();
        let mut segments = Segments::new(self.stop_match());
        segments.push(self.region(), self.stream.held.text(released, "").into());
        segments
    }

    /// Goes back to the start of a stream.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("|");
    /// segmenter.reset();
    /// assert_eq!(segmenter.region(), "a");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn reset(&mut self) {
        self.stream.reset();
    }

    /// The region that is open.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("one|two");
    /// assert_eq!(segmenter.region(), "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region(&self) -> &str {
        self.stream.set.name(self.stream.cursor.region)
    }

    /// The stop that fired.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).stop(["END"]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("1|2 END");
    /// assert_eq!(segmenter.stop_match().unwrap().offset(), 4); // markers count
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.stream.stop_match()
    }

    /// The text that is withheld because it may still turn into a marker or a hidden stop.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("<think>", "a")]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("1 <th");
    /// assert_eq!(segmenter.held(), "<th");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn held(&self) -> &str {
        self.stream.held.as_str()
    }

    /// What followed the stop in the delta that completed it.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).stop(["END"]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// segmenter.feed("END, and more");
    /// assert_eq!(segmenter.unused(), ", and more");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn unused(&self) -> &str {
        self.stream.unused()
    }

    /// The set that it reads with.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).build()?;
    /// assert!(Segmenter::new(&set).segments().regions().eq(["a"]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn segments(&self) -> &SegmentSet {
        &self.stream.set
    }

    fn read<'a>(&'a mut self, delta: &'a str, armed: bool) -> Segments<'a> {
        let mut before = Vec::new();
        let mut rest = delta;
        let (region, released) = loop {
            let Step { region, released, marker } = self.step(rest, armed);
            let Some(Marker { end, .. }) = marker else {
                break (region, released);
            };
            let (through, behind) = rest.split_at(end);
            before.push((region, self.stream.held.text_of_its_own(released, through)));
            rest = behind;
        };
        let stream = &self.stream;
        let mut segments = Segments::new(stream.stop_match());
        for (region, text) in before {
            segments.push(stream.set.name(region), text);
        }
        segments.push(stream.set.name(region), stream.held.text(released, rest).into());
        segments
    }

    /// Reads `delta` through its first marker, or all of it.
    #[inline]
    pub(crate) fn step(&mut self, delta: &str, armed: bool) -> Step {
        let stream = &mut self.stream;
        let region = stream.cursor.region;
        if stream.has_fired() {
            return Step { region, released: Released::default(), marker: None };
        }
        if stream.pass_plain(delta) {
            return Step { region, released: Released::all_of(delta), marker: None };
        }
        match stream.next(delta, armed) {
            None => Step { region, released: stream.pass(delta), marker: None },
            Some(Completion { completed: Completed::Word(word), end })
                if stream.set.as_regions().kind(word) == Kind::Marker =>
            {
                let length = code_points(stream.set.as_regions().text(word));
                Step { region, released: stream.cut(&delta[..end], word), marker: Some(Marker { end, length }) }
            }
            Some(stop) => Step { region, released: stream.stop(delta, stop), marker: None },
        }
    }
}

/// What was released in `region`, before a marker if one ended there.
pub(crate) struct Step {
    pub(crate) region: u32,
    pub(crate) released: Released,
    pub(crate) marker: Option<Marker>,
}

/// A marker that was taken out: where it ends in the delta, and its length in code points.
pub(crate) struct Marker {
    pub(crate) end: usize,
    pub(crate) length: usize,
}

impl Face for Segmenter {
    type Set = SegmentSet;

    fn stream(&self) -> &Stream<SegmentSet> {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut Stream<SegmentSet> {
        &mut self.stream
    }
}
