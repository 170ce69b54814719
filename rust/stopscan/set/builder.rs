use std::marker::PhantomData;

use super::Set;
use crate::error::StopSetError;
use crate::graph::{Recipe, StateRecipe, Target, compile};
use crate::repeat::Repeat;
use crate::stream::{Emit, Segmented, Text};

/// Collects the stops and protected regions of a [`StopSet`](crate::StopSet).
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
/// assert_eq!(set.truncate("<think>END</think>1END2").0, "<think>END</think>1");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type StopSetBuilder = SetBuilder<Text>;

/// Collects the regions, markers and stops of a [`SegmentSet`](crate::SegmentSet).
///
/// ```
/// use stopscan::SegmentSet;
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .stop(["END"])
///     .stop_in(["answer"])
///     .build()?;
/// assert!(set.regions().eq(["answer", "reasoning"]));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type SegmentSetBuilder = SetBuilder<Segmented>;

/// Collects stops and regions for a [`Set`].
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::builder().stop(["END"]).visible(["."]).build()?;
/// assert_eq!(set.len(), 2);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SetBuilder<E> {
    recipe: Recipe,
    emits: PhantomData<fn() -> E>,
}

impl<E> Default for SetBuilder<E> {
    fn default() -> SetBuilder<E> {
        SetBuilder { recipe: Recipe::default(), emits: PhantomData }
    }
}

