//! What comes out of a stream: text, or segments. All that a stream needs to know of it is here.

use std::borrow::Cow;
use std::fmt::Debug;
use std::{iter, option, vec};

use super::{Passed, Released, Step, StopMatch, Stream, code_points};

/// What a stream emits: [`Text`] or [`Segmented`]. It is sealed: the library implements it.
pub trait Emit: Sized + 'static {
    /// What comes out of a stream of text at once.
    type Output<'a>: Send;

    /// What comes out of a stream of tokens at once.
    type Tokens<'a>;

    #[doc(hidden)]
    type Safe: SettledText;

    /// The name of its sets.
    #[doc(hidden)]
    const SET: &'static str;

    #[doc(hidden)]
    const MARKERS_STAY: bool;

    /// Whether the tokens of each region are counted.
    #[doc(hidden)]
    const COUNTS_REGIONS: bool;

    #[doc(hidden)]
    fn feed<'a>(stream: &'a mut Stream<Self>, delta: &'a str, armed: bool) -> Self::Output<'a>;

    #[doc(hidden)]
    fn released<'a>(stream: &'a Stream<Self>, delta: &'a str, released: Released) -> Self::Output<'a>;

    #[doc(hidden)]
    fn tokens<'a>(stream: &'a Stream<Self>, safe: &'a Self::Safe) -> Self::Tokens<'a>;

    #[doc(hidden)]
    fn token<'a>(stream: &'a Stream<Self>, text: &'a str) -> Self::Tokens<'a>;
}

/// The safe text of a step of tokens.
pub trait SettledText: Clone + Debug + Default + Send + Sync {
    /// Adds text of a region.
    fn push(&mut self, region: u32, text: &str);

    /// Makes it empty, and gives back what one long text needed.
    fn clear(&mut self);
}

/// A part of the text that is not held, or not any more.
pub enum Settled<'a> {
    /// Safe text of a region.
    Text(u32, &'a str),
    /// A marker that was taken out, in code points.
    Marker(usize),
}

/// Safe text: what a [`StopScanner`](crate::StopScanner) emits.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// Safe text with its region: what a [`Segmenter`](crate::Segmenter) emits.
#[derive(Clone, Copy, Debug)]
pub enum Segmented {}

/// What a scanner gives for a delta.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// scanner.feed("E");
/// let output = scanner.feed("astern EN");
/// assert_eq!((output.text, output.released), ("Eastern ", 7));
/// assert!(output.stop_match.is_none());
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output<'a> {
    /// The text that is safe to emit.
    pub text: &'a str,
    /// The stop that has fired. The stream is over then.
    pub stop_match: Option<StopMatch<'a>>,
    /// How many bytes of the delta are in the text; the others are held, cut or unused.
    pub released: usize,
}

/// Text of one region.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder().region("line", [("\n", "line")]).build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let segment = segmenter.feed("one\n").into_iter().next().unwrap();
/// assert_eq!((segment.region, &*segment.text), ("line", "one"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// The name of the region.
    pub region: &'a str,
    /// The text, which is never empty. It is borrowed unless it is put together from several pieces.
    pub text: Cow<'a, str>,
}

/// The segments that come out at once: none is empty, and no two neighbours are of one region.
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

impl Emit for Text {
    type Output<'a> = Output<'a>;
    type Tokens<'a> = &'a str;
    type Safe = String;

    const SET: &'static str = "StopSet";
    const MARKERS_STAY: bool = true;
    const COUNTS_REGIONS: bool = false;

    #[inline]
    fn feed<'a>(stream: &'a mut Stream<Text>, delta: &'a str, armed: bool) -> Output<'a> {
        let Step { released, .. } = stream.step(delta, armed);
        Text::released(stream, delta, released)
    }

    #[inline]
    fn released<'a>(stream: &'a Stream<Text>, delta: &'a str, released: Released) -> Output<'a> {
        let text = stream.held.text(released, delta);
        Output { text, stop_match: stream.stop_match(), released: released.of_delta }
    }

