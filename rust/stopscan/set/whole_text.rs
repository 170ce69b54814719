//! What a set of text does with a whole text.

use super::{Set, StopSet};
use crate::error::StopSetError;
use crate::graph::{Beside, Completed, Completion, Cursor};
use crate::stream::{Options, StopMatch, Text};
use crate::text::Place;

impl Set<Text> {
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
        let closings = (1..self.graph().len() as u32).filter(|_| self.graph().protected().is_some());
        let pair = |node| (self.graph().name(node), self.graph().markers(node).next().unwrap_or_default());
        closings.map(pair)
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
        self.search(0, text)
    }

    /// As [`StopSet::find`], with other options than the default ones.
    ///
    /// # Errors
    /// When the text cannot begin where it should.
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

    /// The text before the match that a scanner reports for the whole of `text`, or through it if the stop is visible,
    /// or through its first copy if it is a loop, and that match; all of `text` when no stop fires.
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
    /// When the text cannot begin where it should.
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

    fn search<'a>(&'a self, start: u32, text: &'a str) -> Option<StopMatch<'a>> {
        let graph = self.graph();
        let mut cursor = Cursor::start(start);
        let mut beside = Beside::new(graph);
        let stop = graph.read(&mut cursor, beside.as_mut(), text, Place::default(), true);
        let at_end = || beside.as_ref().and_then(|beside| beside.confirmed_at_end(graph, cursor));
        let at_end = || Some(Completion { completed: at_end()?, end: text.len() });
        let Completion { completed, end } = stop.or_else(at_end)?;
        let place = Place::after(&text[..end]);
        match completed {
            Completed::Stop(word) => Some(StopMatch::of_word(graph, word, place)),
            Completed::Pattern(hit) => {
                Some(StopMatch::of_pattern(graph, hit.pattern, &text[hit.start.bytes..end], place))
            }
            Completed::Loop(found) => {
                Some(StopMatch::of_loop(&text[end - found.sequence.len()..end], found.period, place))
            }
            Completed::Marker(_) => None, // these stay
        }
    }

    fn cut<'t, 'm>(
        &self,
        text: &'t str,
        found: Option<StopMatch<'m>>,
        include_stop: bool,
    ) -> (&'t str, Option<StopMatch<'m>>) {
        let end = found.map_or(text.len(), |found| match (include_stop, found.period()) {
            (false, Some(period)) => found.byte_offset() + byte_length(found.sequence(), period),
            _ if include_stop || found.visible() => found.byte_end(),
            _ => found.byte_offset(),
        });
        (&text[..end], found)
    }
}

/// How many bytes the first code points of `text` have.
fn byte_length(text: &str, code_points: usize) -> usize {
    text.char_indices().nth(code_points).map_or(text.len(), |(at, _)| at)
}
