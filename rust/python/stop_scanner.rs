use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arguments::{options, read_snapshot};
use super::classes::{delta_class, stream_class};
use super::deltas::Deltas;
use super::objects::bytes;
use super::stop_match::StopMatch;
use super::stop_set::{Pickle, StopSet, rebuild};
use crate::Text;

/// Scans one stream: ``feed`` it each delta, emit what it returns, ``flush`` at the end.
///
/// What it returned, joined, is the text before the stop, or all of it. ``stop`` is a ``StopSet`` or what makes one.
/// ``include_stop`` makes every stop visible; ``start_protected`` begins inside the set's first protected region,
/// ``region`` in a region of the set or in a state of one. A scanner used from two threads at once raises ``RuntimeError``.
///
/// >>> scanner = StopScanner(["END"])
/// >>> scanner.feed("The E"), scanner.held
/// ('The ', 'E')
/// >>> scanner.feed("ND."), scanner.match, scanner.unused
/// ('', StopMatch('END', 4), '.')
#[pyclass(module = "stopscan", frozen)]
pub(super) struct StopScanner {
    pub(super) stream: Deltas<Text>,
}

impl StopScanner {
    fn of(stream: Deltas<Text>) -> StopScanner {
        StopScanner { stream }
    }
}

delta_class! { StopScanner, PyString,
    #[new]
    #[pyo3(signature = (stop, /, *, include_stop = false, start_protected = false, region = None))]
    pub(super) fn new(
        stop: &Bound<'_, PyAny>,
        include_stop: bool,
        start_protected: bool,
        region: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StopScanner> {
        Deltas::new(StopSet::of(stop)?, &options(include_stop, start_protected, region)?).map(StopScanner::of)
    }

    /// The text that is safe to emit now that ``delta`` was read: ``delta`` itself when nothing is held.
    ///
    /// After a match it is ``""``. With ``armed=False``, stops that complete inside ``delta`` are ignored; one that
    /// completes later, in armed text, fires although it began here. Raises ``TypeError`` for what is no string and
    /// ``UnicodeEncodeError`` for a lone surrogate; the scanner is then as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyString>> {
        self.stream.feed(delta, armed)
    }

    /// The held text and ``text``, which is not scanned. The partial match is forgotten; an open region stays open.
    ///
    /// It is for text that the caller knows is not to be scanned: reasoning, tool arguments. After a match it is
    /// ``""``.
    #[pyo3(signature = (text, /))]
    fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.bypass(text)
    }

    /// The set it scans for.
    #[getter]
    fn stops(&self, py: Python<'_>) -> Py<StopSet> {
        self.stream.set.clone_ref(py)
    }
}