    fn tokens<'a>(_: &'a Stream<Text>, safe: &'a String) -> &'a str {
        safe
    }

    fn token<'a>(_: &'a Stream<Text>, text: &'a str) -> &'a str {
        text
    }
}

impl SettledText for String {
    fn push(&mut self, _: u32, text: &str) {
        self.push_str(text);
    }

    fn clear(&mut self) {
        /// A buffer for more bytes than this is given back: a server has many.
        const SPARE: usize = 32;

        if self.capacity() > SPARE {
            *self = String::new();
        }
        self.truncate(0);
    }
}

impl Emit for Segmented {
    type Output<'a> = Segments<'a>;
    type Tokens<'a> = Segments<'a>;
    type Safe = Vec<(u32, String)>;

    const SET: &'static str = "SegmentSet";
    const MARKERS_STAY: bool = false;
    const COUNTS_REGIONS: bool = true;

    fn feed<'a>(stream: &'a mut Stream<Segmented>, delta: &'a str, armed: bool) -> Segments<'a> {
        let mut before = Vec::new();
        let mut rest = delta;
        let (region, released) = loop {
            let Step { region, released, marker } = stream.step(rest, armed);
            let Some(Passed { end, word, kept_in }) = marker else {
                break (region, released);
            };
            let (through, behind) = rest.split_at(end);
            before.push((region, through, released, kept_in.map(|region| (region, word))));
            rest = behind;
        };
        let stream = &*stream;
        let mut segments = Segments::new(stream);
        for (region, through, released, kept) in before {
            segments.push(stream.graph().region_name(region), stream.held.text(released, through).into());
            if let Some((region, marker)) = kept {
                segments.push(stream.graph().region_name(region), stream.graph().text(marker).into());
            }
        }
        segments.push(stream.graph().region_name(region), stream.held.text(released, rest).into());
        segments
    }

    fn released<'a>(stream: &'a Stream<Segmented>, delta: &'a str, released: Released) -> Segments<'a> {
        let mut segments = Segments::new(stream);
        segments.push(stream.region(), stream.held.text(released, delta).into());
        segments
    }

    fn tokens<'a>(stream: &'a Stream<Segmented>, safe: &'a Vec<(u32, String)>) -> Segments<'a> {
        let mut segments = Segments::new(stream);
        for (region, text) in safe {
            segments.push(stream.graph().region_name(*region), text.as_str().into());
        }
        segments
    }

    fn token<'a>(stream: &'a Stream<Segmented>, text: &'a str) -> Segments<'a> {
        let mut segments = Segments::default();
        segments.push(stream.region(), text.into());
        segments
    }
}

/// Text of regions; none is empty, and no two neighbours are of one region.
impl SettledText for Vec<(u32, String)> {
    fn push(&mut self, region: u32, text: &str) {
        match self.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.0 == region => last.1.push_str(text),
            _ => Vec::push(self, (region, text.into())),
        }
    }

    fn clear(&mut self) {
        *self = Vec::new();
    }
}

impl<E: Emit> Stream<E> {
    /// Reads `text`; `sink` takes what is settled now, in order. After a match there is nothing.
    pub(crate) fn settle(&mut self, mut text: &str, armed: bool, sink: &mut impl FnMut(Settled<'_>)) {
        loop {
            let Step { region, released, marker } = self.step(text, armed);
            sink(Settled::Text(region, self.held.text(released, text)));
            let Some(Passed { end, word, kept_in }) = marker else {
                return;
            };
            let marker = self.graph().text(word);
            sink(kept_in.map_or(Settled::Marker(code_points(marker)), |region| Settled::Text(region, marker)));
            text = &text[end..];
        }
    }
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

    fn new(stream: &'a Stream<Segmented>) -> Segments<'a> {
        Segments { stop_match: stream.stop_match(), ..Segments::default() }
    }

    fn push(&mut self, region: &'a str, text: Cow<'a, str>) {
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
