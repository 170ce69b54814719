use std::fmt;
use std::sync::Arc;

use crate::error::{ErrorKind, StopSetError};
use crate::regions::{Completed, Completion, Cursor, Regions};
use crate::stop_match::{Place, StopMatch};
use crate::stream::AsRegions;
use crate::words::{Kind, Words};

mod builder;

pub use builder::StopSetBuilder;

/// A compiled set of stops: immutable, cheap to clone, shared by any number of threads and scanners.
///
/// The stop that completes first wins; of those that complete at the same character, the longest.
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::new(["is", "a"])?;
/// let found = set.find("this a").unwrap();
/// assert_eq!((found.sequence(), found.offset(), found.end()), ("is", 2, 4));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone)]
pub struct StopSet(Arc<Regions>);

/// How a text is read.
///
/// ```
/// use stopscan::{Options, StopSet};
///
/// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
/// let options = Options { start_protected: true, ..Options::default() };
/// assert_eq!(set.find_with("END?</think>The END", options)?.unwrap().offset(), 16);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// Every stop is visible: it stays in the output, and nothing is held for it.
    pub include_stop: bool,
    /// The text begins inside the first protected region, as after chat templates that put the opening marker into
    /// the prompt.
    pub start_protected: bool,
}

/// The region of ordinary text; that of the pair `i` is `i + 1`.
const ORDINARY: u32 = 0;

impl AsRegions for StopSet {
    #[inline(always)]
    fn as_regions(&self) -> &Regions {
        &self.0
    }
}

impl StopSet {
    /// Compiles hidden stops. Use [`StopSet::builder`] for visible stops and protected regions.
    ///
    /// # Errors
    /// When a stop is empty, or all of them together are longer than [`MAX_SET_BYTES`](crate::MAX_SET_BYTES).
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let of_a_request: Vec<String> = vec!["END".into(), "\n\n".into()];
    /// assert_eq!(StopSet::new(&of_a_request)?.len(), 2);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn new<I>(stop: I) -> Result<StopSet, StopSetError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        StopSet::builder().stop(stop).build()
    }

    /// A builder for sets with visible stops or protected regions.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().stop(["END"]).visible(["."]).build()?;
    /// assert_eq!(set.truncate("One. Two.").0, "One.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn builder() -> StopSetBuilder {
        StopSetBuilder::default()
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
        self.words().of_kind(Kind::Hidden)
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
        self.words().of_kind(Kind::Visible)
    }

    /// The opening and closing markers of the protected regions, in the order given, without repetitions.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().protect([("<think>", "</think>")]).build()?;
    /// assert!(set.protect().eq([("<think>", "</think>")]));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn protect(&self) -> impl Iterator<Item = (&str, &str)> {
        let closings = (ORDINARY + 1..self.0.len() as u32).map(|region| self.0.words(region).text(0));
        self.words().of_kind(Kind::Marker).zip(closings)
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

    /// How many stops there are: hidden, visible and patterns.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert_eq!(StopSet::builder().stop(["END"]).visible(["."]).patterns([r"\d:"]).build()?.len(), 3);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.words().stops() + self.0.patterns().patterns.len()
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

    /// The match that a scanner reports for the whole of `text`.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::new(["b", "ab"])?;
    /// assert_eq!(set.find("xab").unwrap().sequence(), "ab");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn find<'a>(&'a self, text: &'a str) -> Option<StopMatch<'a>> {
        self.search(ORDINARY, text)
    }

    /// As [`StopSet::find`], with other options than the default ones.
    ///
    /// # Errors
    /// When the text should begin in a protected region and the set has none.
    ///
    /// ```
    /// use stopscan::{Options, StopSet};
    ///
    /// let options = Options { start_protected: true, ..Options::default() };
    /// assert!(StopSet::new(["END"])?.find_with("END", options).is_err());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn find_with<'a>(&'a self, text: &'a str, options: Options) -> Result<Option<StopMatch<'a>>, StopSetError> {
        Ok(self.search(self.start(options)?, text))
    }

    /// The text before the match that a scanner reports for the whole of `text`, or through it if the stop is visible,
    /// and that match; all of `text` when no stop fires.
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

    /// As [`StopSet::truncate`], with other options than the default ones.
    ///
    /// # Errors
    /// When the text should begin in a protected region and the set has none.
    ///
    /// ```
    /// use stopscan::{Options, StopSet};
    ///
    /// let options = Options { include_stop: true, ..Options::default() };
    /// assert_eq!(StopSet::new(["END"])?.truncate_with("The END.", options)?.0, "The END");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn truncate_with<'a>(
        &'a self,
        text: &'a str,
        options: Options,
    ) -> Result<(&'a str, Option<StopMatch<'a>>), StopSetError> {
        Ok(self.cut(text, self.find_with(text, options)?, options.include_stop))
    }

    /// The region in which a stream begins.
    pub(crate) fn start(&self, options: Options) -> Result<u32, StopSetError> {
        match options.start_protected {
            false => Ok(ORDINARY),
            true if self.0.len() > 1 => Ok(ORDINARY + 1),
            true => Err(ErrorKind::NothingProtected.into()),
        }
    }

    fn search<'a>(&'a self, start: u32, text: &'a str) -> Option<StopMatch<'a>> {
        let mut cursor = Cursor::start(start);
        let mut threads = self.0.threads();
        let stop = self.0.read_to_stop(&mut cursor, threads.as_mut(), text, Place::default(), true);
        let at_end =
            || Some(Completion { completed: self.0.confirmed_at_end(cursor, threads.as_ref()?)?, end: text.len() });
        let Completion { completed, end } = stop.or_else(at_end)?;
        let place = Place::after(&text[..end]);
        Some(match completed {
            Completed::Word(word) => self.0.word_match(word, place),
            Completed::Pattern(hit) => self.0.pattern_match(hit.pattern, &text[hit.start.bytes..end], place),
        })
    }

    fn cut<'t, 'm>(
        &self,
        text: &'t str,
        found: Option<StopMatch<'m>>,
        include_stop: bool,
    ) -> (&'t str, Option<StopMatch<'m>>) {
        let end = found.map_or(text.len(), |found| match include_stop || found.visible() {
            true => found.byte_end(),
            false => found.byte_offset(),
        });
        (&text[..end], found)
    }

    fn words(&self) -> &Words {
        self.0.words(ORDINARY)
    }
}

impl fmt::Debug for StopSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopSet")
            .field("stop", &self.stop().collect::<Vec<_>>())
            .field("visible", &self.visible().collect::<Vec<_>>())
            .field("patterns", &self.patterns().collect::<Vec<_>>())
            .field("protect", &self.protect().collect::<Vec<_>>())
            .finish()
    }
}
