use std::sync::Arc;

use super::ends::Ends;
use super::ledger::Ledger;
use super::reader::{Reader, Safe, Settled};
use crate::held::Released;
use crate::stop_match::code_points;

/// Why a stream of tokens is over.
///
/// ```
/// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").special("</s>").build()?;
/// let options = TokenOptions { eos_token_ids: vec![1], ..TokenOptions::default() };
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["END"])?), &options)?;
/// scanner.feed(1)?;
/// assert_eq!(scanner.finish(), Some(Finish::Eos));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A stop string completed; it is the stream's `stop_match`.
    StopSequence,
    /// This token is one of those that stop.
    StopToken(u32),
    /// A token is one of those that end a text.
    Eos,
    /// As many tokens were read as are wanted.
    Length,
    /// The stream was closed.
    Closed,
}

/// Which tokens end a stream, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) ends: Ends,
    /// In so many tokens nothing counts as an end.
    pub(crate) min_tokens: usize,
    pub(crate) max_tokens: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { ends: Ends::default(), min_tokens: 0, max_tokens: usize::MAX }
    }
}

/// A stream of tokens behind its decoder: text goes in, safe text comes out, and tokens are counted.
#[derive(Clone, Debug)]
pub(crate) struct TokenStream<R: Reader> {
    pub(crate) limits: Arc<Limits>,
    pub(crate) reader: R,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// The safe text of the last token.
    out: R::Safe,
}

impl<R: Reader> TokenStream<R> {
    pub(crate) fn new(reader: R, limits: Limits) -> TokenStream<R> {
        let mut stream = TokenStream {
            limits: Arc::new(limits),
            reader,
            ledger: Ledger::default(),
            finish: None,
            out: R::Safe::default(),
        };
        stream.reset();
        stream
    }

    pub(crate) fn reset(&mut self) {
        self.reader.stream_mut().reset();
        self.ledger = Ledger::new(self.reader.tally());
        self.finish = (self.limits.max_tokens == 0).then_some(Finish::Length);
        self.out = R::Safe::default();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether nothing is held and nothing has ended.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.reader.stream().is_idle() && !self.is_over()
    }

    /// The number of the token that comes next.
    pub(crate) fn number(&self) -> usize {
        self.ledger.seen + 1
    }

    /// Whether stops count in the text of the next token.
    pub(crate) fn is_armed(&self) -> bool {
        self.ledger.seen >= self.limits.min_tokens
    }

    /// Whether they counted in the text of the last one.
    pub(crate) fn was_armed(&self) -> bool {
        self.ledger.seen > self.limits.min_tokens
    }

    /// Whether the next token ends the stream if it is `id`.
    pub(crate) fn ends_at(&self, id: u32) -> bool {
        self.is_armed() && self.limits.ends.contains(id)
    }

    /// Forgets the safe text of the token before.
    pub(crate) fn begin(&mut self) {
        self.out.clear();
    }

    /// The safe text of the last token.
    pub(crate) fn out(&self) -> &R::Safe {
        &self.out
    }

    /// Counts tokens that were read while it was idle.
    #[inline]
    pub(crate) fn pass(&mut self, tokens: usize) {
        self.ledger.pass(self.reader.stream().cursor.region, tokens);
    }

    /// Reads a piece of text; `token` is the last that has a part in it. After a match nothing is read.
    pub(crate) fn read(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return;
        }
        let TokenStream { reader, ledger, out, .. } = self;
        ledger.read(code_points(text), token);
        reader.read(text, armed, &mut |settled| match settled {
            Settled::Text(region, text) => {
                ledger.emit(region, code_points(text));
                out.push(region, text);
            }
            Settled::Marker(length) => ledger.cut(length),
        });
        if reader.stream().has_fired() {
            self.finish = Some(Finish::StopSequence);
        }
    }

    /// Reads a special token that is no text, the one that comes next: a marker leads to its region all the same.
    pub(crate) fn read_marker(&mut self, marker: &str) {
        let number = self.number();
        let region = self.reader.stream().cursor.region;
        if let Some(released) = self.reader.stream_mut().pass_marker(marker) {
            self.release(region, released);
            self.ledger.mark(number);
        }
    }

    /// Counts the token whose text was read; returns whether it is the last that is wanted.
    pub(crate) fn count(&mut self) -> bool {
        self.ledger.seen += 1;
        self.ledger.seen >= self.limits.max_tokens && !self.is_over()
    }

    /// Emits what is held, at the end of the stream, unless a stop came before.
    pub(crate) fn end(&mut self, finish: Finish) {
        if self.is_over() {
            return;
        }
        let region = self.reader.stream().cursor.region;
        let released = self.reader.stream_mut().flush();
        self.release(region, released);
        // The end of the text may confirm a match.
        let stopped = self.reader.stream().has_fired();
        self.finish = Some(if stopped { Finish::StopSequence } else { finish });
    }

    /// The end that the token `id` brings.
    pub(crate) fn end_of(&self, id: u32) -> Finish {
        if self.limits.ends.is_stop(id) { Finish::StopToken(id) } else { Finish::Eos }
    }

    /// Emits text that was held.
    fn release(&mut self, region: u32, released: Released) {
        let text = self.reader.stream().held.text(released, "");
        self.ledger.emit(region, code_points(text));
        self.out.push(region, text);
    }
}
