//! Where the deltas of a stream come from: an iterable that is read, and closed when a stop fires.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString, PyTuple};
use stopscan::{Segmented, Text};

use crate::arguments::{string, with_text};
use crate::matches::StopMatch;
use crate::objects::new_string;
use crate::streams::{Deltas, GIL, Segmenter, StopScanner, in_use, lock, segment};

/// An iterator of non-empty safe text over an iterable of deltas, and a context manager. ``scan`` makes it.
///
/// At the end of the source the stream flushes. As soon as a stop fires, the stream closes the source. If the source
/// raises, the error reaches the caller, and ``held`` still has the withheld text.
#[pyclass(module = "stopscan", frozen, extends = DeltaStream)]
pub(crate) struct StopStream;

/// An iterator of the safe text of ``deltas``, with ``match``, ``held`` and ``unused``.
///
/// As soon as a stop fires, the iterator closes ``deltas``. ``stop`` and the options are those of ``StopScanner``.
///
/// >>> list(scan(["The E", "ast. EN", "D."], "END"))
/// ['The ', 'East. ']
#[pyfunction]
#[pyo3(signature = (deltas, stop, /, *, include_stop = false, start_protected = false, region = None))]
pub(crate) fn scan(
    deltas: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StopStream>> {
    let scanner = StopScanner::new(stop, include_stop, start_protected, region)?;
    let stream = DeltaStream::new(Reader::Text(scanner.stream), deltas)?;
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(StopStream))
}

/// An iterator of segments over an iterable of deltas, and a context manager. ``split`` makes it.
///
/// At the end of the source the stream flushes. As soon as a stop fires, the stream closes the source. If the source
/// raises, the error reaches the caller, and ``held`` still has the withheld text.
#[pyclass(module = "stopscan.segments", frozen, extends = DeltaStream)]
pub(crate) struct SegmentStream;

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
/// [('reasoning', '5?', 1), ('answer', '6.', 2)]
#[pyfunction]
#[pyo3(signature = (deltas, segments, /, *, region = None, include_stop = false))]
pub(crate) fn split(
    deltas: &Bound<'_, PyAny>,
    segments: &Bound<'_, PyAny>,
    region: Option<&Bound<'_, PyAny>>,
    include_stop: bool,
) -> PyResult<Py<SegmentStream>> {
    let segmenter = Segmenter::new(segments, region, include_stop)?;
    let stream = DeltaStream::new(Reader::Segments(segmenter.stream, Mutex::default()), deltas)?;
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(SegmentStream))
}

/// What ``StopStream`` and ``SegmentStream`` have in common: an iterator over an iterable of deltas.
///
/// One class with one `__next__`, because then PyO3's way into it is inlined; a second one costs every delta 4 ns.
#[pyclass(module = "stopscan", frozen, subclass)]
pub(crate) struct DeltaStream {
    reader: Reader,
    source: Source,
}

pub(crate) enum Reader {
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
                return self.flush(py);
            };
            let delta = delta?;
            let delta = string(&delta, "delta")?;
            let safe = with_text(delta, |text| match &self.reader {
                Reader::Text(stream)
                    if !text.is_empty() && stream.pass(text, |_, _| Ok::<_, Infallible>(())) != Ok(None) =>
                {
                    Ok(Some(delta.clone().into_any()))
                }
                _ => self.read(delta, text),
            });
            if let Some(safe) = safe? {
                return Ok(Some(safe));
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
    pub(crate) fn new(reader: Reader, deltas: &Bound<'_, PyAny>) -> PyResult<DeltaStream> {
        Ok(DeltaStream { reader, source: Source::new(deltas)? })
    }

    pub(crate) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
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
                    && let Some(segment) =
                        stream.pass(text, |node, part| segment(stream.set.get(), node, part, delta))?
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

pub(crate) struct Source {
    deltas: Py<PyAny>,
    iterator: Py<PyIterator>,
    /// Whether a thread is in the source's code.
    running: AtomicBool,
    /// Whether nothing more is read: it has ended, a stop has fired, or it was closed.
    ended: AtomicBool,
    closed: AtomicBool,
    /// Why it could not be closed after a stop. The text before the stop comes first.
    error: Mutex<Option<Py<PyBaseException>>>,
}

/// Held while a thread is in the source's code.
pub(crate) struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

impl Source {
    pub(crate) fn new(deltas: &Bound<'_, PyAny>) -> PyResult<Source> {
        Ok(Source {
            deltas: deltas.clone().unbind(),
            iterator: deltas.try_iter()?.unbind(),
            running: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            error: Mutex::new(None),
        })
    }

    /// Keeps other threads, and the source itself, out until it is dropped.
    #[inline(always)]
    pub(crate) fn run(&self) -> PyResult<Running<'_>> {
        let running = if GIL { self.running.load(Relaxed) } else { self.running.swap(true, Relaxed) };
        if running {
            return Err(in_use("stream", "thread"));
        }
        self.running.store(true, Relaxed);
        Ok(Running(&self.running))
    }

    #[inline(always)]
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// The next delta; `None` is the end.
    #[inline(always)]
    pub(crate) fn next<'py>(&self, py: Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>> {
        let delta = self.iterator.bind(py).clone().next();
        if delta.is_none() {
            self.ended.store(true, Relaxed);
        }
        delta
    }

    /// Closes the source. If that fails, nothing changes: it can be read on, and closed again.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _running = self.run()?;
        self.close_once(py)?;
        self.ended.store(true, Relaxed);
        Ok(())
    }

    /// Closes the source because a stop fired; the error of that comes at the end.
    #[cold]
    pub(crate) fn close_after_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.ended.store(true, Relaxed);
        let closed = self.close_once(py);
        *lock(&self.error)? = closed.err().map(|error| error.into_value(py));
        Ok(())
    }

    /// The error of closing the source after a stop, once.
    pub(crate) fn take_error(&self, py: Python<'_>) -> PyResult<()> {
        let error = lock(&self.error)?.take();
        error.map_or(Ok(()), |error| Err(PyErr::from_value(error.into_bound(py).into_any())))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.deltas)?;
        visit.call(&self.iterator)?;
        // Its traceback has the frames of those who called.
        self.error.try_lock().map_or(Ok(()), |error| visit.call(&*error))
    }

    fn close_once(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed.load(Relaxed) {
            return Ok(());
        }
        let closed = close(self.iterator.bind(py));
        // An API client's stream is not its own iterator, and only the stream's close ends the request.
        if self.deltas.is(&self.iterator) {
            closed?
        } else {
            close(self.deltas.bind(py)).and(closed)?
        }
        self.closed.store(true, Relaxed);
        Ok(())
    }
}

fn close(source: &Bound<'_, PyAny>) -> PyResult<()> {
    match source.getattr_opt(new_string(source.py(), "close")?)? {
        Some(close) if !close.is_none() => close.call0().map(|_| ()),
        _ => Ok(()),
    }
}
