use std::cmp::Ordering;

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::arguments::{hash, string};
use crate::stop_match::code_points;

/// The stop that fired and where: ``text[offset:end] == sequence``.
///
/// ``offset`` and ``end`` count code points of the whole text of the stream. Matches are ordered by their place.
///
/// >>> StopMatch("END", 26).end
/// 29
#[pyclass(module = "stopscan", frozen)]
pub(super) struct StopMatch {
    /// The stop, as the user gave it, or the text that matched a pattern.
    #[pyo3(get)]
    sequence: Py<PyString>,
    /// The pattern that matched, ``None`` for a string.
    #[pyo3(get)]
    pattern: Option<Py<PyString>>,
    /// Where the stop begins, in code points.
    #[pyo3(get)]
    offset: usize,
    /// Where the stop ends, in code points.
    #[pyo3(get)]
    end: usize,
}

impl StopMatch {
    pub(super) fn from_core(py: Python<'_>, found: crate::StopMatch<'_>) -> PyResult<Py<StopMatch>> {
        let sequence = PyString::new(py, found.sequence()).unbind();
        let pattern = found.pattern().map(|pattern| PyString::new(py, pattern).unbind());
        Py::new(py, StopMatch { sequence, pattern, offset: found.offset(), end: found.end() })
    }

    fn key<'a>(&'a self, py: Python<'a>) -> PyResult<(usize, usize, &'a str, Option<&'a str>)> {
        let pattern = self.pattern.as_ref().map(|pattern| pattern.bind(py).to_str()).transpose()?;
        Ok((self.offset, self.end, self.sequence.bind(py).to_str()?, pattern))
    }
}

/// What makes a match again.
type Arguments = (Py<PyString>, usize, Option<Py<PyString>>);

#[pymethods]
impl StopMatch {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("sequence", "offset")
    }

    #[new]
    #[pyo3(signature = (sequence, offset, pattern = None))]
    fn new(sequence: Bound<'_, PyAny>, offset: usize, pattern: Option<Bound<'_, PyAny>>) -> PyResult<StopMatch> {
        let text = string(&sequence, "sequence")?;
        let pattern =
            pattern.map(|pattern| Ok::<_, PyErr>(string(&pattern, "pattern")?.clone().unbind())).transpose()?;
        let end = offset.checked_add(code_points(text.to_str()?));
        let end = end.ok_or_else(|| PyValueError::new_err(format!("offset {offset} is too large")))?;
        Ok(StopMatch { sequence: text.clone().unbind(), pattern, offset, end })
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<StopMatch>() else {
            return Ok(py.NotImplemented());
        };
        let order: Ordering = self.key(py)?.cmp(&other.get().key(py)?);
        Ok(op.matches(order).into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(hash(self.key(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let repr = format!("StopMatch({}, {}", self.sequence.bind(py).repr()?, self.offset);
        match &self.pattern {
            None => Ok(repr + ")"),
            Some(pattern) => Ok(format!("{repr}, {})", pattern.bind(py).repr()?)),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Arguments) {
        let StopMatch { sequence, offset, pattern, .. } = slf.get();
        let pattern = pattern.as_ref().map(|pattern| pattern.clone_ref(slf.py()));
        (slf.get_type(), (sequence.clone_ref(slf.py()), *offset, pattern))
    }
}
