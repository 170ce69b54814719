//! The strings that are live in a region, in one allocation: a set may hold millions of them.

/// What completing a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A stop that is cut from the output.
    Hidden,
    /// A stop that stays in the output.
    Visible,
    /// Leads to another region.
    Marker,
}

/// Hidden stops first, then visible ones, then markers: a word's index tells its kind.
#[derive(Debug, Default)]
pub(crate) struct Words {
    text: String,
    /// Where each word ends in `text`.
    ends: Vec<u32>,
    hidden: usize,
    visible: usize,
}

impl Words {
    pub(crate) fn new<'a>(
        hidden: &[&'a str],
        visible: &[&'a str],
        markers: impl IntoIterator<Item = &'a str>,
    ) -> Words {
        let mut words = Words { hidden: hidden.len(), visible: visible.len(), ..Words::default() };
        for text in hidden.iter().chain(visible).copied().chain(markers) {
            words.text.push_str(text);
            words.ends.push(words.text.len() as u32);
        }
        words
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many words are stops.
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|index| self.text(index))
    }

    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &str> {
        (0..self.len()).filter(move |&index| self.kind(index) == kind).map(|index| self.text(index))
    }
}
