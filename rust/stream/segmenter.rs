use super::{Segmented, Stream};
use crate::set::SegmentSet;

/// Cuts one stream into segments: deltas in, safe text with its region out.
///
/// The segments of all deltas, neighbours of one region joined, do not depend on how the text is cut into deltas. Text
/// is held only while it is a proper prefix of a live marker or of a hidden stop.
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
pub type Segmenter = Stream<Segmented>;

impl Stream<Segmented> {
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
        &self.set
    }
}
