//! What most streams do not have, most of the time: patterns and loops, and a stop that fired.

use super::StopMatch;
use crate::graph::{Extras, Graph, Word};
use crate::text::Place;

#[derive(Clone, Debug, Default)]
pub struct More {
    pub(crate) extras: Extras,
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
            FiredStop::Word(word) => StopMatch::of_word(graph, *word, read),
            FiredStop::Special(word) => StopMatch::of_word(graph, *word, read + Place::after(graph.text(*word))),
            FiredStop::Pattern { index, sequence } => StopMatch::of_pattern(graph, *index, sequence, read),
            FiredStop::Loop { period, sequence } => StopMatch::of_loop(sequence, *period, read),
        }
    }
}

impl More {
    /// What streams of a set begin with, if they need any.
    pub(crate) fn new(graph: &Graph) -> Option<Box<More>> {
        let extras = Extras::new(graph);
        (!extras.is_empty()).then(|| Box::new(More { extras, fired: None }))
    }

    /// What a stream of strings alone has after a stop.
    pub(crate) fn ended(fired: Fired) -> Box<More> {
        Box::new(More { extras: Extras::default(), fired: Some(fired) })
    }

    /// Begins a step. What was needed up to a stop is dropped.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.fired.is_some() {
            self.extras = Extras::default();
        }
        self.extras.begin();
    }

    /// Whether no stop has fired and no match has begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.fired.is_none() && self.extras.is_idle()
    }
}
