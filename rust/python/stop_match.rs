use std::cmp::Ordering;

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::arguments::{hash, string};
use super::given::size;
use super::objects::new_string;
use crate::stream::code_points;

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
    /// The length of the block that a loop repeats, in code points. ``None`` for any other stop.
    #[pyo3(get)]
    period: Option<usize>,
    /// Where the stop begins, in code points.
    #[pyo3(get)]
    offset: usize,
    /// Where the stop ends, in code points.
    #[pyo3(get)]
    end: usize,
}

impl StopMatch {
    pub(super) fn from_core(py: Python<'_>, found: crate::StopMatch<'_>) -> PyResult<Py<StopMatch>> {
        let sequence = new_string(py, found.sequence())?.unbind();
        let pattern = found.pattern().map(|pattern| new_string(py, pattern).map(Bound::unbind)).transpose()?;
        Py::new(py, StopMatch { sequence, pattern, period: found.period(), offset: found.offset(), end: found.end() })
    }

    fn key<'a>(&'a self, py: Python<'a>) -> PyResult<Key<'a>> {
        let pattern = self.pattern.as_ref().map(|pattern| pattern.bind(py).to_str()).transpose()?;
        Ok((self.offset, self.end, self.sequence.bind(py).to_str()?, pattern, self.period))
    }
}

/// What makes a match again.
type Arguments = (Py<PyString>, usize, Option<Py<PyString>>, Option<usize>);

/// What a match is compared by.
type Key<'a> = (usize, usize, &'a str, Option<&'a str>, Option<usize>);

#[pymethods]
impl StopMatch {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("sequence", "offset")
    }

    #[new]
    #[pyo3(signature = (sequence, offset, pattern = None, period = None))]
    fn new(
        sequence: Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
        pattern: Option<Bound<'_, PyAny>>,
        period: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StopMatch> {
        let offset = size(offset, "offset")?;
        let period = period.map(|period| size(period, "period")).transpose()?;
        let text = string(&sequence, "sequence")?;
        let pattern =
            pattern.map(|pattern| Ok::<_, PyErr>(string(&pattern, "pattern")?.clone().unbind())).transpose()?;
        let end = offset.checked_add(code_points(text.to_str()?));
        let end = end.ok_or_else(|| PyValueError::new_err(format!("offset {offset} is too large")))?;
        Ok(StopMatch { sequence: text.clone().unbind(), pattern, period, offset, end })
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
        let pattern = self.pattern.as_ref().map(|pattern| Ok::<_, PyErr>(format!(", {}", pattern.bind(py).repr()?)));
        let period = self.period.map(|period| format!(", period={period}"));
        Ok(repr + &pattern.transpose()?.unwrap_or_default() + &period.unwrap_or_default() + ")")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Arguments) {
        let StopMatch { sequence, offset, pattern, period, .. } = slf.get();
        let pattern = pattern.as_ref().map(|pattern| pattern.clone_ref(slf.py()));
        (slf.get_type(), (sequence.clone_ref(slf.py()), *offset, pattern, *period))
    }
}
