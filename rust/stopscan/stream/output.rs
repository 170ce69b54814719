//! The output of a stream: text or segments, and the stop that fired.

use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::{iter, option, vec};

use super::{Part, Passed, Step, Stream};
use crate::automaton::WordKind;
use crate::graph::{Graph, Word};
use crate::text::{Place, Released};

/// The kind of output of a stream: [`Text`] or [`Segmented`]. Only this library implements the trait.
pub trait Emit: Sized + 'static {
    /// The output of one `feed` or `flush` of a stream of text.
    type Output<'a>: Send + Into<Self::Tokens<'a>>;

    /// The output of one `feed` or `flush` of a stream of tokens.
    type Tokens<'a>: Default;

    #[doc(hidden)]
    type Safe: SafeText;

    /// The name of the type of set: `StopSet` or `SegmentSet`.
    #[doc(hidden)]
    const SET: &'static str;

    #[doc(hidden)]
    const MARKERS_STAY: bool;

    #[doc(hidden)]
    fn feed<'a>(stream: &'a mut Stream<Self>, delta: &'a str, armed: bool) -> Self::Output<'a>;

    #[doc(hidden)]
    fn released<'a>(stream: &'a Stream<Self>, delta: &'a str, released: Released) -> Self::Output<'a>;

    #[doc(hidden)]
    fn tokens<'a>(stream: &'a Stream<Self>, safe: &'a Self::Safe) -> Self::Tokens<'a>;
}

/// A buffer that a stream of tokens fills with the text that is safe to emit.
pub trait SafeText: Clone + Debug + Default + Send + Sync {
    /// Adds `text`, which belongs to `part`.
    fn push(&mut self, part: Part, text: &str);

    /// Makes the text empty, and frees the memory that a long text needed.
    fn clear(&mut self);
}

/// The kind of output of a [`StopScanner`](crate::StopScanner): safe text. It is only used as a type parameter, and has
/// no values.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// The kind of output of a [`Segmenter`](crate::Segmenter): safe text with its region and part.
#[derive(Clone, Copy, Debug)]
pub enum Segmented {}

/// The output of a scanner for one delta.
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
    /// The stop that has fired, if any. If a stop has fired, the stream has ended.
    pub stop_match: Option<StopMatch<'a>>,
    /// The number of bytes of the delta that are in `text`. The other bytes of the delta are held, belong to a hidden
    /// stop, or come after a stop.
    pub released: usize,
}

impl<'a> From<Output<'a>> for &'a str {
    fn from(output: Output<'a>) -> &'a str {
        output.text
    }
}

impl Emit for Text {
    type Output<'a> = Output<'a>;
    type Tokens<'a> = &'a str;
    type Safe = String;

    const SET: &'static str = "StopSet";
    const MARKERS_STAY: bool = true;

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
}

impl SafeText for String {
    fn push(&mut self, _: Part, text: &str) {
        self.push_str(text);
    }

    fn clear(&mut self) {
        /// A buffer with room for more bytes than this is freed, because a server has many streams.
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
    type Safe = Vec<(Part, String)>;

    const SET: &'static str = "SegmentSet";
    const MARKERS_STAY: bool = false;

    fn feed<'a>(stream: &'a mut Stream<Segmented>, delta: &'a str, armed: bool) -> Segments<'a> {
        let mut before = Vec::new();
        let mut rest = delta;
        let (part, released) = loop {
            let Step { part, released, marker } = stream.step(rest, armed);
            let Some(Passed { end, word, kept_in }) = marker else {
                break (part, released);
            };
            let (through, behind) = rest.split_at(end);
            if !released.is_empty() || kept_in.is_some() {
                before.push((part, through, released, kept_in.map(|part| (part, word))));
            }
            rest = behind;
        };
        let Stream { set, held, read, fired, joined, .. } = stream;
        let graph = set.graph();
        let stop_match = fired.as_ref().map(|fired| fired.stop_match(graph, *read));
        let last = (part, held.text(released, rest));
        *joined = Box::default(); // frees the memory that the previous delta needed
        if before.is_empty() {
            return Segments::new(stop_match, [last], graph);
        }
        let pieces = before.into_iter().flat_map(|(part, through, released, kept)| {
            let marker = kept.map(|(part, marker)| (part, graph.text(marker)));
            [Some((part, held.text(released, through))), marker]
        });
        let pieces = pieces.flatten().chain([last]).filter(|(_, text)| !text.is_empty()).collect();
        Segments::new(stop_match, join(pieces, joined), graph)
    }

    fn released<'a>(stream: &'a Stream<Segmented>, delta: &'a str, released: Released) -> Segments<'a> {
        Segments::new(stream.stop_match(), [(stream.open(), stream.held.text(released, delta))], stream.graph())
    }

    fn tokens<'a>(stream: &'a Stream<Segmented>, safe: &'a Vec<(Part, String)>) -> Segments<'a> {
        let safe = safe.iter().map(|(part, text)| (*part, &**text));
        Segments::new(stream.stop_match(), safe, stream.graph())
    }
}

/// Safe text in pieces, each with its part. No piece is empty. Two pieces in a row never belong to the same part.
impl SafeText for Vec<(Part, String)> {
    fn push(&mut self, part: Part, text: &str) {
        match self.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.0 == part => last.1.push_str(text),
            _ => Vec::push(self, (part, text.into())),
        }
    }

