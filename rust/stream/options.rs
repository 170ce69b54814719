/// How a text is read.
///
/// ```
/// use stopscan::{Options, StopSet};
///
/// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
/// let options = Options::default().start_protected(true);
/// assert_eq!(set.find_with("END?</think>The END", &options)?.unwrap().offset(), 16);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Every stop is visible: it stays in the output, and nothing is held for it.
    pub include_stop: bool,
    /// The text begins inside the first protected region, as after chat templates that put the opening marker into
    /// the prompt.
    pub start_protected: bool,
    /// The region, or the state of one, in which the text begins, such as
    /// [`Set::region_after`](crate::Set::region_after) tells; the first if it is `None`.
    pub region: Option<String>,
}

impl Options {
    /// The same with another `include_stop`.
    ///
    /// ```
    /// assert!(stopscan::Options::default().include_stop(true).include_stop);
    /// ```
    pub fn include_stop(self, include_stop: bool) -> Options {
        Options { include_stop, ..self }
    }

    /// The same with another `start_protected`.
    ///
    /// ```
    /// assert!(stopscan::Options::default().start_protected(true).start_protected);
    /// ```
    pub fn start_protected(self, start_protected: bool) -> Options {
        Options { start_protected, ..self }
    }

    /// The same with a region in which the text begins.
    ///
    /// ```
    /// use stopscan::{Options, SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert_eq!(Segmenter::with_options(&set, &Options::default().region("b"))?.region(), "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region(self, region: impl Into<String>) -> Options {
        Options { region: Some(region.into()), ..self }
    }
}
