use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::snapshot::Fingerprint;
use crate::vocabulary::UnknownToken;

/// The options of a [`TokenScanner`](crate::TokenScanner) or [`TokenSegmenter`](crate::TokenSegmenter), except its
/// stops.
///
/// ```
/// use stopscan::TokenOptions;
///
/// let options = TokenOptions::default().eos_token_ids([2]).max_tokens(100);
/// assert_eq!((options.max_tokens, options.skip_special_tokens), (Some(100), true));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenOptions {
    /// Tokens that end the stream; their text is not emitted.
    pub stop_token_ids: Vec<u32>,
    /// Tokens with which the model ends its text. They end the stream, and their text is not emitted.
    pub eos_token_ids: Vec<u32>,
    /// The number of tokens at the start of the stream in which stops and stop tokens are ignored. A stop that begins
    /// in these tokens and completes later still fires. An EOS among these tokens has no text, and ends the stream only
    /// if `eos_ends_early` is true.
    pub min_tokens: usize,
    /// The number of tokens after which the stream ends. `None` means no limit.
    pub max_tokens: Option<usize>,
    /// What happens to an id that the vocabulary lacks.
    pub unknown_ids: UnknownIds,
    /// Whether an EOS among the first `min_tokens` tokens ends the stream. Set this if the engine also ends the
    /// sequence at this EOS.
    pub eos_ends_early: bool,
    /// Whether special tokens are left out of the text. A stop or a marker that is one special token is still found.
    pub skip_special_tokens: bool,
    /// The ids of the prompt, which the stream continues. After a prompt with text, the first token of the stream keeps
    /// its leading space. The stream may complete a character that begins at the end of the prompt.
    pub prompt_token_ids: Vec<u32>,
}

impl Default for TokenOptions {
    fn default() -> TokenOptions {
        TokenOptions {
            stop_token_ids: Vec::new(),
            eos_token_ids: Vec::new(),
            min_tokens: 0,
            max_tokens: None,
            unknown_ids: UnknownIds::Refuse,
            eos_ends_early: false,
            skip_special_tokens: true,
            prompt_token_ids: Vec::new(),
        }
    }
}

impl TokenOptions {
    /// Returns the options with these `stop_token_ids`.
    pub fn stop_token_ids(self, ids: impl Into<Vec<u32>>) -> TokenOptions {
        TokenOptions { stop_token_ids: ids.into(), ..self }
    }

    /// Returns the options with these `eos_token_ids`.
    pub fn eos_token_ids(self, ids: impl Into<Vec<u32>>) -> TokenOptions {
        TokenOptions { eos_token_ids: ids.into(), ..self }
    }

    /// Returns the options with this `min_tokens`.
    pub fn min_tokens(self, min_tokens: usize) -> TokenOptions {
        TokenOptions { min_tokens, ..self }
    }

    /// Returns the options with a limit of `max_tokens`.
    pub fn max_tokens(self, max_tokens: usize) -> TokenOptions {
        TokenOptions { max_tokens: Some(max_tokens), ..self }
    }

    /// Returns the options with this `unknown_ids`.
    pub fn unknown_ids(self, unknown_ids: UnknownIds) -> TokenOptions {
        TokenOptions { unknown_ids, ..self }
    }

    /// Returns the options with this `eos_ends_early`.
    pub fn eos_ends_early(self, eos_ends_early: bool) -> TokenOptions {
        TokenOptions { eos_ends_early, ..self }
    }

    /// Returns the options with this `skip_special_tokens`.
    pub fn skip_special_tokens(self, skip_special_tokens: bool) -> TokenOptions {
        TokenOptions { skip_special_tokens, ..self }
    }

    /// Returns the options with these `prompt_token_ids`.
    pub fn prompt_token_ids(self, ids: impl Into<Vec<u32>>) -> TokenOptions {
        TokenOptions { prompt_token_ids: ids.into(), ..self }
    }

    /// Returns the options in the form in which streams keep them: with sorted ids, and without the prompt, which only
    /// the decoder needs. Streams with equal options share one object. Returns an error if `min_tokens` is above
    /// `max_tokens`.
    pub(super) fn for_stream(mut self) -> Result<Arc<TokenOptions>, TokenOptionsError> {
        /// Options that streams share. There are at most `MOST`, so that the search for equal options stays fast.
        static SHARED: Mutex<Vec<Weak<TokenOptions>>> = Mutex::new(Vec::new());
        const MOST: usize = 64;

        let (min_tokens, max_tokens) = (self.min_tokens, self.max_tokens.unwrap_or(usize::MAX));
        if min_tokens > max_tokens {
            return Err(TokenOptionsError::MinAboveMax { min_tokens, max_tokens });
        }
        for ids in [&mut self.stop_token_ids, &mut self.eos_token_ids] {
            ids.sort_unstable();
            ids.dedup();
        }
        self.prompt_token_ids = Vec::new();
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(equal) = shared.iter().filter_map(Weak::upgrade).find(|options| **options == self) {
            return Ok(equal);
        }
        shared.retain(|options| options.strong_count() > 0);
        let options = Arc::new(self);
        if shared.len() < MOST {
            shared.push(Arc::downgrade(&options));
        }
        Ok(options)
    }

    /// Returns a filter of 64 bits for the ids that end a stream. An id ends the stream only if its bit, [`end_bit`],
    /// is set. If the bit is set, the id itself has to be looked up, because several ids share a bit.
    #[doc(hidden)]
    pub fn end_bits(&self) -> u64 {
        self.stop_token_ids.iter().chain(&self.eos_token_ids).fold(0, |bits, &id| bits | end_bit(id))
    }

