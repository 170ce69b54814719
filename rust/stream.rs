//! The state of one stream, which a [`StopScanner`](crate::StopScanner) and a [`Segmenter`](crate::Segmenter) share.

use crate::held::{Held, Released};
use crate::patterns::Threads;
use crate::regions::{Completed, Completion, Cursor, Regions, Word};
use crate::stop_match::{Place, StopMatch};
use crate::words::Kind;

/// A set that streams are read with.
pub(crate) trait AsRegions: Clone {
    fn as_regions(&self) -> &Regions;
}

/// A face of a stream: a scanner or a segmenter.
pub(crate) trait Face {
    type Set: AsRegions;

    fn stream(&self) -> &Stream<Self::Set>;
    fn stream_mut(&mut self) -> &mut Stream<Self::Set>;
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
    /// What most streams do not have, most of the time.
    pub(crate) more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct More {
    /// Where matches of the set's patterns have begun.
    pub(crate) threads: Option<Threads>,
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
    Pattern { index: usize, sequence: Box<str> },
}

impl<S: AsRegions> Stream<S> {
    pub(crate) fn new(set: &S, start: u32, include_stop: bool) -> Stream<S> {
        let threads = set.as_regions().threads();
        Stream {
            set: set.clone(),
            include_stop,
            start,
            cursor: Cursor::start(start),
            held: Held::default(),
            read: Place::default(),
            more: threads.map(|threads| Box::new(More { threads: Some(threads), fired: None })),
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Stream::new(&self.set, self.start, self.include_stop);
    }

    pub(crate) fn stop_match(&self) -> Option<StopMatch<'_>> {
        let regions = self.set.as_regions();
        Some(match &self.fired()?.stop {
            FiredStop::Word(word) => regions.word_match(*word, self.read),
            FiredStop::Pattern { index, sequence } => regions.pattern_match(*index, sequence, self.read),
        })
    }

    pub(crate) fn unused(&self) -> &str {
        self.fired().map_or("", |fired| &fired.unused)
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.fired().is_some()
    }

    pub(crate) fn fired(&self) -> Option<&Fired> {
        self.more.as_ref()?.fired.as_ref()
    }

    pub(crate) fn threads(&self) -> Option<&Threads> {
        self.more.as_ref()?.threads.as_ref()
    }

    fn threads_mut(&mut self) -> Option<&mut Threads> {
        self.more.as_mut()?.threads.as_mut()
    }

    /// Whether nothing has begun and no stop has fired: nothing is held, and plain text changes nothing but `read`.
    /// Streams with patterns are never idle: what stands before a match matters to some.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.cursor == Cursor::start(self.cursor.region) && self.more.is_none()
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

    /// Reads `text` up to what completes next: a marker or, if `armed`, a stop.
    pub(crate) fn next(&mut self, text: &str, armed: bool) -> Option<Completion> {
        let Stream { set, cursor, more, read, .. } = self;
        match more.as_mut().and_then(|more| more.threads.as_mut()) {
            None => set.as_regions().read(cursor, text, armed),
            Some(threads) => set.as_regions().read_patterns(cursor, threads, text, *read, armed),
        }
    }

    /// As `next`, but reads on behind markers.
    #[inline]
    pub(crate) fn next_stop(&mut self, text: &str, armed: bool) -> Option<Completion> {
        let Stream { set, cursor, more, read, .. } = self;
        let threads = more.as_mut().and_then(|more| more.threads.as_mut());
        set.as_regions().read_to_stop(cursor, threads, text, *read, armed)
    }

    /// Releases what is safe after `delta`, in which nothing completed that ends anything.
    #[inline]
    pub(crate) fn pass(&mut self, delta: &str) -> Released {
        self.read.pass(delta);
        let mut held = self.set.as_regions().held(self.cursor, !self.include_stop);
        if self.more.is_some() {
            held = held.max(self.hold_for_patterns(delta));
        }
        self.held.pass(delta, held)
    }

    /// How many bytes are held because a pattern may still match.
    fn hold_for_patterns(&mut self, delta: &str) -> usize {
        let (end, keeps_text) = (self.read, self.include_stop);
        let Some(threads) = self.threads_mut() else {
            return 0;
        };
        let held = threads.held(end);
        if !keeps_text {
            return held;
        }
        threads.keep_text(delta, held);
        0
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
        let (stop, released) = match stop.completed {
            Completed::Word(word) => (FiredStop::Word(word), self.cut(through, word)),
            Completed::Pattern(hit) => {
                let sequence = self.end_of_text(through, hit.start);
                self.read.pass(through);
                let cut = if self.include_stop { 0 } else { sequence.len() };
                (FiredStop::Pattern { index: hit.pattern, sequence }, self.held.cut(through, cut))
            }
        };
        self.more = Some(Box::new(More { threads: None, fired: Some(Fired { stop, unused: unused.into() }) }));
        released
    }

    /// The text from `start` on, of which `through` is the end, and the held text what stands before that.
    fn end_of_text(&self, through: &str, start: Place) -> Box<str> {
        let length = self.read.bytes + through.len() - start.bytes;
        match length.checked_sub(through.len()) {
            None => through[through.len() - length..].into(),
            Some(before) => {
                let kept = match self.include_stop {
                    true => self.threads().map_or("", Threads::text),
                    false => self.held.as_str(),
                };
                [&kept[kept.len() - before..], through].concat().into()
            }
        }
    }

    /// Releases the held text and `text`, which is not scanned; what has begun is forgotten.
    pub(crate) fn bypass(&mut self, text: &str) -> Released {
        if let Some(threads) = self.threads_mut() {
            threads.forget(text);
        }
        self.cursor = Cursor::start(self.cursor.region);
        self.read.pass(text);
        self.held.pass(text, 0)
    }

    /// Releases the held text at the end of the stream, which may confirm a match.
    pub(crate) fn flush(&mut self) -> Released {
        if self.has_fired() {
            return Released::default();
        }
        let confirmed = self.threads().and_then(|threads| self.set.as_regions().confirmed_at_end(self.cursor, threads));
        match confirmed {
            Some(completed) => self.stop("", Completion { completed, end: 0 }),
            None => self.bypass(""),
        }
    }

    /// Releases the held text before a marker that is a token without text; the marker leads to its region all the
    /// same. `None` if it is no marker here.
    pub(crate) fn pass_marker(&mut self, marker: &str) -> Option<Released> {
        let region = self.set.as_regions().lead(self.cursor.region, marker).filter(|_| !self.has_fired())?;
        let released = self.bypass("");
        self.cursor = Cursor::start(region);
        Some(released)
    }
}
