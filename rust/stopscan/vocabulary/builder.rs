use std::sync::{Arc, OnceLock};

use super::byte_level::Spelling;
use super::{Strays, Table, TokenKind, Vocabulary, VocabularyError};
use crate::room;

/// Collects the tokens of a [`Vocabulary`], in the order of their ids.
///
/// ```
/// use stopscan::{Strays, Vocabulary};
///
/// // SentencePiece with byte fallback, as Llama 2 has it.
/// let llama = Vocabulary::builder()
///     .strays(Strays::Runs)
///     .strip_first_space(true)
///     .text("<unk>")
///     .special("<s>")
///     .byte(0xE4)
///     .text(" the")
///     .build()?;
/// assert_eq!(llama.bytes(3), Some(&b" the"[..]));
/// # Ok::<(), stopscan::VocabularyError>(())
/// ```
#[derive(Default)]
pub struct VocabularyBuilder {
    kinds: Vec<TokenKind>,
    bytes: Vec<u8>,
    /// Where the bytes of each token end in `bytes`.
    ends: Vec<usize>,
    firsts: Vec<(u32, Box<str>)>,
    spelling: Option<Spelling>,
    strays: Strays,
    special_ends_character: bool,
    strip_first_space: bool,
}

impl VocabularyBuilder {
    /// Adds the next token, given by the bytes of its text. In a byte-level vocabulary, they may begin or end inside a
    /// character.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert!(Vocabulary::builder().text(" the").text(b"\xE4\xBD").build().is_ok());
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn text(self, bytes: impl AsRef<[u8]>) -> VocabularyBuilder {
        self.token(bytes.as_ref(), TokenKind::default())
    }

