//! Compiled sets of stops and regions. Any number of streams can share a set.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::automaton::WordKind;
use crate::error::{ErrorKind, StopSetError};
use crate::graph::{Completed, Completion, Cursor, Graph, History, Target};
use crate::repeat::Repeat;
use crate::stream::{Emit, FiredStop, Options, Segmented, StopMatch, Text};
use crate::text::Place;

mod builder;

pub use builder::{SegmentSetBuilder, SetBuilder, StopSetBuilder};

/// A compiled set of stops. In protected regions no stop fires, except a loop. The text and the markers of these
/// regions stay in the output.
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

/// A compiled set of stops, and of markers that cut a text into segments.
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

/// A compiled set: immutable, cheap to clone, shared by threads and streams. `E` is what its streams emit: text or
/// segments.
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

    /// Returns an empty builder.
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
    pub fn stop(&self) -> impl Iterator<Item = &str> {
        self.0.stops().of_kind(WordKind::Hidden)
    }

    /// The visible stops, in the order given, without repetitions.
    pub fn visible(&self) -> impl Iterator<Item = &str> {
        self.0.stops().of_kind(WordKind::Visible)
    }

    /// The hidden patterns, in the order given, without repetitions.
    pub fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.patterns().of_kind(false)
    }

    /// The patterns whose matches stay in the output, in the order given, without repetitions.
    pub fn visible_patterns(&self) -> impl Iterator<Item = &str> {
        self.0.patterns().of_kind(true)
    }

    /// The most code points that a stream holds back for a match of a hidden pattern. `None` if the builder was given
    /// no limit, and the default applies.
    pub fn max_held(&self) -> Option<usize> {
        self.0.patterns().max_held
    }

    /// The options of the stop that fires when the text loops. `None` if the set does not have this stop.
    pub fn repeat(&self) -> Option<Repeat> {
        self.0.repeat().copied()
    }

    /// The states of all regions, with their markers and the state to which each marker leads. Most regions have one
    /// state.
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

    /// The number of stops: strings and patterns, hidden and visible, and one more if loops are a stop.
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

    /// Whether the set has no stops. It may still have regions and markers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the regions, in the order in which they were added.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.0.regions()
    }

    /// The names of the regions in which stops fire. A loop fires in every region.
    pub fn stop_in(&self) -> impl Iterator<Item = &str> {
        self.0.stop_in()
    }

    /// The name of the region, or state of a region, in which the model's text begins. `prefix` is the part of the
    /// prompt that belongs to the model's answer, without the user's words. For example, some chat templates end the
    /// prompt with `<think>`.
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

    /// Returns the match that a scanner reports when it reads all of `text`, or `None` if no stop fires.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::new(["b", "ab"])?;
    /// assert_eq!(set.find("xab").unwrap().sequence(), "ab");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn find<'a>(&'a self, text: &'a str) -> Option<StopMatch<'a>> {
        self.search(0, text)
    }

    /// Does the same as [`Set::find`], with `options` instead of the default options.
    ///
    /// # Errors
    /// If the set does not have the region in which the text begins according to `options`, or if both `region` and
    /// `start_protected` are set.
    ///
    /// ```
    /// use stopscan::{Options, StopSet};
    ///
    /// let options = Options::default().start_protected(true);
    /// assert!(StopSet::new(["END"])?.find_with("END", &options).is_err());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn find_with<'a>(&'a self, text: &'a str, options: &Options) -> Result<Option<StopMatch<'a>>, StopSetError> {
        Ok(self.search(self.start(options)?, text))
    }

    fn search<'a>(&'a self, start: u32, text: &'a str) -> Option<StopMatch<'a>> {
        let graph = self.graph();
        let (mut cursor, mut history, mut read) = (Cursor::start(start), History::new(graph), Place::default());
        loop {
            let rest = &text[read.bytes..];
            let found = graph.scan(&mut cursor, history.as_mut(), rest, read, true).or_else(|| {
                let completed = history.as_ref()?.confirmed_at_end(graph, cursor)?;
                Some(Completion { completed, end: rest.len() })
            })?;
            read.advance(&rest[..found.end]);
            let stop = match found.completed {
                Completed::Stop(word) => FiredStop::Word(word),
                Completed::Pattern(hit) => {
                    FiredStop::Pattern { index: hit.pattern, sequence: &text[hit.start.bytes..read.bytes] }
                }
                Completed::Loop(found) => {
                    let sequence = &text[read.bytes - found.sequence.len()..read.bytes];
                    FiredStop::Loop { period: found.period, sequence }
                }
                Completed::Marker(_) => {
                    history.iter_mut().for_each(History::forget_loops);
                    continue;
                }
            };
            return Some(StopMatch { graph, stop, read });
        }
    }

    /// Returns the node (the state of a region) in which a stream with these options begins.
    pub(crate) fn start(&self, options: &Options) -> Result<u32, StopSetError> {
        let start = match (&options.region, options.start_protected) {
            (None, false) => return Ok(0),
            (None, true) => self.0.protected().ok_or(ErrorKind::NothingProtected),
            (Some(_), true) => Err(ErrorKind::TwoStarts),
            (Some(name), false) => {
                let missing = || ErrorKind::UnknownRegion {
                    name: name.clone(),
                    given_by: "region".into(),
                    regions: (0..self.0.len() as u32).map(|node| self.0.name(node).to_owned()).collect(),
                };
                self.0.find(name).ok_or_else(missing)
            }
        };
        start.map_err(StopSetError::from)
    }
}

