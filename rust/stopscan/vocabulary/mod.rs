//! Vocabularies: the bytes of each token id.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::automaton::{Automaton, Config, DENSE_LIMIT, ROOT, Words};

mod builder;
pub(crate) mod byte_level;
mod error;
#[cfg(feature = "serde")]
pub(crate) mod tokenizer_json;

pub use builder::VocabularyBuilder;
pub use error::{UnknownToken, VocabularyError};

/// How a decoder treats stray bytes: bytes that are not valid UTF-8.
///
/// ```
/// use stopscan::{Strays, TokenDecoder, Vocabulary};
///
/// for (strays, text) in [(Strays::Parts, "a\u{FFFD}"), (Strays::Runs, "a\u{FFFD}\u{FFFD}")] {
///     let vocabulary = Vocabulary::builder().strays(strays).text("a").byte(0xE4).byte(0xBD).build()?;
///     let mut decoder = TokenDecoder::new(&vocabulary);
///     let decoded: String = [0, 1, 2].iter().map(|&id| decoder.feed(id).unwrap().to_string()).collect();
///     assert_eq!(decoded + decoder.flush(), text);
/// }
/// # Ok::<(), stopscan::VocabularyError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strays {
    /// Joins the bytes of all tokens, and decodes them like `String::from_utf8_lossy`. The bytes of a character may
    /// come in several tokens. Half a character becomes one U+FFFD, and so does each byte that cannot be part of a
    /// character. Byte-level BPE and tiktoken decode in this way.
    #[default]
    Parts,
    /// If a run (byte tokens in a row) is not valid UTF-8, each byte of the run becomes one U+FFFD. The decoder
    /// `ByteFallback` of the tokenizers library decodes in this way.
    Runs,
    /// In a run (byte tokens in a row), each stray byte becomes one U+FFFD, and the rest of the run is decoded. The
    /// SentencePiece library decodes in this way.
    Bytes,
}

/// The bytes of each token id: immutable, cheap to clone, shared by any number of threads and scanners.
///
/// ```
/// use stopscan::{TokenDecoder, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("Hi ").text(b"\xe4\xbd").text(b"\xa0!").special("</s>").build()?;
/// assert_eq!(vocabulary.bytes(2), Some(&b"\xa0!"[..]));
/// let mut decoder = TokenDecoder::new(&vocabulary);
/// let mut text = String::new();
/// for id in [0, 1, 2, 3] {
///     text += decoder.feed(id)?;
/// }
/// assert_eq!(text, "Hi 你!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary(Arc<Table>);

struct Table {
    /// The joined texts of all tokens with the flag `WHOLE`. The text of id `i` is `text[starts[i]..starts[i + 1]]`.
    text: Box<str>,
    starts: Box<[u32]>,
    kinds: Box<[TokenKind]>,
    /// The bytes of the tokens that are not whole characters, in the order of their ids. Tokens without bytes are left
    /// out.
    halves: Box<[(u32, Box<[u8]>)]>,
    /// The ids of tokens that have a different text at the start of a stream, and this text. A token that only loses a
    /// leading space is not listed.
    firsts: Box<[(u32, Box<str>)]>,
    has_firsts: bool,
    strips_first_space: bool,
    strays: Strays,
    special_ends_character: bool,
    /// Finds special tokens in a text. Compiled at its first use.
    special: OnceLock<Automaton>,
}

/// The flags of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenKind(u8);

impl TokenKind {
    /// The text of the token is one or more whole characters.
    pub const WHOLE: TokenKind = TokenKind(1);
    /// The token is left out if special tokens are skipped.
    pub const SPECIAL: TokenKind = TokenKind(2);
    /// The token is one byte of a character. Byte tokens in a row form a run: see [`Strays`].
    pub const BYTE: TokenKind = TokenKind(4);
    /// At the start of a stream, the token has a different text.
    pub const FIRST: TokenKind = TokenKind(8);
    /// The id has no token.
    pub const GAP: TokenKind = TokenKind(16);

    /// Whether the text of the token is whole characters and the token is not special. (Special tokens may be skipped.)
    #[inline(always)]
    pub fn is_plain(self) -> bool {
        self.has(TokenKind::WHOLE) && !self.has(TokenKind::SPECIAL)
    }

    #[doc(hidden)]
    pub fn has(self, flag: TokenKind) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn with(self, flag: TokenKind) -> TokenKind {
        TokenKind(self.0 | flag.0)
    }
}

