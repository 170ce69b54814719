use super::decoder::Decoder;
use super::ends::Ends;
use super::options::TokenOptions;
use super::reader::Reader;
use super::stream::{Finish, Limits, TokenStream};
use crate::vocabulary::{Kind, UnknownToken, Vocabulary};

/// A stream of token ids that the core decodes, and whose text `R` reads.
#[derive(Clone, Debug)]
pub(crate) struct Native<R: Reader> {
    vocabulary: Vocabulary,
    skip_special: bool,
    /// The state after the prompt.
    pub(crate) start: Decoder,
    pub(crate) decoder: Decoder,
    pub(crate) stream: TokenStream<R>,
}

impl<R: Reader> Native<R> {
    pub(crate) fn new(vocabulary: &Vocabulary, reader: R, options: &TokenOptions) -> Result<Native<R>, UnknownToken> {
        let limits = Limits {
            ends: Ends::new(&options.stop_token_ids, &options.eos_token_ids),
            min_tokens: options.min_tokens,
            max_tokens: options.max_tokens.unwrap_or(usize::MAX),
        };
        let stream = TokenStream::new(reader, limits);
        let mut native = Native::from_stream(vocabulary, stream, options.skip_special_tokens);
        for &id in &options.prompt_token_ids {
            native.read_prompt(id)?;
        }
        Ok(native)
    }

    pub(crate) fn from_stream(vocabulary: &Vocabulary, stream: TokenStream<R>, skip_special: bool) -> Native<R> {
        let start = Decoder::new(vocabulary);
        Native { vocabulary: vocabulary.clone(), skip_special, decoder: start.clone(), start, stream }
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

    /// Reads `id` if it is only its text and nothing is held; returns whether it did.
    #[inline]
    pub(crate) fn pass(&mut self, id: u32) -> bool {
        let passes = self.is_plain(id) && self.stream.reader.stream_mut().pass_plain(self.vocabulary.text(id));
        if passes {
            self.stream.pass(1);
        }
        passes
    }

    /// The text of a token of whole characters.
    #[inline]
    pub(crate) fn text(&self, id: u32) -> &str {
        self.vocabulary.text(id)
    }

    /// Reads a token.
    pub(crate) fn feed(&mut self, id: u32) -> Result<(), UnknownToken> {
        self.stream.begin();
        if self.stream.is_over() {
            return Ok(());
        }
        if self.stream.ends_at(id) {
            self.read_end(id);
            return Ok(());
        }
        let kind = self.vocabulary.kind(id).ok_or(UnknownToken(id))?;
        let armed = self.stream.is_armed();
        self.read_token(id, kind, armed);
        if self.stream.count() {
            self.flush(Finish::Length, armed);
        }
        Ok(())
    }

    /// Ends the stream for another reason.
    pub(crate) fn close(&mut self) {
        self.stream.begin();
        self.flush(Finish::Closed, self.stream.was_armed());
    }

    /// Goes back to the start of the stream, after the prompt.
    pub(crate) fn reset(&mut self) {
        self.decoder = self.start.clone();
        self.stream.reset();
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
            if with_token.stream.finish == Some(Finish::StopSequence) {
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
