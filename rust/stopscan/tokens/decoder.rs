use std::borrow::Cow;
use std::str;

use super::options::TokenOptionsError;
use crate::snapshot::{Reader, Writer};
use crate::stream::{Emit, Stream};
use crate::vocabulary::{Strays, TokenKind, UnknownToken, Vocabulary};

/// The replacement character: stands for bytes that are not valid UTF-8.
pub(crate) const REPLACEMENT: &str = "\u{FFFD}";

/// Decodes one stream of token ids. The returned texts, joined, are the text of all ids decoded at once.
///
/// If a token ends inside a character, the decoder withholds the first bytes of the character. Later tokens complete
/// the character, or show that nothing will. In the second case the bytes become U+FFFD. No other text is withheld.
///
/// ```
/// use stopscan::{TokenDecoder, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("Hi ").text(b"\xe4\xbd").text(b"\xa0!").build()?;
/// let mut decoder = TokenDecoder::new(&vocabulary);
/// assert_eq!(decoder.feed(0)?, "Hi ");
/// assert_eq!(decoder.feed(1)?, "");
/// assert_eq!(decoder.feed(2)?, "你!");
/// assert_eq!(decoder.feed(1)?, "");
/// assert_eq!(decoder.flush(), "\u{FFFD}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenDecoder {
    native: Native,
    text: String,
}

impl TokenDecoder {
    /// Makes a decoder at the start of a stream. It skips special tokens.
    pub fn new(vocabulary: &Vocabulary) -> TokenDecoder {
        TokenDecoder { native: Native::new(vocabulary, true), text: String::new() }
    }

    /// Sets whether special tokens are skipped. If not, their text is decoded like the text of any token.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("a").text(b"\xC3").special("</s>").build()?;
    /// let mut decoder = TokenDecoder::new(&vocabulary).skip_special_tokens(false);
    /// assert_eq!(decoder.feed(2), Ok("</s>"));
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn skip_special_tokens(mut self, skip: bool) -> TokenDecoder {
        self.native.skip_special = skip;
        self
    }

    /// Returns the text that `id` completes.
    ///
    /// # Errors
    /// If the vocabulary lacks the id. The decoder is then as before.
    ///
    /// ```
    /// use stopscan::{TokenDecoder, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("a").text(b"\xC3").special("</s>").build()?;
    /// let mut decoder = TokenDecoder::new(&vocabulary);
    /// assert_eq!(decoder.feed(1), Ok("")); // half a character
    /// assert!(decoder.feed(9).is_err());
    /// assert_eq!(decoder.feed(0), Ok("\u{FFFD}a")); // the character was not completed
    /// # Ok::<(), stopscan::VocabularyError>(())
    /// ```
    pub fn feed(&mut self, id: u32) -> Result<&str, UnknownToken> {
        self.text.clear();
        self.native.decode(id, 0, &mut |piece, _| self.text.push_str(piece))?;
        Ok(&self.text)
    }

    /// Ends the stream and returns the rest of its text: U+FFFD if half a character is pending.
    pub fn flush(&mut self) -> &str {
        self.text.clear();
        self.native.now.flush(self.native.vocabulary.strays(), &mut |piece, _| self.text.push_str(piece));
        &self.text
    }
}

/// A function that takes the pieces of the decoded text in order. With each piece comes the position of the last token
/// that has a part in it. Positions are counted from 1; 0 stands for the prompt.
pub trait Sink: FnMut(&str, usize) {}

impl<F: FnMut(&str, usize)> Sink for F {}

