use super::decoded::Decoded;
use super::finish::{EndReason, Finish};
use super::native::{Decode, Native};
use super::options::{Limits, TokenOptions, TokenOptionsError};
use crate::stream::{Emit, Segmented, SettledText, Snapshot, SnapshotError, StopMatch, Stream, Text};
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

/// One stream of token ids, whose text a [`Stream`] reads. `E` is what it emits, `D` what decodes it.
///
/// A stop or a marker that is one special token counts although it is skipped. A marker that is spelled by a special
/// token and text together is refused then.
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
    /// When an id of the prompt is no token's (one that ends the stream need be none), or a marker could not be found.
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
        Ok(TokenStream::with_decoder(decoder, stream, Limits::new(options)))
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
        let passes = plain && stream.pass_plain(self.decoder.vocabulary.text(id));
        if passes {
            self.decoded.pass(1);
        }
        passes
    }

    fn read_many(&mut self, ids: &[u32]) -> Result<(), UnknownToken> {
        self.decoded.out.clear();
        ids.iter().try_for_each(|&id| self.read(id))
    }
}

impl<E: Emit, D: Decode> TokenStream<E, D> {
    pub(crate) fn with_decoder(decoder: D, stream: Stream<E>, limits: Limits) -> TokenStream<E, D> {
        TokenStream { decoder, decoded: Decoded::new(stream, limits) }
    }

    /// Reads a token; `safe` is then what is safe.
    pub(crate) fn step(&mut self, id: u32) -> Result<(), D::Error> {
        self.decoded.out.clear();
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
        if let Some(special) = special {
            decoded.read_special(&special, armed);
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
        self.decoded.out.clear();
        self.flush(Finish::Ended(reason), self.decoded.was_armed())
    }

    /// Counts a token that has no text, and ends the stream if there is a `reason`; `safe` is then what was held.
    #[cfg(feature = "python")]
    pub(crate) fn count(&mut self, reason: Option<EndReason>) -> Result<(), D::Error> {
        self.decoded.out.clear();
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

    #[cfg(feature = "python")]
    pub(crate) fn fork(&self) -> Result<TokenStream<E, D>, D::Error> {
        Ok(TokenStream { decoder: self.decoder.fork()?, decoded: self.decoded.clone() })
    }

    /// Whether nothing is begun: no character, no stop, no end.
    #[cfg(feature = "python")]
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.decoder.is_idle() && self.decoded.stream.is_idle() && !self.decoded.is_over()
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

impl TokenStream<Segmented> {
    /// How many tokens the emitted text of each region has, for a usage report. One that has a part in several counts in
    /// the first; markers, and what was cut with a stop, count in none.
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
