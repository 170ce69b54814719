//! The strings an automaton looks for, in one allocation: a set may hold millions of them.

/// What completing a pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A stop that is cut from the output.
    Hidden,
    /// A stop that stays in the output.
    Visible,
    /// An edge of a protected region.
    Marker,
}

/// Hidden stops first, then visible ones, then markers: a pattern's index tells its kind.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    text: String,
    /// Where each pattern ends in `text`.
    ends: Vec<u32>,
    hidden: usize,
    visible: usize,
}

impl Patterns {
    pub(crate) fn new(hidden: &[&str], visible: &[&str], markers: &[&str]) -> Patterns {
        let mut patterns = Patterns { hidden: hidden.len(), visible: visible.len(), ..Patterns::default() };
        for part in [hidden, visible, markers] {
            for text in part {
                patterns.text.push_str(text);
                patterns.ends.push(patterns.text.len() as u32);
            }
        }
        patterns
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many patterns are stops.
    pub(crate) fn stops(&self) -> usize {
        self.hidden + self.visible
    }

    pub(crate) fn text(&self, index: usize) -> &str {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[index] as usize]
    }

    pub(crate) fn kind(&self, index: usize) -> Kind {
        match index {
            _ if index < self.hidden => Kind::Hidden,
            _ if index < self.stops() => Kind::Visible,
            _ => Kind::Marker,
        }
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &str> {
        (0..self.len()).filter(move |&index| self.kind(index) == kind).map(|index| self.text(index))
    }
}
