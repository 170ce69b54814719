//! Iterators that yield the safe text or the segments of an iterable of deltas, and close the iterable at a stop.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard};

use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyString, PyTuple};
use stopscan::{Segmented, Text};

use crate::arguments::{iterated, short_text, string, unexpected, with_text};
use crate::matches::StopMatch;
use crate::rewrite::{RewriteSet, Rewriter, Rewrites};
use crate::sets::{SegmentSet, StopSet};
use crate::streams::{Deltas, Segmenter, StopScanner};
use crate::turns::{GIL, NOBODY, in_use, this_thread};

/// Iterates over deltas and yields non-empty text that is safe to emit. Also a context manager. Made by ``scan``.
///
/// The iterable of deltas is the source. When the source ends, the stream yields the held text. When a stop fires, the
/// stream closes the source. When the source raises an error, the stream raises this error, and ``held`` still has the
/// withheld text.
#[pyclass(module = "stopscan", frozen, extends = DeltaStream)]
pub(crate) struct StopStream {
    /// The ``StopSet`` of the stream.
    #[pyo3(get)]
    stops: Py<StopSet>,
}

/// Returns an iterator of the safe text of ``deltas``.
///
/// The iterator has the attributes ``match``, ``held``, ``unused``, ``region``, ``stops`` and ``closes``. As soon as a
/// stop fires, the iterator closes ``deltas``. ``stop`` and the options are the same as in ``StopScanner``.
///
/// >>> list(scan(["The E", "ast. EN", "D."], "END"))
/// ['The ', 'East. ']
#[pyfunction]
#[pyo3(signature = (deltas, /, stop, *, include_stop = false, start_protected = false, region = None))]
pub(crate) fn scan(
    deltas: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<StopStream>> {
    let scanner = StopScanner::new(stop, include_stop, start_protected, region)?;
    let stops = scanner.stream.set.clone_ref(deltas.py());
    let stream = DeltaStream { reader: DeltaReader::Text(scanner.stream), source: Source::new(deltas, "ascan")? };
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(StopStream { stops }))
}

/// Iterates over deltas and yields segments that are safe to emit. Also a context manager. Made by ``split``.
///
/// The iterable of deltas is the source. When the source ends, the stream yields the held text. When a stop fires, the
/// stream closes the source. When the source raises an error, the stream raises this error, and ``held`` still has the
/// withheld text.
#[pyclass(module = "stopscan.segments", frozen, extends = DeltaStream)]
pub(crate) struct SegmentStream {
    /// The ``SegmentSet`` of the stream.
    #[pyo3(get)]
    segments: Py<SegmentSet>,
}

/// Returns an iterator of the segments of ``deltas``.
///
/// The iterator has the attributes ``match``, ``held``, ``unused``, ``region``, ``segments`` and ``closes``. As soon as
/// a stop fires, the iterator closes ``deltas``. ``segments`` and the options are the same as in ``Segmenter``.
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
    let segments = segmenter.stream.set.clone_ref(deltas.py());
    let reader = DeltaReader::Segments(segmenter.stream, Mutex::default());
    let stream = DeltaStream { reader, source: Source::new(deltas, "asplit")? };
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(SegmentStream { segments }))
}

/// Iterates over deltas and yields their text, with the keys of a ``RewriteSet`` replaced. Also a context manager. Made
/// by ``rewrite``. Never yields an empty string.
///
/// The iterable of deltas is the source. When the source ends, the stream yields the held text with its keys replaced.
/// When the source raises an error, the stream raises this error, and ``held`` still has the withheld text.
#[pyclass(module = "stopscan", frozen, extends = DeltaStream)]
pub(crate) struct RewriteStream {
    /// The ``RewriteSet`` of the stream.
    #[pyo3(get)]
    set: Py<RewriteSet>,
}

