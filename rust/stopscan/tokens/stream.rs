//! How a stream of tokens reads one, and how it ends.

use std::sync::Arc;

use super::decoder::{Decode, Native};
use super::ledger::{Ledger, Tally};
use super::options::{EndReason, Finish, Limits, TokenOptions, TokenOptionsError};
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
/// assert!(segmenter.tokens_in().eq([("answer", 1), ("reasoning", 2)]));
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
    /// The start of a stream, whose text `stream` reads.
    ///
    /// # Errors
    /// When no token has an id of the prompt, or when a marker could not be found. The ids that end the stream need no
    /// token.
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

    /// What is safe to emit now that the token was read; nothing once the stream is over.
    ///
    /// # Errors
    /// When no token has this id; the stream is then as before.
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

    /// What is safe to emit now that all of these tokens were read: what `feed` gives for each, joined. It is for steps
    /// that bring several tokens; those after the end of the stream are not read.
    ///
    /// # Errors
    /// When no token has one of these ids; none was read then.
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
            trial.read_many(ids)?; // one that ends the stream need be no token's
            *self = trial;
        } else {
            self.read_many(ids)?;
        }
        Ok(self.safe())
    }

    /// What is held, when the stream ends for another reason. Once the stream is over it is nothing.
    ///
    /// ```
    /// use stopscan::{EndReason, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text(b"\xC3").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!(scanner.close(EndReason::Length), "E\u{FFFD}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&mut self, reason: EndReason) -> E::Tokens<'_> {
        let _: Result<(), UnknownToken> = self.end(reason); // there is no token
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

    /// The state of the stream, without the vocabulary.
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

    /// Makes this stream the one that `snapshot` is of.
    ///
    /// # Errors
    /// When it is of another set or of other options; the stream is then as before.
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

    /// Reads `id` if it is only its text and nothing is held; returns whether it did.
    #[inline]
    pub(crate) fn pass(&mut self, id: u32) -> bool {
        let Decoded { limits, stream, ledger, finish, .. } = &mut self.decoded;
        let last = ledger.seen + 1 >= limits.max_tokens;
        let plain = !last && finish.is_none() && self.decoder.is_plain(id) && !limits.ends.contains(id);
        let passes =
            plain && stream.beside.is_none() && stream.pass_plain(self.decoder.vocabulary.text(id), true).is_some();
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

    /// Reads a token; what is safe then is added to what was.
    pub(crate) fn read(&mut self, id: u32) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if decoded.is_over() {
            return Ok(());
        }
        let (armed, number) = (decoded.is_armed(), decoded.number());
        if armed && decoded.limits.ends.contains(id) {
            return self.read_end(id);
        }
        let special = decoder.step(id, number, &mut |text, token| decoded.read(text, token, armed))?;
        match special {
            // The text ends here: what began a character is none.
            Some(special) if armed && decoded.stream.stop_of(&special).is_some() => {
                let special = special.into_owned();
                decoder.tail(None, number, &mut |text, token| decoded.read(text, token, armed))?;
                decoded.read_special(&special, armed);
            }
            Some(special) => decoded.read_special(&special, armed),
            None => {}
        }
        if decoded.count() {
            self.flush(Finish::Ended(EndReason::Length), armed)?;
        }
        Ok(())
    }

    /// Reads a token that ends the stream. A stop that it completes ends the stream first.
    fn read_end(&mut self, id: u32) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let mut with_token = decoded.clone();
        let special =
            decoder.tail(Some(id), decoded.number(), &mut |text, token| with_token.read(text, token, true))?;
        match special {
            Some(special) => with_token.read_special(&special, true),
            None => with_token.end(Finish::Ended(EndReason::Eos)),
        }
        if with_token.stream.has_fired() {
            self.decoded = with_token;
        }
        self.flush(self.decoded.end_of(id), true)?;
        self.decoded.ledger.seen += 1;
        Ok(())
    }

    /// Ends the stream for another reason; `safe` is then what was held.
    pub(crate) fn end(&mut self, reason: EndReason) -> Result<(), D::Error> {
        self.decoded.begin();
        self.flush(Finish::Ended(reason), self.decoded.was_armed())
    }

    /// Counts a token that has no text, and ends the stream if there is a `reason`; `safe` is then what was held.
    pub(crate) fn count_token(&mut self, reason: Option<EndReason>) -> Result<(), D::Error> {
        self.decoded.begin();
        if self.decoded.is_over() {
            return Ok(());
        }
        let armed = self.decoded.is_armed();
        let last = self.decoded.count();
        match reason.or(last.then_some(EndReason::Length)) {
            Some(reason) => self.flush(Finish::Ended(reason), armed),
            None => Ok(()),
        }
    }

    fn flush(&mut self, finish: Finish, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if !decoded.is_over() {
            decoder.tail(None, decoded.number(), &mut |text, token| decoded.read(text, token, armed))?;
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
    /// What was safe after the last step.
    pub(crate) fn safe(&self) -> E::Tokens<'_> {
        E::tokens(&self.decoded.stream, &self.decoded.out)
    }

    /// Why the stream is over, as soon as it is.
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

    /// The text that is withheld because it may still turn into a hidden stop, or into a marker that does not stay.
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

    /// How many tokens were fed, for usage.
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

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
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

impl<D> TokenStream<Segmented, D> {
    /// How many tokens the emitted text of each region has, for a usage report. A token with
    /// text of several regions counts in the first of these regions. Markers, and tokens that were cut with a stop, count
    /// in no region.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed_many(&[0, 1, 2])?;
    /// assert!(segmenter.tokens_in().eq([("reasoning", 1), ("answer", 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_in(&self) -> impl Iterator<Item = (&str, usize)> {
        let counts = self.decoded.ledger.tally.iter().flat_map(|tally| tally.counts.iter().copied());
        self.decoded.stream.graph().regions().zip(counts)
    }
}

