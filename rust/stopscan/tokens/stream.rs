//! A stream of token ids: reads each token, counts it, and decides whether it ends the stream.

use std::sync::Arc;

use super::decoder::{Decode, Native};
use super::ledger::{Ledger, NO_REGION, Tally};
use super::options::{EndReason, Finish, TokenOptions, TokenOptionsError, UnknownIds, end_bit};
use crate::set::{SegmentSet, Set, StopSet};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::stream::{Emit, Passed, SafeText, Segmented, Step, StopMatch, Stream, Text};
use crate::text::{Released, code_points};
use crate::vocabulary::{UnknownToken, Vocabulary};

/// Scans one stream of token ids: [`feed`](TokenStream::feed) returns the text that is safe to emit, and
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
/// assert_eq!((scanner.held(), scanner.tokens_seen(), scanner.tokens_kept()), ("EN", 3, 3));
/// assert_eq!(scanner.feed(4)?, "EN");
/// assert_eq!(scanner.finish(), Some(Finish::Ended(EndReason::Eos)));
/// scanner.reset();
/// assert_eq!(scanner.feed_many(&[0, 2, 3])?, "The E ");
/// assert_eq!(scanner.finish(), Some(Finish::StopSequence));
/// assert_eq!(scanner.stop_match().map(|found| found.offset()), Some(6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type TokenScanner = TokenStream<Text>;

/// Cuts one stream of token ids into segments: [`feed`](TokenStream::feed) returns the safe text in pieces, each with
/// its region, and [`finish`](TokenStream::finish) says why the stream ended.
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

/// One stream of token ids. `D` decodes the ids, and a [`Stream`] scans their text. `E` says what is emitted: text or
/// segments.
///
/// If special tokens are skipped, a stop or a marker that is one special token is still found. A marker that contains
/// both a special token and other text could not be found, so `new` refuses such a marker.
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

impl<D> TokenStream<Text, D> {
    /// The [`StopSet`] of the scanner.
    pub fn stops(&self) -> &StopSet {
        self.set()
    }
}

impl<D> TokenStream<Segmented, D> {
    /// The [`SegmentSet`] of the segmenter.
    pub fn segments(&self) -> &SegmentSet {
        self.set()
    }
}

impl<E: Emit> TokenStream<E> {
    /// Makes a new stream of tokens. `stream` scans the text of the tokens.
    ///
    /// # Errors
    /// If the vocabulary lacks an id of the prompt and `unknown_ids` refuses it, if a marker could never be found (see
    /// [`TokenStream`]), or if `min_tokens` is above `max_tokens`. The vocabulary may lack the ids that end the stream.
    pub fn new(
        vocabulary: &Vocabulary,
        stream: Stream<E>,
        options: &TokenOptions,
    ) -> Result<TokenStream<E>, TokenOptionsError> {
        let mut decoder = Native::new(vocabulary, options.skip_special_tokens);
        for &id in &options.prompt_token_ids {
            match decoder.decode_prompt(id) {
                Err(_) if options.unknown_ids == UnknownIds::Count => {} // a token without text
                decoded => decoded?,
            }
        }
        decoder.check(&stream)?;
        TokenStream::with_decoder(decoder, stream, options.clone())
    }

