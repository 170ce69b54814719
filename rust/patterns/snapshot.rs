use super::machine::Machine;
use super::source::Before;
use super::threads::{Thread, Threads};
use crate::stop_match::{Place, code_points};

/// The threads of a stream, in terms that do not depend on how the patterns were compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Begun {
    /// What stands before the next character.
    pub(crate) before: u8,
    /// The text since the first thread began.
    pub(crate) text: String,
    /// Where in it each thread began, in bytes, and what stands before it.
    pub(crate) threads: Vec<(usize, u8)>,
}

impl Threads {
    /// `text` ends where the stream stands, and is long enough.
    pub(crate) fn begun(&self, text: &str, end: Place) -> Begun {
        let text = &text[text.len() - self.held(end)..];
        let first = end.bytes - text.len();
        let threads = self.list.iter().map(|thread| (thread.start.bytes - first, thread.before as u8)).collect();
        Begun { before: self.before as u8, text: text.into(), threads }
    }

    /// The threads of a stream that stands at `end`, or `None` if none with this machine, or without one, gives such.
    pub(crate) fn resume(machine: Option<&Machine>, begun: &Begun, end: Place, keeps_text: bool) -> Option<Threads> {
        let mut threads = Threads::new();
        threads.before = kind(begun.before)?;
        for &(start, before) in &begun.threads {
            let text = begun.text.get(start..).filter(|text| !text.is_empty())?;
            let before = kind(before)?;
            let state = machine?.read(machine?.start(before), text)?;
            let start = Place {
                bytes: end.bytes.checked_sub(text.len())?,
                code_points: end.code_points.checked_sub(code_points(text))?,
            };
            if threads.list.last().is_some_and(|last: &Thread| last.start.bytes >= start.bytes) {
                return None;
            }
            threads.list.push(Thread { start, before, state });
        }
        if threads.held(end) != begun.text.len() {
            return None;
        }
        if keeps_text {
            threads.keep_text(&begun.text, begun.text.len());
        }
        Some(threads)
    }
}

fn kind(number: u8) -> Option<Before> {
    Before::ALL.get(number as usize).copied()
}
