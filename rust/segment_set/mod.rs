use std::fmt;
use std::sync::Arc;

use crate::regions::{Cursor, Regions};
use crate::stream::AsRegions;

mod builder;

pub use builder::SegmentSetBuilder;

/// Compiled markers that cut a text into segments, and stops: immutable, cheap to clone, shared by any number of
/// threads and segmenters.
///
/// Only the markers and stops of the region that is open are live. The earliest end wins, the longest at the same
/// character; no partial match crosses a marker.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .stop(["END"])
///     .stop_in(["answer"])
///     .build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let segments: Vec<_> = segmenter.feed("<think>The END?</think>No. END").into_iter().collect();
/// assert_eq!((&*segments[0].text, segments[0].region), ("The END?", "reasoning"));
/// assert_eq!((&*segments[1].text, segments[1].region), ("No. ", "answer"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone)]
pub struct SegmentSet(Arc<Named>);

struct Named {
    regions: Regions,
    names: Vec<String>,
}

impl AsRegions for SegmentSet {
    #[inline(always)]
    fn as_regions(&self) -> &Regions {
        &self.0.regions
    }
}

impl SegmentSet {
    /// A builder for a set; it needs a region.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// assert!(SegmentSet::builder().build().is_err());
    /// ```
    pub fn builder() -> SegmentSetBuilder {
        SegmentSetBuilder::default()
    }

    /// The names of the regions; a stream begins in the first.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert!(set.regions().eq(["a", "b"]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.0.names.iter().map(String::as_str)
    }

    /// The region that is open after `prefix`, the assistant's own part of a prompt: some chat templates end with
    /// `<think>`. The user's words are not to be in it.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder()
    ///     .region("answer", [("<think>", "reasoning")])
    ///     .region("reasoning", [("</think>", "answer")])
    ///     .build()?;
    /// assert_eq!(set.region_after("<think>\n"), "reasoning");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region_after(&self, prefix: &str) -> &str {
        let mut cursor = Cursor::start(0);
        let mut at = 0;
        while let Some(marker) = self.0.regions.read(&mut cursor, &prefix[at..], false) {
            at += marker.end;
        }
        self.name(cursor.region)
    }

    pub(crate) fn name(&self, region: u32) -> &str {
        &self.0.names[region as usize]
    }

    /// The number of the region `name`.
    pub(crate) fn region(&self, name: &str) -> Option<u32> {
        self.0.names.iter().position(|other| other == name).map(|region| region as u32)
    }
}

impl fmt::Debug for SegmentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentSet").field("regions", &self.0.names).finish_non_exhaustive()
    }
}
