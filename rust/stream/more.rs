//! What most streams do not have, most of the time: threads of patterns, what repeats, and a stop that fired.

use super::{Place, StopMatch};
use crate::graph::{Completed, Cursor, Graph, Word};
use crate::patterns::Threads;
use crate::repeat::{Loop, Loops};

#[derive(Clone, Debug, Default)]
pub struct More {
    /// Where matches of the set's patterns have begun.
    pub(crate) threads: Option<Threads>,
    /// What the text has repeated, if loops are a stop.
    pub(crate) loops: Option<Loops>,
    pub(crate) fired: Option<Fired>,
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
            FiredStop::Word(word) => graph.word_match(*word, read),
            FiredStop::Special(word) => graph.word_match(*word, read + Place::after(graph.text(*word))),
            FiredStop::Pattern { index, sequence } => graph.pattern_match(*index, sequence, read),
            FiredStop::Loop { period, sequence } => StopMatch::of_loop(sequence, *period, read),
        }
    }
}

impl More {
    /// What streams of a set begin with, if they need any.
    pub(crate) fn new(graph: &Graph) -> Option<Box<More>> {
        let threads = (!graph.patterns().patterns.is_empty()).then(Threads::new);
        let loops = graph.repeat().map(Loops::new);
        (threads.is_some() || loops.is_some()).then(|| Box::new(More { threads, loops, fired: None }))
    }

    /// What a stream of strings alone has after a stop.
    pub(crate) fn ended(fired: Fired) -> Box<More> {
        Box::new(More { fired: Some(fired), ..More::default() })
    }

    /// Begins a step. What was needed up to a stop is dropped.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.fired.is_some() {
            (self.threads, self.loops) = (None, None);
        }
        if let Some(threads) = &mut self.threads {
            threads.begin();
        }
        if let Some(loops) = &mut self.loops {
            loops.begin();
        }
    }

    /// Whether no stop has fired and no match has begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.fired.is_none() && self.threads.as_ref().is_none_or(Threads::is_idle)
    }

    /// Notes text in which nothing begins, where nothing has begun; the loop that it completes.
    pub(crate) fn pass(&mut self, text: &str, armed: bool) -> Option<Loop> {
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        self.loops.as_mut()?.go_on(text, armed)
    }

    /// How many bytes are held behind `delta` because a pattern may still match. Streams that hide no stop hold nothing, and
    /// keep that text here.
    pub(crate) fn hold(&mut self, delta: &str, hides_stops: bool) -> usize {
        self.threads.as_mut().map_or(0, |threads| threads.hold(delta, hides_stops))
    }

    /// The text since the first thread began, in streams that hide no stop.
    pub(crate) fn kept_text(&self) -> &str {
        self.threads.as_ref().map_or("", Threads::text)
    }

    /// Forgets what has begun; the text before the next character is `text`.
    pub(crate) fn forget(&mut self, text: &str) {
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        self.forget_loops();
    }

    pub(crate) fn forget_loops(&mut self) {
        if let Some(loops) = &mut self.loops {
            loops.forget();
        }
    }

    /// What the end of the text confirms.
    pub(crate) fn confirmed_at_end(&self, graph: &Graph, cursor: Cursor) -> Option<Completed> {
        self.threads.as_ref()?.confirmed_at_end(graph.machines(cursor.node).1?).map(Completed::Pattern)
    }
}

#[cfg(feature = "python")]
impl More {
    /// As `pass`, if loops need not be looked for with this text; returns whether it did.
    #[inline(always)]
    pub(crate) fn add(&mut self, text: &str) -> bool {
        if let Some(loops) = &mut self.loops
            && !loops.add(text)
        {
            return false;
        }
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        true
    }

    /// About how many bytes it has.
    pub(super) fn size(&self) -> usize {
        self.threads.as_ref().map_or(0, Threads::size) + self.loops.as_ref().map_or(0, Loops::size)
    }

    /// How many bytes it grows by at most with so many bytes of text.
    pub(super) fn growth(&self, bytes: usize) -> usize {
        self.threads.as_ref().map_or(0, |threads| threads.growth(bytes))
            + self.loops.as_ref().map_or(0, |loops| 2 * (loops.size() + bytes))
    }
}