/// The decoding state of one stream, without the vocabulary: the bytes of half a character, and some flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoder {
    /// Half a character: the first `len` of these bytes. For each of them, `tokens` has the position of the token that
    /// brought it.
    pub(crate) bytes: [u8; 3],
    pub(crate) tokens: [u32; 3],
    pub(crate) len: u8,
    /// How many of the `len` bytes came with the prompt. If the stream does not complete the character, these bytes are
    /// not part of the stream's text.
    pub(crate) prompted: u8,
    /// Whether a token was decoded that was not skipped. Tokens of the prompt count, too. The first decoded token may
    /// have a different text (it has the flag `FIRST`), for example without its leading space. If the vocabulary has no
    /// token with this flag, `started` is true from the beginning.
    pub(crate) started: bool,
    /// With [`Strays::Runs`]: whether the current run (byte tokens in a row) is already known not to be valid UTF-8.
    /// Each further byte of the run then becomes U+FFFD.
    pub(crate) stray: bool,
    /// The position of the first token of the stream, if this is a byte token for a space. The space is left out of the
    /// text. But if a run of byte tokens begins with it and is not valid UTF-8, the space becomes U+FFFD, as each byte
    /// of the run does.
    pub(crate) space: Option<u32>,
}

impl Decoder {
    pub(crate) fn new(vocabulary: &Vocabulary) -> Decoder {
        let started = !vocabulary.has_firsts();
        Decoder { bytes: [0; 3], tokens: [0; 3], len: 0, prompted: 0, started, stray: false, space: None }
    }

    /// Whether a token of whole characters would decode to its usual text if it came next. This is so if it is not the
    /// first token, and if no half character and no run of byte tokens is pending.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.len == 0 && self.started && !self.stray && self.space.is_none()
    }

    /// Decodes a token, the `number`th of the stream.
    pub(crate) fn decode(
        &mut self,
        vocabulary: &Vocabulary,
        (id, kind): (u32, TokenKind),
        skipped: bool,
        number: usize,
        sink: &mut impl Sink,
    ) {
        let strays = vocabulary.strays();
        if kind.has(TokenKind::SPECIAL) && vocabulary.special_ends_character() {
            self.flush(strays, sink);
        }
        if skipped {
            return;
        }
        let first = !self.started && kind.has(TokenKind::FIRST);
        self.started = true;
        if kind.has(TokenKind::BYTE) && !first {
            let bytes = vocabulary.bytes(id).unwrap_or_default(); // not `half`, which may lack ASCII bytes
            return bytes.iter().for_each(|&byte| self.decode_byte(strays, byte, number, sink));
        }
        if kind.has(TokenKind::WHOLE) || strays != Strays::Parts {
            self.flush(strays, sink);
        }
        if first && kind.has(TokenKind::BYTE) && strays == Strays::Runs && vocabulary.first(id).is_empty() {
            self.space = Some(number as u32);
        } else if first {
            self.decode_bytes(strays, vocabulary.first(id), number, sink);
        } else if kind.has(TokenKind::WHOLE) {
            sink(vocabulary.text(id), number);
        } else {
            self.decode_bytes(strays, vocabulary.half(id), number, sink);
        }
    }

    /// Ends the prompt. If the prompt ends with half a character, this character is part of the stream's text only if
    /// the stream completes it.
    pub(crate) fn end_prompt(&mut self) {
        self.prompted = self.len;
        self.space = None;
    }

    /// Ends a run of byte tokens, or the stream: half a character becomes U+FFFD.
    pub(crate) fn flush(&mut self, strays: Strays, sink: &mut impl Sink) {
        if self.len > 0 {
            self.give_up(strays, sink);
        }
        self.space = None;
        self.stray = false;
    }

    /// Decodes bytes that may begin or end within a character.
    fn decode_bytes(&mut self, strays: Strays, mut bytes: &[u8], number: usize, sink: &mut impl Sink) {
        while let Some((&byte, rest)) = bytes.split_first() {
            let whole = if self.len == 0 { bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid()) } else { "" };
            if whole.is_empty() {
                self.decode_byte(strays, byte, number, sink);
                bytes = rest;
            } else {
                sink(whole, number);
                bytes = &bytes[whole.len()..];
            }
        }
    }

    fn decode_byte(&mut self, strays: Strays, byte: u8, number: usize, sink: &mut impl Sink) {
        if self.stray {
            return sink(REPLACEMENT, number);
        }
        if self.goes_on(byte, number, sink) {
            return;
        }
        let began = self.len > 0;
        self.give_up(strays, sink);
        self.stray = strays == Strays::Runs;
        match began && !self.stray {
            true => self.decode_byte(strays, byte, number, sink),
            false => sink(REPLACEMENT, number),
        }
    }

    /// Decodes a byte if it begins, continues or completes a character. Otherwise returns `false` and changes nothing.
    fn goes_on(&mut self, byte: u8, number: usize, sink: &mut impl Sink) -> bool {
        let len = self.len as usize;
        let mut bytes = [0; 4];
        bytes[..len].copy_from_slice(&self.bytes[..len]);
        bytes[len] = byte;
        match str::from_utf8(&bytes[..=len]) {
            Ok(character) => {
                self.len = 0;
                self.prompted = 0;
                self.space = None;
                sink(character, number);
            }
            Err(error) if error.error_len().is_none() => {
                self.bytes[len] = byte;
                self.tokens[len] = number as u32; // 32 bits save memory, and no stream has more tokens
                self.len += 1;
            }
            Err(_) => return false,
        }
        true
    }

    /// Gives up half a character, because nothing can complete it any more. With `Strays::Parts`, it becomes a single
    /// U+FFFD, or no text if it began in the prompt. Otherwise each byte that did not come with the prompt becomes one
    /// U+FFFD. If a space before it was left out, the space becomes U+FFFD as well.
    fn give_up(&mut self, strays: Strays, sink: &mut impl Sink) {
        if let Some(token) = self.space.take() {
            sink(REPLACEMENT, token as usize);
        }
        let tokens = &self.tokens[..self.len as usize];
        match (strays, tokens.last()) {
            (_, None) => {}
            (Strays::Parts, Some(&last)) => {
                if self.prompted == 0 {
                    sink(REPLACEMENT, last as usize);
                }
            }
            _ => tokens[self.prompted as usize..].iter().for_each(|&token| sink(REPLACEMENT, token as usize)),
        }
        self.len = 0;
        self.prompted = 0;
    }
}

