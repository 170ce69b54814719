//! How a stream of tokens stood before a step that fails behind the core's.

use super::decoded::Decoded;
use super::finish::Finish;
use super::ledger::LedgerMark;
use crate::stream::{self, Emit};

pub(crate) struct Mark {
    stream: stream::Mark,
    ledger: LedgerMark,
    finish: Option<Finish>,
}

impl<E: Emit> Decoded<E> {
    /// How the stream stands, at the beginning of a step whose tokens have so many bytes; `None` if nothing can change
    /// any more, or too much would have to be kept.
    pub(crate) fn mark(&mut self, bytes: usize) -> Option<Mark> {
        // A byte that is no character becomes one of three bytes.
        let stream = self.stream.mark(3 * bytes)?;
        Some(Mark { stream, ledger: self.ledger.places(), finish: self.finish })
    }

    /// Makes the stream what it was.
    #[cold]
    pub(crate) fn undo(&mut self, mark: Mark) {
        self.stream.undo(mark.stream);
        self.ledger.undo(mark.ledger);
        (self.finish, self.out) = (mark.finish, E::Safe::default());
    }
}
