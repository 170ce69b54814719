//! The threads of a stream as bytes, in terms that do not depend on how the patterns were compiled.

use super::kind::Kind;
use super::machine::Machine;
use super::reader::replay;
use super::threads::Threads;
use crate::automaton::Automaton;
use crate::text::Place;

/// What a stream's patterns have begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct SavedThreads {
    /// The text since the first match began.
    pub(crate) text: String,
    /// As `Threads::to_bytes` makes them.
    pub(crate) bytes: Vec<u8>,
}

impl Threads {
    /// `text` ends where the stream stands, and is long enough.
    pub(crate) fn begun(&self, automaton: &Automaton, text: &str) -> SavedThreads {
        SavedThreads { text: text[text.len() - self.begun_bytes()..].into(), bytes: self.to_bytes(automaton) }
    }

    /// The kinds of what stands before the next character and before the first thread, four bytes for each thread that
    /// say how many bytes of text it has read, and what has begun of the markers.
    pub(crate) fn to_bytes(&self, automaton: &Automaton) -> Vec<u8> {
        let before = self.places.before;
        let mut bytes = vec![before as u8, self.places.before_first().unwrap_or(before) as u8];
        let lengths: Vec<u32> = self.places.all().map(|length| length as u32).collect();
        bytes.extend((lengths.len() as u32).to_le_bytes());
        bytes.extend(lengths.iter().flat_map(|length| length.to_le_bytes()));
        bytes.extend(self.markers.map(|state| automaton.text(state)).unwrap_or_default());
        bytes
    }

    /// The threads of a stream that stands at `end`, or `None` if none of such a region gives these bytes.
    pub(crate) fn resume(
        automaton: &Automaton,
        machine: Option<&Machine>,
        begun: &SavedThreads,
        end: Place,
        hides_stops: bool,
    ) -> Option<Threads> {
        let SavedThreads { text, bytes } = begun;
        let (&[before, before_first, c0, c1, c2, c3], rest) = bytes.split_first_chunk()?;
        let count = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
        let (lengths, markers) = rest.split_at_checked(count.checked_mul(4)?)?;
        let lengths = lengths.chunks_exact(4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let starts: Vec<usize> =
            lengths.map(|length| text.len().checked_sub(length as usize)).collect::<Option<_>>()?;
        let mut threads = Threads::new();
        threads.places.before = kind(before_first)?;
        if let Some(&first) = starts.first() {
            let begun = text.get(first..)?;
            let start = Place {
                bytes: end.bytes.checked_sub(begun.len())?,
                code_points: end.code_points.checked_sub(Place::after(begun).code_points)?,
            };
            let starts: Option<Vec<usize>> = starts.iter().map(|start| start.checked_sub(first)).collect();
            replay(&mut threads.places, machine?, begun, start, &starts?)?;
        }
        threads.places.before = kind(before)?;
        if !hides_stops {
            threads.keep(text, text.len());
        }
        if !markers.is_empty() {
            threads.follow_markers(automaton, automaton.state(markers)?);
        }
        Some(threads)
    }
}

fn kind(number: u8) -> Option<Kind> {
    Kind::ALL.get(number as usize).copied()
}
