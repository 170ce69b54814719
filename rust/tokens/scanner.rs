use super::decoder::Decoder;
use super::ends::Ends;
use super::options::TokenOptions;
use super::stream::{Finish, Limits, TokenStream};
use crate::stop_match::StopMatch;
use crate::stop_scanner::StopScanner;
use crate::vocabulary::{Kind, UnknownToken, Vocabulary};

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
pub struct TokenScanner {
    vocabulary: Vocabulary,
    skip_special: bool,
    /// The state after the prompt.
    pub(crate) start: Decoder,
    pub(crate) decoder: Decoder,
    pub(crate) stream: TokenStream,
}

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
        let limits = Limits {
            ends: Ends::new(&options.stop_token_ids, &options.eos_token_ids),
            min_tokens: options.min_tokens,
            max_tokens: options.max_tokens.unwrap_or(usize::MAX),
        };
        let stream = TokenStream::new(scanner, limits);
        let mut scanner = TokenScanner::from_stream(vocabulary, stream, options.skip_special_tokens);
        for &id in &options.prompt_token_ids {
            scanner.read_prompt(id)?;
        }
        Ok(scanner)
    }

    pub(crate) fn from_stream(vocabulary: &Vocabulary, stream: TokenStream, skip_special: bool) -> TokenScanner {
        let start = Decoder::new(vocabulary);
        TokenScanner { vocabulary: vocabulary.clone(), skip_special, decoder: start.clone(), start, stream }
    }

    /// Reads a token of what the stream continues, before any of its own.
    pub(crate) fn read_prompt(&mut self, id: u32) -> Result<(), UnknownToken> {
        let kind = self.vocabulary.kind(id).ok_or(UnknownToken(id))?;
        let skipped = self.skip_special && kind.has(Kind::SPECIAL);
        self.start.read(&self.vocabulary, (id, kind), skipped, 0, &mut |_, _| ());
        self.start.end_prompt();
        self.decoder = self.start.clone();
        Ok(())
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
        if self.is_plain(id) && self.stream.scanner.stream.pass_plain(self.vocabulary.text(id)) {
            self.stream.ledger.pass(1);
            return Ok(self.vocabulary.text(id));
        }
        self.read(id)
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
        self.stream.begin();
        self.flush(Finish::Closed, self.stream.was_armed());
        self.stream.out()
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
        self.decoder = self.start.clone();
        self.stream.reset();
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
        self.stream.finish
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
        self.stream.scanner.stop_match()
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
        self.stream.scanner.held()
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
        self.stream.ledger.seen
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
        self.stream.ledger.kept
    }

    #[cfg(feature = "python")]
    pub(crate) fn skips_special(&self) -> bool {
        self.skip_special
    }

    #[cfg(feature = "python")]
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Whether `id` is only its text here, and not the last that is wanted.
    #[inline]
    fn is_plain(&self, id: u32) -> bool {
        let plain = self.vocabulary.kind(id).is_some_and(Kind::is_plain);
        let last = self.stream.number() >= self.stream.limits.max_tokens;
        plain && !last && self.is_idle() && !self.stream.limits.ends.contains(id)
    }

    /// Whether nothing is begun: no character, no stop, no end.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.decoder.is_idle() && self.stream.is_idle()
    }

    fn read(&mut self, id: u32) -> Result<&str, UnknownToken> {
        self.stream.begin();
        if self.stream.is_over() {
            return Ok("");
        }
        if self.stream.ends_at(id) {
            self.read_end(id);
            return Ok(self.stream.out());
        }
        let kind = self.vocabulary.kind(id).ok_or(UnknownToken(id))?;
        let armed = self.stream.is_armed();
        self.read_token(id, kind, armed);
        if self.stream.count() {
            self.flush(Finish::Length, armed);
        }
        Ok(self.stream.out())
    }

    fn read_token(&mut self, id: u32, kind: Kind, armed: bool) {
        let number = self.stream.number();
        let skipped = self.skip_special && kind.has(Kind::SPECIAL);
        let stream = &mut self.stream;
        let mut sink = |text: &str, token| stream.read(text, token, armed);
        self.decoder.read(&self.vocabulary, (id, kind), skipped, number, &mut sink);
        if skipped {
            stream.read_marker(self.vocabulary.text(id));
        }
    }

    /// Reads a token that ends the stream. A stop that its text completes ends it first; without text it completes none.
    fn read_end(&mut self, id: u32) {
        if let Some(kind) = self.vocabulary.kind(id)
            && !(self.skip_special && kind.has(Kind::SPECIAL))
        {
            let mut with_token = self.clone();
            with_token.read_token(id, kind, true);
            with_token.flush(Finish::Closed, true);
            if with_token.finish() == Some(Finish::StopSequence) {
                *self = with_token;
            }
        }
        self.flush(self.stream.end_of(id), true);
        self.stream.ledger.seen += 1;
    }

    fn flush(&mut self, finish: Finish, armed: bool) {
        let stream = &mut self.stream;
        self.decoder.flush(self.vocabulary.strays(), &mut |text, token| stream.read(text, token, armed));
        stream.end(finish);
    }
}
