//! One stream of text that is scanned for stops: its place in the automaton, the text that it holds, and the stop that
//! fired. A type parameter says what the stream emits: text or segments.

use std::collections::TryReserveError;

use crate::automaton::WordKind;
use crate::error::StopSetError;
use crate::graph::{Completed, Completion, Cursor, Graph, History, Lead, MarkerText, Word};
use crate::patterns::PatternHit;
use crate::repeat::Loop;
use crate::room;
use crate::set::{SegmentSet, Set, StopSet};
use crate::text::{Held, Place, Released};

mod output;
mod snapshot;

pub use output::{Emit, Output, Segment, Segmented, Segments, StopMatch, Text};
pub(crate) use output::{Fired, FiredStop, SafeText};

/// One stream of text: `feed` it each delta, emit the output, and `flush` it at the end. `E` is the kind of output.
///
/// A clone and its original are independent. A stream is small, and is `Send` and `Sync`.
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
    /// Whether every stop that fires stays in the output, even a hidden stop.
    pub(crate) include_stop: bool,
    /// The node of the graph at which the stream begins. A node stands for a region, or for one state of a region.
    pub(crate) start: u32,
    pub(crate) cursor: Cursor,
    pub(crate) held: Held,
    /// How much text was read since the start of the stream.
    pub(crate) read: Place,
    /// The number of parts that came before the current part. A part is the text between two markers. With a `StopSet`,
    /// this is always 0.
    pub(crate) part: u32,
    /// The state of the search for patterns and loops. `None` if the set has neither, and after a stop.
    pub(crate) history: Option<Box<History>>,
    pub(crate) fired: Option<Box<Fired>>,
    /// The texts of segments that the last `feed` of a `Segmenter` had to join from several pieces. A `StopScanner`
    /// does not use this field. It has the same fields as a `Segmenter` so that most code is compiled only once.
    joined: Box<str>,
}

impl<E: Emit> Clone for Stream<E> {
    fn clone(&self) -> Stream<E> {
        Stream {
            set: self.set.clone(),
            held: self.held.clone(),
            history: self.history.clone(),
            fired: self.fired.clone(),
            joined: Box::default(),
            ..*self
        }
    }
}

impl<E: Emit> Stream<E> {
    /// Makes a new stream.
    pub fn new(set: &Set<E>) -> Stream<E> {
        Stream::starting(set, 0, false)
    }