impl<E: Emit> SetBuilder<E> {
    /// Adds hidden stops: they are cut from the output.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let of_a_request: Vec<String> = vec!["END".into()];
    /// let set = StopSet::builder().stop(&of_a_request).stop(["\n\n"]).build()?;
    /// assert_eq!(set.len(), 2);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop(mut self, stop: impl IntoIterator<Item: AsRef<str>>) -> SetBuilder<E> {
        self.recipe.stop.extend(owned(stop));
        self
    }

    /// Adds visible stops: they stay in the output.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().visible(["."]).build()?;
    /// assert_eq!(set.truncate("One. Two.").0, "One.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn visible(mut self, visible: impl IntoIterator<Item: AsRef<str>>) -> SetBuilder<E> {
        self.recipe.visible.extend(owned(visible));
        self
    }

    /// Adds patterns: regular expressions as stops, in the syntax of the regex crate with ASCII `\d`, `\s`, `\w` and
    /// `\b`. The match that completes first wins, and is cut from the output.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().patterns([r"\n(User|Human) ?\d*:"]).build()?;
    /// let (kept, found) = set.truncate("Hi!\nUser 2: hello");
    /// assert_eq!((kept, found.unwrap().sequence()), ("Hi!", "\nUser 2:"));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn patterns(mut self, patterns: impl IntoIterator<Item: AsRef<str>>) -> SetBuilder<E> {
        self.recipe.patterns.extend(owned(patterns));
        self
    }

    /// Adds patterns whose matches stay in the output. No text is held back for them, so [`SetBuilder::max_held`] does
    /// not limit them.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().visible_patterns([r"[.!?]\s"]).build()?;
    /// assert_eq!(set.truncate("At 1.5 km. Then go on.").0, "At 1.5 km. ");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn visible_patterns(mut self, patterns: impl IntoIterator<Item: AsRef<str>>) -> SetBuilder<E> {
        self.recipe.visible_patterns.extend(owned(patterns));
        self
    }

    /// Sets how many code points a stream may hold back for an unfinished match of a hidden pattern. If a match needs
    /// more, it is given up. If `max_held` is not called, the limit is 65,536, and a pattern that could hold back text
    /// for ever is refused.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::builder().patterns(["<.*>"]).build().is_err());
    /// assert!(StopSet::builder().patterns(["<.*>"]).max_held(20).build().is_ok());
    /// ```
    pub fn max_held(mut self, code_points: usize) -> SetBuilder<E> {
        self.recipe.max_held = Some(code_points);
        self
    }

    /// Adds a stop that fires, in every region, when the text loops. Streams emit the whole loop.
    /// [`StopSet::truncate`](crate::StopSet::truncate) keeps only the first copy of the repeated block.
    ///
    /// ```
    /// use stopscan::{Repeat, StopSet};
    ///
    /// let set = StopSet::builder().repeat(Repeat::default()).build()?;
    /// let text = "I will now fix the bug.\n".repeat(20);
    /// let (kept, found) = set.truncate(&text);
    /// assert_eq!((kept, found.unwrap().period()), ("I will now fix the bug.\n", Some(24)));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn repeat(mut self, repeat: Repeat) -> SetBuilder<E> {
        self.recipe.repeat = Some(repeat);
        self
    }

    /// Adds a region with its name and its markers. Each marker comes with the name of the region to which it leads. A
    /// stream begins in the region that was added first. In a [`StopSet`](crate::StopSet), markers stay in the text.
    ///
    /// A region can have several states, each with different markers. Add each state with this method. The name of a
    /// state is the name of the region alone, or the name of the region, a slash, and a name for the state. For
    /// example, `"call/in reasoning"` is a state of the region `"call"`. A marker that leads to this state must give
    /// the whole name.
    ///
    /// ```
    /// use stopscan::{SegmentSet, StopSet};
    ///
    /// let set = SegmentSet::builder().region("answer", [("|", "answer/quoted")]).region("answer/quoted", [("|", "answer")]);
    /// assert!(set.build()?.regions().eq(["answer"]));
    ///
    /// let set = StopSet::builder().stop(["b"]).region("out", [("(", "in")]).region("in", [(")", "out")]).stop_in(["out"]);
    /// assert_eq!(set.build()?.truncate("a(b)b").0, "a(b)");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region<M: AsRef<str>, T: Into<Target>>(
        mut self,
        name: impl Into<String>,
        markers: impl IntoIterator<Item = (M, T)>,
    ) -> SetBuilder<E> {
        let owned = |(marker, target): (M, T)| (marker.as_ref().to_owned(), target.into());
        self.recipe.regions.push(StateRecipe { name: name.into(), markers: markers.into_iter().map(owned).collect() });
        self
    }

    /// Adds regions in which stops fire. Without this call, stops fire in all regions except protected regions. A loop
    /// fires in every region.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]);
    /// assert!(set.clone().stop_in(["a"]).build().is_ok());
    /// assert_eq!(set.stop_in(["c"]).build().unwrap_err().to_string(), "stop_in: there is no region \"c\"; there are a, b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_in(mut self, regions: impl IntoIterator<Item: AsRef<str>>) -> SetBuilder<E> {
        self.recipe.stop_in.get_or_insert_default().extend(owned(regions));
        self
    }

    /// Compiles the set. A stop, marker or pattern that was given twice counts once.
    ///
    /// # Errors
    /// If one of these is true ([`StopSetErrorKind`](crate::StopSetErrorKind) names each kind of error):
    ///
    /// - A stop or marker is empty.
    /// - A string is both a hidden and a visible stop, or both a stop and a marker. Or a pattern is hidden and visible.
    /// - A marker leads to two regions, or an opening marker has two closing markers.
    /// - A marker can never be reached, because another marker of its region ends inside it.
    /// - A region has no name or was added twice, or a marker or `stop_in` names a region that was not added.
    /// - The set has no regions, or both regions and protected pairs.
    /// - A pattern is not supported, or the patterns are too large.
    /// - The stops and markers have more bytes than [`MAX_SET_BYTES`](crate::MAX_SET_BYTES), or there are more states
    ///   of regions than [`MAX_REGIONS`](crate::MAX_REGIONS).
    /// - There is not enough memory.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let error = StopSet::builder().stop(["a"]).visible(["a"]).build().unwrap_err();
    /// assert_eq!(error.to_string(), r#""a" is both a stop and a visible stop"#);
    /// ```
    pub fn build(self) -> Result<Set<E>, StopSetError> {
        compile(&self.recipe, E::MARKERS_STAY).map(Set::of)
    }
}

impl SetBuilder<Text> {
    /// Adds protected regions: pairs of an opening and a closing marker. In these regions no stop fires, except a loop.
    /// The two markers may be equal: one opens a region, and the next closes it.
    ///
    /// This is a short form of a graph of regions: the region `answer`, and a region for each pair, named after the
    /// opening marker of the pair.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().stop(["b"]).protect([("(", ")")]).build()?;
    /// assert_eq!(set.truncate("a(b)b").0, "a(b)");
    /// assert!(set.regions().eq(["answer", "("]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn protect<O: AsRef<str>, C: AsRef<str>>(
        mut self,
        protect: impl IntoIterator<Item = (O, C)>,
    ) -> StopSetBuilder {
        let owned = |(open, close): (O, C)| (open.as_ref().to_owned(), close.as_ref().to_owned());
        self.recipe.protect.extend(protect.into_iter().map(owned));
        self
    }
}

fn owned(texts: impl IntoIterator<Item: AsRef<str>>) -> impl Iterator<Item = String> {
    texts.into_iter().map(|text| text.as_ref().to_owned())
}