    /// Returns the text that is safe to emit after this token. After the end of the stream it returns nothing.
    ///
    /// # Errors
    /// If the vocabulary lacks the id. The stream then stays as it was.
    #[inline]
    pub fn feed(&mut self, id: u32) -> Result<E::Tokens<'_>, UnknownToken> {
        if !self.feed_plain(id) {
            return self.try_feed(id);
        }
        let text = self.decoder.vocabulary.text(id);
        Ok(E::released(&self.decoded.stream, text, Released::all_of(text)).into())
    }

    /// Returns the text that is safe to emit after all of these tokens. It is the same as the results of `feed` for
    /// each token, joined. Tokens after the end of the stream are not read.
    ///
    /// # Errors
    /// If the vocabulary lacks one of the ids. Then none of them was read.
    pub fn feed_many(&mut self, ids: &[u32]) -> Result<E::Tokens<'_>, UnknownToken> {
        if ids.iter().all(|&id| self.decoder.vocabulary.contains(id)) {
            return self.try_feed_many(ids);
        }
        let mut trial = self.clone();
        trial.try_feed_many(ids)?; // no error if each unknown id ends the stream, follows its end, or only counts
        *self = trial;
        Ok(self.safe())
    }

    /// Ends the stream for `reason`, and returns the rest of its text: the held text, and U+FFFD if half a character is
    /// pending. After the end of the stream it returns nothing.
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
        let _: Result<(), UnknownToken> = self.end(reason); // cannot fail, because no id is looked up
        self.safe()
    }

    /// Goes back to the start of the stream, after the prompt.
    pub fn reset(&mut self) {
        let _: Result<(), UnknownToken> = self.try_reset();
    }

    /// Returns the state of the stream, without the vocabulary and the set.
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
        match self.try_snapshot() {
            Ok(snapshot) => snapshot,
            Err(UnknownToken(_)) => unreachable!("a native decoder cannot fail"),
        }
    }

    /// Replaces the state of this stream by that of `snapshot`.
    ///
    /// # Errors
    /// If the snapshot was made with another set or other options. The stream then stays as it was.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.try_restore(snapshot).unwrap_or(Err(SnapshotError::OtherSet))
    }

    /// Fast path for a token that only has to be counted: no text is held, no stop or marker can begin in its text, and
    /// it does not end the stream. Counts the token and its text, which is safe to emit, and returns `true`. For any
    /// other token, changes nothing and returns `false`.
    #[inline]
    fn feed_plain(&mut self, id: u32) -> bool {
        let Decoded { options, end_bits, stream, ledger, finish, .. } = &mut self.decoded;
        let last = options.max_tokens.is_some_and(|max| ledger.seen + 1 >= max);
        let ends = *end_bits & end_bit(id) != 0 && options.is_end(id);
        let plain = !last && !ends && finish.is_none() && self.decoder.is_plain(id) && stream.history.is_none();
        let fed = plain && stream.feed_plain(self.decoder.vocabulary.text(id), true).is_some();
        if fed {
            self.skip_tokens(1);
        }
        fed
    }
}

enum TokenRole {
    Text,
    /// An EOS that does not end the stream, because it is among the first `min_tokens` tokens. It counts as a token,
    /// but has no text.
    PassedOver,
    End(Finish),
}

/// Methods for bindings to other languages, which may bring a decoder that is not [`Native`]. The methods with `try_`
/// return every error of that decoder. Their counterparts above, without `try_`, are only for [`Native`], which has
/// only one error: an unknown id.
#[doc(hidden)]
impl<E: Emit, D: Decode> TokenStream<E, D> {
    pub fn with_decoder(
        decoder: D,
        stream: Stream<E>,
        options: TokenOptions,
    ) -> Result<TokenStream<E, D>, TokenOptionsError> {
        Ok(TokenStream { decoder, decoded: Decoded::new(stream, options.for_stream()?) })
    }

    /// The stream that scans the text.
    pub fn text(&self) -> &Stream<E> {
        &self.decoded.stream
    }

    pub fn text_mut(&mut self) -> &mut Stream<E> {
        &mut self.decoded.stream
    }

    /// The options of the stream, with sorted ids and without the prompt.
    pub fn options(&self) -> &Arc<TokenOptions> {
        &self.decoded.options
    }