impl Vocabulary {
    /// Returns a builder, which takes the tokens in the order of their ids.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::builder().text("a").text("b").build()?;
    /// assert_eq!(vocabulary.bytes(1), Some(&b"b"[..]));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn builder() -> VocabularyBuilder {
        VocabularyBuilder::default()
    }

    /// Reads the vocabulary of a Hugging Face `tokenizer.json` from the text of that file.
    ///
    /// The file also describes a decoder. It must make text from the bytes of single ids, like the decoders of
    /// byte-level BPE and of SentencePiece.
    ///
    /// # Errors
    /// [`VocabularyError::NotNative`] for any other decoder, such as WordPiece's. [`VocabularyError::NoTokenizer`] if
    /// `json` is not a valid `tokenizer.json`.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::from_tokenizer_json(
    ///     r#"{"added_tokens": [{"id": 2, "content": "</s>", "special": true}],
    ///         "decoder": {"type": "ByteLevel"},
    ///         "model": {"type": "BPE", "vocab": {"Hi": 0, "Ġthere": 1}, "merges": []}}"#,
    /// )?;
    /// let mut decoder = TokenDecoder::new(&vocabulary);
    /// let text: String = [0, 1, 2].iter().map(|&id| decoder.feed(id).unwrap().to_string()).collect();
    /// assert_eq!(text, "Hi there");
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    #[cfg(feature = "serde")]
    pub fn from_tokenizer_json(json: &str) -> Result<Vocabulary, VocabularyError> {
        tokenizer_json::read(json.as_bytes(), false)
    }

    /// The number of ids, including ids without a token.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert_eq!(Vocabulary::builder().text("a").gap().text("b").build()?.len(), 3);
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn len(&self) -> usize {
        self.0.kinds.len()
    }

    /// Whether the vocabulary has no ids.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert!(Vocabulary::builder().build()?.is_empty());
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a token has this id.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::builder().text("a").gap().build()?;
    /// assert!(vocabulary.contains(0) && !vocabulary.contains(1) && !vocabulary.contains(2));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn contains(&self, id: u32) -> bool {
        self.kind(id).is_some()
    }

    /// The bytes of a token. `None` if the id has no token.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::builder().special("</s>").text(b"\xE4\xBD").build()?;
    /// assert_eq!(vocabulary.bytes(1), Some(&b"\xE4\xBD"[..]));
    /// assert_eq!(vocabulary.bytes(2), None);
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn bytes(&self, id: u32) -> Option<&[u8]> {
        let kind = self.kind(id)?;
        Some(if kind.has(TokenKind::WHOLE) { self.text(id).as_bytes() } else { self.half(id) })
    }

    #[inline]
    #[doc(hidden)]
    pub fn kind(&self, id: u32) -> Option<TokenKind> {
        self.0.kinds.get(id as usize).copied().filter(|kind| !kind.has(TokenKind::GAP))
    }

    /// The text of a token that is whole characters. For any other token, an empty string.
    #[inline(always)]
    pub fn text(&self, id: u32) -> &str {
        let table = &*self.0;
        match table.starts.get(id as usize..id as usize + 2) {
            Some(&[start, end]) => &table.text[start as usize..end as usize],
            _ => "",
        }
    }

    /// The bytes of a token that is not whole characters.
    pub(crate) fn half(&self, id: u32) -> &[u8] {
        lookup(&self.0.halves, id).map_or(&[], |bytes| bytes)
    }

    /// The bytes that a token with the flag `FIRST` has at the start of a stream.
    pub(crate) fn first(&self, id: u32) -> &[u8] {
        let bytes = self.bytes(id).unwrap_or_default();
        lookup(&self.0.firsts, id).map_or(bytes.strip_prefix(b" ").unwrap_or(bytes), |first| first.as_bytes())
    }

    /// Each id to which `VocabularyBuilder::at_start` gave a text for the start of a stream, with this text.
    #[doc(hidden)]
    pub fn firsts(&self) -> impl Iterator<Item = (u32, &str)> {
        self.0.firsts.iter().map(|(id, text)| (*id, &**text))
    }
    #[doc(hidden)]
    pub fn strips_first_space(&self) -> bool {
        self.0.strips_first_space
    }

    /// Whether some tokens have a different text at the start of a stream.
    pub(crate) fn has_firsts(&self) -> bool {
        self.0.has_firsts
    }

    /// Whether `text` contains the text of a special token, but is not itself the text of a special token.
    pub(crate) fn spells_with_special(&self, text: &str) -> bool {
        let automaton = self.0.special.get_or_init(|| {
            let special = |id: &u32| self.kind(*id).is_some_and(|kind| kind.has(TokenKind::SPECIAL));
            let texts = (0..self.len() as u32).filter(special).map(|id| self.text(id));
            let mut texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
            texts.sort_unstable();
            texts.dedup();
            let config = Config { holds_markers: false, prunes: true, dense_limit: DENSE_LIMIT };
            Automaton::new(Words::new(&texts, &[], [].into_iter()), &[], config).0
        });
        let is_one = automaton.words().iter().any(|special| special == text);
        !is_one && automaton.scan(&mut { ROOT }, text, true).is_some()
    }

    #[doc(hidden)]
    pub fn strays(&self) -> Strays {
        self.0.strays
    }

    /// Whether half a character before a skipped special token becomes U+FFFD. If not, a later token may complete the
    /// character.
    #[doc(hidden)]
    pub fn special_ends_character(&self) -> bool {
        self.0.special_ends_character
    }
}

fn lookup<T>(table: &[(u32, T)], id: u32) -> Option<&T> {
    let at = table.binary_search_by_key(&id, |entry| entry.0).ok()?;
    Some(&table[at].1)
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary").field("len", &self.len()).field("strays", &self.strays()).finish_non_exhaustive()
    }
}