    fn clear(&mut self) {
        *self = Vec::new();
    }
}

/// A piece of text that belongs to one part: it is in one region, between two markers.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder().region("answer", [("<call>", "call")]).region("call", [("</call>", "answer")]);
/// let mut segmenter = Segmenter::new(&set.build()?);
/// let segments: Vec<_> = segmenter.feed("<call>f()</call><call>g()</call>").into_iter().collect();
/// assert_eq!((segments[0].region, segments[0].text, segments[0].part), ("call", "f()", 1));
/// assert_eq!((segments[1].region, segments[1].text, segments[1].part), ("call", "g()", 3));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// The name of the region.
    pub region: &'a str,
    /// The text, which is never empty.
    pub text: &'a str,
    /// The number of the part to which the text belongs, counted from 0. A part may come in several segments.
    ///
    /// A marker begins a new part if it leads to another region, or to another state of the same region. A marker that
    /// was given with [`keep`](crate::keep) always begins one. A marker that was given with [`stay`](crate::stay) never
    /// does.
    pub part: u32,
}

/// The segments that one call, such as `feed` or `flush`, returns. They are safe to emit. No segment is empty. Two
/// segments in a row never belong to the same part.
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
    /// The first segment is not in `rest`: most deltas give one segment, which then needs no allocation.
    first: Option<Segment<'a>>,
    rest: Vec<Segment<'a>>,
    stop_match: Option<StopMatch<'a>>,
}

impl<'a> Segments<'a> {
    /// The stop that has fired, if any. If a stop has fired, the stream has ended.
    pub fn stop_match(&self) -> Option<StopMatch<'a>> {
        self.stop_match
    }

    /// Makes a segment of each text. Neighbouring texts must belong to different parts.
    pub(super) fn new(
        stop_match: Option<StopMatch<'a>>,
        texts: impl IntoIterator<Item = (Part, &'a str)>,
        graph: &'a Graph,
    ) -> Segments<'a> {
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let segment =
            |(part, text): (Part, _)| Segment { region: graph.region_name(part.region), text, part: part.number };
        let mut segments = texts.map(segment);
        Segments { first: segments.next(), rest: segments.collect(), stop_match }
    }
}

impl<'a> IntoIterator for Segments<'a> {
    type Item = Segment<'a>;
    type IntoIter = iter::Chain<option::IntoIter<Segment<'a>>, vec::IntoIter<Segment<'a>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

/// Joins pieces of text that follow each other and belong to the same part. `joined` stores the joined texts.
pub(super) fn join<'a>(pieces: Vec<(Part, &'a str)>, joined: &'a mut Box<str>) -> Vec<(Part, &'a str)> {
    let parts = || pieces.chunk_by(|piece, next| piece.0 == next.0);
    *joined = parts().filter(|part| part.len() > 1).flatten().map(|piece| piece.1).collect::<String>().into();
    let mut rest = &**joined;
    let whole = |part: &[(Part, &'a str)]| match *part {
        [piece] => piece,
        _ => {
            let (text, after) = rest.split_at(part.iter().map(|piece| piece.1.len()).sum());
            rest = after;
            (part[0].0, text)
        }
    };
    parts().map(whole).collect()
}

/// The stop that fired, and where: `text[offset..end] == sequence`, counted in code points.
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::new(["END", "é!"])?;
/// let found = set.find("Olé!").unwrap();
/// assert_eq!((found.sequence(), found.index()), ("é!", 1));
/// assert_eq!((found.offset(), found.end()), (2, 4));
/// assert_eq!((found.byte_offset(), found.byte_end()), (2, 5));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy)]
pub struct StopMatch<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) stop: FiredStop<&'a str>,
    /// Where the stream stopped reading.
    pub(crate) read: Place,
}

