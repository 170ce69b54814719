use std::fmt;
use std::sync::Arc;

use crate::automaton::{Automaton, ROOT, State};
use crate::builder::{StopSetBuilder, StopSetError};
use crate::patterns::{Kind, Patterns};
use crate::stop_match::{StopMatch, code_points};

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
pub struct StopSet(Arc<Compiled>);

struct Compiled {
    outside: Automaton,
    /// One automaton for the end of each protected region.
    regions: Vec<Automaton>,
}

/// Where reading stands: in which automaton (0 is ordinary text, `i + 1` the region of pair `i`), and in what state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) automaton: u32,
    pub(crate) state: State,
}

/// A stop that fired: its pattern, and where it ends in the text that was searched, in bytes.
pub(crate) struct Hit {
    pub(crate) pattern: usize,
    pub(crate) end: usize,
}

impl Cursor {
    /// The start of the region of pair `region`.
    pub(crate) fn protected(region: usize) -> Cursor {
        Cursor { automaton: region as u32 + 1, state: ROOT }
    }
}

impl StopSet {
    /// Compiles hidden stops. Use [`StopSet::builder`] for visible stops and protected regions.
    ///
    /// # Errors
    /// When a stop is empty, or all of them together are longer than [`MAX_SET_BYTES`](crate::MAX_SET_BYTES).
    pub fn new<I>(stop: I) -> Result<StopSet, StopSetError>
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let stop: Vec<I::Item> = stop.into_iter().collect();
        StopSet::builder().stop(stop.iter().map(AsRef::as_ref)).build()
    }

    /// Compiles distinct strings; `markers` are the opening ones and their closing ones, pair by pair.
    pub(crate) fn compile(hidden: &[&str], visible: &[&str], markers: &[(&str, &str)]) -> StopSet {
        let opening: Vec<&str> = markers.iter().map(|pair| pair.0).collect();
        let outside = Automaton::new(Patterns::new(hidden, visible, &opening));
        let regions = markers.iter().map(|pair| Automaton::new(Patterns::new(&[], &[], &[pair.1])));
        StopSet(Arc::new(Compiled { outside, regions: regions.collect() }))
    }

    /// A builder for sets with visible stops or protected regions.
    pub fn builder<'a>() -> StopSetBuilder<'a> {
        StopSetBuilder::default()
    }

    /// The hidden stops, in the order given, without repetitions.
    pub fn stop(&self) -> impl Iterator<Item = &str> {
        self.patterns().of_kind(Kind::Hidden)
    }

    /// The visible stops, in the order given, without repetitions.
    pub fn visible(&self) -> impl Iterator<Item = &str> {
        self.patterns().of_kind(Kind::Visible)
    }

    /// The opening and closing markers of the protected regions, in the order given, without repetitions.
    pub fn protect(&self) -> impl Iterator<Item = (&str, &str)> {
        let closings = self.0.regions.iter().map(|automaton| automaton.patterns().text(0));
        self.patterns().of_kind(Kind::Marker).zip(closings)
    }

    /// How many stops there are, hidden and visible.
    pub fn len(&self) -> usize {
        self.patterns().stops()
    }

    /// Whether there are no stops, so that nothing is ever held or cut.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The match that a scanner reports for the whole of `text`.
    pub fn find(&self, text: &str) -> Option<StopMatch<'_>> {
        self.find_from(Cursor::default(), text)
    }

    /// The text before the match that a scanner reports for the whole of `text` (through it if the stop is visible),
    /// and that match.
    pub fn truncate<'t>(&self, text: &'t str) -> (&'t str, Option<StopMatch<'_>>) {
        self.truncate_from(Cursor::default(), text, false)
    }

    pub(crate) fn find_from(&self, mut cursor: Cursor, text: &str) -> Option<StopMatch<'_>> {
        let hit = self.search(&mut cursor, text, true)?;
        Some(self.stop_match(hit.pattern, code_points(&text.as_bytes()[..hit.end])))
    }

    pub(crate) fn truncate_from<'t>(
        &self,
        mut cursor: Cursor,
        text: &'t str,
        include_stop: bool,
    ) -> (&'t str, Option<StopMatch<'_>>) {
        let Some(hit) = self.search(&mut cursor, text, true) else {
            return (text, None);
        };
        let through = &text[..hit.end];
        let kept = &through[..hit.end - self.cut_bytes(hit.pattern, include_stop)];
        (kept, Some(self.stop_match(hit.pattern, code_points(through.as_bytes()))))
    }

    /// How many code points `text` has, if reading it in ordinary text, after no partial match, changes nothing.
    #[inline(always)]
    pub(crate) fn skip(&self, text: &str) -> Option<usize> {
        self.0.outside.skip(text.as_bytes())
    }

    /// As `skip`, but for any text that changes nothing: one in which stops begin, but none ends and none goes on.
    #[cfg(feature = "python")]
    #[inline(always)]
    pub(crate) fn pass_over(&self, text: &str) -> Option<usize> {
        self.skip(text).or_else(|| self.read_over(text))
    }

    #[cfg(feature = "python")]
    fn read_over(&self, text: &str) -> Option<usize> {
        let mut cursor = Cursor::default();
        let stopped = self.search(&mut cursor, text, true).is_some();
        (!stopped && cursor == Cursor::default()).then(|| code_points(text.as_bytes()))
    }

    /// Reads `text` until a stop fires, moving `cursor` past what it read.
    #[inline]
    pub(crate) fn search(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Hit> {
        let mut end = 0;
        loop {
            let automaton = self.automaton(*cursor);
            end += automaton.advance(&mut cursor.state, &text.as_bytes()[end..])?;
            let Some(pattern) = automaton.completed(cursor.state, armed) else {
                continue; // a stop, in unarmed text
            };
            if automaton.patterns().kind(pattern) != Kind::Marker {
                return Some(Hit { pattern, end });
            }
            *cursor = match cursor.automaton {
                0 => Cursor::protected(pattern - self.len()),
                _ => Cursor::default(),
            };
        }
    }

    /// How many bytes of a stop that fired are cut from the output.
    pub(crate) fn cut_bytes(&self, pattern: usize, include_stop: bool) -> usize {
        match self.patterns().kind(pattern) {
            Kind::Hidden if !include_stop => self.patterns().text(pattern).len(),
            _ => 0,
        }
    }

    pub(crate) fn automaton(&self, cursor: Cursor) -> &Automaton {
        match cursor.automaton {
            0 => &self.0.outside,
            region => &self.0.regions[region as usize - 1],
        }
    }

    pub(crate) fn patterns(&self) -> &Patterns {
        self.0.outside.patterns()
    }

    /// The match of the stop `pattern` that ends at the code point `end`.
    pub(crate) fn stop_match(&self, pattern: usize, end: usize) -> StopMatch<'_> {
        let sequence = self.patterns().text(pattern);
        StopMatch { sequence, offset: end - code_points(sequence.as_bytes()), end }
    }

    /// Where a stream starts: in ordinary text, or in the first protected region if there is one.
    pub(crate) fn start(&self, protected: bool) -> Option<Cursor> {
        match protected {
            false => Some(Cursor::default()),
            true => (!self.0.regions.is_empty()).then(|| Cursor::protected(0)),
        }
    }

    /// The cursor in a region (or in ordinary text) after `partial`, if that begins a pattern there.
    #[cfg(feature = "python")]
    pub(crate) fn resume(&self, region: Option<u32>, partial: &str) -> Option<Cursor> {
        let start = match region {
            None => Cursor::default(),
            Some(region) if (region as usize) < self.0.regions.len() => Cursor::protected(region as usize),
            Some(_) => return None,
        };
        Some(Cursor { state: self.automaton(start).state(partial)?, ..start })
    }

    /// Which stop `sequence` is.
    #[cfg(feature = "python")]
    pub(crate) fn position(&self, sequence: &str) -> Option<u32> {
        let position = self.stop().chain(self.visible()).position(|stop| stop == sequence)?;
        Some(position as u32)
    }
}

impl fmt::Debug for StopSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopSet")
            .field("stop", &self.stop().collect::<Vec<_>>())
            .field("visible", &self.visible().collect::<Vec<_>>())
            .field("protect", &self.protect().collect::<Vec<_>>())
            .finish()
    }
}
