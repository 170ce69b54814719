use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use super::arguments::{options, read_snapshot};
use super::classes::{delta_class, stream_class};
use super::deltas::Deltas;
use super::objects::{bytes, rebuild};
use super::stop_match::StopMatch;
use super::stop_set::StopSet;
use crate::Text;

/// Scans one stream: give ``feed`` each delta, emit the text that ``feed`` returns, and call ``flush`` at the end.
///
/// The returned texts, joined, are the text before the stop, or all text if no stop fires.
///
/// - ``stop``: a ``StopSet``, or the stops that make a set.
/// - ``include_stop``: whether every stop stays in the output.
/// - ``start_protected``: whether the stream begins inside the first protected region of the set.
/// - ``region``: the region of the set, or the state of a region, in which the stream begins.
///
/// Raises ``RuntimeError`` if two threads use a scanner at once.
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

    /// The text that is safe to emit after ``delta``. If nothing is held, the text is the object ``delta`` itself.
    ///
    /// After a match the text is ``""``. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes later, in armed text, does fire.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the scanner is as before.
    ///
    /// >>> StopScanner("END").feed("END E", armed=False)
    /// 'END '
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyString>> {
        self.stream.feed(delta, armed)
    }

    /// The held text and ``text``, joined. ``text`` is not scanned.
    ///
    /// The scanner forgets the beginning of a stop that was held. An open region stays open. After a match the result
    /// is ``""``. Use ``bypass`` for text that is not to be scanned, such as the arguments of a tool call.
    ///
    /// >>> scanner = StopScanner("END")
    /// >>> scanner.feed("EN"), scanner.bypass("-"), scanner.feed("D")
    /// ('', 'EN-', 'D')
    #[pyo3(signature = (text, /))]
    fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.bypass(text)
    }

    /// The ``StopSet`` of the scanner.
    #[getter]
    fn stops(&self, py: Python<'_>) -> Py<StopSet> {
        self.stream.set.clone_ref(py)
    }
}
