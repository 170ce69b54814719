//! The Python objects for a stop that fired and for the end of a stream of tokens: `StopMatch`, and
//! `stopscan.finish.Finish`.

use std::cmp::Ordering;

use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use stopscan::host::code_points;
use stopscan::{Emit, EndReason, Finish, TokenStream};

use crate::arguments::{hash, size, string};
use crate::errors::value_error;
use crate::objects::new_string;
use crate::sets::short_repr;

/// The stop that fired and where: ``text[offset:end] == sequence``.
///
/// ``offset`` and ``end`` count code points of the stream's whole text. Matches are sorted by ``offset``, then ``end``.
///
/// >>> StopMatch("END", 26).end
/// 29
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct StopMatch {
    /// The stop as the user gave it. For a pattern or a loop: the text that matched.
    #[pyo3(get)]
    sequence: Py<PyString>,
    /// The pattern that matched. ``None`` if the stop is not a pattern.
    #[pyo3(get)]
    pattern: Option<Py<PyString>>,
    period: Option<usize>,
    offset: usize,
    end: usize,
}

impl StopMatch {
    pub(crate) fn from_core(py: Python<'_>, found: stopscan::StopMatch<'_>) -> PyResult<Py<StopMatch>> {
        let sequence = new_string(py, found.sequence())?.unbind();
        let pattern = found.pattern().map(|pattern| new_string(py, pattern).map(Bound::unbind)).transpose()?;
        Py::new(py, StopMatch { sequence, pattern, period: found.period(), offset: found.offset(), end: found.end() })
    }

    fn key<'a>(&'a self, py: Python<'a>) -> PyResult<Key<'a>> {
        let pattern = self.pattern.as_ref().map(|pattern| pattern.bind(py).to_str()).transpose()?;
        Ok((self.offset, self.end, self.sequence.bind(py).to_str()?, pattern, self.period))
    }
}

/// The sort key of a match: offset, end, sequence, pattern, period.
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
        let end = end.ok_or_else(|| value_error(format!("offset {offset} is too large")))?;
        Ok(StopMatch { sequence: text.clone().unbind(), pattern, period, offset, end })
    }

    /// The length of the block that a loop repeats, in code points (see ``Repeat``). ``None`` if the stop is not a
    /// loop.
    #[getter]
    fn period(&self) -> Option<usize> {
        self.period
    }

    /// Where the stop begins in the text of the stream, in code points.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// Where the stop ends in the text of the stream, in code points.
    #[getter]
    fn end(&self) -> usize {
        self.end
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

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let mut repr = format!("StopMatch({}, {}", self.sequence.bind(py).repr()?.to_str()?, self.offset);
        if let Some(pattern) = &self.pattern {
            repr += &format!(", {}", pattern.bind(py).repr()?.to_str()?);
        }
        if let Some(period) = self.period {
            repr += &format!(", period={period}");
        }
        new_string(py, &(repr + ")"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, found) = (slf.py(), slf.get());
        let arguments = (&found.sequence, found.offset, &found.pattern, found.period);
        (slf.get_type(), arguments).into_pyobject(py)
    }
}

static FINISH: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    FINISH.import(py, "stopscan.finish", "Finish")
}

/// Returns the Python `Finish` of `stream`, or `None` while the stream goes on.
pub(crate) fn finished<'py, E: Emit, D>(py: Python<'py>, stream: &TokenStream<E, D>) -> PyResult<Option<Py<PyAny>>> {
    let finish = match stream.finish() {
        None => return Ok(None),
        Some(Finish::StopToken(id)) => class(py)?.call1(("stop_token", id))?,
        Some(finish) => {
            let found = stream.stop_match().map(|found| StopMatch::from_core(py, found)).transpose()?;
            let found = found.map_or_else(|| py.None(), Py::into_any).into_bound(py);
            let reason = if let Finish::Ended(reason) = finish { reason } else { EndReason::Eos };
            class(py)?.call_method1("of", (found, reason.name()))?
        }
    };
    Ok(Some(finish.unbind()))
}

/// Reads the reason that the caller gives to `flush`.
pub(crate) fn reason_of(reason: &Bound<'_, PyAny>) -> PyResult<EndReason> {
    let name = reason.cast::<PyString>().ok().and_then(|name| name.to_str().ok());
    if let Some(reason) = name.and_then(EndReason::from_name) {
        return Ok(reason);
    }
    let names: Vec<&str> = (0..).map_while(EndReason::from_number).map(EndReason::name).collect();
    Err(value_error(format!("reason must be one of {}, not {}", names.join(", "), short_repr(reason)?)))
}
