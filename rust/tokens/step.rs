//! How a stream of tokens reads one, and how it ends.

use super::decoded::Decoded;
use super::finish::{EndReason, Finish};
use super::native::Decode;
use super::options::Limits;
use super::stream::TokenStream;
use crate::stream::{Emit, Stream};

impl<E: Emit, D: Decode> TokenStream<E, D> {
    pub(crate) fn with_decoder(decoder: D, stream: Stream<E>, limits: Limits) -> TokenStream<E, D> {
        TokenStream { decoder, decoded: Decoded::new(stream, limits) }
    }

    /// Reads a token; `safe` is then what is safe.
    pub(crate) fn step(&mut self, id: u32) -> Result<(), D::Error> {
        self.decoded.begin();
        self.read(id)
    }

    /// Reads a token; what is safe then is added to what was.
    pub(crate) fn read(&mut self, id: u32) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if decoded.is_over() {
            return Ok(());
        }
        let (armed, number) = (decoded.is_armed(), decoded.number());
        if armed && decoded.limits.ends.contains(id) {
            return self.read_end(id);
        }
        let special = decoder.step(id, number, &mut |text, token| decoded.read(text, token, armed))?;
        match special {
            // The text ends here: what began a character is none.
            Some(special) if armed && decoded.stream.stop_of(&special).is_some() => {
                let special = special.into_owned();
                decoder.tail(None, number, &mut |text, token| decoded.read(text, token, armed))?;
                decoded.read_special(&special, armed);
            }
            Some(special) => decoded.read_special(&special, armed),
            None => {}
        }
        if decoded.count() {
            self.flush(Finish::Ended(EndReason::Length), armed)?;
        }
        Ok(())
    }

    /// Reads a token that ends the stream. A stop that it completes ends the stream first.
    fn read_end(&mut self, id: u32) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        let mut with_token = decoded.clone();
        let special =
            decoder.tail(Some(id), decoded.number(), &mut |text, token| with_token.read(text, token, true))?;
        match special {
            Some(special) => with_token.read_special(&special, true),
            None => with_token.end(Finish::Ended(EndReason::Eos)),
        }
        if with_token.stream.has_fired() {
            self.decoded = with_token;
        }
        self.flush(self.decoded.end_of(id), true)?;
        self.decoded.ledger.seen += 1;
        Ok(())
    }

    /// Ends the stream for another reason; `safe` is then what was held.
    pub(crate) fn end(&mut self, reason: EndReason) -> Result<(), D::Error> {
        self.decoded.begin();
        self.flush(Finish::Ended(reason), self.decoded.was_armed())
    }

    /// Counts a token that has no text, and ends the stream if there is a `reason`; `safe` is then what was held.
    #[cfg(feature = "python")]
    pub(crate) fn count(&mut self, reason: Option<EndReason>) -> Result<(), D::Error> {
        self.decoded.begin();
        if self.decoded.is_over() {
            return Ok(());
        }
        let armed = self.decoded.is_armed();
        let last = self.decoded.count();
        match reason.or(last.then_some(EndReason::Length)) {
            Some(reason) => self.flush(Finish::Ended(reason), armed),
            None => Ok(()),
        }
    }

    fn flush(&mut self, finish: Finish, armed: bool) -> Result<(), D::Error> {
        let TokenStream { decoder, decoded } = self;
        if !decoded.is_over() {
            decoder.tail(None, decoded.number(), &mut |text, token| decoded.read(text, token, armed))?;
            decoded.end(finish);
        }
        Ok(())
    }

    pub(crate) fn restart(&mut self) -> Result<(), D::Error> {
        self.decoder.reset()?;
        self.decoded.reset();
        Ok(())
    }

    #[cfg(feature = "python")]
    pub(crate) fn fork(&self) -> Result<TokenStream<E, D>, D::Error> {
        Ok(TokenStream { decoder: self.decoder.fork()?, decoded: self.decoded.clone() })
    }

    /// Whether nothing is begun: no character, no stop, no end.
    #[cfg(feature = "python")]
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.decoder.is_idle() && self.decoded.stream.is_idle() && !self.decoded.is_over()
    }
}
