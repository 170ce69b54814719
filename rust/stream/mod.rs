//! One stream of text: where reading stands, what is held, and what has fired. What comes out of it is a parameter.

use crate::error::StopSetError;
use crate::graph::{Cursor, Graph};
use crate::set::Set;
use crate::text::{Held, Place};

mod emit;
mod more;
mod options;
mod read;
mod scanner;
mod segmenter;
mod segments;
mod state;
mod stop_match;
#[cfg(feature = "python")]
mod undo;

pub use emit::{Emit, Output, Segmented, Text};
pub use options::Options;
pub use scanner::StopScanner;
pub use segmenter::Segmenter;
pub use segments::{Segment, Segments};
pub use stop_match::StopMatch;
#[cfg(feature = "python")]
pub(crate) use undo::Mark;
pub(crate) use {
    emit::{Settled, SettledText},
    more::{Fired, FiredStop, More},
    read::{Passed, Step},
};

/// One stream of text: `feed` it each delta, emit what comes out, `flush` at the end. `E` is what it emits.
///
/// A clone goes on independently. A stream is small, and is `Send` and `Sync`.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["42"])?);
/// scanner.feed("It is 4");
/// let mut draft = scanner.clone(); // a draft model's token may be taken back
/// assert!(draft.feed("2").stop_match.is_some());
/// assert_eq!(scanner.feed("1.").text, "41.");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Debug)]
pub struct Stream<E: Emit> {
    pub(crate) set: Set<E>,
    /// Whether every stop is visible.
    pub(crate) include_stop: bool,
    /// The node at which the stream begins.
    pub(crate) start: u32,
    pub(crate) cursor: Cursor,
    pub(crate) held: Held,
    /// How much was read.
    pub(crate) read: Place,
    /// What most streams do not have, most of the time.
    pub(crate) more: Option<Box<More>>,
    /// Text that came out in the last step and lay apart. Streams of text have none; with the field, both kinds have one
    /// layout, and the compiler makes most of their code once.
    joined: Box<str>,
}

impl<E: Emit> Clone for Stream<E> {
    fn clone(&self) -> Stream<E> {
        Stream {
            set: self.set.clone(),
            held: self.held.clone(),
            more: self.more.clone(),
            joined: Box::default(),
            ..*self
        }
    }
}

impl<E: Emit> Stream<E> {
    /// The start of a stream.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert_eq!(Segmenter::new(&set).region(), "a");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn new(set: &Set<E>) -> Stream<E> {
        Stream::starting(set, 0, false)
    }

    /// The start of a stream, with other options than the default ones.
    ///
    /// # Errors
    /// When the text cannot begin where it should.
    ///
    /// ```
    /// use stopscan::{Options, StopScanner, StopSet};
    ///
    /// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
    /// let mut scanner = StopScanner::with_options(&set, &Options::default().start_protected(true))?;
    /// assert_eq!(scanner.feed("END?</think>The END").text, "END?</think>The ");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn with_options(set: &Set<E>, options: &Options) -> Result<Stream<E>, StopSetError> {
        Ok(Stream::starting(set, set.start(options)?, options.include_stop))
    }

    fn starting(set: &Set<E>, start: u32, include_stop: bool) -> Stream<E> {
        Stream {
            set: set.clone(),
            include_stop,
            start,
            cursor: Cursor::start(start),
            held: Held::default(),
            read: Place::default(),
            more: More::new(set.graph()),
            joined: Box::default(),
        }
    }

    /// Reads `delta`, and returns the text that is safe to emit. After a match the text is empty.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed("The EN").text, "The ");
    /// assert_eq!(scanner.feed("T").text, "ENT");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    #[inline]
    pub fn feed<'a>(&'a mut self, delta: &'a str) -> E::Output<'a> {
        self.begin();
        E::feed(self, delta, true)
    }

    /// As [`Stream::feed`], but a stop that completes inside `delta` does not fire. A stop that begins inside `delta` and
    /// completes in a later, armed delta does fire. Markers work as in [`Stream::feed`].
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.feed_unarmed("END, EN").text, "END, ");
    /// assert_eq!(scanner.feed("D").stop_match.unwrap().offset(), 5);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    #[inline]
    pub fn feed_unarmed<'a>(&'a mut self, delta: &'a str) -> E::Output<'a> {
        self.begin();
        E::feed(self, delta, false)
    }

    /// Ends the stream, and returns the held text, which belongs to the open region. No stop and no marker spans a flush.
    /// A pattern may complete here.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The EN");
    /// assert_eq!(scanner.flush().text, "EN");
    /// assert!(scanner.feed("D").stop_match.is_none());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn flush(&mut self) -> E::Output<'_> {
        self.begin();
        let released = self.end();
        E::released(self, "", released)
    }

    /// Goes back to the start of a stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("END");
    /// scanner.reset();
    /// assert!(scanner.stop_match().is_none());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn reset(&mut self) {
        *self = Stream::starting(&self.set, self.start, self.include_stop);
    }

    /// The name of the region that is open.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::builder().protect([("<think>", "</think>")]).build()?);
    /// scanner.feed("<think>Hm");
    /// assert_eq!(scanner.region(), "<think>");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region(&self) -> &str {
        self.graph().region_name(self.open())
    }

    /// The stop that fired. Its offset counts all the text, markers included.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The END");
    /// assert_eq!(scanner.stop_match().unwrap().sequence(), "END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        Some(self.fired()?.stop_match(self.graph(), self.read))
    }

    /// The text that is withheld because it may still turn into a hidden stop, or into a marker that does not stay.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The EN");
    /// assert_eq!(scanner.held(), "EN");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn held(&self) -> &str {
        self.held.as_str()
    }

    /// What followed the stop in the delta that completed it.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The END, and more");
    /// assert_eq!(scanner.unused(), ", and more");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn unused(&self) -> &str {
        self.fired().map_or("", |fired| &fired.unused)
    }

    #[inline(always)]
    pub(crate) fn graph(&self) -> &Graph {
        self.set.graph()
    }

    /// The place of the name of the region that is open.
    pub(crate) fn open(&self) -> u32 {
        self.graph().region(self.cursor.node)
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.fired().is_some()
    }

    pub(crate) fn fired(&self) -> Option<&Fired> {
        self.more.as_ref()?.fired.as_ref()
    }
}