    /// Makes a new stream with `options`.
    ///
    /// # Errors
    /// If the stream cannot begin in the region that `options` ask for.
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
            part: 0,
            history: History::new(set.graph()).map(Box::new),
            fired: None,
            joined: Box::default(),
        }
    }

    /// Reads `delta`, and returns the text that is safe to emit. Once a stop has fired, later calls return no text.
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

    /// Reads `delta` like [`Stream::feed`], but no stop that completes in `delta` fires. A stop that only begins in
    /// `delta` can still fire, if the next calls of `feed` read the rest of it. Markers work as in `feed`.
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

    /// Returns the held text and `text`, joined, without scanning `text`. A stop or marker that has begun is forgotten.
    /// The current region stays the same. Once a stop has fired, the result is empty.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The EN");
    /// assert_eq!(scanner.bypass("D, which is no stop").text, "END, which is no stop");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn bypass<'a>(&'a mut self, text: &'a str) -> E::Output<'a> {
        self.begin();
        let released = if self.has_fired() { Released::default() } else { self.release_all(text) };
        E::released(self, text, released)
    }

    /// Ends the stream, and returns the held text, which belongs to the current region. A stop or marker that has begun
    /// is forgotten. A pattern that matches only at the end of the text, such as `END$`, may fire here.
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

    /// Goes back to the start of the stream.
    pub fn reset(&mut self) {
        *self = Stream::starting(&self.set, self.start, self.include_stop);
    }

    /// The name of the current region: the one to which the next text belongs.
    pub fn region(&self) -> &str {
        self.graph().region_name(self.open().region)
    }

    /// The stop that fired. The offset of the match counts all text of the stream, also the markers.
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        Some(self.fired.as_ref()?.stop_match(self.graph(), self.read))
    }

    /// The text that is withheld because it may still become a hidden stop, or a marker that is taken out of the text.
    pub fn held(&self) -> &str {
        self.held.as_str()
    }

    /// The text after the stop in the delta that completed the stop.
    pub fn unused(&self) -> &str {
        self.fired.as_ref().map_or("", |fired| &fired.unused)
    }

    /// The set of the stream.
    pub fn set(&self) -> &Set<E> {
        &self.set
    }

    /// Returns the options with which the stream began.
    pub fn options(&self) -> Options {
        let options = Options::default().include_stop(self.include_stop);
        match self.start {
            0 => options,
            // A protected region has the name of its opening marker. If the marker is `answer`, node 0 has the same
            // name, and `Options::region` would lead to node 0. So `start_protected` is set instead of a region.
            1 if self.graph().protected().is_some() => options.start_protected(true),
            node => options.region(self.graph().name(node)),
        }
    }

    /// The number of bytes of text that the stream keeps, roughly.
    pub fn size(&self) -> usize {
        self.held().len() + self.unused().len() + self.history.as_ref().map_or(0, |history| history.size())
    }

    /// Checks that there is enough memory to read `delta`. Rust aborts the process if memory runs out in `feed`. A
    /// caller that can raise an error instead, such as the Python package, calls this first.
    ///
    /// # Errors
    /// If there is not enough memory.
    #[inline]
    pub fn ask_memory(&self, delta: &str) -> Result<(), TryReserveError> {
        room::ask(self.memory_for([delta]))
    }

    /// The most bytes of memory that a stream needs to read `texts` one after the other and to return all output.
    #[doc(hidden)]
    #[inline]
    pub fn memory_for<'a>(&self, texts: impl IntoIterator<Item = &'a str, IntoIter: Clone>) -> usize {
        /// Text of fewer bytes than this has so few markers that the memory for its segments need not be counted.
        const SHORT: usize = 64;

        let texts = texts.into_iter();
        let bytes: usize = texts.clone().map(str::len).sum();
        let history = self.history.as_ref().map_or(0, |history| history.growth(bytes));
        let segments = if E::MARKERS_STAY || bytes < SHORT { 0 } else { self.count_segments(texts) };
        // A byte of text needs up to 7 bytes: 3 for copies (of the match, of the text after the stop, and of text that
        // is cut out), and 4 for the caller's string, because a string of Python may need four bytes for a character.
        self.held.growth(bytes) + 7 * bytes + 4 * self.held.len() + history + segments * SEGMENT_MEMORY
    }

    /// Returns the most segments into which markers can cut `texts`. Ignores stops.
    #[cold]
    fn count_segments<'a>(&self, texts: impl Iterator<Item = &'a str>) -> usize {
        let (graph, mut cursor, mut segments) = (self.graph(), self.cursor, 1);
        for mut text in texts {
            while let Some(marker) = graph.scan_words(&mut cursor, text, false) {
                let Completed::Marker(word) = marker.completed else { break };
                let left = usize::from(graph.lead_of(word).marker != MarkerText::Removed);
                segments += left + usize::from(marker.end > graph.text(word).len());
                text = &text[marker.end..];
            }
            segments += usize::from(!text.is_empty());
        }
        segments
    }

    #[inline(always)]
    pub(crate) fn graph(&self) -> &Graph {
        self.set.graph()
    }

    /// Returns the current part: the part to which the next text belongs.
    pub(crate) fn open(&self) -> Part {
        Part { region: self.graph().region(self.cursor.node), number: self.part }
    }

    /// Moves the stream from `node` to the node to which a marker leads. In a `Segmenter`, a marker begins a new part,
    /// with two exceptions: a marker that was given with `stay`, and a marker that is taken out of the text and leads
    /// back to `node`.
    fn follow(&mut self, node: u32, lead: Lead) {
        let begins_part = match lead.marker {
            MarkerText::Removed => lead.node != node,
            MarkerText::Kept => true,
            MarkerText::Stays => false,
        };
        self.part += u32::from(!E::MARKERS_STAY && begins_part);
        self.cursor = Cursor::start(lead.node);
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.fired.is_some()
    }
}

/// The most bytes of memory that one segment needs, in this library and in the caller. In this library, each list of
/// segments may have room for twice as many segments as it holds. In Python, the caller needs a tuple, a string, an int
/// and an item in each of two lists.
const SEGMENT_MEMORY: usize = 768;