/// A decoder: makes the text of a stream of tokens.
pub trait Decode: Sized {
    #[doc(hidden)]
    type Error;

    /// Decodes a token, and passes the text that the token completes to `sink`. `number` is the position of the token
    /// in the stream. If the token is a special token that is skipped, returns its text, which is not part of the
    /// stream's text. After an error the decoder is as before.
    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> Result<Option<Cow<'_, str>>, Self::Error>;

    /// Passes to `sink` the text that would follow if the stream ended here: U+FFFD for half a character. Does not
    /// change the decoder.
    fn tail(&self, sink: &mut impl Sink) -> Result<(), Self::Error>;

    /// Whether the vocabulary has a token with this id.
    fn contains(&self, id: u32) -> Result<bool, Self::Error>;

    /// Whether the text of the token `id` consists of whole characters: it shares no character with the token before
    /// it.
    fn is_whole(&self, id: u32) -> bool;

    /// Returns the text that the token `id` would have if it came next. `None` if the vocabulary lacks the id, or if
    /// the token does not consist of whole characters.
    fn token_text(&self, id: u32) -> Result<Option<Cow<'_, str>>, Self::Error>;

    /// Resets the decoder to its state after the prompt.
    fn reset(&mut self) -> Result<(), Self::Error>;

    /// Returns a second decoder in the same state. The two go on independently.
    fn fork(&self) -> Result<Self, Self::Error>;

    /// Whether it is certain that a token of whole characters would decode to its usual text if it came next. It is not
    /// certain, for example, if half a character is pending.
    fn is_idle(&self) -> bool;

    #[doc(hidden)]
    fn write(&self, writer: &mut Writer) -> Result<(), Self::Error>;

