//! Sets: what is compiled once and shared by all streams.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::automaton::WordKind;
use crate::error::{ErrorKind, StopSetError};
use crate::graph::{Graph, Target};
use crate::repeat::Repeat;
use crate::stream::{Emit, Options, Segmented, Text};

mod builder;
mod whole_text;

pub use builder::{SegmentSetBuilder, SetBuilder, StopSetBuilder};

/// A compiled set of stops. What it protects stays in the text.
///
/// The stop that completes first wins. If several stops complete at the same character, the longest stop wins.
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::new(["is", "a"])?;
/// let found = set.find("this a").unwrap();
/// assert_eq!((found.sequence(), found.offset(), found.end()), ("is", 2, 4));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type StopSet = Set<Text>;

/// Compiled markers that cut a text into segments, and stops.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let regions: Vec<&str> = segmenter.feed("<think>5?</think>6").into_iter().map(|segment| segment.region).collect();
/// assert_eq!(regions, ["reasoning", "answer"]);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type SegmentSet = Set<Segmented>;

/// A compiled set: immutable, cheap to clone, shared by any number of threads and streams. `E` is what its streams
/// emit.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let set = StopSet::new(["END"])?;
/// let (mut one, mut other) = (StopScanner::new(&set), StopScanner::new(&set));
/// assert_eq!((one.feed("1 END").text, other.feed("2 END").text), ("1 ", "2 "));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub struct Set<E>(Arc<Graph>, PhantomData<fn() -> E>);

impl<E> Clone for Set<E> {
    fn clone(&self) -> Set<E> {
        Set(self.0.clone(), PhantomData)
    }
}

impl<E: Emit> Set<E> {
    fn of(graph: Graph) -> Set<E> {
        Set(Arc::new(graph), PhantomData)
    }

    #[inline(always)]
    pub(crate) fn graph(&self) -> &Graph {
        &self.0
    }

    /// A builder.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().stop(["END"]).visible(["."]).build()?;
    /// assert_eq!(set.truncate("One. Two.").0, "One.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn builder() -> SetBuilder<E> {
        SetBuilder::default()
    }

    /// The hidden stops, in the order given, without repetitions.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::new(["a", "b", "a"])?.stop().eq(["a", "b"]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop(&self) -> impl Iterator<Item = &str> {
        self.0.stops().of_kind(WordKind::Hidden)
    }

    /// The visible stops, in the order given, without repetitions.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::builder().visible(["."]).build()?.visible().eq(["."]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn visible(&self) -> impl Iterator<Item = &str> {
        self.0.stops().of_kind(WordKind::Visible)
    }

    /// The patterns, in the order given, without repetitions.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::builder().patterns([r"\n\d+\."]).build()?.patterns().eq([r"\n\d+\."]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.patterns().patterns.iter().map(String::as_str)
    }

    /// The most code points that are held for a pattern, if the set was given a limit.
    pub fn max_held(&self) -> Option<usize> {
        self.0.patterns().max_held
    }

    /// What counts as a loop, if loops are a stop.
    pub fn repeat(&self) -> Option<Repeat> {
        self.0.repeat().copied()
    }

    /// The regions and their states, each with its markers, and where each marker leads.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Target};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// let (name, markers) = set.states().next().unwrap();
    /// assert_eq!((name, markers.collect::<Vec<_>>()), ("a", vec![("|", Target::from("b"))]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn states(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = (&str, Target)>)> {
        self.0.states()
    }

    /// How many stops there are: hidden, visible, patterns, and loops.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert_eq!(StopSet::builder().stop(["END"]).visible(["."]).patterns([r"\d:"]).build()?.len(), 3);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.0.stops().stops() + self.0.patterns().patterns.len() + usize::from(self.0.repeat().is_some())
    }

    /// Whether there are no stops, so that nothing is ever held or cut.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::new::<[&str; 0]>([])?.is_empty());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the regions, in the order of their first states.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b/1")]).region("b/1", [("|", "a")]).build()?;
    /// assert!(set.regions().eq(["a", "b"]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.0.regions()
    }

    /// The names of the regions in which stops are live.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
    /// assert!(set.stop_in().eq(["answer"]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_in(&self) -> impl Iterator<Item = &str> {
        self.0.stop_in()
    }

    /// The name of the region, or the state of one, after `prefix`, the assistant's own part of a prompt: some chat
    /// templates end with `<think>`. The user's words are not to be in it.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("answer", [("<think>", "reasoning")]).region("reasoning", [("</think>", "answer")]);
    /// assert_eq!(set.build()?.region_after("<think>\n"), "reasoning");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region_after(&self, prefix: &str) -> &str {
        self.0.name(self.0.node_after(prefix))
    }

    /// The node in which a stream begins.
    pub(crate) fn start(&self, options: &Options) -> Result<u32, StopSetError> {
        let start = match (&options.region, options.start_protected) {
            (None, false) => return Ok(0),
            (None, true) => self.0.protected().ok_or(ErrorKind::NothingProtected),
            (Some(_), true) => Err(ErrorKind::TwoStarts),
            (Some(name), false) => {
                let missing = || ErrorKind::UnknownRegion { name: name.clone(), given_by: "region".into() };
                self.0.find(name).ok_or_else(missing)
            }
        };
        start.map_err(StopSetError::from)
    }
}

/// Sets are equal if they were given the same stops, regions and options; what is given twice counts once.
impl<E: Emit> PartialEq for Set<E> {
    fn eq(&self, other: &Set<E>) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<E: Emit> Eq for Set<E> {}

impl<E: Emit> Hash for Set<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.fingerprint().hash(state);
    }
}

impl<E: Emit> fmt::Debug for Set<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(E::SET)
            .field("stop", &self.stop().collect::<Vec<_>>())
            .field("visible", &self.visible().collect::<Vec<_>>())
            .field("patterns", &self.patterns().collect::<Vec<_>>())
            .field("regions", &self.regions().collect::<Vec<_>>())
            .finish()
    }
}
