use std::sync::Arc;

use super::finish::{EndReason, Finish};
use super::ledger::{Ledger, Tally};
use super::options::Limits;
use crate::stream::{Emit, Settled, SettledText, Stream};
use crate::text::{Released, code_points};

/// The decoded text of a stream of tokens: it is read, what is safe comes out, and tokens are counted.
#[derive(Debug)]
pub(crate) struct Decoded<E: Emit> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) stream: Stream<E>,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// The safe text of the last step.
    pub(crate) out: E::Safe,
}

impl<E: Emit> Clone for Decoded<E> {
    fn clone(&self) -> Decoded<E> {
        Decoded {
            limits: self.limits.clone(),
            stream: self.stream.clone(),
            ledger: self.ledger.clone(),
            finish: self.finish,
            out: self.out.clone(),
        }
    }
}

impl<E: Emit> Decoded<E> {
    pub(super) fn new(stream: Stream<E>, limits: Limits) -> Decoded<E> {
        let (limits, ledger, out) = (Arc::new(limits), Ledger::default(), E::Safe::default());
        let mut decoded = Decoded { limits, stream, ledger, finish: None, out };
        decoded.reset();
        decoded
    }

    pub(super) fn reset(&mut self) {
        self.stream.reset();
        let tally = E::COUNTS_REGIONS.then(|| Tally::new(self.stream.graph().regions().count()));
        self.ledger = Ledger::new(tally);
        self.finish = (self.limits.max_tokens == 0).then_some(Finish::Ended(EndReason::Length));
        self.out = E::Safe::default();
    }

    /// Begins a step: nothing is safe yet.
    pub(crate) fn begin(&mut self) {
        self.out.clear();
        self.stream.begin();
        self.ledger.begin();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// The number of the token that comes next.
    pub(super) fn number(&self) -> usize {
        self.ledger.seen + 1
    }

    /// Whether stops count in the text of the next token.
    pub(super) fn is_armed(&self) -> bool {
        self.ledger.seen >= self.limits.min_tokens
    }

    /// Whether they counted in the text of the last one.
    pub(super) fn was_armed(&self) -> bool {
        self.ledger.seen > self.limits.min_tokens
    }

    /// Counts tokens that were read while nothing was held.
    #[inline]
    pub(crate) fn pass(&mut self, tokens: usize) {
        self.ledger.pass(self.stream.open(), tokens);
    }

    /// Reads a piece of text; `token` is the last that has a part in it. After a match nothing is read.
    pub(super) fn read(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return;
        }
        let Decoded { stream, ledger, out, .. } = self;
        ledger.read(code_points(text), token);
        stream.settle(text, armed, &mut |settled| match settled {
            Settled::Text(region, text) => {
                ledger.emit(region, code_points(text));
                out.push(region, text);
            }
            Settled::Marker(length) => ledger.cut(length),
        });
        self.note_stop();
    }

    /// Reads the next token, a special token without text: a stop or a marker counts all the same.
    pub(super) fn read_special(&mut self, special: &str, armed: bool) {
        if self.is_over() {
            return;
        }
        let (number, region) = (self.number(), self.stream.open());
        if let Some(released) = self.stream.pass_special(special, armed) {
            self.release(region, released);
            self.ledger.mark(number);
            self.note_stop();
        }
    }

    /// Counts the token whose text was read; returns whether it is the last that is wanted.
    pub(super) fn count(&mut self) -> bool {
        self.ledger.seen += 1;
        self.ledger.seen >= self.limits.max_tokens && !self.is_over()
    }

    /// Emits what is held, at the end of the stream, unless a stop came before. The end may confirm a match, unless the
    /// stream was given up.
    pub(super) fn end(&mut self, finish: Finish) {
        if self.is_over() {
            return;
        }
        let region = self.stream.open();
        let released = match finish {
            Finish::Ended(EndReason::Abort) => self.stream.pass_over(""),
            _ => self.stream.end(),
        };
        self.release(region, released);
        self.finish = Some(finish);
        self.note_stop();
    }

    /// The end that the token `id` brings.
    pub(super) fn end_of(&self, id: u32) -> Finish {
        if self.limits.ends.is_stop(id) { Finish::StopToken(id) } else { Finish::Ended(EndReason::Eos) }
    }

    fn note_stop(&mut self) {
        if self.stream.has_fired() {
            let looped = self.stream.stop_match().is_some_and(|found| found.period().is_some());
            self.finish = Some(if looped { Finish::Ended(EndReason::Repetition) } else { Finish::StopSequence });
        }
    }

    /// Emits text that was held.
    fn release(&mut self, region: u32, released: Released) {
        let text = self.stream.held.text(released, "");
        self.ledger.emit(region, code_points(text));
        self.out.push(region, text);
    }
}
