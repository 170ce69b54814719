use pyo3::prelude::*;

use super::delta_stream::{DeltaStream, Reader};
use super::stop_scanner::StopScanner;

/// An iterator of non-empty safe text over an iterable of deltas, and a context manager. ``scan`` makes it.
///
/// At the end of the source the stream flushes. As soon as a stop fires, the stream closes the source. If the source
/// raises, the error reaches the caller, and ``held`` still has the withheld text.
#[pyclass(module = "stopscan", frozen, extends = DeltaStream)]
pub(super) struct StopStream;

/// An iterator of the safe text of ``deltas``, with ``match``, ``held`` and ``unused``.
///
/// As soon as a stop fires, the iterator closes ``deltas``. ``stop`` and the options are those of ``StopScanner``.
///
/// >>> list(scan(["The E", "ast. EN", "D."], "END"))
/// ['The ', 'East. ']
#[pyfunction]
#[pyo3(signature = (deltas, stop, /, *, include_stop = false, start_protected = false, region = None))]
pub(super) fn scan(
    deltas: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StopStream>> {
    let scanner = StopScanner::new(stop, include_stop, start_protected, region)?;
    let stream = DeltaStream::new(Reader::Text(scanner.stream), deltas)?;
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(StopStream))
}
