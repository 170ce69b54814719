use std::error::Error;
use std::fmt;

/// Why a [`Vocabulary`](crate::Vocabulary) cannot be made.
///
/// ```
/// use stopscan::{Strays, Vocabulary, VocabularyError};
///
/// let error = Vocabulary::builder().strays(Strays::Bytes).text(b"\xFF").build().unwrap_err();
/// assert_eq!(error, VocabularyError::NoUtf8(0));
/// assert_eq!(error.to_string(), "token 0 is not valid UTF-8; only byte tokens may be invalid UTF-8");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The token with this id is not valid UTF-8, and is not a byte token. With `Strays::Parts`, this error does not
    /// occur.
    NoUtf8(u32),
    /// The tokens have 4 GiB of text or more.
    TooLong,
    /// There is not enough memory for the vocabulary.
    NoMemory,
    /// The text is not a valid `tokenizer.json`. The string says what is wrong.
    NoTokenizer(String),
    /// The tokenizer's decoder does more than join the bytes of the tokens, so stopscan cannot decode by itself. The
    /// string names the decoder.
    NotNative(String),
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VocabularyError::NoUtf8(id) => {
                write!(f, "token {id} is not valid UTF-8; only byte tokens may be invalid UTF-8")
            }
            VocabularyError::TooLong => write!(f, "the tokens have 4 GiB of text or more"),
            VocabularyError::NoMemory => write!(f, "not enough memory for the vocabulary"),
            VocabularyError::NoTokenizer(what) => write!(f, "not a tokenizer.json: {what}"),
            VocabularyError::NotNative(decoder) => {
                write!(f, "the tokenizer's decoder does not make text from the bytes of single tokens: {decoder}")
            }
        }
    }
}

impl Error for VocabularyError {}

/// The error for an id that the vocabulary lacks.
///
/// ```
/// use stopscan::{TokenDecoder, UnknownToken, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").build()?;
/// assert_eq!(TokenDecoder::new(&vocabulary).feed(7), Err(UnknownToken(7)));
/// # Ok::<(), stopscan::VocabularyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownToken(pub u32);

impl fmt::Display for UnknownToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token id {} is not in the vocabulary", self.0)
    }
}

impl Error for UnknownToken {}
