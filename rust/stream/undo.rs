//! For hosts whose step may fail behind the core's, where there is no memory for what came out: how a stream stood
//! before, and room for what it needs.

use super::Stream;
use crate::graph::Cursor;
use crate::patterns::{Clear, Threads};
use crate::repeat::LoopsMark;
use crate::room::{self, NoRoom};
use crate::stream::Emit;
use crate::text::{HeldMark, Place};

/// Threads of patterns that have more bytes are not kept: each step would copy them.
const MOST: usize = 4_096;

/// How a stream stood before a step. Of its text only the places are kept, however much it holds.
pub(crate) struct Mark {
    cursor: Cursor,
    read: Place,
    held: HeldMark,
    threads: Begun,
    loops: Option<LoopsMark>,
}

enum Begun {
    /// There are no patterns.
    Never,
    /// No match had begun.
    Nothing(Clear),
    Something(Box<Threads>),
}

impl<E: Emit> Stream<E> {
    /// How the stream stands, at the beginning of a step of so many bytes; `None` if nothing can change any more, or too
    /// much would have to be kept.
    #[inline]
    pub(crate) fn mark(&mut self, bytes: usize) -> Option<Mark> {
        self.begin();
        let (mut threads, mut loops) = (Begun::Never, None);
        if let Some(more) = &self.more {
            if more.fired.is_some() {
                return None;
            }
            threads = more.extras.threads.as_ref().map_or(Some(Begun::Never), Begun::of)?;
            loops = more.extras.loops.as_ref().map(|loops| loops.mark(bytes));
        }
        Some(Mark { cursor: self.cursor, read: self.read, held: self.held.mark(), threads, loops })
    }

    /// Makes the stream what it was.
    #[cold]
    pub(crate) fn undo(&mut self, mark: Mark) {
        (self.cursor, self.read) = (mark.cursor, mark.read);
        self.held.undo(mark.held);
        let Some(more) = &mut self.more else { return };
        more.fired = None;
        match mark.threads {
            Begun::Never => {}
            Begun::Nothing(clear) => more.extras.threads = Some(Threads::cleared(clear)),
            Begun::Something(threads) => more.extras.threads = Some(*threads),
        }
        if let (Some(loops), Some(mark)) = (&mut more.extras.loops, mark.loops) {
            loops.undo(mark);
        }
        if more.extras.is_empty() {
            self.more = None;
        }
    }

    /// About how many bytes of what was read the stream has.
    pub(crate) fn size(&self) -> usize {
        self.held().len() + self.unused().len() + self.more.as_ref().map_or(0, |more| more.extras.size())
    }

    /// Asks for the room that reading `delta` takes at most.
    #[inline]
    pub(crate) fn ask_room(&self, delta: &str) -> Result<(), NoRoom> {
        let more = self.more.as_ref().map_or(0, |more| more.extras.growth(delta.len()));
        // What a pattern matched is copied, and what follows a stop; and text that is taken out of a delta.
        room::ask(self.held.growth(delta.len()) + 3 * delta.len() + more)
    }
}

impl Begun {
    fn of(threads: &Threads) -> Option<Begun> {
        match threads.clear() {
            Some(clear) => Some(Begun::Nothing(clear)),
            None => (threads.size() <= MOST).then(|| Begun::Something(Box::new(threads.clone()))),
        }
    }
}