    /// Adds the next token, spelled as in the files of byte-level vocabularies: each character of `text` spells one
    /// byte, as in GPT-2. If one of the characters spells no byte, the token is `text` itself.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// let vocabulary = Vocabulary::builder().spelled("Ġna").spelled("Ã¯").build()?;
    /// assert_eq!(vocabulary.bytes(0), Some(&b" na"[..]));
    /// assert_eq!(vocabulary.bytes(1), Some("ï".as_bytes()));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn spelled(mut self, text: &str) -> VocabularyBuilder {
        let bytes = self.spelling.get_or_insert_with(Spelling::new).bytes(text);
        self.token(&bytes, TokenKind::default())
    }

    /// Adds the next token, a byte token, which stands for one byte. Byte tokens spell the characters that have no
    /// token.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert_eq!(Vocabulary::builder().byte(0xE4).build()?.bytes(0), Some(&[0xE4][..]));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn byte(self, byte: u8) -> VocabularyBuilder {
        self.token(&[byte], TokenKind::BYTE)
    }

    /// Adds the next token, which is special: its text is left out if special tokens are skipped.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().special("</s>").build()?;
    /// assert_eq!(TokenDecoder::new(&vocabulary).feed(0), Ok(""));
    /// assert_eq!(TokenDecoder::new(&vocabulary).skip_special_tokens(false).feed(0), Ok("</s>"));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn special(self, bytes: impl AsRef<[u8]>) -> VocabularyBuilder {
        self.token(bytes.as_ref(), TokenKind::SPECIAL)
    }

    /// Adds an id without a token.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert!(!Vocabulary::builder().gap().build()?.contains(0));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn gap(self) -> VocabularyBuilder {
        self.token(&[], TokenKind::GAP)
    }

    /// Sets the text of the last added token for the case that a stream begins with it. This text is used as it is,
    /// even with `strip_first_space`.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text(" a b").at_start("ab").build()?;
    /// let mut decoder = TokenDecoder::new(&vocabulary);
    /// assert_eq!(decoder.feed(0), Ok("ab"));
    /// assert_eq!(decoder.feed(0), Ok(" a b"));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn at_start(mut self, text: impl Into<Box<str>>) -> VocabularyBuilder {
        if let Some(last) = self.kinds.len().checked_sub(1) {
            self.firsts.push((last as u32, text.into()));
        }
        self
    }

    /// Sets how bytes that are not valid UTF-8 are decoded: see [`Strays`].
    ///
    /// ```
    /// use stopscan::{Strays, Vocabulary};
    ///
    /// assert!(Vocabulary::builder().strays(Strays::Runs).text(b"\xFF").build().is_err()); // not valid UTF-8
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn strays(mut self, strays: Strays) -> VocabularyBuilder {
        self.strays = strays;
        self
    }

    /// Sets whether the leading space of a stream's first token is left out. A byte token for a space is not left out.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().strip_first_space(true).text(" a").build()?;
    /// let mut decoder = TokenDecoder::new(&vocabulary);
    /// assert_eq!(decoder.feed(0), Ok("a"));
    /// assert_eq!(decoder.feed(0), Ok(" a"));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn strip_first_space(mut self, strip: bool) -> VocabularyBuilder {
        self.strip_first_space = strip;
        self
    }

    /// Sets what happens to half a character before a special token that is skipped. If `ends` is true, the half
    /// becomes U+FFFD, as in Mistral's tekken. Otherwise a later token may complete the character.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().special_ends_character(true).text(b"\xC3").special("</s>").build()?;
    /// let mut decoder = TokenDecoder::new(&vocabulary);
    /// assert_eq!(decoder.feed(0), Ok(""));
    /// assert_eq!(decoder.feed(1), Ok("\u{FFFD}"));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn special_ends_character(mut self, ends: bool) -> VocabularyBuilder {
        self.special_ends_character = ends;
        self
    }

    /// Compiles the vocabulary.
    ///
    /// # Errors
    /// [`VocabularyError::NoUtf8`] if a token other than a byte token is not valid UTF-8. (With [`Strays::Parts`], this
    /// error does not occur.) [`VocabularyError::TooLong`] if the tokens have 4 GiB of text or more.
    /// [`VocabularyError::NoMemory`] if there is not enough memory.
    ///
    /// ```
    /// use stopscan::Vocabulary;
    ///
    /// assert_eq!(Vocabulary::builder().text("a").build()?.len(), 1);
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn build(mut self) -> Result<Vocabulary, VocabularyError> {
        if u32::try_from(self.bytes.len()).is_err() {
            return Err(VocabularyError::TooLong);
        }
        // The memory for all text twice (in `self.bytes` and in `text`), and for the kind and the start of each token.
        room::ask(2 * self.bytes.len() + 16 * self.kinds.len()).map_err(|_| VocabularyError::NoMemory)?;
        let mut text = String::with_capacity(self.bytes.len());
        let mut starts = Vec::with_capacity(self.kinds.len() + 1);
        let mut halves = Vec::new();
        let mut start = 0;
        for (id, (kind, &end)) in self.kinds.iter_mut().zip(&self.ends).enumerate() {
            starts.push(text.len() as u32);
            let bytes = &self.bytes[start..end];
            start = end;
            let in_runs = self.strays != Strays::Parts;
            match std::str::from_utf8(bytes) {
                _ if in_runs && kind.has(TokenKind::BYTE) => halves.push((id as u32, bytes.into())),
                Ok("") => {}
                Ok(whole) => {
                    text.push_str(whole);
                    *kind = kind.with(TokenKind::WHOLE);
                }
                Err(_) if in_runs => return Err(VocabularyError::NoUtf8(id as u32)),
                Err(_) => halves.push((id as u32, bytes.into())),
            }
            if self.strip_first_space && bytes.starts_with(b" ") && !kind.has(TokenKind::BYTE) {
                *kind = kind.with(TokenKind::FIRST);
            }
        }
        starts.push(text.len() as u32);
        for first in &self.firsts {
            self.kinds[first.0 as usize] = self.kinds[first.0 as usize].with(TokenKind::FIRST);
        }
        Ok(Vocabulary(Arc::new(Table {
            text: text.into(),
            starts: starts.into(),
            has_firsts: self.kinds.iter().any(|kind| kind.has(TokenKind::FIRST)),
            strips_first_space: self.strip_first_space,
            kinds: self.kinds.into(),
            halves: halves.into(),
            firsts: self.firsts.into(),
            strays: self.strays,
            special_ends_character: self.special_ends_character,
            special: OnceLock::new(),
        })))
    }

    pub(super) fn token(mut self, bytes: &[u8], kind: TokenKind) -> VocabularyBuilder {
        self.kinds.push(kind);
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        self
    }
}
