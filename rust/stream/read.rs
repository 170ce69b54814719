//! How a stream reads: up to a stop or to a marker that does not stay, and what of the text is released.

use super::{Emit, Fired, FiredStop, More, Stream};
use crate::automaton::WordKind;
use crate::graph::{Completed, Completion, Cursor, Word};
use crate::repeat::Loop;
use crate::text::{Place, Released};

/// What was released in a region, by its place, before a marker if one ended there.
pub(crate) struct Step {
    pub(crate) region: u32,
    pub(crate) released: Released,
    pub(crate) marker: Option<Passed>,
}

/// A marker that does not stay: where it ends in the delta, its length in bytes, and in which region it is kept, if it is.
pub(crate) struct Passed {
    pub(crate) end: usize,
    pub(crate) word: Word,
    pub(crate) kept_in: Option<u32>,
}

impl<E: Emit> Stream<E> {
    /// Begins a step: drops what was let go in the one before.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.held.begin();
        if let Some(more) = &mut self.more {
            more.begin();
        }
    }

    /// Whether nothing has begun and no stop has fired: nothing is held, and plain text changes nothing but `read`, and
    /// what patterns and loops know of the text.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.cursor == Cursor::start(self.cursor.node) && self.more.as_ref().is_none_or(|more| more.is_idle())
    }

    /// Reads `delta` if nothing has begun and nothing begins in it; returns what is released then.
    #[inline(always)]
    pub(crate) fn pass_plain(&mut self, delta: &str, armed: bool) -> Option<Released> {
        if !self.is_idle() {
            return None;
        }
        let length = self.graph().plain_length(self.cursor.node, delta)?;
        Some(self.pass_idle(delta, length, armed))
    }

    /// Reads `delta`, which has this length, while nothing has begun: nothing begins in it, but it may complete a loop.
    #[inline(always)]
    fn pass_idle(&mut self, delta: &str, length: Place, armed: bool) -> Released {
        if let Some(more) = &mut self.more
            && let Some(looped) = more.extras.pass(delta, armed)
        {
            let end = looped.end;
            return self.stop(delta, Completion { completed: Completed::Loop(looped), end });
        }
        self.read = self.read + length;
        Released::all_of(delta)
    }

    /// As `pass_idle`, unless the text ends the stream or there is no memory for it: then it is not read.
    #[cfg(feature = "python")]
    #[inline(always)]
    pub(crate) fn try_pass_idle(&mut self, text: &str, length: Place, armed: bool) -> bool {
        if let Some(more) = &mut self.more
            && !more.extras.add(text)
        {
            return self.try_looking(text, length, armed);
        }
        self.read = self.read + length;
        true
    }

    /// As `try_pass_idle`, where loops are to be looked for.
    #[cfg(feature = "python")]
    #[inline(never)]
    fn try_looking(&mut self, text: &str, length: Place, armed: bool) -> bool {
        if self.ask_room(text).is_err() {
            return false;
        }
        let before = self.mark(text.len());
        self.pass_idle(text, length, armed);
        let fired = self.has_fired();
        if fired && let Some(before) = before {
            self.undo(before);
        }
        !fired
    }

    /// Reads `delta` through its first marker that does not stay, or all of it, or up to a stop.
    #[inline]
    pub(crate) fn step(&mut self, delta: &str, armed: bool) -> Step {
        let region = self.open();
        let step = |released| Step { region, released, marker: None };
        if let Some(released) = self.pass_plain(delta, armed) {
            return step(released);
        }
        if self.has_fired() {
            return step(Released::default());
        }
        let Stream { set, cursor, more, read, .. } = self;
        match set.graph().read(cursor, more.as_deref_mut().map(|more| &mut more.extras), delta, *read, armed) {
            None => step(self.pass(delta)),
            Some(Completion { completed: Completed::Marker(word), end }) => {
                self.pass_through(&delta[..end], word, region)
            }
            Some(stop) => step(self.stop(delta, stop)),
        }
    }

    /// Releases what is safe after `delta`, in which nothing completed that ends anything.
    #[inline]
    fn pass(&mut self, delta: &str) -> Released {
        self.read.pass(delta);
        let mut held = self.graph().held(self.cursor, !self.include_stop);
        if let Some(more) = &mut self.more {
            held = held.max(more.extras.hold(delta, !self.include_stop));
        }
        self.held.pass(delta, held)
    }

    /// Releases the text before a marker that completed at the end of `through`.
    fn pass_through(&mut self, through: &str, word: Word, region: u32) -> Step {
        let graph = self.set.graph();
        let lead = graph.lead_of(word);
        if let Some(more) = &mut self.more {
            more.extras.forget_loops();
        }
        let kept_in = lead.kept.then(|| graph.region(lead.node));
        Step { region, released: self.cut(through, word), marker: Some(Passed { end: through.len(), word, kept_in }) }
    }

    /// Releases the text before a word that completed at the end of `through`, or through it if it stays in the text.
    /// The word may have begun in the held text.
    fn cut(&mut self, through: &str, word: Word) -> Released {
        self.read.pass(through);
        let graph = self.set.graph();
        let cut = match graph.kind(word) {
            WordKind::Visible => 0,
            WordKind::Hidden if self.include_stop => 0,
            _ => graph.text(word).len(),
        };
        self.held.cut(through, cut)
    }

    /// Ends the stream at a stop that completed in `delta`; releases the text before it, or through it.
    #[cold]
    fn stop(&mut self, delta: &str, stop: Completion) -> Released {
        let (through, unused) = delta.split_at(stop.end);
        let (stop, released) = match stop.completed {
            Completed::Stop(word) | Completed::Marker(word) => (FiredStop::Word(word), self.cut(through, word)),
            Completed::Pattern(hit) => {
                let sequence = self.end_of_text(through, hit.start);
                self.read.pass(through);
                let cut = if self.include_stop { 0 } else { sequence.len() };
                (FiredStop::Pattern { index: hit.pattern, sequence }, self.held.cut(through, cut))
            }
            Completed::Loop(Loop { period, sequence, .. }) => {
                self.read.pass(through);
                (FiredStop::Loop { period, sequence: sequence.into() }, self.held.cut(through, 0))
            }
        };
        self.fire(stop, unused);
        released
    }

    fn fire(&mut self, stop: FiredStop, unused: &str) {
        let fired = Fired { stop, unused: unused.into() };
        match &mut self.more {
            Some(more) => more.fired = Some(fired), // a step may be taken back: the rest stays for so long
            None => self.more = Some(More::ended(fired)),
        }
    }

    /// The text from `start` on, of which `through` is the end, and the held text what stands before that.
    fn end_of_text(&self, through: &str, start: Place) -> Box<str> {
        let length = self.read.bytes + through.len() - start.bytes;
        match length.checked_sub(through.len()) {
            None => through[through.len() - length..].into(),
            Some(before) => {
                let kept = match (self.include_stop, &self.more) {
                    (true, Some(more)) => more.extras.kept_text(),
                    _ => self.held.as_str(),
                };
                [&kept[kept.len() - before..], through].concat().into()
            }
        }
    }

    /// Releases the held text and `text`, which is not scanned; what has begun is forgotten.
    pub(crate) fn pass_over(&mut self, text: &str) -> Released {
        if let Some(more) = &mut self.more {
            more.extras.forget(text);
        }
        self.cursor = Cursor::start(self.cursor.node);
        self.read.pass(text);
        self.held.pass(text, 0)
    }

    /// Releases the held text at the end of the stream, which may confirm a match.
    pub(crate) fn end(&mut self) -> Released {
        if self.has_fired() {
            return Released::default();
        }
        let confirmed = self.more.as_ref().and_then(|more| more.extras.confirmed_at_end(self.graph(), self.cursor));
        match confirmed {
            Some(completed) => self.stop("", Completion { completed, end: 0 }),
            None => self.pass_over(""),
        }
    }

    /// The stop that a special token is here.
    pub(crate) fn stop_of(&self, special: &str) -> Option<Word> {
        self.graph().stop(self.cursor.node, special)
    }

    /// Releases the held text before a special token that is no text. If it is a stop, that fires, if `armed`; if it is
    /// a marker, that leads to its region. `None` if it is neither.
    pub(crate) fn pass_special(&mut self, special: &str, armed: bool) -> Option<Released> {
        if self.has_fired() {
            return None;
        }
        let node = self.cursor.node;
        if let Some(word) = self.stop_of(special).filter(|_| armed) {
            let released = self.pass_over("");
            self.fire(FiredStop::Special(word), "");
            return Some(released);
        }
        let lead = self.graph().lead(node, special)?;
        let released = self.pass_over("");
        self.cursor = Cursor::start(lead.node);
        Some(released)
    }
}