    /// Returns a decoder with the same vocabulary as this one, and with the state that `write` wrote. `None` if the
    /// bytes are damaged.
    fn resumed(&self, reader: &mut Reader<'_>) -> Result<Option<Self>, Self::Error>;
}

/// The library's own decoder. It takes the bytes of each token from a [`Vocabulary`].
#[derive(Clone, Debug)]
pub struct Native {
    pub(crate) vocabulary: Vocabulary,
    skip_special: bool,
    /// The state after the prompt.
    start: Decoder,
    now: Decoder,
}

impl Native {
    #[doc(hidden)]
    pub fn new(vocabulary: &Vocabulary, skip_special: bool) -> Native {
        let start = Decoder::new(vocabulary);
        Native { vocabulary: vocabulary.clone(), skip_special, now: start.clone(), start }
    }

    /// Decodes a token of the prompt, before the stream's own tokens.
    pub fn decode_prompt(&mut self, id: u32) -> Result<(), UnknownToken> {
        self.decode(id, 0, &mut |_, _| ())?;
        self.now.end_prompt();
        self.start = self.now.clone();
        Ok(())
    }

    /// Whether the token `id` consists of whole characters, is not special, and would decode to its own text if it came
    /// next.
    #[inline]
    pub(super) fn is_plain(&self, id: u32) -> bool {
        self.vocabulary.kind(id).is_some_and(TokenKind::is_plain) && self.now.is_idle()
    }

    fn decode(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> Result<bool, UnknownToken> {
        let kind = self.vocabulary.kind(id).ok_or(UnknownToken(id))?;
        let skipped = self.skip_special && kind.has(TokenKind::SPECIAL);
        self.now.decode(&self.vocabulary, (id, kind), skipped, number, sink);
        Ok(skipped)
    }

    /// Returns an error if special tokens are skipped and a marker of the stream contains a special token and other
    /// text. This marker could never be found.
    pub fn check<E: Emit>(&self, stream: &Stream<E>) -> Result<(), TokenOptionsError> {
        let graph = stream.graph();
        let spelled = |marker: &&str| self.vocabulary.spells_with_special(marker);
        match graph.all_markers().find(spelled).filter(|_| self.skip_special) {
            Some(marker) => Err(TokenOptionsError::SpelledMarker(marker.into())),
            None => Ok(()),
        }
    }
}

impl Decode for Native {
    type Error = UnknownToken;

    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> Result<Option<Cow<'_, str>>, UnknownToken> {
        let skipped = self.decode(id, number, sink)?;
        Ok(skipped.then(|| self.vocabulary.text(id).into()))
    }

    fn tail(&self, sink: &mut impl Sink) -> Result<(), UnknownToken> {
        self.now.clone().flush(self.vocabulary.strays(), sink);
        Ok(())
    }

    fn contains(&self, id: u32) -> Result<bool, UnknownToken> {
        Ok(self.vocabulary.contains(id))
    }

    fn is_whole(&self, id: u32) -> bool {
        self.vocabulary.kind(id).is_some_and(|kind| kind.has(TokenKind::WHOLE))
    }

    fn token_text(&self, id: u32) -> Result<Option<Cow<'_, str>>, UnknownToken> {
        let Some(kind) = self.vocabulary.kind(id) else {
            return Ok(None);
        };
        let first = !self.now.started && kind.has(TokenKind::FIRST);
        let bytes = if first { Some(self.vocabulary.first(id)) } else { self.vocabulary.bytes(id) };
        Ok(bytes.and_then(|bytes| str::from_utf8(bytes).ok()).map(Cow::Borrowed))
    }

    fn reset(&mut self) -> Result<(), UnknownToken> {
        self.now = self.start.clone();
        Ok(())
    }
    fn fork(&self) -> Result<Native, UnknownToken> {
        Ok(self.clone())
    }
    fn is_idle(&self) -> bool {
        self.now.is_idle()
    }

    fn write(&self, writer: &mut Writer) -> Result<(), UnknownToken> {
        self.start.write(writer);
        self.now.write(writer);
        Ok(())
    }

    fn resumed(&self, reader: &mut Reader<'_>) -> Result<Option<Native>, UnknownToken> {
        let mut states = || Some((Decoder::from_bytes(reader)?, Decoder::from_bytes(reader)?));
        Ok(states().map(|(start, now)| Native { start, now, vocabulary: self.vocabulary.clone(), ..*self }))
    }
}