impl<'a> StopMatch<'a> {
    /// The length of the block that a loop repeats, in code points. `None` for any other stop.
    pub fn period(&self) -> Option<usize> {
        if let FiredStop::Loop { period, .. } = self.stop { Some(period) } else { None }
    }

    /// The stop string as the user gave it. For a pattern or a loop, the text that matched.
    pub fn sequence(&self) -> &'a str {
        match self.stop {
            FiredStop::Word(word) | FiredStop::Special(word) => self.graph.text(word),
            FiredStop::Pattern { sequence, .. } | FiredStop::Loop { sequence, .. } => sequence,
        }
    }

    /// The pattern that matched, as the user gave it. `None` for any other stop.
    pub fn pattern(&self) -> Option<&'a str> {
        match self.stop {
            FiredStop::Pattern { index, .. } => Some(&self.graph.patterns().patterns[index]),
            _ => None,
        }
    }

    /// The index of the stop in the list in which it was given: hidden stops, visible stops, patterns or visible
    /// patterns. If the list has equal stops, the index of the first of them.
    pub fn index(&self) -> usize {
        match self.stop {
            FiredStop::Word(word) | FiredStop::Special(word) => self.graph.index(word),
            FiredStop::Pattern { index, .. } => self.graph.patterns().index(index),
            FiredStop::Loop { .. } => 0,
        }
    }

    /// Whether the stop was given as visible, and so stays in the output. A loop is always visible.
    pub fn visible(&self) -> bool {
        match self.stop {
            FiredStop::Word(word) | FiredStop::Special(word) => self.graph.kind(word) == WordKind::Visible,
            FiredStop::Pattern { index, .. } => self.graph.patterns().is_visible(index),
            FiredStop::Loop { .. } => true,
        }
    }

    /// Where the stop begins in the text of the stream, in code points.
    pub fn offset(&self) -> usize {
        self.range().0.code_points
    }

    /// Where the stop ends in the text of the stream, in code points.
    pub fn end(&self) -> usize {
        self.range().1.code_points
    }

    /// Where the stop begins in the text of the stream, in bytes of UTF-8.
    pub fn byte_offset(&self) -> usize {
        self.range().0.bytes
    }

    /// Where the stop ends in the text of the stream, in bytes of UTF-8.
    pub fn byte_end(&self) -> usize {
        self.range().1.bytes
    }

    fn range(&self) -> (Place, Place) {
        match self.stop {
            FiredStop::Special(_) => (self.read, self.read + Place::after(self.sequence())),
            _ => (self.read.before(self.sequence()), self.read),
        }
    }

    /// The values by which matches are compared.
    fn key(&self) -> impl PartialEq + Hash + Debug {
        (self.sequence(), self.pattern(), self.index(), self.visible(), self.period(), self.range())
    }
}

impl PartialEq for StopMatch<'_> {
    fn eq(&self, other: &StopMatch<'_>) -> bool {
        self.key() == other.key()
    }
}

impl Eq for StopMatch<'_> {}

impl Hash for StopMatch<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Debug for StopMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StopMatch").field(&self.key()).finish()
    }
}

/// The stop that fired. It ends where the stream stopped reading. A `FiredStop::Special` also begins there, because its
/// text is not part of the stream's text.
#[derive(Clone, Debug)]
pub(crate) struct Fired {
    pub(crate) stop: FiredStop<Box<str>>,
    /// The text after the stop in the delta that completed the stop.
    pub(crate) unused: Box<str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FiredStop<S> {
    Word(Word),
    /// A stop that is a special token, whose text is not part of the stream's text. The match begins where the stream's
    /// text ends.
    Special(Word),
    Pattern {
        index: usize,
        sequence: S,
    },
    Loop {
        period: usize,
        sequence: S,
    },
}

impl Fired {
    /// Returns the match. `read` is the position in the stream's text up to which the stream has read.
    pub(crate) fn stop_match<'a>(&'a self, graph: &'a Graph, read: Place) -> StopMatch<'a> {
        let stop = match &self.stop {
            FiredStop::Word(word) => FiredStop::Word(*word),
            FiredStop::Special(word) => FiredStop::Special(*word),
            FiredStop::Pattern { index, sequence } => FiredStop::Pattern { index: *index, sequence: &**sequence },
            FiredStop::Loop { period, sequence } => FiredStop::Loop { period: *period, sequence: &**sequence },
        };
        StopMatch { graph, stop, read }
    }
}
