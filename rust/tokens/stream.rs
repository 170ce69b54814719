use std::sync::Arc;

use super::ends::Ends;
use super::ledger::Ledger;
use crate::stop_match::code_points;
use crate::stop_scanner::StopScanner;

/// A buffer for more bytes than this is given back: a server has many.
const SPARE: usize = 32;

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
pub(crate) struct TokenStream {
    pub(crate) limits: Arc<Limits>,
    pub(crate) scanner: StopScanner,
    pub(crate) ledger: Ledger,
    pub(crate) finish: Option<Finish>,
    /// The safe text of the last token.
    out: String,
}

impl TokenStream {
    pub(crate) fn new(scanner: StopScanner, limits: Limits) -> TokenStream {
        let mut stream = TokenStream {
            limits: Arc::new(limits),
            scanner,
            ledger: Ledger::default(),
            finish: None,
            out: String::new(),
        };
        stream.reset();
        stream
    }

    pub(crate) fn reset(&mut self) {
        self.scanner.reset();
        self.ledger = Ledger::default();
        self.finish = (self.limits.max_tokens == 0).then_some(Finish::Length);
        self.out = String::new();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether nothing is held and nothing has ended.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.scanner.stream.is_idle() && !self.is_over()
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
        if self.out.capacity() > SPARE {
            self.out = String::new();
        }
        self.out.clear();
    }

    /// The safe text of the last token.
    pub(crate) fn out(&self) -> &str {
        &self.out
    }

    /// Reads a piece of text; `token` is the last that has a part in it. After a match nothing is read.
    pub(crate) fn read(&mut self, text: &str, token: usize, armed: bool) {
        if self.is_over() {
            return;
        }
        let output = if armed { self.scanner.feed(text) } else { self.scanner.feed_unarmed(text) };
        self.ledger.read(code_points(text), token, code_points(output.text));
        self.out.push_str(output.text);
        if output.stop_match.is_some() {
            self.finish = Some(Finish::StopSequence);
        }
    }

    /// Reads a special token that is no text: a marker opens or closes its region all the same.
    pub(crate) fn read_marker(&mut self, marker: &str) {
        let held = self.scanner.pass_marker(marker).text;
        self.ledger.emit(code_points(held));
        self.out.push_str(held);
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
        let output = self.scanner.flush();
        self.ledger.emit(code_points(output.text));
        self.out.push_str(output.text);
        // The end of the text may confirm a match.
        let stopped = output.stop_match.is_some();
        self.finish = Some(if stopped { Finish::StopSequence } else { finish });
    }

    /// The end that the token `id` brings.
    pub(crate) fn end_of(&self, id: u32) -> Finish {
        if self.limits.ends.is_stop(id) { Finish::StopToken(id) } else { Finish::Eos }
    }
}
