use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::arguments::{string, with_text};
use super::deltas::Deltas;
use super::guarded::lock;
use super::show::segment;
use super::source::Source;
use super::stop_match::StopMatch;
use crate::{Segmented, Text};

/// What ``StopStream`` and ``SegmentStream`` have in common: an iterator over an iterable of deltas.
///
/// One class with one `__next__`, because then PyO3's way into it is inlined; a second one costs every delta 4 ns.
#[pyclass(module = "stopscan", frozen, subclass)]
pub(super) struct DeltaStream {
    reader: Reader,
    source: Source,
}

pub(super) enum Reader {
    Text(Deltas<Text>),
    /// With the segments that were not given out yet.
    Segments(Deltas<Segmented>, Mutex<VecDeque<Py<PyAny>>>),
}

#[pymethods]
impl DeltaStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _running = self.source.run()?;
        if let Reader::Segments(_, ready) = &self.reader
            && let Some(segment) = take(ready)?
        {
            return Ok(Some(segment.into_bound(py)));
        }
        while !self.source.ended() {
            let Some(delta) = self.source.next(py) else {
                return self.flush(py).inspect_err(|_| self.source.end_again());
            };
            let delta = delta?;
            let delta = string(&delta, "delta")?;
            let safe = with_text(delta, |text| match &self.reader {
                Reader::Text(stream)
                    if !text.is_empty() && stream.pass(text, true, Ok::<_, Infallible>) != Ok(None) =>
                {
                    Ok(Some(delta.clone().into_any()))
                }
                _ => self.read(delta, text),
            });
            let safe = safe.inspect_err(|error| self.source.give_again(delta, error))?;
            if safe.is_some() {
                return Ok(safe);
            }
        }
        self.source.take_error(py).map(|()| None)
    }

    /// Closes the source, as a stop does. The stream ends with the text that is ready. Held text stays in ``held``.
    ///
    /// If the source cannot be closed, the error reaches the caller. The stream then goes on, and can be closed again.
    /// The ``RuntimeError`` while another thread is in the stream is such an error.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.source.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.source.traverse(&visit)
    }

    /// The stop that fired, or ``None``.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        match &self.reader {
            Reader::Text(stream) => stream.found(py),
            Reader::Segments(stream, _) => stream.found(py),
        }
    }

    /// The text that is withheld because it may be the beginning of a hidden stop or of a marker.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        match &self.reader {
            Reader::Text(stream) => stream.held(py),
            Reader::Segments(stream, _) => stream.held(py),
        }
    }

    /// The text after the stop in the delta that completed the stop.
    #[getter]
    fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        match &self.reader {
            Reader::Text(stream) => stream.unused(py),
            Reader::Segments(stream, _) => stream.unused(py),
        }
    }
}

impl DeltaStream {
    pub(super) fn new(reader: Reader, deltas: &Bound<'_, PyAny>) -> PyResult<DeltaStream> {
        Ok(DeltaStream { reader, source: Source::new(deltas)? })
    }

    pub(super) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        match &self.reader {
            Reader::Text(stream) => stream.region(py),
            Reader::Segments(stream, _) => stream.region(py),
        }
    }

    #[inline(never)]
    fn read<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (safe, stopped) = match &self.reader {
            Reader::Text(stream) => {
                let (safe, stopped) = stream.read(delta, text, true)?;
                (not_empty(safe), stopped)
            }
            Reader::Segments(stream, ready) => {
                if !text.is_empty()
                    && let Some(segment) = stream.pass(text, true, |node| segment(stream.set.get(), node, delta))?
                {
                    return Ok(Some(segment.into_any()));
                }
                let (segments, stopped) = stream.read(delta, text, true)?;
                (first(segments, ready)?, stopped)
            }
        };
        if stopped {
            self.source.close_after_stop(delta.py())?;
        }
        Ok(safe)
    }

    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.reader {
            Reader::Text(stream) => Ok(not_empty(stream.flush(py)?)),
            Reader::Segments(stream, ready) => first(stream.flush(py)?, ready),
        }
    }
}

fn not_empty(text: Bound<'_, PyString>) -> Option<Bound<'_, PyAny>> {
    (!text.len().is_ok_and(|length| length == 0)).then(|| text.into_any())
}

/// The first of `segments`; the others are ready for the next calls.
fn first<'py>(segments: Bound<'py, PyList>, ready: &Mutex<VecDeque<Py<PyAny>>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut segments = segments.iter();
    let first = segments.next();
    if segments.len() > 0 {
        let mut ready = lock(ready)?;
        ready.extend(segments.map(Bound::unbind));
    }
    Ok(first)
}

fn take(ready: &Mutex<VecDeque<Py<PyAny>>>) -> PyResult<Option<Py<PyAny>>> {
    Ok(lock(ready)?.pop_front())
}
