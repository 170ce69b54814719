//! A stream of token ids: reads each token, counts it, and decides whether it ends the stream.

use std::sync::Arc;

use super::decoder::{Decode, Native};
use super::ledger::{Ledger, NO_REGION, Tally};
use super::options::{EndReason, Finish, Limits, TokenOptions, TokenOptionsError, TokenRole, UnknownIds};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::stream::{Emit, Part, Segmented, Settled, SettledText, StopMatch, Stream, Text};
use crate::text::{Released, code_points};
use crate::vocabulary::{UnknownToken, Vocabulary};

/// Scans one stream of token ids: [`feed`](TokenStream::feed) returns the text that is safe to emit,
/// [`finish`](TokenStream::finish) says why the stream ended.
///
/// ```
/// use stopscan::{EndReason, Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("The E").text("astern").text(" EN").text("D").special("</s>").build()?;
/// let options = TokenOptions::default().eos_token_ids([4]);
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["END"])?), &options)?;
/// assert_eq!(scanner.feed(0)?, "The ");
/// assert_eq!(scanner.feed(1)?, "Eastern");
/// assert_eq!(scanner.feed(2)?, " ");
/// assert_eq!(scanner.feed(4)?, "EN");
/// assert_eq!(scanner.finish(), Some(Finish::Ended(EndReason::Eos)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type TokenScanner = TokenStream<Text>;

/// Cuts one stream of token ids into segments: [`feed`](TokenStream::feed) returns the text that is safe to emit with
/// its region, [`finish`](TokenStream::finish) says why the stream ended.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// let vocabulary = Vocabulary::builder().special("<think>").text("5?").text("</").text("think>").text("6").build()?;
/// let mut segmenter = TokenSegmenter::new(&vocabulary, Segmenter::new(&set), &TokenOptions::default())?;
/// let mut answer = String::new();
/// for id in [0, 1, 1, 2, 3, 4] {
///     for segment in segmenter.feed(id)? {
///         if segment.region == "answer" {
///             answer += &segment.text;
///         }
///     }
/// }
/// assert_eq!(answer, "6");
/// assert!(segmenter.tokens_in().eq([("answer", 1), ("reasoning", 3)])); // `</` is a token of the reasoning
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type TokenSegmenter = TokenStream<Segmented>;

/// One stream of token ids. A [`Stream`] reads the text of the ids. `E` says what is emitted, and `D` decodes.
///
/// A stop or a marker that is one special token counts, even where special tokens are skipped. Where special tokens are
/// skipped, a marker of a special token and text together is refused.
///
/// ```
/// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("Hi").special("<|im_end|>").build()?;
/// let scanner = StopScanner::new(&StopSet::new(["<|im_end|>"])?);
/// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
/// assert_eq!(scanner.feed(0)?, "Hi");
/// assert_eq!(scanner.feed(1)?, "");
/// assert_eq!(scanner.stop_match().unwrap().offset(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokenStream<E: Emit, D = Native> {
    pub(crate) decoder: D,
    pub(crate) decoded: Decoded<E>,
}

impl<E: Emit, D: Clone> Clone for TokenStream<E, D> {
    fn clone(&self) -> TokenStream<E, D> {
        TokenStream { decoder: self.decoder.clone(), decoded: self.decoded.clone() }
    }
}

