use std::error::Error;
use std::fmt;

/// Why a [`Vocabulary`](crate::Vocabulary) cannot be made; its text names what is wrong.
///
/// ```
/// use stopscan::{Strays, Vocabulary, VocabularyError};
///
/// let error = Vocabulary::builder().strays(Strays::Bytes).text(b"\xFF").build().unwrap_err();
/// assert_eq!(error, VocabularyError::NoUtf8(0));
/// assert_eq!(error.to_string(), "token 0 is no UTF-8, and only a byte token may be none");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The token with this id is not valid UTF-8, although the vocabulary spells characters with byte tokens.
    NoUtf8(u32),
    /// The tokens have 4 GiB of text or more.
    TooLong,
    /// There is no memory for the vocabulary.
    NoMemory,
    /// The text is not a `tokenizer.json`. The string says what is wrong, and where.
    NoTokenizer(String),
    /// The text of a stream cannot be made from the bytes of single ids; which decoder it is that makes it otherwise.
    NotNative(String),
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VocabularyError::NoUtf8(id) => write!(f, "token {id} is no UTF-8, and only a byte token may be none"),
            VocabularyError::TooLong => write!(f, "the tokens have 4 GiB of text or more"),
            VocabularyError::NoMemory => write!(f, "there is no memory for the vocabulary"),
            VocabularyError::NoTokenizer(what) => write!(f, "no tokenizer.json: {what}"),
            VocabularyError::NotNative(decoder) => {
                write!(f, "the text of a stream is not that of single tokens: the decoder is {decoder}")
            }
        }
    }
}

impl Error for VocabularyError {}

/// The error for an id that no token has.
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
