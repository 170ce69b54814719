use std::borrow::Cow;

use super::decoder::{Decoder, Sink};
use super::options::{Limits, TokenOptions, TokenOptionsError};
use crate::snapshot::{Fingerprint, Reader, Writer};
use crate::stream::{Emit, Stream};
use crate::vocabulary::{TokenKind, UnknownToken, Vocabulary};

/// What makes the text of a stream of tokens.
pub trait Decode: Sized {
    type Error;

    /// Reads a token, the `number`th of the stream; the pieces of text that it completes go to `sink`. Returns the text
    /// of a special token that is skipped. After an error it is as before.
    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> Result<Option<Cow<'_, str>>, Self::Error>;

    /// The rest of the text, if the stream ends here, or with one more token; as `step`, but nothing changes.
    fn tail(&self, id: Option<u32>, number: usize, sink: &mut impl Sink) -> Result<Option<Cow<'_, str>>, Self::Error>;

    /// Goes back to the end of the prompt.
    fn reset(&mut self) -> Result<(), Self::Error>;

    /// One in the same state that goes on independently.
    #[cfg(feature = "python")]
    fn fork(&self) -> Result<Self, Self::Error>;

    /// Whether the text of a token of whole characters is just that.
    #[cfg(feature = "python")]
    fn is_idle(&self) -> bool;

    fn skips_special(&self) -> bool;

    fn write(&self, writer: &mut Writer) -> Result<(), Self::Error>;

    /// The one that `write` wrote, with this one's vocabulary.
    fn resumed(&self, reader: &mut Reader<'_>) -> Result<Option<Self>, Self::Error>;
}

/// Decodes with a [`Vocabulary`].
#[derive(Clone, Debug)]
pub struct Native {
    pub(crate) vocabulary: Vocabulary,
    skip_special: bool,
    /// The state after the prompt.
    start: Decoder,
    now: Decoder,
}

impl Native {
    pub(crate) fn new(vocabulary: &Vocabulary, skip_special: bool) -> Native {
        let start = Decoder::new(vocabulary);
        Native { vocabulary: vocabulary.clone(), skip_special, now: start.clone(), start }
    }

    /// Reads a token of what the stream continues, before any of its own.
    pub(crate) fn read_prompt(&mut self, id: u32) -> Result<(), UnknownToken> {
        self.read(id, 0, &mut |_, _| ())?;
        self.now.end_prompt();
        self.start = self.now.clone();
        Ok(())
    }

    /// Whether `id` is a token of whole characters, and is only its text here.
    #[inline]
    pub(super) fn is_plain(&self, id: u32) -> bool {
        self.vocabulary.kind(id).is_some_and(TokenKind::is_plain) && self.now.is_idle()
    }

    fn read(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> Result<bool, UnknownToken> {
        let kind = self.vocabulary.kind(id).ok_or(UnknownToken(id))?;
        let skipped = self.skip_special && kind.has(TokenKind::SPECIAL);
        self.now.read(&self.vocabulary, (id, kind), skipped, number, sink);
        Ok(skipped)
    }

    /// Refuses a marker that could not be found.
    pub(crate) fn check<E: Emit>(&self, stream: &Stream<E>) -> Result<(), TokenOptionsError> {
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
        let skipped = self.read(id, number, sink)?;
        Ok(skipped.then(|| self.vocabulary.text(id).into()))
    }

    fn tail(&self, id: Option<u32>, number: usize, sink: &mut impl Sink) -> Result<Option<Cow<'_, str>>, UnknownToken> {
        let mut end = self.clone();
        // An id that ends the stream need not be a token's.
        let skipped = id.is_some_and(|id| end.read(id, number, sink).unwrap_or_default());
        end.now.flush(end.vocabulary.strays(), sink);
        Ok(id.filter(|_| skipped).map(|id| self.vocabulary.text(id).into()))
    }

    fn reset(&mut self) -> Result<(), UnknownToken> {
        self.now = self.start.clone();
        Ok(())
    }

    #[cfg(feature = "python")]
    fn fork(&self) -> Result<Native, UnknownToken> {
        Ok(self.clone())
    }

    #[cfg(feature = "python")]
    fn is_idle(&self) -> bool {
        self.now.is_idle()
    }

    fn skips_special(&self) -> bool {
        self.skip_special
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

/// What streams of tokens with the same options have in common.
pub(super) fn print(limits: &Limits, skips_special: bool, mut print: Fingerprint) -> Fingerprint {
    limits.print(&mut print);
    print.number(skips_special.into());
    print
}

impl TokenOptions {
    /// The decoder that the options tell.
    pub(super) fn decoder(&self, vocabulary: &Vocabulary) -> Result<Native, UnknownToken> {
        let mut native = Native::new(vocabulary, self.skip_special_tokens);
        self.prompt_token_ids.iter().try_for_each(|&id| native.read_prompt(id))?;
        Ok(native)
    }
}