    /// Whether no half character, stop or marker is pending, and the stream has not ended.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.decoder.is_idle() && self.decoded.stream.is_idle() && self.finish().is_none()
    }

    /// Counts tokens that the caller did not pass to the stream, because no stop or marker begins in their text. Their
    /// text is counted by [`Stream::skip`].
    pub fn skip_tokens(&mut self, tokens: usize) {
        let Decoded { stream, ledger, .. } = &mut self.decoded;
        ledger.skip(stream.open().region, tokens);
    }

    pub fn try_feed(&mut self, id: u32) -> Result<E::Tokens<'_>, D::Error> {
        self.try_feed_many(&[id])
    }

    /// Does the same as `feed_many`, except after an error: the ids before the one that failed were then read. If an id
    /// may be unknown, feed a copy of the stream, and keep the copy only if there is no error.
    pub fn try_feed_many(&mut self, ids: &[u32]) -> Result<E::Tokens<'_>, D::Error> {
        self.decoded.begin();
        ids.iter().try_for_each(|&id| self.read_token(id))?;
        Ok(self.safe())
    }

    pub fn try_flush(&mut self, reason: EndReason) -> Result<E::Tokens<'_>, D::Error> {
        self.end(reason)?;
        Ok(self.safe())
    }

    pub fn try_reset(&mut self) -> Result<(), D::Error> {
        self.decoder.reset()?;
        self.decoded.reset();
        Ok(())
    }

    pub fn try_clone(&self) -> Result<TokenStream<E, D>, D::Error> {
        Ok(TokenStream { decoder: self.decoder.fork()?, decoded: self.decoded.clone() })
    }

    /// Reads a token. The text that becomes safe to emit is added to `Decoded::out`.
    fn read_token(&mut self, id: u32) -> Result<(), D::Error> {
        if self.decoded.is_over() {
            return Ok(());
        }
        let armed = self.decoded.is_armed();
        match self.decoded.role(id, armed) {
            TokenRole::End(finish) => return self.end_at_token(id, armed, finish),
            TokenRole::PassedOver => {}
            TokenRole::Text
                if self.decoded.options.unknown_ids == UnknownIds::Count && !self.decoder.contains(id)? => {}
            TokenRole::Text => self.decode_token(id, armed)?,
        }
        if self.decoded.count() {
            self.end_with(Finish::Ended(EndReason::Length), armed)?;
        }
        Ok(())
    }

    /// Decodes a token, and scans its text. A special token that is skipped has no text, but may be a stop or a marker.
    fn decode_token(&mut self, id: u32, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let (number, whole) = (decoded.number(), decoder.is_whole(id));
        let special = decoder.step(id, number, &mut |text, token| match whole && token == number {
            true => decoded.scan_token(text, token, armed),
            false => decoded.scan(text, token, armed),
        })?;
        match special {
            // The stop ends the text, so half a character before it becomes U+FFFD.
            Some(special) if armed && decoded.stream.stop_of(&special).is_some() => {
                let special = special.into_owned();
                decoder.tail(&mut |text, token| decoded.scan(text, token, armed))?;
                decoded.scan_special(&special, armed);
            }
            Some(special) => decoded.scan_special(&special, armed),
            None => {}
        }
        Ok(())
    }

    /// Ends the stream at a stop token or an EOS. The text of this token is neither scanned nor emitted. But if `armed`
    /// is true and the text equals a stop string, this stop fires.
    fn end_at_token(&mut self, id: u32, armed: bool, finish: Finish) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let text = if armed { decoder.token_text(id)? } else { None };
        decoder.tail(&mut |text, token| decoded.scan(text, token, armed))?;
        if let Some(stop) = text.filter(|text| decoded.stream.stop_of(text).is_some()) {
            decoded.scan_special(&stop, armed);
        }
        decoded.end(finish);
        decoded.ledger.seen += 1;
        Ok(())
    }

    /// Ends the stream for a reason that is not a token. `safe` then returns the text that was held.
    fn end(&mut self, reason: EndReason) -> Result<(), D::Error> {
        self.decoded.begin();
        self.end_with(Finish::Ended(reason), self.decoded.was_armed())
    }

    fn end_with(&mut self, finish: Finish, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if !decoded.is_over() {
            decoder.tail(&mut |text, token| decoded.scan(text, token, armed))?;
            decoded.end(finish);
        }
        Ok(())
    }
}

