use super::native::Native;
use super::options::TokenOptions;
use super::stream::Finish;
use crate::stop_match::StopMatch;
use crate::stop_scanner::StopScanner;
use crate::vocabulary::{UnknownToken, Vocabulary};

/// Scans one stream of token ids: [`feed`](TokenScanner::feed) returns the text that is safe to emit,
/// [`finish`](TokenScanner::finish) says why the stream ended.
///
/// The text is that of all tokens decoded at once. If one token brings several ends, the first of these is reported: a
/// stop string, a stop token, an end-of-text token, the last token that is wanted.
///
/// ```
/// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("Once").text(" up E").text("ND").special("</s>").build()?;
/// let stops = StopSet::new(["END"])?;
/// let options = TokenOptions { eos_token_ids: vec![3], max_tokens: Some(100), ..TokenOptions::default() };
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options)?;
/// let mut text = String::new();
/// for id in [0, 1, 2, 3] {
///     text += scanner.feed(id)?;
///     if scanner.finish().is_some() {
///         break;
///     }
/// }
/// assert_eq!(text, "Once up ");
/// assert_eq!(scanner.finish(), Some(Finish::StopSequence));
/// assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenScanner(Native<StopScanner>);

impl TokenScanner {
    /// A scanner at the start of a stream, whose text `scanner` scans.
    ///
    /// # Errors
    /// When an id of the prompt is no token's. One that ends the stream need be none.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let options = TokenOptions { prompt_token_ids: vec![9], ..TokenOptions::default() };
    /// assert!(TokenScanner::new(&vocabulary, scanner, &options).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        vocabulary: &Vocabulary,
        scanner: StopScanner,
        options: &TokenOptions,
    ) -> Result<TokenScanner, UnknownToken> {
        Native::new(vocabulary, scanner, options).map(TokenScanner)
    }

    /// The text that is safe to emit now that `id` was read. Once the stream is over it is empty, and nothing changes.
    ///
    /// # Errors
    /// When no token has this id; the stream is then as before. An id that ends the stream need be no token's.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// assert_eq!(scanner.feed(0)?, "TH");
    /// assert_eq!(scanner.feed(1)?, "");
    /// assert_eq!(scanner.feed(1)?, "E");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn feed(&mut self, id: u32) -> Result<&str, UnknownToken> {
        if self.0.pass(id) {
            return Ok(self.0.text(id));
        }
        self.0.feed(id)?;
        Ok(self.0.stream.out())
    }

    /// The rest of the text, when the stream ends for another reason: half a character as U+FFFD, and what is held.
    ///
    /// ```
    /// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// assert_eq!(scanner.feed(1)?, "");
    /// assert_eq!(scanner.close(), "E");
    /// assert_eq!(scanner.finish(), Some(Finish::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&mut self) -> &str {
        self.0.close();
        self.0.stream.out()
    }

    /// Goes back to the start of the stream, after the prompt.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(1)?;
    /// scanner.reset();
    /// assert_eq!((scanner.held(), scanner.tokens_seen()), ("", 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// Why the stream is over, as soon as it is.
    ///
    /// ```
    /// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let options = TokenOptions { max_tokens: Some(1), ..TokenOptions::default() };
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &options)?;
    /// assert_eq!(scanner.feed(1)?, "E");
    /// assert_eq!(scanner.finish(), Some(Finish::Length));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(&self) -> Option<Finish> {
        self.0.stream.finish
    }

    /// The stop that fired.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// for id in [0, 1, 2] {
    ///     scanner.feed(id)?;
    /// }
    /// assert_eq!(scanner.stop_match().unwrap().offset(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.0.stream.reader.stop_match()
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(1)?;
    /// assert_eq!(scanner.held(), "E");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> &str {
        self.0.stream.reader.held()
    }

    /// How many tokens were fed, for usage.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.tokens_seen(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_seen(&self) -> usize {
        self.0.stream.ledger.seen
    }

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("TH").text("E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// for id in [0, 1, 2] {
    ///     scanner.feed(id)?;
    /// }
    /// assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (3, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_kept(&self) -> usize {
        self.0.stream.ledger.kept
    }
}
