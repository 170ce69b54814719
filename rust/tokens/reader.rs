use std::fmt::Debug;

use super::ledger::Tally;
use crate::segmenter::{Marker, Segmenter, Step};
use crate::stop_scanner::StopScanner;
use crate::stream::{AsRegions, Face};

/// A buffer for more bytes than this is given back: a server has many.
const SPARE: usize = 32;

/// What reads the text of a stream of tokens: a scanner or a segmenter.
pub(crate) trait Reader: Face + Clone {
    type Safe: Safe;

    /// Reads `text`; `sink` takes what is settled now, in order. After a match there is nothing.
    fn read(&mut self, text: &str, armed: bool, sink: &mut impl FnMut(Settled<'_>));

    /// What counts the tokens of each region, if that is wanted.
    fn tally(&self) -> Option<Tally>;
}

/// A part of the text that is not held, or not any more.
pub(crate) enum Settled<'a> {
    /// Safe text of a region.
    Text(u32, &'a str),
    /// A marker that was taken out, in code points.
    Marker(usize),
}

/// The safe text of one step.
pub(crate) trait Safe: Clone + Debug + Default {
    fn push(&mut self, region: u32, text: &str);

    /// Joins what comes next.
    #[cfg(feature = "python")]
    fn append(&mut self, other: &Self);

    /// Makes it empty, and gives back what one long text needed.
    fn clear(&mut self);
}

impl Reader for StopScanner {
    type Safe = String;

    fn read(&mut self, text: &str, armed: bool, sink: &mut impl FnMut(Settled<'_>)) {
        let output = if armed { self.feed(text) } else { self.feed_unarmed(text) };
        sink(Settled::Text(0, output.text));
    }

    fn tally(&self) -> Option<Tally> {
        None
    }
}

impl Safe for String {
    fn push(&mut self, _: u32, text: &str) {
        self.push_str(text);
    }

    #[cfg(feature = "python")]
    fn append(&mut self, other: &String) {
        self.push_str(other);
    }

    fn clear(&mut self) {
        if self.capacity() > SPARE {
            *self = String::new();
        }
        self.truncate(0);
    }
}

impl Reader for Segmenter {
    type Safe = Vec<(u32, String)>;

    fn read(&mut self, mut text: &str, armed: bool, sink: &mut impl FnMut(Settled<'_>)) {
        loop {
            let Step { region, released, marker } = self.step(text, armed);
            sink(Settled::Text(region, self.stream.held.text(released, text)));
            let Some(Marker { end, length }) = marker else {
                return;
            };
            sink(Settled::Marker(length));
            text = &text[end..];
        }
    }

    fn tally(&self) -> Option<Tally> {
        Some(Tally::new(self.stream.set.as_regions().len()))
    }
}

/// Text of regions; none is empty, and no two neighbours are of one region.
impl Safe for Vec<(u32, String)> {
    fn push(&mut self, region: u32, text: &str) {
        match self.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.0 == region => last.1.push_str(text),
            _ => Vec::push(self, (region, text.into())),
        }
    }

    #[cfg(feature = "python")]
    fn append(&mut self, other: &Self) {
        for (region, text) in other {
            Safe::push(self, *region, text);
        }
    }

    fn clear(&mut self) {
        *self = Vec::new();
    }
}
