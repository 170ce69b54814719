//! For hosts whose step may fail behind the core's, where there is no memory for what came out: how a stream stood
//! before, and room for what it needs.

use super::{Held, More, Place, Stream};
use crate::graph::Cursor;
use crate::patterns::Clear;
use crate::room::{self, NoRoom};
use crate::stream::Emit;

/// What has more bytes to put back than this is not kept: each step would copy it.
const MOST: usize = 4_096;

/// How a stream stood before a step.
pub(crate) struct Mark {
    cursor: Cursor,
    read: Place,
    held: String,
    more: Begun,
}

enum Begun {
    /// There are no patterns and no loops.
    Never,
    /// No match had begun.
    Nothing(Clear),
    Something(Box<More>),
}

impl<E: Emit> Stream<E> {
    /// How the stream stands; `None` if nothing can change any more, or too much would have to be kept.
    #[inline]
    pub(crate) fn mark(&self) -> Option<Mark> {
        let more = match &self.more {
            None => Begun::Never,
            Some(more) if more.fired.is_some() => return None,
            Some(more) => match more.clear() {
                Some(clear) => Begun::Nothing(clear),
                None if more.size() <= MOST => Begun::Something(more.clone()),
                None => return None,
            },
        };
        let held = self.held();
        (held.len() <= MOST).then(|| Mark { cursor: self.cursor, read: self.read, held: held.to_owned(), more })
    }

    /// Makes the stream what it was.
    #[cold]
    pub(crate) fn undo(&mut self, mark: Mark) {
        let Mark { cursor, read, held, more } = mark;
        (self.cursor, self.read, self.held) = (cursor, read, Held::of(held));
        self.more = match more {
            Begun::Never => None,
            Begun::Nothing(clear) => More::cleared(self.graph(), clear),
            Begun::Something(more) => Some(more),
        };
    }

    /// About how many bytes of what was read the stream has.
    pub(crate) fn size(&self) -> usize {
        self.held().len() + self.unused().len() + self.more.as_ref().map_or(0, |more| more.size())
    }

    /// Asks for the room that reading `delta` takes at most.
    #[inline]
    pub(crate) fn ask_room(&self, delta: &str) -> Result<(), NoRoom> {
        let more = self.more.as_ref().map_or(0, |more| more.growth(delta.len()));
        // What a pattern matched is copied, and what follows a stop; and text that is taken out of a delta.
        room::ask(self.held.growth(delta.len()) + 3 * delta.len() + more)
    }
}
