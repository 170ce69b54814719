//! The state of one stream, which a [`StopScanner`](crate::StopScanner) and a [`Segmenter`](crate::Segmenter) share.

use crate::held::{Held, Released};
use crate::regions::{Completion, Cursor, Regions, Word};
use crate::stop_match::{Place, StopMatch};
use crate::words::Kind;

/// A set that streams are read with.
pub(crate) trait AsRegions: Clone {
    fn as_regions(&self) -> &Regions;
}

#[derive(Clone, Debug)]
pub(crate) struct Stream<S> {
    pub(crate) set: S,
    /// Whether every stop is visible.
    pub(crate) include_stop: bool,
    /// The region in which the stream begins.
    pub(crate) start: u32,
    pub(crate) cursor: Cursor,
    pub(crate) held: Held,
    /// How much was read.
    pub(crate) read: Place,
    /// The stop that fired. Its end is `read`: nothing is read after it.
    pub(crate) matched: Option<Word>,
    /// What followed the stop in its delta.
    pub(crate) unused: Box<str>,
}

impl<S: AsRegions> Stream<S> {
    pub(crate) fn new(set: &S, start: u32, include_stop: bool) -> Stream<S> {
        Stream {
            set: set.clone(),
            include_stop,
            start,
            cursor: Cursor::start(start),
            held: Held::default(),
            read: Place::default(),
            matched: None,
            unused: Box::default(),
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Stream::new(&self.set, self.start, self.include_stop);
    }

    pub(crate) fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.matched.map(|stop| self.set.as_regions().stop_match(stop, self.read))
    }

    /// Whether no word has begun and no stop has fired: nothing is held, and plain text changes nothing but `read`.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.cursor == Cursor::start(self.cursor.region) && self.matched.is_none()
    }

    /// Counts `delta` as read if nothing has begun and nothing begins in it.
    #[inline(always)]
    pub(crate) fn pass_plain(&mut self, delta: &str) -> bool {
        if self.is_idle()
            && let Some(code_points) = self.set.as_regions().plain(self.cursor.region).code_points(delta)
        {
            self.read.code_points += code_points;
            self.read.bytes += delta.len();
            return true;
        }
        false
    }

    /// Releases what is safe after `delta`, in which no word completed that ends anything.
    #[inline]
    pub(crate) fn pass(&mut self, delta: &str) -> Released {
        self.read.pass(delta);
        let held = self.set.as_regions().held(self.cursor, !self.include_stop);
        self.held.pass(delta, held)
    }

    /// Releases the text before a word that completed at the end of `through`, or through it if it stays in the text.
    /// The word may have begun in the held text.
    pub(crate) fn cut(&mut self, through: &str, word: Word) -> Released {
        self.read.pass(through);
        let regions = self.set.as_regions();
        let cut = match regions.kind(word) {
            Kind::Visible => 0,
            Kind::Hidden if self.include_stop => 0,
            _ => regions.text(word).len(),
        };
        self.held.cut(through, cut)
    }

    /// Ends the stream at a stop that completed in `delta`; releases the text before it, or through it.
    #[cold]
    pub(crate) fn stop(&mut self, delta: &str, stop: Completion) -> Released {
        let (through, unused) = delta.split_at(stop.end);
        self.matched = Some(stop.word);
        self.unused = unused.into();
        self.cut(through, stop.word)
    }

    /// Releases the held text and `text`, which is not scanned; the partial match is forgotten.
    pub(crate) fn bypass(&mut self, text: &str) -> Released {
        self.cursor = Cursor::start(self.cursor.region);
        self.read.pass(text);
        self.held.pass(text, 0)
    }
}
