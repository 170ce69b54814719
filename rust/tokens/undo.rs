//! How a stream of tokens stood before a step that fails behind the core's.

use super::decoded::Decoded;
use super::finish::Finish;
use super::ledger::Ledger;
use crate::stream::{self, Emit};

pub(crate) struct Mark {
    stream: stream::Mark,
    ledger: Ledger,
    finish: Option<Finish>,
}

impl<E: Emit> Decoded<E> {
    /// How the stream stands; `None` if nothing can change any more, or too much would have to be kept.
    pub(crate) fn mark(&self) -> Option<Mark> {
        Some(Mark { stream: self.stream.mark()?, ledger: self.ledger.clone(), finish: self.finish })
    }

    /// Makes the stream what it was.
    #[cold]
    pub(crate) fn undo(&mut self, mark: Mark) {
        self.stream.undo(mark.stream);
        (self.ledger, self.finish, self.out) = (mark.ledger, mark.finish, E::Safe::default());
    }
}
