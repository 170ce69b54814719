//! How loops stood before a step, and how many bytes they have.

use super::loops::{Loops, STEP};
use super::search::Run;
use crate::tail::TailMark;

/// How loops stood at the beginning of a step.
pub(crate) struct LoopsMark(Before);

enum Before {
    /// The text only grew since, and was let go.
    Places { text: TailMark, numbers: [usize; 4], runs: Vec<Run> },
    /// A long step reads more than is copied.
    Whole(Box<Loops>),
}

impl Loops {
    /// About how many bytes it has.
    pub(crate) fn size(&self) -> usize {
        self.text.len() + self.runs.len() * size_of::<Run>()
    }

    /// How the loops stand, at the beginning of a step of so many bytes.
    pub(crate) fn mark(&self, bytes: usize) -> LoopsMark {
        let Loops { text, base, limit, followed, continuing, runs, .. } = self;
        LoopsMark(match bytes {
            0..=STEP => {
                let numbers = [*base, *limit, *followed, *continuing];
                Before::Places { text: text.mark(), numbers, runs: runs.clone() }
            }
            _ => Before::Whole(Box::new(self.clone())),
        })
    }

    pub(crate) fn undo(&mut self, LoopsMark(before): LoopsMark) {
        match before {
            Before::Places { text, numbers, runs } => {
                self.text.undo(text);
                [self.base, self.limit, self.followed, self.continuing] = numbers;
                self.runs = runs;
            }
            Before::Whole(loops) => *self = *loops,
        }
    }
}
