use std::{iter, option, vec};

use super::StopMatch;
use crate::graph::Graph;

/// Text of one region.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder().region("line", [("\n", "line")]).build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let segment = segmenter.feed("one\n").into_iter().next().unwrap();
/// assert_eq!((segment.region, segment.text), ("line", "one"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// The name of the region.
    pub region: &'a str,
    /// The text, which is never empty.
    pub text: &'a str,
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

    /// Of texts with their regions; neighbours are of different ones.
    pub(super) fn new(
        stop_match: Option<StopMatch<'a>>,
        texts: impl IntoIterator<Item = (u32, &'a str)>,
        graph: &'a Graph,
    ) -> Segments<'a> {
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let mut segments = texts.map(|(region, text)| Segment { region: graph.region_name(region), text });
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

/// Puts neighbours of one region together.
pub(super) fn join<'a>(pieces: Vec<(u32, &'a str)>, joined: &'a mut Box<str>) -> Vec<(u32, &'a str)> {
    let regions = || pieces.chunk_by(|piece, next| piece.0 == next.0);
    *joined = regions().filter(|region| region.len() > 1).flatten().map(|piece| piece.1).collect::<String>().into();
    let mut rest = &**joined;
    let whole = |region: &[(u32, &'a str)]| match *region {
        [piece] => piece,
        _ => {
            let (text, after) = rest.split_at(region.iter().map(|piece| piece.1.len()).sum());
            rest = after;
            (region[0].0, text)
        }
    };
    regions().map(whole).collect()
}