/// Returns an iterator of the text of ``deltas``, in which each key of ``replacements`` is replaced by its value.
///
/// The iterator has the attributes ``held``, ``set`` and ``closes``. ``replacements`` is the same as in ``Rewriter``.
///
/// >>> list(rewrite(["Dear <", "P1>, ", "<"], {"<P1>": "Ada"}))
/// ['Dear ', 'Ada, ', '<']
#[pyfunction]
#[pyo3(signature = (deltas, /, replacements))]
pub(crate) fn rewrite(deltas: &Bound<'_, PyAny>, replacements: &Bound<'_, PyAny>) -> PyResult<Py<RewriteStream>> {
    if deltas.is_instance_of::<PyString>() {
        return Err(unexpected(deltas, "deltas", "an iterable of str", "; RewriteSet.rewrite takes a whole text"));
    }
    let rewriter = Rewriter::new(replacements)?;
    let set = rewriter.stream.set.clone_ref(deltas.py());
    let stream =
        DeltaStream { reader: DeltaReader::Rewritten(rewriter.stream), source: Source::new(deltas, "arewrite")? };
    Py::new(deltas.py(), PyClassInitializer::from(stream).add_subclass(RewriteStream { set }))
}

/// The base of ``StopStream``, ``SegmentStream`` and ``RewriteStream``: an iterator over an iterable of deltas.
///
/// The three share one `__next__`, because PyO3's wrapper of it is then inlined. With a second `__next__`, each delta
/// would take 4 ns longer.
#[pyclass(module = "stopscan", frozen, subclass)]
pub(crate) struct DeltaStream {
    reader: DeltaReader,
    source: Source,
}

enum DeltaReader {
    Text(Deltas<Text>),
    /// The second field holds the segments that were not returned yet.
    Segments(Deltas<Segmented>, Mutex<VecDeque<Py<PyAny>>>),
    Rewritten(Rewrites),
}

/// The body of a getter of a stream. Returns `$look`, or `$rewritten` for a `RewriteStream`. Raises an error if the
/// code of the source (the iterable of deltas) calls the getter. Other threads may call it while this code runs.
macro_rules! look_at {
    ($streams:expr, $stream:ident => $look:expr, |$rewrites:pat_param| $rewritten:expr) => {{
        let streams = $streams;
        streams.source.refuse_own_thread()?;
        match &streams.reader {
            DeltaReader::Text($stream) => $look,
            DeltaReader::Segments($stream, _) => $look,
            DeltaReader::Rewritten($rewrites) => $rewritten,
        }
    }};
}

/// The getters of `StopStream` and `SegmentStream`.
macro_rules! stop_getters {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// The stop that fired, or ``None``.
            #[getter]
            fn r#match(slf: &Bound<'_, Self>) -> PyResult<Option<Py<StopMatch>>> {
                match &slf.as_super().get().reader {
                    DeltaReader::Text(stream) => stream.found(slf.py()),
                    DeltaReader::Segments(stream, _) => stream.found(slf.py()),
                    DeltaReader::Rewritten(_) => Ok(None),
                }
            }

            /// The text after the stop in the delta that completed the stop.
            #[getter]
            fn unused<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
                look_at!(slf.as_super().get(), stream => stream.unused(slf.py()), |_| Ok(PyString::new(slf.py(), "")))
            }

            /// The name of the region that is open.
            #[getter]
            fn region(slf: &Bound<'_, Self>) -> PyResult<Py<PyString>> {
                look_at!(slf.as_super().get(), stream => stream.region(slf.py()), |_| Ok(PyString::new(slf.py(), "").unbind()))
            }
        }
    };
}

stop_getters!(StopStream);
stop_getters!(SegmentStream);

