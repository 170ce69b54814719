use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::arguments::{options, read_snapshot};
use super::classes::{delta_class, stream_class};
use super::deltas::Deltas;
use super::objects::{bytes, rebuild};
use super::segment_set::SegmentSet;
use super::stop_match::StopMatch;
use crate::Segmented;

/// Cuts one stream into segments: give ``feed`` each delta, emit the segments that ``feed`` returns, and call ``flush``
/// at the end.
///
/// A segment is a tuple of two strings: the region and the text. Markers are taken out of the text. The segments' texts
/// and the markers between them, joined in order, are the input.
///
/// - ``segments``: a ``SegmentSet``, or the markers that make a set.
/// - ``region``: where the stream begins. The default is the first region.
/// - ``include_stop``: whether every stop stays in the output.
///
/// Raises ``RuntimeError`` if two threads use a segmenter at once.
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

    /// The list of segments that are safe to emit after ``delta``. No segment is empty, and no two neighbours are of
    /// one region.
    ///
    /// After a match the list is empty. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes later, in armed text, does fire. Markers count in unarmed text,
    /// too.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the segmenter is as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyList>> {
        self.stream.feed(delta, armed)
    }

    /// The ``SegmentSet`` of the segmenter.
    #[getter]
    fn segments(&self, py: Python<'_>) -> Py<SegmentSet> {
        self.stream.set.clone_ref(py)
    }
}
