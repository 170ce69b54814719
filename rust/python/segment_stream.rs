use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::delta_stream::{DeltaStream, Reader};
use super::segmenter::Segmenter;

/// An iterator of segments over an iterable of deltas, and a context manager. ``split`` makes it.
///
/// At the end of the source the stream flushes. As soon as a stop fires, the stream closes the source. If the source
/// raises, the error reaches the caller, and ``held`` still has the withheld text.
#[pyclass(module = "stopscan.segments", frozen, extends = DeltaStream)]
pub(super) struct SegmentStream;

#[pymethods]
impl SegmentStream {
    /// The name of the open region.
    #[getter]
    fn region(slf: &Bound<'_, Self>) -> PyResult<Py<PyString>> {
        slf.as_super().get().region(slf.py())
    }
}

/// An iterator of the segments of ``deltas``, with ``region``, ``match``, ``held`` and ``unused``.
///
/// As soon as a stop fires, the iterator closes ``deltas``. ``segments`` and the options are those of ``Segmenter``.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> list(split(["<thi", "nk>5?</", "think>6."], markers))
/// [('reasoning', '5?'), ('answer', '6.')]
#[pyfunction]
#[pyo3(signature = (deltas, segments, /, *, region = None, include_stop = false))]
pub(super) fn split(
    deltas: &Bound<'_, PyAny>,
    segments: &Bound<'_, PyAny>,
    region: Option<&Bound<'_, PyAny>>,
    include_stop: bool,
) -> PyResult<Py<SegmentStream>> {
    let segmenter = Segmenter::new(segments, region, include_stop)?;
    let stream = DeltaStream::new(Reader::Segments(segmenter.stream, Mutex::default()), deltas)?;
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(SegmentStream))
}