#[pymethods]
impl DeltaStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _running = self.source.run()?;
        if let DeltaReader::Segments(_, ready) = &self.reader
            && let Some(segment) = lock(ready).pop_front()
        {
            return Ok(Some(segment.into_bound(py)));
        }
        while !self.source.ended.load(Relaxed) {
            let Some(delta) = self.source.iterator.bind(py).clone().next() else {
                self.source.ended.store(true, Relaxed);
                return self.flush(py);
            };
            let delta = delta?;
            let string = string(&delta, "delta")?;
            if let DeltaReader::Text(stream) = &self.reader
                && let Some(text) = short_text(string)?
                && !text.is_empty()
                && stream.feed_plain(text).is_some()
            {
                return Ok(Some(delta));
            }
            if let Some(safe) = with_text(string, |text| self.feed(string, text))? {
                return Ok(Some(safe));
            }
        }
        // If closing the source after a stop has failed, raise the error now, but only once.
        let error = lock(&self.source.error).take();
        error.map_or(Ok(None), |error| Err(PyErr::from_value(error.into_bound(py).into_any())))
    }

    /// Closes the source. The stream then yields the output that is ready, and ends. Held text stays in ``held``.
    ///
    /// If closing the source fails, ``close`` raises the source's error. If another thread is using the stream,
    /// ``close`` raises ``RuntimeError``. In both cases the stream stays open, and ``close`` can be called again.
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
        visit.call(&self.source.deltas)?;
        visit.call(&self.source.iterator)?;
        // The garbage collector must see the error, because it can be part of a cycle: the error's traceback refers to
        // frames of callers, and a frame may refer to this stream.
        self.source.error.try_lock().map_or(Ok(()), |error| visit.call(&*error))
    }

    /// The text that is withheld because it may be the beginning of a hidden stop, a key, or a marker that is
    /// not in the output.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        look_at!(self, stream => stream.held(py), |stream| stream.held(py))
    }

    /// Whether the source can be closed. A plain iterator, such as transformers' streamer, cannot be closed: the model
    /// keeps generating after a stop.
    #[getter]
    fn closes(&self, py: Python<'_>) -> PyResult<bool> {
        self.source.closes(py)
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyString>> {
        let class = slf.get_type().name()?;
        look_at!(slf.get(), stream => stream.repr(slf.py(), class.to_str()?), |stream| stream.repr(slf.py(), class.to_str()?))
    }
}

impl DeltaStream {
    /// Reads a delta that `__next__` could not return unchanged: the output is segments or rewritten text, or a stop or
    /// marker may begin or go on in the delta. Returns the safe output, or `None` if it is empty. Closes the source if
    /// a stop fires.
    #[inline(never)]
    fn feed<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (safe, stopped) = match &self.reader {
            DeltaReader::Text(stream) => {
                let (safe, stopped) = stream.feed_locked(delta, text, true)?;
                (unless_empty(safe, delta, text)?, stopped)
            }
            DeltaReader::Segments(stream, ready) => {
                if !text.is_empty()
                    && let Some(node) = stream.feed_plain(text)
                {
                    let (region, part) = (&stream.set.get().names[node as usize], stream.unlocked.part());
                    return Ok(Some((region, delta, part).into_pyobject(delta.py())?.into_any()));
                }
                let (segments, stopped) = stream.feed_locked(delta, text, true)?;
                (first(segments, ready), stopped)
            }
            DeltaReader::Rewritten(stream) => {
                let safe = if stream.is_plain(text) { delta.clone() } else { stream.feed_locked((delta, text))? };
                (unless_empty(safe, delta, text)?, false)
            }
        };
        if stopped {
            self.source.close_after_stop(delta.py());
        }
        Ok(safe)
    }

    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let held = match &self.reader {
            DeltaReader::Text(stream) => stream.flush(py)?,
            DeltaReader::Segments(stream, ready) => return Ok(first(stream.flush(py)?, ready)),
            DeltaReader::Rewritten(stream) => stream.flush(py)?,
        };
        Ok((held.len()? > 0).then(|| held.into_any()))
    }
}

/// Returns `safe`, or `None` if it is empty. `text` is the text of `delta`. If `safe` is the object `delta` itself,
/// checks whether `text` is empty, because a subclass of `str` may redefine `__len__`.
fn unless_empty<'py>(
    safe: Bound<'py, PyString>,
    delta: &Bound<'py, PyString>,
    text: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_empty = if safe.is(delta) { text.is_empty() } else { safe.len()? == 0 };
    Ok((!is_empty).then(|| safe.into_any()))
}

/// Returns the first of `segments`, and keeps the others in `ready` for the next calls.
fn first<'py>(segments: Bound<'py, PyList>, ready: &Mutex<VecDeque<Py<PyAny>>>) -> Option<Bound<'py, PyAny>> {
    let mut segments = segments.iter();
    let first = segments.next();
    if segments.len() > 0 {
        lock(ready).extend(segments.map(Bound::unbind));
    }
    first
}