impl<E: Emit> TokenStream<E> {
    /// Makes the start of a stream. `stream` scans its text.
    ///
    /// # Errors
    /// If the vocabulary lacks an id of the prompt, or if a marker could never be found. The vocabulary need not have the
    /// ids that end the stream.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("a").special("<|open|>").build()?;
    /// let set = StopSet::builder().stop(["END"]).protect([("<|open|>think", "end")]).build()?;
    /// let error = TokenScanner::new(&vocabulary, StopScanner::new(&set), &TokenOptions::default()).unwrap_err();
    /// assert!(error.to_string().starts_with("marker \"<|open|>think\" has a special token in it"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        vocabulary: &Vocabulary,
        stream: Stream<E>,
        options: &TokenOptions,
    ) -> Result<TokenStream<E>, TokenOptionsError> {
        let decoder = options.decoder(vocabulary)?;
        decoder.check(&stream)?;
        Ok(TokenStream::with_decoder(decoder, stream, Limits::new(options)?))
    }

    /// Returns the text that is safe to emit after this token. After the end of the stream it returns nothing.
    ///
    /// # Errors
    /// If the vocabulary lacks the id. The stream is then as before.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// assert_eq!(scanner.feed(0), Ok("The "));
    /// assert!(scanner.feed(2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn feed(&mut self, id: u32) -> Result<E::Tokens<'_>, UnknownToken> {
        if self.pass(id) {
            return Ok(E::token(&self.decoded.stream, self.decoder.vocabulary.text(id)));
        }
        self.step(id)?;
        Ok(self.safe())
    }

    /// Returns the text that is safe to emit after all of these tokens: the results of `feed` for each, joined. Tokens
    /// after the end of the stream are not read.
    ///
    /// # Errors
    /// If the vocabulary lacks one of the ids. Then none of them was read.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text("astern").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// assert_eq!(scanner.feed_many(&[0, 1]), Ok("The Eastern"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn feed_many(&mut self, ids: &[u32]) -> Result<E::Tokens<'_>, UnknownToken> {
        let unknown = |id: &&u32| !self.decoder.vocabulary.contains(**id);
        if ids.iter().any(|id| unknown(&id)) {
            let mut trial = self.clone();
            trial.read_many(ids)?; // an id that ends the stream may be unknown
            *self = trial;
        } else {
            self.read_many(ids)?;
        }
        Ok(self.safe())
    }

    /// Ends the stream for `reason`, and returns the rest of its text: half a character as U+FFFD, and the held text.
    /// After the end of the stream it returns nothing.
    ///
    /// ```
    /// use stopscan::{EndReason, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text(b"\xC3").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!(scanner.flush(EndReason::Length), "E\u{FFFD}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn flush(&mut self, reason: EndReason) -> E::Tokens<'_> {
        let _: Result<(), UnknownToken> = self.end(reason); // no id is looked up
        self.safe()
    }

    /// Goes back to the start of the stream, after the prompt.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// scanner.reset();
    /// assert_eq!((scanner.held(), scanner.tokens_seen()), ("", 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self) {
        let _: Result<(), UnknownToken> = self.restart();
    }

    /// Returns the state of the stream. The vocabulary and the set are not in it.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// let mut elsewhere = scanner.clone();
    /// scanner.feed(0)?;
    /// elsewhere.restore(&scanner.snapshot())?;
    /// elsewhere.feed(1)?;
    /// assert_eq!(elsewhere.stop_match().unwrap().offset(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        match self.to_snapshot() {
            Ok(snapshot) => snapshot,
            Err(UnknownToken(_)) => unreachable!("a vocabulary writes nothing"),
        }
    }

    /// Puts the state of `snapshot` into this stream.
    ///
    /// # Errors
    /// If the snapshot is of another set or of other options. The stream is then as before.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let snapshot = TokenScanner::new(&vocabulary, scanner.clone(), &TokenOptions::default())?.snapshot();
    /// let mut other = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default().max_tokens(9))?;
    /// assert!(other.restore(&snapshot).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.take_snapshot(snapshot).unwrap_or(Err(SnapshotError::OtherSet))
    }

    /// Fast path: if nothing is held and no stop can begin in the text of `id`, counts the token as read and returns
    /// `true`. Otherwise returns `false` and changes nothing.
    #[inline]
    pub(crate) fn pass(&mut self, id: u32) -> bool {
        let Decoded { limits, stream, ledger, finish, .. } = &mut self.decoded;
        let last = ledger.seen + 1 >= limits.max_tokens;
        let plain = !last && finish.is_none() && self.decoder.is_plain(id) && !limits.ends.contains(id);
        let passes =
            plain && stream.history.is_none() && stream.pass_plain(self.decoder.vocabulary.text(id), true).is_some();
        if passes {
            self.decoded.pass(1);
        }
        passes
    }

    fn read_many(&mut self, ids: &[u32]) -> Result<(), UnknownToken> {
        self.decoded.begin();
        ids.iter().try_for_each(|&id| self.read(id))
    }
}

