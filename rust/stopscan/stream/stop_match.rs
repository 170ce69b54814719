use crate::automaton::WordKind;
use crate::graph::Graph;
use crate::graph::Word;
use crate::text::Place;

/// The stop that fired, and where: `text[offset..end] == sequence`, counted in code points.
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::new(["END", "é!"])?;
/// let found = set.find("Olé!").unwrap();
/// assert_eq!((found.sequence(), found.index()), ("é!", 1));
/// assert_eq!((found.offset(), found.end()), (2, 4));
/// assert_eq!((found.byte_offset(), found.byte_end()), (2, 5));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopMatch<'a> {
    pub(crate) sequence: &'a str,
    pub(crate) pattern: Option<&'a str>,
    pub(crate) index: usize,
    pub(crate) visible: bool,
    pub(crate) period: Option<usize>,
    pub(crate) start: Place,
    pub(crate) end: Place,
}

impl<'a> StopMatch<'a> {
    /// The match of a string, which ends at `end`.
    pub(crate) fn of_word(graph: &'a Graph, stop: Word, end: Place) -> StopMatch<'a> {
        let (sequence, visible) = (graph.text(stop), graph.kind(stop) == WordKind::Visible);
        let start = end.before(sequence);
        StopMatch { sequence, pattern: None, index: graph.index(stop), visible, period: None, start, end }
    }

    /// The match of the pattern `number`, whose text `sequence` ends at `end`.
    pub(crate) fn of_pattern(graph: &'a Graph, number: usize, sequence: &'a str, end: Place) -> StopMatch<'a> {
        let pattern = Some(&*graph.patterns().patterns[number]);
        let (index, start) = (graph.patterns().index(number), end.before(sequence));
        StopMatch { sequence, pattern, index, visible: false, period: None, start, end }
    }

    /// The match of a loop, which ends at `end`.
    pub(crate) fn of_loop(sequence: &'a str, period: usize, end: Place) -> StopMatch<'a> {
        let start = end.before(sequence);
        StopMatch { sequence, pattern: None, index: 0, visible: true, period: Some(period), start, end }
    }

    /// After how many code points a loop repeats; `None` for any other stop.
    pub fn period(&self) -> Option<usize> {
        self.period
    }

    /// The stop, as the user gave it, or the text that matched a pattern.
    pub fn sequence(&self) -> &'a str {
        self.sequence
    }

    /// The pattern that matched, as the user gave it; `None` for a string.
    pub fn pattern(&self) -> Option<&'a str> {
        self.pattern
    }

    /// Which one of its list it is, that of the hidden stops, of the visible ones or of the patterns; of equal ones, the
    /// first.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it is one of the visible stops, which stay in the output.
    pub fn visible(&self) -> bool {
        self.visible
    }

    /// Where the stop begins in the text of the stream, in code points.
    pub fn offset(&self) -> usize {
        self.start.code_points
    }

    /// Where the stop ends in the text of the stream, in code points.
    pub fn end(&self) -> usize {
        self.end.code_points
    }

    /// Where the stop begins in the text of the stream, in bytes of UTF-8.
    pub fn byte_offset(&self) -> usize {
        self.start.bytes
    }

    /// Where the stop ends in the text of the stream, in bytes of UTF-8.
    pub fn byte_end(&self) -> usize {
        self.end.bytes
    }
}

/// The stop that fired. Its end is how much was read: nothing is read after it.
#[derive(Clone, Debug)]
pub(crate) struct Fired {
    pub(crate) stop: FiredStop,
    /// What followed it in its delta.
    pub(crate) unused: Box<str>,
}

#[derive(Clone, Debug)]
pub(crate) enum FiredStop {
    Word(Word),
    /// A special token that is no text: it begins where the text ends.
    Special(Word),
    Pattern {
        index: usize,
        sequence: Box<str>,
    },
    Loop {
        period: usize,
        sequence: Box<str>,
    },
}

impl Fired {
    /// The match, in a stream of which so much was read.
    pub(crate) fn stop_match<'a>(&'a self, graph: &'a Graph, read: Place) -> StopMatch<'a> {
        match &self.stop {
            FiredStop::Word(word) => StopMatch::of_word(graph, *word, read),
            FiredStop::Special(word) => StopMatch::of_word(graph, *word, read + Place::after(graph.text(*word))),
            FiredStop::Pattern { index, sequence } => StopMatch::of_pattern(graph, *index, sequence, read),
            FiredStop::Loop { period, sequence } => StopMatch::of_loop(sequence, *period, read),
        }
    }
}
