//! A scanner's state, to go on with elsewhere.

use super::StopScanner;
use crate::set::{Cursor, StopSet};
use crate::stop_match::code_points;

/// The state in terms that do not depend on how the set was compiled.
pub(crate) struct Snapshot {
    pub(crate) include_stop: bool,
    pub(crate) start_protected: bool,
    /// The protected region that is open, by its place in the set.
    pub(crate) region: Option<u32>,
    /// The longest suffix of the text that begins a stop or marker; the held text is a suffix of it.
    pub(crate) partial: String,
    /// How much text was read, in code points.
    pub(crate) read: usize,
    pub(crate) matched: Option<String>,
    pub(crate) unused: String,
}

impl StopScanner {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            include_stop: self.include_stop,
            start_protected: self.start != Cursor::default(),
            region: self.cursor.automaton.checked_sub(1),
            partial: self.stops.automaton(self.cursor).text(self.cursor.state),
            read: self.read,
            matched: self.stop_match().map(|found| found.sequence().into()),
            unused: self.unused().into(),
        }
    }

    /// The scanner that `snapshot` is of, or `None` if no scanner with these stops gives such a one.
    pub(crate) fn restore(stops: &StopSet, snapshot: Snapshot) -> Option<StopScanner> {
        let start = stops.start(snapshot.start_protected)?;
        let mut scanner = StopScanner::from_cursor(stops, start).include_stop(snapshot.include_stop);
        scanner.cursor = stops.resume(snapshot.region, &snapshot.partial)?;
        scanner.matched = match &snapshot.matched {
            Some(sequence) => Some(stops.position(sequence)?),
            None => None,
        };
        let least = snapshot.matched.as_ref().unwrap_or(&snapshot.partial);
        if snapshot.read < code_points(least.as_bytes()) {
            return None;
        }
        scanner.read = snapshot.read;
        scanner.unused = snapshot.unused.into();
        if scanner.matched.is_none() {
            let held = snapshot.partial.len() - scanner.hold();
            scanner.held.pass(&snapshot.partial[held..], scanner.hold());
        }
        Some(scanner)
    }
}