impl<E: Emit, D: Decode> TokenStream<E, D> {
    /// The start of a stream whose tokens another decoder than [`Native`](crate::host::Native) reads.
    #[doc(hidden)]
    pub fn with_decoder(decoder: D, stream: Stream<E>, limits: Limits) -> TokenStream<E, D> {
        TokenStream { decoder, decoded: Decoded::new(stream, limits) }
    }

    /// Reads a token; `safe` is then what is safe.
    pub(crate) fn step(&mut self, id: u32) -> Result<(), D::Error> {
        self.decoded.begin();
        self.read(id)
    }

    /// Reads a token, and adds the text that is safe then to the safe text of the step.
    pub(crate) fn read(&mut self, id: u32) -> Result<(), D::Error> {
        if self.decoded.is_over() {
            return Ok(());
        }
        let armed = self.decoded.is_armed();
        match self.decoded.limits.role(id, armed) {
            TokenRole::End(finish) => return self.read_end(id, armed, finish),
            TokenRole::PassedOver => {}
            TokenRole::Text
                if self.decoded.limits.unknown_ids == UnknownIds::Count && !self.decoder.contains(id)? => {}
            TokenRole::Text => self.read_text(id, armed)?,
        }
        if self.decoded.count() {
            self.end_with(Finish::Ended(EndReason::Length), armed)?;
        }
        Ok(())
    }

    /// Reads the text of a token. A special token that is skipped has no text, but it may be a stop or a marker.
    fn read_text(&mut self, id: u32, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let (number, whole) = (decoded.number(), decoder.is_whole(id));
        let special = decoder.step(id, number, &mut |text, token| match whole && token == number {
            true => decoded.read_whole(text, token, armed),
            false => decoded.read(text, token, armed),
        })?;
        match special {
            // The text ends here, so that half a character before the stop is U+FFFD.
            Some(special) if armed && decoded.stream.stop_of(&special).is_some() => {
                let special = special.into_owned();
                decoder.tail(&mut |text, token| decoded.read(text, token, armed))?;
                decoded.read_special(&special, armed);
            }
            Some(special) => decoded.read_special(&special, armed),
            None => {}
        }
        Ok(())
    }

    /// Reads a token that ends the stream. Its text is neither scanned nor emitted. A stop fires at the token only if
    /// the stop is the whole text of the token.
    fn read_end(&mut self, id: u32, armed: bool, finish: Finish) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let text = if armed { decoder.token_text(id)? } else { None };
        decoder.tail(&mut |text, token| decoded.read(text, token, armed))?;
        if let Some(stop) = text.filter(|text| decoded.stream.stop_of(text).is_some()) {
            decoded.read_special(&stop, armed);
        }
        decoded.end(finish);
        decoded.ledger.seen += 1;
        Ok(())
    }

    /// Ends the stream for another reason than a token. `safe` is then the text that was held.
    pub(crate) fn end(&mut self, reason: EndReason) -> Result<(), D::Error> {
        self.decoded.begin();
        self.end_with(Finish::Ended(reason), self.decoded.was_armed())
    }

    fn end_with(&mut self, finish: Finish, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if !decoded.is_over() {
            decoder.tail(&mut |text, token| decoded.read(text, token, armed))?;
            decoded.end(finish);
        }
        Ok(())
    }

    pub(crate) fn restart(&mut self) -> Result<(), D::Error> {
        self.decoder.reset()?;
        self.decoded.reset();
        Ok(())
    }
}

