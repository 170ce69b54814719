//! The stops and markers of a node (a region, or a state of a region). All are in one string to save memory, because a
//! set may have millions of them.

use std::cmp::Ordering;

/// The kind of a word (a stop or marker). It says what happens when the word completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// A stop that is cut from the output.
    Hidden,
    /// A stop that stays in the output.
    Visible,
    /// A marker, which leads to a region.
    Marker,
}

/// The words (stops and markers) of an automaton, in this order: hidden stops, visible stops, markers, hidden literals,
/// visible literals. So the index of a word tells its kind. A *literal* is a pattern that is plain text. `len`, `iter`
/// and `of_kind` leave the literals out.
#[derive(Debug, Default)]
pub(crate) struct Words {
    text: String,
    /// Where each word ends in `text`.
    ends: Vec<u32>,
    hidden: usize,
    visible: usize,
    literals: usize,
    visible_literals: usize,
}

impl Words {
    pub(crate) fn new<'a>(
        hidden: &[&'a str],
        visible: &[&'a str],
        markers: impl Iterator<Item = &'a str> + Clone,
    ) -> Words {
        let mut words = Words { hidden: hidden.len(), visible: visible.len(), ..Words::default() };
        words.add(hidden.iter().chain(visible).copied().chain(markers));
        words
    }

    fn add<'a>(&mut self, texts: impl Iterator<Item = &'a str> + Clone) {
        self.text.reserve_exact(texts.clone().map(str::len).sum());
        self.ends.reserve_exact(texts.clone().count());
        for text in texts {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
        }
    }

    /// Adds patterns that are plain text. The last `visible` of them are visible stops, the others hidden stops.
    pub(crate) fn add_literals<'a>(
        &mut self,
        literals: impl ExactSizeIterator<Item = &'a str> + Clone,
        visible: usize,
    ) {
        (self.literals, self.visible_literals) = (literals.len(), visible);
        self.add(literals);
    }

    /// The number of words, not counting literals.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() - self.literals
    }

    /// The number of words, counting literals.
    pub(crate) fn len_with_literals(&self) -> usize {
        self.ends.len()
    }

    /// The number of words that are stops, not counting literals.
    pub(crate) fn stops(&self) -> usize {
        self.hidden + self.visible
    }

    pub(crate) fn text(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[index] as usize]
    }

    /// Compares the texts of two words. Not inlined: the sorting code would otherwise contain several copies of it.
    #[inline(never)]
    pub(super) fn compare(&self, one: u32, other: u32) -> Ordering {
        self.text(one as usize).cmp(self.text(other as usize))
    }

    pub(crate) fn kind(&self, index: usize) -> WordKind {
        match index {
            _ if index < self.hidden => WordKind::Hidden,
            _ if index < self.stops() => WordKind::Visible,
            _ if index < self.len() => WordKind::Marker,
            _ if index < self.ends.len() - self.visible_literals => WordKind::Hidden,
            _ => WordKind::Visible,
        }
    }

    pub(crate) fn with_literals(&self) -> impl Iterator<Item = &str> {
        (0..self.len_with_literals()).map(|index| self.text(index))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.text(index))
    }

    pub(crate) fn of_kind(&self, kind: WordKind) -> impl Iterator<Item = &str> {
        (0..self.len()).filter(move |&index| self.kind(index) == kind).map(|index| self.text(index))
    }
}