impl Set<Text> {
    /// Compiles hidden stops. Use [`StopSet::builder`] for visible stops and protected regions.
    ///
    /// # Errors
    /// If a stop is empty, or if all stops together have more bytes than [`MAX_SET_BYTES`](crate::MAX_SET_BYTES).
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let of_a_request: Vec<String> = vec!["END".into(), "\n\n".into()];
    /// assert_eq!(StopSet::new(&of_a_request)?.len(), 2);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn new<I: IntoIterator<Item: AsRef<str>>>(stop: I) -> Result<StopSet, StopSetError> {
        StopSet::builder().stop(stop).build()
    }

    /// The opening and closing markers of the protected regions, in the order given, without repetitions.
    pub fn protect(&self) -> impl Iterator<Item = (&str, &str)> {
        let closings = (1..self.graph().len() as u32).filter(|_| self.graph().protected().is_some());
        let pair = |node| (self.graph().name(node), self.graph().markers(node).next().unwrap_or_default());
        closings.map(pair)
    }

    /// Returns the text before the stop, and the match. If no stop fires, returns all of `text` and `None`. If the stop
    /// is visible, the text ends with the stop. If it is a loop, the text ends with the first copy of the repeated
    /// block.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::new(["END"])?;
    /// let (kept, found) = set.truncate("The END.");
    /// assert_eq!((kept, found.unwrap().offset()), ("The ", 4));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn truncate<'a>(&'a self, text: &'a str) -> (&'a str, Option<StopMatch<'a>>) {
        self.cut(text, self.find(text), false)
    }

    /// Does the same as [`StopSet::truncate`], with `options` instead of the default options.
    ///
    /// # Errors
    /// If the set does not have the region in which the text begins according to `options`, or if both `region` and
    /// `start_protected` are set.
    ///
    /// ```
    /// use stopscan::{Options, StopSet};
    ///
    /// let options = Options::default().include_stop(true);
    /// assert_eq!(StopSet::new(["END"])?.truncate_with("The END.", &options)?.0, "The END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn truncate_with<'a>(
        &'a self,
        text: &'a str,
        options: &Options,
    ) -> Result<(&'a str, Option<StopMatch<'a>>), StopSetError> {
        Ok(self.cut(text, self.find_with(text, options)?, options.include_stop))
    }

    fn cut<'t, 'm>(
        &self,
        text: &'t str,
        found: Option<StopMatch<'m>>,
        include_stop: bool,
    ) -> (&'t str, Option<StopMatch<'m>>) {
        let end = found.map_or(text.len(), |found| match (include_stop, found.period()) {
            (false, Some(period)) => {
                let copy = found.sequence().char_indices().nth(period);
                copy.map_or(found.byte_end(), |(length, _)| found.byte_offset() + length)
            }
            _ if include_stop || found.visible() => found.byte_end(),
            _ => found.byte_offset(),
        });
        (&text[..end], found)
    }
}

/// Sets are equal if they have the same stops, the same `max_held` and `repeat`, and the same states of regions with
/// the same markers.
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
            .field("visible_patterns", &self.visible_patterns().collect::<Vec<_>>())
            .field("regions", &self.regions().collect::<Vec<_>>())
            .finish()
    }
}