    /// Whether `id` is a stop token or an EOS. The ids of the options must be sorted.
    #[doc(hidden)]
    pub fn is_end(&self, id: u32) -> bool {
        [&self.stop_token_ids, &self.eos_token_ids].iter().any(|ids| ids.binary_search(&id).is_ok())
    }

    pub(super) fn print(&self, print: &mut Fingerprint) {
        for ids in [&self.stop_token_ids, &self.eos_token_ids] {
            print.number(ids.len());
            ids.iter().for_each(|&id| print.number(id as usize));
        }
        print.number(self.min_tokens);
        print.number(self.max_tokens.unwrap_or(usize::MAX));
        print.number(usize::from(self.unknown_ids == UnknownIds::Count) * 2 + usize::from(self.eos_ends_early));
        print.number(self.skip_special_tokens.into());
    }
}

/// The bit that stands for an id in [`TokenOptions::end_bits`], the filter for the ids that end a stream.
#[inline(always)]
pub fn end_bit(id: u32) -> u64 {
    1 << (id % 64)
}

/// What happens to an id that the vocabulary lacks. A model may have more ids than its tokenizer.
///
/// ```
/// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, UnknownIds, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").build()?;
/// let options = TokenOptions::default().unknown_ids(UnknownIds::Count);
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["END"])?), &options)?;
/// assert_eq!(scanner.feed(7)?, "");
/// assert_eq!(scanner.tokens_seen(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnknownIds {
    /// `feed` returns an error for an unknown id, and the stream is as before.
    #[default]
    Refuse,
    /// The id counts as a token without text.
    Count,
}

/// Why a stream of tokens cannot begin with its options.
///
/// ```
/// use stopscan::{StopScanner, StopSet, TokenOptions, TokenOptionsError, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").build()?;
/// let scanner = StopScanner::new(&StopSet::new(["END"])?);
/// let error = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default().prompt_token_ids([9])).unwrap_err();
/// assert_eq!(error, TokenOptionsError::UnknownToken(9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenOptionsError {
    /// The prompt contains this id, but the vocabulary does not.
    UnknownToken(u32),
    /// This marker contains a special token and other text. It would never be found, because special tokens are
    /// skipped.
    SpelledMarker(String),
    /// `min_tokens` is larger than `max_tokens`.
    MinAboveMax {
        /// The number of tokens at the start of the stream in which stops are ignored.
        min_tokens: usize,
        /// The number of tokens after which the stream ends.
        max_tokens: usize,
    },
}

impl From<UnknownToken> for TokenOptionsError {
    fn from(UnknownToken(id): UnknownToken) -> TokenOptionsError {
        TokenOptionsError::UnknownToken(id)
    }
}

impl fmt::Display for TokenOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenOptionsError::UnknownToken(id) => write!(f, "prompt_token_ids: {}", UnknownToken(*id)),
            TokenOptionsError::SpelledMarker(marker) => {
                write!(f, "marker {marker:?} contains a special token, and special tokens are ")?;
                write!(f, "left out of the text: pass skip_special_tokens=False")
            }
            TokenOptionsError::MinAboveMax { min_tokens, max_tokens } => {
                write!(f, "min_tokens {min_tokens} is greater than max_tokens {max_tokens}")
            }
        }
    }
}

impl Error for TokenOptionsError {}

/// The reason why a stream of tokens ended.
///
/// ```
/// use stopscan::{EndReason, Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").special("</s>").build()?;
/// let options = TokenOptions::default().eos_token_ids([1]);
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["END"])?), &options)?;
/// scanner.feed(1)?;
/// assert_eq!(scanner.finish(), Some(Finish::Ended(EndReason::Eos)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// A stop string or a pattern completed; `stop_match` says which one. If a loop ended the stream, the reason is
    /// [`EndReason::Repetition`] instead.
    StopSequence,
    /// This token of `stop_token_ids` came.
    StopToken(u32),
    /// The stream ended for another reason.
    Ended(EndReason),
}

/// Why a stream ended, if no stop string, pattern or stop token ended it. Python's `stopscan.finish` gives these
/// reasons the same names.
///
/// ```
/// use stopscan::EndReason;
///
/// assert_eq!(EndReason::ToolCalls.name(), "tool_calls");
/// assert_eq!(EndReason::from_name("tool_calls"), Some(EndReason::ToolCalls));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The model ended the text.
    Eos,
    /// The limit of tokens was reached.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// A content filter cut off the rest of the text.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The model's turn pauses, and another request continues the turn.
    Pause,
    /// The stream was given up: the client left, or an error occurred. The text has not really ended then, so a pattern
    /// such as `END$`, which only the end of the text completes, does not fire.
    Abort,
    /// The model repeats itself.
    Repetition,
    /// An engine or API gave a reason that is not documented.
    Unknown,
}

impl EndReason {
    const NAMES: [(EndReason, &'static str); 9] = [
        (EndReason::Eos, "eos"),
        (EndReason::Length, "length"),
        (EndReason::ToolCalls, "tool_calls"),
        (EndReason::ContentFilter, "content_filter"),
        (EndReason::Refusal, "refusal"),
        (EndReason::Pause, "pause"),
        (EndReason::Abort, "abort"),
        (EndReason::Repetition, "repetition"),
        (EndReason::Unknown, "unknown"),
    ];

    /// The name of the reason.
    pub fn name(self) -> &'static str {
        EndReason::NAMES[self as usize].1
    }

    /// The reason with this name, if there is one.
    pub fn from_name(name: &str) -> Option<EndReason> {
        EndReason::NAMES.iter().find(|known| known.1 == name).map(|known| known.0)
    }

    #[doc(hidden)]
    pub fn from_number(number: usize) -> Option<EndReason> {
        EndReason::NAMES.get(number).map(|known| known.0)
    }
}
