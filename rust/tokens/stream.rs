use super::decoded::Decoded;
use super::finish::EndReason;
use super::native::Native;
use super::options::{Limits, TokenOptions, TokenOptionsError};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::stream::{Emit, Segmented, Stream, Text};
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
            plain && stream.more.is_none() && stream.pass_plain(self.decoder.vocabulary.text(id), true).is_some();
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
