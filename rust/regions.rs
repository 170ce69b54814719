//! What a set compiles to: regions, each with an automaton over the stops and markers that are live in it, and where
//! each of its markers leads.
//!
//! Stops and segments are two faces of this. A `StopSet` has ordinary text, in which its stops and the opening markers
//! are live, and one region for each closing marker; its markers stay in the text. A `SegmentSet` has the regions that
//! it is given; its markers are taken out.

use crate::automaton::{Automaton, Config, DENSE_LIMIT, ROOT, State};
use crate::plain::Plain;
use crate::stop_match::{Place, StopMatch};
use crate::words::{Kind, Words};

#[derive(Debug)]
pub(crate) struct Region {
    automaton: Automaton,
    /// The region that each marker leads to.
    leads: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Regions {
    regions: Box<[Region]>,
    /// Where each stop stands in the list that the user gave.
    indices: Vec<u32>,
}

/// Where reading stands: in which region, and in what state of its automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) region: u32,
    pub(crate) state: State,
}

/// A word of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) region: u32,
    pub(crate) index: u32,
}

/// A word that completed, and where it ends in the text that was read, in bytes.
pub(crate) struct Completion {
    pub(crate) word: Word,
    pub(crate) end: usize,
}

impl Cursor {
    /// The start of a region.
    pub(crate) fn start(region: u32) -> Cursor {
        Cursor { region, state: ROOT }
    }
}

impl Regions {
    /// Compiles the words of each region, with the regions that its markers lead to; also returns which of the words
    /// can never complete.
    pub(crate) fn new(
        regions: Vec<(Words, Vec<u32>)>,
        indices: Vec<u32>,
        holds_markers: bool,
    ) -> (Regions, Vec<Vec<bool>>) {
        let config = Config { holds_markers, dense_limit: DENSE_LIMIT / regions.len() };
        let compile = |(words, leads)| {
            let (automaton, pruned) = Automaton::new(words, config);
            (Region { automaton, leads }, pruned)
        };
        let (regions, pruned): (Vec<Region>, _) = regions.into_iter().map(compile).unzip();
        (Regions { regions: regions.into(), indices }, pruned)
    }

    pub(crate) fn len(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn words(&self, region: u32) -> &Words {
        self.regions[region as usize].automaton.words()
    }

    /// What is plain text in a region, where no word has begun.
    #[inline(always)]
    pub(crate) fn plain(&self, region: u32) -> &Plain {
        self.regions[region as usize].automaton.plain()
    }

    /// Reads `text` up to the first byte that completes a marker or, if `armed`, a stop. The cursor is then behind it:
    /// in the region that the marker leads to.
    #[inline]
    pub(crate) fn read(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Completion> {
        let Region { automaton, leads } = &self.regions[cursor.region as usize];
        let mut end = 0;
        loop {
            end += automaton.advance(&mut cursor.state, &text.as_bytes()[end..])?;
            if let Some(index) = automaton.completed(cursor.state, armed) {
                let word = Word { region: cursor.region, index: index as u32 };
                if let Some(marker) = index.checked_sub(automaton.words().stops()) {
                    *cursor = Cursor::start(leads[marker]);
                }
                return Some(Completion { word, end });
            }
            // A stop, in unarmed text.
        }
    }

    /// As `read`, but reads on behind markers: the stop that completes first.
    #[inline]
    pub(crate) fn read_to_stop(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Completion> {
        let mut end = 0;
        loop {
            let completion = self.read(cursor, &text[end..], armed)?;
            end += completion.end;
            if self.kind(completion.word) != Kind::Marker {
                return Some(Completion { end, ..completion });
            }
        }
    }

    /// How many bytes at the end of the text read so far may still turn into a hidden stop, if stops are hidden, or
    /// into a marker that is taken out.
    #[inline]
    pub(crate) fn held(&self, cursor: Cursor, hides_stops: bool) -> usize {
        self.regions[cursor.region as usize].automaton.held(cursor.state, hides_stops)
    }

    pub(crate) fn kind(&self, word: Word) -> Kind {
        self.words(word.region).kind(word.index as usize)
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        self.words(word.region).text(word.index as usize)
    }

    /// The match of a stop that ends at `end`.
    pub(crate) fn stop_match(&self, stop: Word, end: Place) -> StopMatch<'_> {
        let visible = self.kind(stop) == Kind::Visible;
        StopMatch::new(self.text(stop), self.indices[stop.index as usize] as usize, visible, end)
    }

    /// The stop of this text.
    pub(crate) fn stop(&self, sequence: &str) -> Option<Word> {
        (0..self.len() as u32).find_map(|region| {
            let words = self.words(region);
            let index = words.iter().take(words.stops()).position(|stop| stop == sequence)?;
            Some(Word { region, index: index as u32 })
        })
    }

    /// The longest suffix of the text read so far that begins a word.
    pub(crate) fn partial(&self, cursor: Cursor) -> String {
        self.regions[cursor.region as usize].automaton.text(cursor.state)
    }

    /// The cursor in a region after `partial`, if there is such a region and that begins a word in it.
    pub(crate) fn resume(&self, region: u32, partial: &str) -> Option<Cursor> {
        let state = self.regions.get(region as usize)?.automaton.state(partial)?;
        Some(Cursor { region, state })
    }
}
