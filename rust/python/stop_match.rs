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
    /// The stop, as the user gave it.
    #[pyo3(get)]
    sequence: Py<PyString>,
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
        Py::new(py, StopMatch { sequence, offset: found.offset(), end: found.end() })
    }

    fn key<'a>(&'a self, py: Python<'a>) -> PyResult<(usize, usize, &'a str)> {
        Ok((self.offset, self.end, self.sequence.bind(py).to_str()?))
    }
}

#[pymethods]
impl StopMatch {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("sequence", "offset")
    }

    #[new]
    fn new(sequence: Bound<'_, PyAny>, offset: usize) -> PyResult<StopMatch> {
        let text = string(&sequence, "sequence")?;
        let end = offset.checked_add(code_points(text.to_str()?));
        let end = end.ok_or_else(|| PyValueError::new_err(format!("offset {offset} is too large")))?;
        Ok(StopMatch { sequence: text.clone().unbind(), offset, end })
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
        Ok(format!("StopMatch({}, {})", self.sequence.bind(py).repr()?, self.offset))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyString>, usize)) {
        (slf.get_type(), (slf.get().sequence.clone_ref(slf.py()), slf.get().offset))
    }
}
