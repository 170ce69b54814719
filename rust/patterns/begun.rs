//! A place in a stream where a match may have begun.

use super::kind::Kind;
use crate::text::Place;

/// The root of what is over.
pub(super) const OVER: u32 = u32::MAX;

/// A place where a match may have begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Where it is in code points, modulo 2^32.
    pub(super) code_points: u32,
    /// Where it is in bytes, modulo 2^30, and the kind of what stands before in the last two bits.
    bytes_and_kind: u32,
    /// A later one in the same state, or itself if it is the latest of them, by its index; or `OVER`.
    pub(super) root: u32,
}

impl Begun {
    pub(super) fn new(here: Place, before: Kind, root: u32) -> Begun {
        Begun { code_points: here.code_points as u32, bytes_and_kind: (here.bytes as u32) << 2 | before as u32, root }
    }

    /// The place, which is before `end`: by less than those numbers can say.
    pub(super) fn place(self, end: Place) -> Place {
        let code_points = (end.code_points as u32).wrapping_sub(self.code_points) as usize;
        let bytes = ((end.bytes as u32) << 2).wrapping_sub(self.bytes_and_kind & !3) >> 2;
        Place { code_points: end.code_points - code_points, bytes: end.bytes - bytes as usize }
    }

    /// What stands before it.
    pub(super) fn before(self) -> Kind {
        Kind::ALL[(self.bytes_and_kind & 3) as usize]
    }
}