struct Source {
    deltas: Py<PyAny>,
    iterator: Py<PyIterator>,
    /// The thread that runs the source's code, or `NOBODY`.
    running: AtomicU32,
    /// Whether reading of the source is over: the source has ended or was closed, or a stop has fired.
    ended: AtomicBool,
    closed: AtomicBool,
    /// The error that the source raised when it was closed after a stop. The stream first returns the text before the
    /// stop, and then raises this error.
    error: Mutex<Option<Py<PyBaseException>>>,
}

/// A guard that exists while a thread runs the source's code.
struct Running<'a>(&'a AtomicU32);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(NOBODY, Relaxed);
    }
}

impl Source {
    /// Makes a `Source` that reads the iterable `deltas`. If `deltas` is an async iterable, the error names the
    /// function to use instead, which is `asynchronous`.
    fn new(deltas: &Bound<'_, PyAny>, asynchronous: &str) -> PyResult<Source> {
        let iterator = iterated(deltas, || {
            let is_async = deltas.hasattr("__aiter__").unwrap_or(false);
            let hint = if is_async { format!("; {asynchronous} takes an async iterable") } else { String::new() };
            unexpected(deltas, "deltas", "an iterable of str", &hint)
        })?;
        Ok(Source {
            deltas: deltas.clone().unbind(),
            iterator: iterator.unbind(),
            running: AtomicU32::new(NOBODY),
            ended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            error: Mutex::new(None),
        })
    }

    /// Marks the stream as in use until the returned guard is dropped. During this time, another call raises
    /// `RuntimeError`, whether it comes from another thread or from the code of the source.
    #[inline(always)]
    fn run(&self) -> PyResult<Running<'_>> {
        let thread = this_thread();
        let running = match GIL {
            true => self.running.load(Relaxed), // under the GIL no other thread runs before the store below
            false => self.running.compare_exchange(NOBODY, thread, Relaxed, Relaxed).unwrap_or_else(|other| other),
        };
        if running != NOBODY {
            return Err(in_use("stream", if running == thread { "a call on this thread" } else { "another thread" }));
        }
        self.running.store(thread, Relaxed);
        Ok(Running(&self.running))
    }

    /// Raises an error if this thread is running the code of the source. This code may read only the attributes of the
    /// stream whose getters do not call this function, such as `match`. Other threads may read all attributes.
    fn refuse_own_thread(&self) -> PyResult<()> {
        match self.running.load(Relaxed) == this_thread() {
            true => Err(in_use("stream", "a call on this thread")),
            false => Ok(()),
        }
    }

    /// Closes the source. If that fails, the stream is as before: the source can still be read, and `close` can be
    /// called again.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _running = self.run()?;
        self.close_once(py)?;
        self.ended.store(true, Relaxed);
        Ok(())
    }

    /// Closes the source because a stop fired. If that fails, keeps the error: the stream raises it at its end.
    #[cold]
    fn close_after_stop(&self, py: Python<'_>) {
        self.ended.store(true, Relaxed);
        let closed = self.close_once(py);
        *lock(&self.error) = closed.err().map(|error| error.into_value(py));
    }

    /// Whether the source, or its iterator, has a method that closes it.
    fn closes(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(close_of(self.iterator.bind(py))?.is_some() || close_of(self.deltas.bind(py))?.is_some())
    }

    fn close_once(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed.load(Relaxed) {
            return Ok(());
        }
        let closed = close(self.iterator.bind(py));
        // `deltas` may be the stream of an API client, which has a separate iterator. Closing the iterator alone would
        // not end the request. So close both.
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
    close_of(source)?.map_or(Ok(()), |close| close.call0().map(|_| ()))
}

/// Returns the method that closes a source, if the source has one.
fn close_of<'py>(source: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(source.getattr_opt(intern!(source.py(), "close"))?.filter(|close| !close.is_none()))
}

/// Locks `mutex`. Never waits, because only the thread with the guard of `Source::run` locks it, and only one thread at
/// a time has the guard.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