/// Scans one stream of text: deltas in, safe text out.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// assert_eq!(scanner.feed("The E").text, "The ");
/// assert_eq!(scanner.held(), "E");
/// let output = scanner.feed("ND.");
/// assert_eq!(output.stop_match.unwrap().offset(), 4);
/// assert_eq!(scanner.stop_match().unwrap().sequence(), "END");
/// assert_eq!(scanner.unused(), ".");
/// scanner.reset();
/// assert!(scanner.stop_match().is_none());
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type StopScanner = Stream<Text>;

impl Stream<Text> {
    /// The [`StopSet`] of the scanner.
    pub fn stops(&self) -> &StopSet {
        &self.set
    }
}

/// Cuts one stream into segments: deltas in, safe text with its region out.
///
/// If neighbouring segments of one region are joined, the segments do not depend on how the text is cut into deltas.
/// Text is held only while it may still become a marker of the current region or a hidden stop.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// let mut segmenter = Segmenter::new(&set);
/// let mut answer = String::new();
/// for delta in ["<thi", "nk>Is it 5?</", "think>It is ", "6."] {
///     for segment in segmenter.feed(delta) {
///         if segment.region == "answer" {
///             answer += &segment.text;
///         }
///     }
/// }
/// assert_eq!(answer, "It is 6.");
/// assert!(segmenter.flush().into_iter().next().is_none()); // nothing is held
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type Segmenter = Stream<Segmented>;

impl Stream<Segmented> {
    /// The [`SegmentSet`] of the segmenter.
    pub fn segments(&self) -> &SegmentSet {
        &self.set
    }
}

/// The options of a stream of text.
///
/// ```
/// use stopscan::{Options, StopSet};
///
/// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
/// let options = Options::default().start_protected(true);
/// assert_eq!(set.find_with("END?</think>The END", &options)?.unwrap().offset(), 16);
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Whether every stop that fires stays in the output, even a hidden stop. If so, no text is held for stops.
    pub include_stop: bool,
    /// Whether the text begins inside the first protected region, for example because the chat template ends the prompt
    /// with the opening marker.
    pub start_protected: bool,
    /// The region, or the state of a region, in which the text begins. `None` means the first region. If the prompt
    /// ends with a marker, [`Set::region_after`](crate::Set::region_after) returns the region that this marker opens.
    pub region: Option<String>,
}

impl Options {
    /// Returns the options with this `include_stop`.
    pub fn include_stop(self, include_stop: bool) -> Options {
        Options { include_stop, ..self }
    }

    /// Returns the options with this `start_protected`.
    pub fn start_protected(self, start_protected: bool) -> Options {
        Options { start_protected, ..self }
    }

    /// Returns the options with a region in which the text begins.
    ///
    /// ```
    /// use stopscan::{Options, SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).build()?;
    /// assert_eq!(Segmenter::with_options(&set, &Options::default().region("b"))?.region(), "b");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region(self, region: impl Into<String>) -> Options {
        Options { region: Some(region.into()), ..self }
    }
}

/// A part of the text, from one marker to the next: the index of its region, and the number of parts before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub(crate) region: u32,
    pub(crate) number: u32,
}

/// The result of [`Stream::step`], which reads text up to a stop or marker. `released` is the text that is now safe to
/// emit, and `part` is the part to which it belongs. `marker` is `None` if the step did not end at a marker.
pub(crate) struct Step {
    pub(crate) part: Part,
    pub(crate) released: Released,
    pub(crate) marker: Option<Passed>,
}

/// A marker that completed in a segmenter. `end` is where the marker ends in the delta. If the marker stays in the
/// text, `kept_in` is the part to which it belongs.
pub(crate) struct Passed {
    pub(crate) end: usize,
    pub(crate) word: Word,
    pub(crate) kept_in: Option<Part>,
}

