//! How the threads of a stream stood before a step, and how much room they take.

use super::begun::Begun;
use super::draft::StateId;
use super::kind::Kind;
use super::places::Places;
use super::threads::Threads;
use crate::text::Place;

/// What is to be known of the places in a text while no match has begun.
pub(crate) struct Clear {
    before: Kind,
    here: Place,
}

impl Places {
    pub(super) fn clear_state(&self) -> Option<Clear> {
        (self.is_empty() && self.begun.is_empty()).then_some(Clear { before: self.before, here: self.here })
    }

    pub(super) fn cleared(Clear { before, here }: Clear) -> Places {
        let mut places = Places::new();
        (places.before, places.here) = (before, here);
        places
    }

    /// How many bytes the places have.
    pub(super) fn size(&self) -> usize {
        self.begun.len() * size_of::<Begun>() + self.roots.len() * (size_of::<u32>() + size_of::<StateId>())
    }

    /// How many bytes the places grow by at most with so many bytes of text.
    pub(super) fn growth(&self, bytes: usize) -> usize {
        /// More are never kept, with the limit of the library.
        const MOST: usize = 1 << 18;

        let places = self.begun.len() + bytes.min(MOST);
        if places > self.begun.capacity() { 2 * places * size_of::<Begun>() } else { 0 }
    }
}

impl Threads {
    /// What is to be known of the threads while nothing has begun.
    pub(crate) fn clear(&self) -> Option<Clear> {
        let nothing = self.markers.is_none() && self.begun_by_literals == 0 && self.text.len() == 0;
        self.places.clear_state().filter(|_| nothing)
    }

    /// What `clear` is of.
    pub(crate) fn cleared(clear: Clear) -> Threads {
        let mut threads = Threads::new();
        threads.places = Places::cleared(clear);
        threads
    }

    /// About how many bytes the threads have.
    pub(crate) fn size(&self) -> usize {
        self.places.size() + self.text.len()
    }

    /// How many bytes they grow by at most with so many bytes of text.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        self.places.growth(bytes) + self.text.growth(bytes) + self.begun_bytes()
    }
}