impl<E: Emit, D> TokenStream<E, D> {
    /// The text that the last call of `feed` or `flush` made safe.
    fn safe(&self) -> E::Tokens<'_> {
        E::tokens(&self.decoded.stream, &self.decoded.out)
    }

    /// The reason why the stream ended. `None` while it goes on.
    pub fn finish(&self) -> Option<Finish> {
        self.decoded.finish
    }

    /// The stop that fired. The offset of the match counts all text of the stream, also the markers.
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.decoded.stream.stop_match()
    }

    /// The text that is withheld because it may still become a hidden stop, or a marker that is left out of the output.
    pub fn held(&self) -> &str {
        self.decoded.stream.held()
    }

    /// The text after the stop in the token that completed the stop.
    pub fn unused(&self) -> &str {
        self.decoded.stream.unused()
    }

    /// The set of the stream.
    pub fn set(&self) -> &Set<E> {
        self.decoded.stream.set()
    }

    /// The name of the current region: the one to which the next text belongs.
    pub fn region(&self) -> &str {
        self.decoded.stream.region()
    }

    /// How many tokens were read, up to the end of the stream. This is the count for a usage report.
    pub fn tokens_seen(&self) -> usize {
        self.decoded.ledger.seen
    }

    /// How many tokens to keep: all tokens up to the last one that has a part in the emitted text. Cut ids and logprobs
    /// to this length.
    pub fn tokens_kept(&self) -> usize {
        self.decoded.ledger.kept
    }

    /// The token count of each region, for a usage report. A token counts in the region of its last character. It does
    /// not count if it completes a marker, ends the stream as a stop token or EOS, or is wholly cut off by a stop.
    pub fn tokens_in(&self) -> impl Iterator<Item = (&str, usize)> {
        let Ledger { tally, kept, .. } = &self.decoded.ledger;
        let counts = tally.as_ref().map_or(std::slice::from_ref(kept), |tally| &tally.counts);
        self.decoded.stream.graph().regions().zip(counts.iter().copied())
    }
}

/// A stream of tokens without its decoder: scans the decoded text, collects the text that is safe, and counts tokens.
#[derive(Debug)]
pub(crate) struct Decoded<E: Emit> {
    pub(crate) options: Arc<TokenOptions>,
    pub(crate) end_bits: u64,
    pub(crate) stream: Stream<E>,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// Whether the token being read completes a marker with its last character.
    pub(crate) marker_ends: bool,
    /// The text that became safe to emit in the last call of `feed` or `flush`. The fast path `feed_plain` does not use
    /// it.
    pub(crate) out: E::Safe,
}

/// Returns where the last character of `text` begins, in bytes.
fn last_character(text: &str) -> usize {
    text.char_indices().next_back().map_or(0, |(at, _)| at)
}

impl<E: Emit> Clone for Decoded<E> {
    fn clone(&self) -> Decoded<E> {
        Decoded {
            options: self.options.clone(),
            stream: self.stream.clone(),
            ledger: self.ledger.clone(),
            out: self.out.clone(),
            ..*self
        }
    }
}

impl<E: Emit> Decoded<E> {
    fn new(stream: Stream<E>, options: Arc<TokenOptions>) -> Decoded<E> {
        let end_bits = options.end_bits();
        let (ledger, out) = (Ledger::default(), E::Safe::default());
        let mut decoded = Decoded { options, end_bits, stream, ledger, finish: None, marker_ends: false, out };
        decoded.reset();
        decoded
    }

    fn reset(&mut self) {
        self.stream.reset();
        let regions = self.stream.graph().regions().count();
        self.ledger = Ledger::new((!E::MARKERS_STAY || regions > 1).then(|| Tally::new(regions)));
        self.marker_ends = false;
        self.finish = (self.options.max_tokens == Some(0)).then_some(Finish::Ended(EndReason::Length));
        self.out = E::Safe::default();
    }

    /// Called first in `feed` and `flush`: clears the output of the previous call.
    fn begin(&mut self) {
        self.out.clear();
        self.stream.begin();
        self.ledger.begin();
    }

    fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// The number of the next token.
    fn number(&self) -> usize {
        self.ledger.seen + 1
    }

    /// Whether a stop may fire in the next token. No stop fires in the first `min_tokens` tokens.
    fn is_armed(&self) -> bool {
        self.ledger.seen >= self.options.min_tokens
    }

    /// Whether a stop could fire in the token that was read last, which `ledger.seen` already counts.
    fn was_armed(&self) -> bool {
        self.ledger.seen > self.options.min_tokens
    }

    /// Returns the role of the token `id`: its text is read, it ends the stream, or it is an EOS that is passed over.
    /// If `armed` is false, stop tokens do not end the stream.
    fn role(&self, id: u32, armed: bool) -> TokenRole {
        let options = &*self.options;
        if self.end_bits & end_bit(id) == 0 {
            TokenRole::Text
        } else if armed && options.stop_token_ids.binary_search(&id).is_ok() {
            TokenRole::End(Finish::StopToken(id))
        } else if options.eos_token_ids.binary_search(&id).is_err() {
            TokenRole::Text
        } else if armed || options.eos_ends_early {
            TokenRole::End(Finish::Ended(EndReason::Eos))
        } else {
            TokenRole::PassedOver
        }
    }