impl<E: Emit> Stream<E> {
    /// Called first in `feed`, `flush` and `bypass`: drops the text that the previous call released.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.held.begin();
        if let Some(history) = &mut self.history {
            history.begin();
        }
    }

    /// Whether no stop or marker has begun and no stop has fired. If so, no text is held.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.cursor == Cursor::start(self.cursor.node)
            && self.fired.is_none()
            && self.history.as_ref().is_none_or(|history| history.is_idle())
    }

    /// Fast path: if no stop or marker has begun, and none begins in `delta`, reads `delta` and returns the released
    /// text. Otherwise returns `None` and changes nothing.
    #[inline(always)]
    pub(crate) fn feed_plain(&mut self, delta: &str, armed: bool) -> Option<Released> {
        if !self.is_idle() {
            return None;
        }
        let length = self.graph().plain_length(self.cursor.node, delta)?;
        Some(self.feed_idle(delta, length, armed))
    }

    /// Reads `delta`, which has this `length`. The caller knows that no stop or marker has begun, and that none begins
    /// in `delta`. But `delta` may complete a loop, which is a stop, too.
    #[inline(always)]
    fn feed_idle(&mut self, delta: &str, length: Place, armed: bool) -> Released {
        if let Some(history) = &mut self.history
            && let Some(looped) = history.note_plain(delta, armed)
        {
            let end = looped.end;
            return self.stop(delta, Completion { completed: Completed::Loop(looped), end });
        }
        self.read = self.read + length;
        Released::all_of(delta)
    }

    /// Reads `delta` up to the end of the first stop or, in a `Segmenter`, of the first marker. If there is none, reads
    /// all of `delta`.
    #[inline]
    pub(crate) fn step(&mut self, delta: &str, armed: bool) -> Step {
        let part = self.open();
        let step = |released| Step { part, released, marker: None };
        if let Some(released) = self.feed_plain(delta, armed) {
            return step(released);
        }
        if self.has_fired() {
            return step(Released::default());
        }
        let Stream { set, cursor, history, read, .. } = self;
        let found = set.graph().scan(cursor, history.as_deref_mut(), delta, *read, armed);
        self.conclude(delta, found, part)
    }

    /// Reads a token whose text is a `marker`. A stop that completes before the end of this text does not fire.
    pub(crate) fn step_marker(&mut self, text: &str, marker: Word, armed: bool) -> Step {
        let part = self.open();
        let Stream { set, cursor, history, read, .. } = self;
        let found = set.graph().scan_marker(cursor, history.as_deref_mut(), (text, marker), *read, armed);
        self.conclude(text, found, part)
    }

    /// Makes the `Step` for `delta`, which was just scanned. `found` is the stop or marker that completed in it, if
    /// any. `part` is the part in which the scan began.
    #[inline]
    fn conclude(&mut self, delta: &str, found: Option<Completion>, part: Part) -> Step {
        let step = |released| Step { part, released, marker: None };
        match found {
            None => step(self.release(delta)),
            Some(Completion { completed: Completed::Marker(word), end }) => self.end_part(&delta[..end], word, part),
            Some(stop) => step(self.stop(delta, stop)),
        }
    }

    /// Counts all of `delta` as read, because no stop fired and no part ended in it. Releases the text that is now
    /// safe.
    #[inline]
    fn release(&mut self, delta: &str) -> Released {
        self.read.advance(delta);
        let mut held = self.graph().held(self.cursor, !self.include_stop);
        if let Some(history) = &mut self.history {
            held = held.max(history.hold(delta, !self.include_stop));
        }
        self.held.push(delta, held)
    }

    /// Releases the text before the marker `word`, and goes to the region to which the marker leads. `through` is the
    /// delta up to the end of the marker.
    fn end_part(&mut self, through: &str, word: Word, part: Part) -> Step {
        let lead = self.graph().lead_of(word);
        self.follow(word.node, lead);
        if let Some(history) = &mut self.history {
            history.forget_loops();
        }
        let kept_in = (lead.marker != MarkerText::Removed).then(|| self.open());
        Step { part, released: self.cut(through, word), marker: Some(Passed { end: through.len(), word, kept_in }) }
    }

    /// Releases the text before `word`, a stop or marker. If `word` is a stop that stays in the output, releases `word`
    /// as well. `through` is the delta up to the end of `word`, which may have begun in the held text.
    fn cut(&mut self, through: &str, word: Word) -> Released {
        self.read.advance(through);
        let graph = self.set.graph();
        let cut = match graph.kind(word) {
            WordKind::Visible => 0,
            WordKind::Hidden if self.include_stop => 0,
            _ => graph.text(word).len(),
        };
        self.held.cut(through, cut)
    }

    /// Ends the stream at a stop that completed in `delta`. Releases the text before the stop, and also the stop itself
    /// if it stays in the output.
    #[cold]
    fn stop(&mut self, delta: &str, stop: Completion) -> Released {
        let (through, unused) = delta.split_at(stop.end);
        let (stop, released) = match stop.completed {
            Completed::Stop(word) | Completed::Marker(word) => (FiredStop::Word(word), self.cut(through, word)),
            Completed::Pattern(hit) => {
                let stays = self.include_stop || self.graph().patterns().is_visible(hit.pattern);
                let sequence = self.match_text(through, hit, stays);
                self.read.advance(through);
                let cut = if stays { 0 } else { sequence.len() };
                (FiredStop::Pattern { index: hit.pattern, sequence }, self.held.cut(through, cut))
            }
            Completed::Loop(Loop { period, sequence, .. }) => {
                self.read.advance(through);
                (FiredStop::Loop { period, sequence: sequence.into() }, self.held.cut(through, 0))
            }
        };
        self.fire(stop, unused);
        released
    }

    fn fire(&mut self, stop: FiredStop<Box<str>>, unused: &str) {
        let fired = Fired { stop, unused: unused.into() };
        self.fired = Some(Box::new(fired));
        self.history = None;
    }

    /// If a stop has fired, adds `text` to the text after the stop, which `unused` returns.
    pub(crate) fn add_unused(&mut self, text: &str) {
        if let Some(fired) = &mut self.fired {
            fired.unused = [&fired.unused, text].concat().into();
        }
    }

    /// Returns the text of the match `hit` of a pattern. `through` is the delta up to the end of the match. The match
    /// may have begun in an earlier delta. Then its beginning is in `history` if the match `stays` in the output, and
    /// otherwise in the held text. Call this before `through` is added to `self.read`.
    fn match_text(&self, through: &str, hit: PatternHit, stays: bool) -> Box<str> {
        let length = self.read.bytes + through.len() - hit.start.bytes;
        let patterns = self.graph().patterns();
        match length.checked_sub(through.len()) {
            None => through[through.len() - length..].into(),
            Some(_) if patterns.is_literal(hit.pattern) => (&*patterns.patterns[hit.pattern]).into(),
            Some(before) => {
                let kept = match (stays, &self.history) {
                    (true, Some(history)) => history.kept_text(),
                    _ => self.held.as_str(),
                };
                [&kept[kept.len() - before..], through].concat().into()
            }
        }
    }

    /// Releases the held text and `text`, which is not scanned. Forgets stops and markers that have begun.
    pub(crate) fn release_all(&mut self, text: &str) -> Released {
        if let Some(history) = &mut self.history {
            history.forget(text);
        }
        self.cursor = Cursor::start(self.cursor.node);
        self.read.advance(text);
        self.held.push(text, 0)
    }

    /// Ends the stream: releases the held text. A pattern that matches only at the end of the text (`END$`) may fire.
    pub(crate) fn end(&mut self) -> Released {
        if self.has_fired() {
            return Released::default();
        }
        let confirmed = self.history.as_ref().and_then(|history| history.confirmed_at_end(self.graph(), self.cursor));
        match confirmed {
            Some(completed) => self.stop("", Completion { completed, end: 0 }),
            None => self.release_all(""),
        }
    }

    /// Returns the marker of the current region whose text is `text`, if there is one.
    pub(crate) fn marker(&self, text: &str) -> Option<Word> {
        self.graph().marker(self.cursor.node, text)
    }

    /// Returns whether a marker completes if `text` comes next.
    pub(crate) fn completes_marker(&self, text: &str) -> bool {
        self.graph().completes_marker(self.cursor, text)
    }

    /// Returns the stop string that equals `special`, the text of a special token, if there is one and stops can fire
    /// in the current region.
    pub(crate) fn stop_of(&self, special: &str) -> Option<Word> {
        self.graph().stop(self.cursor.node, special)
    }

    /// Reads a special token. Its text, `special`, is not part of the stream's text. If it is a stop string and `armed`
    /// is true, the stop fires. If it is a marker, the stream goes to the region to which the marker leads. In both
    /// cases, returns the held text, which is released. Returns `None` for any other special token.
    pub(crate) fn take_special(&mut self, special: &str, armed: bool) -> Option<Released> {
        if self.has_fired() {
            return None;
        }
        if let Some(word) = self.stop_of(special).filter(|_| armed) {
            let released = self.release_all("");
            self.fire(FiredStop::Special(word), "");
            return Some(released);
        }
        let marker = self.marker(special)?;
        let released = self.release_all("");
        self.follow(marker.node, self.graph().lead_of(marker));
        Some(released)
    }
}