impl<E: Emit, D> TokenStream<E, D> {
    /// The text that the last step made safe.
    pub(crate) fn safe(&self) -> E::Tokens<'_> {
        E::tokens(&self.decoded.stream, &self.decoded.out)
    }

    /// The reason for which the stream is over. `None` while it goes on.
    ///
    /// ```
    /// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("END").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.finish(), Some(Finish::StopSequence));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(&self) -> Option<Finish> {
        self.decoded.finish
    }

    /// The stop that fired. Its offset counts all the text, markers included.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The EN").text("D").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!(scanner.stop_match().unwrap().offset(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.decoded.stream.stop_match()
    }

    /// The text that is withheld because it may still become a hidden stop, or a marker that is taken out.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The EN").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.held(), "EN");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> &str {
        self.decoded.stream.held()
    }

    /// The name of the region that is open.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().special("<think>").build()?;
    /// let scanner = StopScanner::new(&StopSet::builder().protect([("<think>", "</think>")]).build()?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.region(), "<think>");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn region(&self) -> &str {
        self.decoded.stream.region()
    }

    /// The number of tokens that were fed, for a usage report.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("a").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.tokens_seen(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_seen(&self) -> usize {
        self.decoded.ledger.seen
    }

    /// The number of the last token that has a part in the emitted text. Cut ids and logprobs behind it.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_kept(&self) -> usize {
        self.decoded.ledger.kept
    }
}

impl<E: Emit, D> TokenStream<E, D> {
    /// How many tokens the text of each region has, for a usage report. A token counts in the region where its last
    /// character lies. Tokens with which a marker ends, tokens that end the stream, and tokens that a stop cuts count in
    /// no region.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</think>").text("6").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed_many(&[0, 1, 2])?;
    /// assert!(segmenter.tokens_in().eq([("reasoning", 1), ("answer", 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_in(&self) -> impl Iterator<Item = (&str, usize)> {
        let Ledger { tally, kept, .. } = &self.decoded.ledger;
        let counts = tally.as_ref().map_or(std::slice::from_ref(kept), |tally| &tally.counts);
        self.decoded.stream.graph().regions().zip(counts.iter().copied())
    }
}

/// The decoded text of a stream of tokens: scans it, collects the safe text of a step, and counts tokens.
#[derive(Debug)]
pub(crate) struct Decoded<E: Emit> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) stream: Stream<E>,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// Whether the token that is read ends with a marker.
    pub(crate) marker_ends: bool,
    /// The safe text of the last step.
    pub(crate) out: E::Safe,
}

/// Where the last character of `text` begins, in bytes.
fn last_character(text: &str) -> usize {
    text.char_indices().next_back().map_or(0, |(at, _)| at)
}

impl<E: Emit> Clone for Decoded<E> {
    fn clone(&self) -> Decoded<E> {
        Decoded {
            limits: self.limits.clone(),
            stream: self.stream.clone(),
            ledger: self.ledger.clone(),
            finish: self.finish,
            marker_ends: self.marker_ends,
            out: self.out.clone(),
        }
    }
}

impl<E: Emit> Decoded<E> {
    pub(super) fn new(stream: Stream<E>, limits: Limits) -> Decoded<E> {
        let (limits, ledger, out) = (Arc::new(limits), Ledger::default(), E::Safe::default());
        let mut decoded = Decoded { limits, stream, ledger, finish: None, marker_ends: false, out };
        decoded.reset();
        decoded
    }

    pub(super) fn reset(&mut self) {
        self.stream.reset();
        let regions = self.stream.graph().regions().count();
        self.ledger = Ledger::new((!E::MARKERS_STAY || regions > 1).then(|| Tally::new(regions)));
        self.marker_ends = false;
        self.finish = (self.limits.max_tokens == 0).then_some(Finish::Ended(EndReason::Length));
        self.out = E::Safe::default();
    }

