use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::arguments::{options, read_snapshot};
use super::classes::{delta_class, stream_class};
use super::deltas::Deltas;
use super::objects::bytes;
use super::segment_set::SegmentSet;
use super::stop_match::StopMatch;
use super::stop_set::{Pickle, rebuild};
use crate::Segmented;

/// Cuts one stream into segments: ``feed`` it each delta, emit the segments it returns, ``flush`` at the end.
///
/// A segment is a tuple of its region and its text; markers are taken out. The texts of the segments and the markers
/// between them, joined in order, are the input. ``segments`` is a ``SegmentSet`` or the markers that make one. The
/// stream begins in ``region``, by default the first; ``include_stop`` makes every stop visible. A segmenter used from
/// two threads at once raises ``RuntimeError``.
///
/// >>> segmenter = Segmenter({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
/// >>> segmenter.feed("<think>5?</thi"), segmenter.held
/// ([('reasoning', '5?')], '</thi')
/// >>> segmenter.feed("nk>6."), segmenter.region
/// ([('answer', '6.')], 'answer')
#[pyclass(module = "stopscan.segments", frozen)]
pub(super) struct Segmenter {
    pub(super) stream: Deltas<Segmented>,
}

impl Segmenter {
    fn of(stream: Deltas<Segmented>) -> Segmenter {
        Segmenter { stream }
    }
}

delta_class! { Segmenter, PyList,
    #[new]
    #[pyo3(signature = (segments, /, *, region = None, include_stop = false))]
    pub(super) fn new(
        segments: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
    ) -> PyResult<Segmenter> {
        Deltas::new(SegmentSet::of(segments)?, &options(include_stop, false, region)?).map(Segmenter::of)
    }

    /// The segments that are safe to emit now that ``delta`` was read: none is empty, and no neighbours are of one
    /// region.
    ///
    /// After a match there are none. With ``armed=False``, stops that complete inside ``delta`` are ignored; one that
    /// completes later, in armed text, fires although it began here. Markers work as ever. Raises ``TypeError`` for
    /// what is no string and ``UnicodeEncodeError`` for a lone surrogate; the segmenter is then as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyList>> {
        self.stream.feed(delta, armed)
    }

    /// The set it reads with.
    #[getter]
    fn segments(&self, py: Python<'_>) -> Py<SegmentSet> {
        self.stream.set.clone_ref(py)
    }
}