    /// Scans a piece of the decoded text. `token` is the position of the last token with a part in the piece. If a stop
    /// has fired in an earlier piece, adds this piece to the text after the stop.
    fn scan(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return self.stream.add_unused(text);
        }
        self.ledger.read(code_points(text), token);
        if self.ledger.tally.is_some() {
            // The token counts in the region of its last character, so this character is scanned separately. If a
            // marker ends with it, the token counts in no region.
            let (before, last) = text.split_at(last_character(text));
            self.advance(before, armed);
            if self.stream.has_fired() {
                self.stream.add_unused(last);
                self.marker_ends = false; // the stop came after any marker that an earlier piece of the token completed
            } else {
                let marker = self.stream.completes_marker(last);
                self.advance(last, armed);
                self.marker_ends = marker && !self.stream.has_fired();
            }
        } else {
            self.advance(text, armed);
        }
        self.note_stop();
    }

    /// Scans `text` from marker to marker, and emits the text that is safe.
    fn advance(&mut self, mut text: &str, armed: bool) {
        loop {
            let step = self.stream.step(text, armed);
            match self.emit(step, text) {
                Some(end) => text = &text[end..],
                None => return,
            }
        }
    }

    /// Emits the text that `step` released. If the step ended at a marker that stays in the output, also emits this
    /// marker. Returns where the marker ends in `text`, or `None` if the step did not end at a marker.
    fn emit(&mut self, step: Step, text: &str) -> Option<usize> {
        let Decoded { stream, ledger, out, .. } = self;
        let mut emit = |part, text: &str| {
            ledger.emit(code_points(text));
            out.push(part, text);
        };
        emit(step.part, stream.held.text(step.released, text));
        let Passed { end, word, kept_in } = step.marker?;
        let marker = stream.graph().text(word);
        match kept_in {
            Some(part) => emit(part, marker),
            None => ledger.settle(code_points(marker)),
        }
        Some(end)
    }

    /// Scans the whole text of a token. If that text is a marker, no stop fires inside it.
    fn scan_token(&mut self, text: &str, token: usize, armed: bool) {
        match self.stream.marker(text) {
            Some(marker) if !self.is_over() => {
                self.ledger.read(code_points(text), token);
                let step = self.stream.step_marker(text, marker, armed);
                self.emit(step, text);
                self.marker_ends = !self.stream.has_fired();
                self.note_stop();
            }
            _ => self.scan(text, token, armed),
        }
    }

    /// Reads a special token. Its text, `special`, is left out of the stream's text. The token may still be a stop or a
    /// marker.
    fn scan_special(&mut self, special: &str, armed: bool) {
        if self.is_over() {
            return;
        }
        let (number, part) = (self.number(), self.stream.open());
        if let Some(released) = self.stream.take_special(special, armed) {
            self.emit(Step { part, released, marker: None }, "");
            self.note_stop();
            if !self.is_over() {
                self.marker_ends = true;
                self.ledger.mark(number);
            }
        }
    }

    /// Counts the token whose text was read. Returns whether it is the last token that `max_tokens` allows.
    fn count(&mut self) -> bool {
        let region = if std::mem::take(&mut self.marker_ends) { NO_REGION } else { self.stream.open().region };
        self.ledger.count(region);
        self.options.max_tokens.is_some_and(|max| self.ledger.seen >= max) && !self.is_over()
    }

    /// Ends the stream: emits the held text. A pattern such as `END$` may complete here, unless the reason is `Abort`.
    fn end(&mut self, finish: Finish) {
        if self.is_over() {
            return;
        }
        let part = self.stream.open();
        let released = match finish {
            Finish::Ended(EndReason::Abort) => self.stream.release_all(""),
            _ => self.stream.end(),
        };
        self.emit(Step { part, released, marker: None }, "");
        self.finish = Some(finish);
        self.note_stop();
    }

    fn note_stop(&mut self) {
        if self.stream.has_fired() {
            let looped = self.stream.stop_match().is_some_and(|found| found.period().is_some());
            self.finish = Some(if looped { Finish::Ended(EndReason::Repetition) } else { Finish::StopSequence });
        }
    }
}
