use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple, PyType};

use super::arguments::{string, text, value_error};
use super::guarded::{Guarded, State, same_or_new};
use super::segment_set::SegmentSet;
use super::stop_match::StopMatch;
use super::stop_scanner::{Pickled, pickled, unpickled};
use crate::Segments;
use crate::stream::AsRegions;

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
    /// The set it reads with.
    #[pyo3(get)]
    segments: Py<SegmentSet>,
    segmenting: Guarded<crate::Segmenter>,
}

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (segments, /, *, region = None, include_stop = false))]
    pub(super) fn new(
        segments: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
    ) -> PyResult<Segmenter> {
        let segments = SegmentSet::of(segments)?;
        let core = beginning_in(segments.get(), region, include_stop)?;
        Ok(Segmenter { segments, segmenting: Guarded::new(core, None) })
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
        let delta = string(delta, "delta")?;
        let (py, text) = (delta.py(), delta.to_str()?);
        match self.pass(delta, text)? {
            Some(segment) => PyList::new(py, [segment]),
            None => PyList::new(py, self.read(delta, text, armed)?.0),
        }
    }

    /// The segments of the held text, at the end of the stream: it belongs to the region that is open.
    ///
    /// Nothing is held after it. No stop and no marker spans a flush.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.end(py)?)
    }

    /// Goes back to the start of a stream.
    fn reset(&self) -> PyResult<()> {
        self.segmenting.with(|state| {
            state.core.reset();
            state.found = None;
        })
    }

    /// A segmenter in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<Segmenter> {
        Ok(Segmenter { segments: self.segments.clone_ref(py), segmenting: self.segmenting.copy(py)? })
    }

    /// The region that is open.
    #[getter]
    pub(super) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let region = self.segmenting.with(|state| state.core.stream.cursor.region)?;
        Ok(self.segments.get().name(region, py))
    }

    /// The stop that fired, or ``None``.
    #[getter]
    pub(super) fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.segmenting.found(py)
    }

    /// The text that is withheld because it may still turn into a marker or a hidden stop.
    #[getter]
    pub(super) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.segmenting.held(py)
    }

    /// What followed the stop in the delta that completed it.
    #[getter]
    pub(super) fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.segmenting.unused(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Segmenter> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Segmenter> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (Py<SegmentSet>,), Pickled)> {
        let snapshot = slf.get().segmenting.with(|state| state.core.snapshot())?;
        Ok((slf.get_type(), (slf.get().segments.clone_ref(slf.py()),), pickled(snapshot)))
    }

    fn __setstate__(&self, py: Python<'_>, state: Pickled) -> PyResult<()> {
        let core = crate::Segmenter::restore(&self.segments.get().core, &unpickled(state))
            .ok_or_else(|| PyValueError::new_err("not the state of a segmenter with this set"))?;
        self.segmenting.with(|state| {
            *state = State { core, found: None };
            state.note_match(py)
        })?
    }
}

impl Segmenter {
    /// The segment that `delta` is, if reading it changes nothing but how much was read; then it is read.
    #[inline(always)]
    pub(super) fn pass<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let segments = self.segments.get();
        if text.is_empty() {
            return Ok(None);
        }
        match self.segmenting.pass_over(segments.core.as_regions(), text) {
            Some(region) => {
                let name = segments.names[region as usize].bind(delta.py());
                PyTuple::new(delta.py(), [name, delta]).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The segments of `delta`, and whether a stop has fired.
    #[cold]
    pub(super) fn read<'py>(
        &self,
        delta: &Bound<'py, PyString>,
        text: &str,
        armed: bool,
    ) -> PyResult<(Vec<Bound<'py, PyTuple>>, bool)> {
        self.segmenting.with(|state| {
            let output = if armed { state.core.feed(text) } else { state.core.feed_unarmed(text) };
            let segments = self.tuples(output, |safe| same_or_new(delta, text, safe))?;
            state.note_match(delta.py())?;
            Ok((segments, state.found.is_some()))
        })?
    }

    /// The segments of the held text.
    pub(super) fn end<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.segmenting.with(|state| {
            let segments = self.tuples(state.core.flush(), |held| PyString::new(py, held))?;
            state.note_match(py)?;
            Ok(segments)
        })?
    }

    fn tuples<'py>(
        &self,
        segments: Segments<'_>,
        string: impl Fn(&str) -> Bound<'py, PyString>,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let set = self.segments.get();
        let tuple = |segment: crate::Segment<'_>| {
            let region = set.core.region(segment.region).unwrap_or_default();
            let text = string(&segment.text);
            PyTuple::new(text.py(), [set.names[region as usize].bind(text.py()), &text])
        };
        segments.into_iter().map(tuple).collect()
    }
}

/// A segmenter of the core that begins in `region`, by default the first.
pub(super) fn beginning_in(
    segments: &SegmentSet,
    region: Option<&Bound<'_, PyAny>>,
    include_stop: bool,
) -> PyResult<crate::Segmenter> {
    let region = match region {
        None => segments.core.region_after("").to_owned(),
        Some(region) => text(string(region, "region")?, || "region".into())?.to_owned(),
    };
    crate::Segmenter::beginning_in(&segments.core, &region, include_stop).map_err(value_error)
}
