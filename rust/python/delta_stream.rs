use std::collections::VecDeque;
use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::arguments::string;
use super::guarded::in_use;
use super::segmenter::Segmenter;
use super::source::Source;
use super::stop_match::StopMatch;
use super::stop_scanner::StopScanner;

/// What ``StopStream`` and ``SegmentStream`` have in common: an iterator over an iterable of deltas.
///
/// One class with one `__next__`, because then PyO3's way into it is inlined; a second one costs every delta 4 ns.
#[pyclass(module = "stopscan", frozen, subclass)]
pub(super) struct DeltaStream {
    reader: Reader,
    source: Source,
}

pub(super) enum Reader {
    Stops(StopScanner),
    /// With the segments of a delta that were not given out yet.
    Segments(Segmenter, Mutex<VecDeque<Py<PyTuple>>>),
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
            return Ok(Some(segment.into_bound(py).into_any()));
        }
        while !self.source.ended() {
            let Some(delta) = self.source.next(py) else {
                return self.flush(py);
            };
            let delta = delta?;
            let delta = string(&delta, "delta")?;
            let text = delta.to_str()?;
            if let Reader::Stops(scanner) = &self.reader
                && scanner.pass_over(text)
                && !text.is_empty()
            {
                return Ok(Some(delta.clone().into_any()));
            }
            if let Some(safe) = self.read(delta, text)? {
                return Ok(Some(safe));
            }
        }
        self.source.take_error().map(|()| None)
    }

    /// Closes the source, as a stop does; the stream ends with what is ready. Held text stays in ``held``.
    ///
    /// If the source cannot be closed, its error comes through and the stream goes on, and can be closed again. So it
    /// is with the ``RuntimeError`` while another thread is in the stream.
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
            Reader::Stops(scanner) => scanner.r#match(py),
            Reader::Segments(segmenter, _) => segmenter.r#match(py),
        }
    }

    /// The text that is withheld because it may still turn into a hidden stop or into a marker.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        match &self.reader {
            Reader::Stops(scanner) => scanner.held(py),
            Reader::Segments(segmenter, _) => segmenter.held(py),
        }
    }

    /// What followed the stop in the delta that completed it.
    #[getter]
    fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        match &self.reader {
            Reader::Stops(scanner) => scanner.unused(py),
            Reader::Segments(segmenter, _) => segmenter.unused(py),
        }
    }
}

impl DeltaStream {
    pub(super) fn new(reader: Reader, deltas: &Bound<'_, PyAny>) -> PyResult<DeltaStream> {
        Ok(DeltaStream { reader, source: Source::new(deltas)? })
    }

    pub(super) fn segmenter(&self) -> Option<&Segmenter> {
        match &self.reader {
            Reader::Stops(_) => None,
            Reader::Segments(segmenter, _) => Some(segmenter),
        }
    }

    #[inline(never)]
    fn read<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (safe, stopped) = match &self.reader {
            Reader::Stops(scanner) => {
                let (safe, stopped) = scanner.read(delta, text)?;
                (not_empty(safe), stopped)
            }
            Reader::Segments(segmenter, ready) => {
                if let Some(segment) = segmenter.pass(delta, text)? {
                    return Ok(Some(segment.into_any()));
                }
                let (segments, stopped) = segmenter.read(delta, text, true)?;
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
            Reader::Stops(scanner) => Ok(not_empty(scanner.flush(py)?)),
            Reader::Segments(segmenter, ready) => first(segmenter.end(py)?, ready),
        }
    }
}

fn not_empty(text: Bound<'_, PyString>) -> Option<Bound<'_, PyAny>> {
    (!text.to_str().is_ok_and(str::is_empty)).then(|| text.into_any())
}

/// The first of `segments`; the others are ready for the next calls.
fn first<'py>(
    segments: Vec<Bound<'py, PyTuple>>,
    ready: &Mutex<VecDeque<Py<PyTuple>>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut segments = segments.into_iter();
    let first = segments.next();
    if segments.len() > 0 {
        let mut ready = ready.try_lock().map_err(|_| in_use("stream", "thread"))?;
        ready.extend(segments.map(Bound::unbind));
    }
    Ok(first.map(Bound::into_any))
}

fn take(ready: &Mutex<VecDeque<Py<PyTuple>>>) -> PyResult<Option<Py<PyTuple>>> {
    Ok(ready.try_lock().map_err(|_| in_use("stream", "thread"))?.pop_front())
}