/// The decoded text of a stream of tokens: it is read, what is safe comes out, and tokens are counted.
#[derive(Debug)]
pub(crate) struct Decoded<E: Emit> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) stream: Stream<E>,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// The safe text of the last step.
    pub(crate) out: E::Safe,
}

impl<E: Emit> Clone for Decoded<E> {
    fn clone(&self) -> Decoded<E> {
        Decoded {
            limits: self.limits.clone(),
            stream: self.stream.clone(),
            ledger: self.ledger.clone(),
            finish: self.finish,
            out: self.out.clone(),
        }
    }
}

impl<E: Emit> Decoded<E> {
    pub(super) fn new(stream: Stream<E>, limits: Limits) -> Decoded<E> {
        let (limits, ledger, out) = (Arc::new(limits), Ledger::default(), E::Safe::default());
        let mut decoded = Decoded { limits, stream, ledger, finish: None, out };
        decoded.reset();
        decoded
    }

    pub(super) fn reset(&mut self) {
        self.stream.reset();
        let tally = E::COUNTS_REGIONS.then(|| Tally::new(self.stream.graph().regions().count()));
        self.ledger = Ledger::new(tally);
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

    /// Whether they counted in the text of the last one.
    pub(super) fn was_armed(&self) -> bool {
        self.ledger.seen > self.limits.min_tokens
    }

    /// Counts tokens that were read while nothing was held.
    #[inline]
    pub(crate) fn pass(&mut self, tokens: usize) {
        self.ledger.pass(self.stream.open().region, tokens);
    }

    /// Reads a piece of text; `token` is the last that has a part in it. After a match nothing is read.
    pub(super) fn read(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return;
        }
        let Decoded { stream, ledger, out, .. } = self;
        ledger.read(code_points(text), token);
        stream.settle(text, armed, &mut |settled| match settled {
            Settled::Text(part, text) => {
                ledger.emit(part.region, code_points(text));
                out.push(part, text);
            }
            Settled::Marker(length) => ledger.cut(length),
        });
        self.note_stop();
    }

    /// Reads the next token, a special token without text: a stop or a marker counts all the same.
    pub(super) fn read_special(&mut self, special: &str, armed: bool) {
        if self.is_over() {
            return;
        }
        let (number, part) = (self.number(), self.stream.open());
        if let Some(released) = self.stream.pass_special(special, armed) {
            self.release(part, released);
            self.ledger.mark(number);
            self.note_stop();
        }
    }

    /// Counts the token whose text was read; returns whether it is the last that is wanted.
    pub(super) fn count(&mut self) -> bool {
        self.ledger.seen += 1;
        self.ledger.seen >= self.limits.max_tokens && !self.is_over()
    }

    /// Emits what is held, at the end of the stream, unless a stop came before. The end may confirm a match, unless the
    /// stream was given up.
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

    /// The end that the token `id` brings.
    pub(super) fn end_of(&self, id: u32) -> Finish {
        if self.limits.ends.is_stop(id) { Finish::StopToken(id) } else { Finish::Ended(EndReason::Eos) }
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
        self.ledger.emit(part.region, code_points(text));
        self.out.push(part, text);
    }
}