    /// Begins a step: nothing is safe yet.
    pub(crate) fn begin(&mut self) {
        self.out.clear();
        self.stream.begin();
        self.ledger.begin();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// The number of the token that comes next.
    pub(super) fn number(&self) -> usize {
        self.ledger.seen + 1
    }

    /// Whether stops count in the text of the next token.
    pub(super) fn is_armed(&self) -> bool {
        self.ledger.seen >= self.limits.min_tokens
    }

    /// Whether stops counted in the text of the last token.
    pub(super) fn was_armed(&self) -> bool {
        self.ledger.seen > self.limits.min_tokens
    }

    /// Counts tokens that were read while nothing was held.
    #[inline]
    pub(crate) fn pass(&mut self, tokens: usize) {
        self.ledger.pass(self.stream.open().region, tokens);
    }

    /// Reads a piece of text. `token` is the last token that has a part in it. After a match nothing is read.
    pub(super) fn read(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return;
        }
        self.ledger.read(code_points(text), token);
        if self.ledger.tally.is_some() {
            // The region of the last character is asked for, and whether a marker ends with it.
            let (before, last) = text.split_at(last_character(text));
            self.settle(|stream, sink| stream.settle(before, armed, sink));
            let marker = !self.stream.has_fired() && self.stream.completes_marker(last);
            self.settle(|stream, sink| stream.settle(last, armed, sink));
            self.marker_ends = marker && !self.stream.has_fired();
        } else {
            self.settle(|stream, sink| stream.settle(text, armed, sink));
        }
        self.note_stop();
    }

    /// Reads the whole text of a token. A marker that is the whole text is one step: no stop completes inside it.
    pub(super) fn read_whole(&mut self, text: &str, token: usize, armed: bool) {
        match self.stream.marker(text) {
            Some(marker) if !self.is_over() => {
                self.ledger.read(code_points(text), token);
                self.settle(|stream, sink| stream.settle_marker(text, marker, armed, sink));
                self.marker_ends = !self.stream.has_fired();
                self.note_stop();
            }
            _ => self.read(text, token, armed),
        }
    }

    fn settle(&mut self, read: impl FnOnce(&mut Stream<E>, &mut dyn FnMut(Settled<'_>))) {
        let Decoded { stream, ledger, out, .. } = self;
        read(stream, &mut |settled| match settled {
            Settled::Text(part, text) => {
                ledger.emit(code_points(text));
                out.push(part, text);
            }
            Settled::Marker(length) => ledger.cut(length),
        });
    }

    /// Reads the next token, a special token without text. A stop or a marker counts all the same.
    pub(super) fn read_special(&mut self, special: &str, armed: bool) {
        if self.is_over() {
            return;
        }
        let (number, part) = (self.number(), self.stream.open());
        if let Some(released) = self.stream.pass_special(special, armed) {
            self.release(part, released);
            self.note_stop();
            if !self.is_over() {
                self.marker_ends = true;
                self.ledger.mark(number);
            }
        }
    }

    /// Counts the token whose text was read. Returns whether it is the last token that is wanted.
    pub(super) fn count(&mut self) -> bool {
        let region = if std::mem::take(&mut self.marker_ends) { NO_REGION } else { self.stream.open().region };
        self.ledger.count(region);
        self.ledger.seen >= self.limits.max_tokens && !self.is_over()
    }

    /// Ends the stream: emits the held text. The end may confirm a pattern, unless the stream was given up.
    pub(super) fn end(&mut self, finish: Finish) {
        if self.is_over() {
            return;
        }
        let part = self.stream.open();
        let released = match finish {
            Finish::Ended(EndReason::Abort) => self.stream.pass_over(""),
            _ => self.stream.end(),
        };
        self.release(part, released);
        self.finish = Some(finish);
        self.note_stop();
    }

    fn note_stop(&mut self) {
        if self.stream.has_fired() {
            let looped = self.stream.stop_match().is_some_and(|found| found.period().is_some());
            self.finish = Some(if looped { Finish::Ended(EndReason::Repetition) } else { Finish::StopSequence });
        }
    }

    /// Emits text that was held.
    fn release(&mut self, part: Part, released: Released) {
        let text = self.stream.held.text(released, "");
        self.ledger.emit(code_points(text));
        self.out.push(part, text);
    }
}
