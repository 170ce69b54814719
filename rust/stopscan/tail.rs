//! A list that grows at its end and lets go at its front, and moves each item once at most for each that it let go.

use std::ops::Deref;

#[derive(Clone, Debug)]
pub(crate) struct Tail<T> {
    items: Vec<T>,
    /// What stands before is let go.
    start: usize,
}

impl<T> Default for Tail<T> {
    fn default() -> Tail<T> {
        Tail::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Tail<T> {
    fn from(items: Vec<T>) -> Tail<T> {
        Tail { items, start: 0 }
    }
}

impl<T> Deref for Tail<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items[self.start..]
    }
}

impl<T> Tail<T> {
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.items[self.start..].last_mut()
    }

    /// Lets go of the first `count` items.
    pub(crate) fn let_go(&mut self, count: usize) {
        self.start += count;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(self.start + len);
    }

    /// How many items there is room for.
    pub(crate) fn room(&self) -> usize {
        self.items.capacity() - self.start
    }

    /// How many items were let go and are there all the same.
    pub(crate) fn gone(&self) -> usize {
        self.start
    }

    /// Makes room for `len` items.
    pub(crate) fn reserve_exact(&mut self, len: usize) {
        self.items.reserve_exact(len.saturating_sub(self.len()));
    }

    /// Drops what was let go.
    pub(crate) fn drop_front(&mut self) {
        self.items.drain(..self.start);
        self.start = 0;
    }

    /// Gives back what is more than `spare` items and than there are.
    pub(crate) fn shrink_to(&mut self, spare: usize) {
        self.items.shrink_to(spare);
    }

    /// Begins a step. Each item is moved once at most for each that was let go.
    #[inline]
    pub(crate) fn begin(&mut self, spare: usize) {
        if self.start > 0 && self.start * 2 >= self.items.len() {
            self.drop_front();
            self.shrink_to(spare);
        }
    }
}

impl<T: Copy> Tail<T> {
    #[inline]
    pub(crate) fn extend_from_slice(&mut self, items: &[T]) {
        self.items.extend_from_slice(items);
    }
}
