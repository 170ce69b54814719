//! Where the deltas of a stream come from: an iterable that is read, and closed when a stop fires.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::exceptions::{PyBaseException, PyMemoryError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use super::guarded::{GIL, in_use, lock};
use super::objects::new_string;

pub(super) struct Source {
    deltas: Py<PyAny>,
    iterator: Py<PyIterator>,
    /// Whether a thread is in the source's code.
    running: AtomicBool,
    /// Whether nothing more is read: it has ended, a stop has fired, or it was closed.
    ended: AtomicBool,
    closed: AtomicBool,
    /// A delta for which there was no memory. It comes again.
    again: Mutex<Option<Py<PyAny>>>,
    has_again: AtomicBool,
    /// Why it could not be closed after a stop. The text before the stop comes first.
    error: Mutex<Option<Py<PyBaseException>>>,
}

/// Held while a thread is in the source's code.
pub(super) struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

impl Source {
    pub(super) fn new(deltas: &Bound<'_, PyAny>) -> PyResult<Source> {
        Ok(Source {
            deltas: deltas.clone().unbind(),
            iterator: deltas.try_iter()?.unbind(),
            running: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            again: Mutex::new(None),
            has_again: AtomicBool::new(false),
            error: Mutex::new(None),
        })
    }

    /// Keeps other threads, and the source itself, out until it is dropped.
    #[inline(always)]
    pub(super) fn run(&self) -> PyResult<Running<'_>> {
        let running = if GIL { self.running.load(Relaxed) } else { self.running.swap(true, Relaxed) };
        if running {
            return Err(in_use("stream", "thread"));
        }
        self.running.store(true, Relaxed);
        Ok(Running(&self.running))
    }

    #[inline(always)]
    pub(super) fn ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// The next delta; `None` is the end.
    #[inline(always)]
    pub(super) fn next<'py>(&self, py: Python<'py>) -> Option<PyResult<Bound<'py, PyAny>>> {
        if self.has_again.load(Relaxed) {
            return self.take_again(py).transpose();
        }
        let delta = self.iterator.bind(py).clone().next();
        if delta.is_none() {
            self.ended.store(true, Relaxed);
        }
        delta
    }

    #[cold]
    fn take_again<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.has_again.store(false, Relaxed);
        Ok(lock(&self.again)?.take().map(|delta| delta.into_bound(py)))
    }

    /// Gives `delta` once more, if there was no memory to read it.
    #[cold]
    pub(super) fn give_again(&self, delta: &Bound<'_, PyAny>, error: &PyErr) {
        if error.is_instance_of::<PyMemoryError>(delta.py())
            && let Ok(mut again) = lock(&self.again)
        {
            *again = Some(delta.clone().unbind());
            self.has_again.store(true, Relaxed);
        }
    }

    /// Says the end once more: what came out of it was not given.
    #[cold]
    pub(super) fn end_again(&self) {
        self.ended.store(false, Relaxed);
    }

    /// Closes the source. If that fails, nothing changes: it can be read on, and closed again.
    pub(super) fn close(&self, py: Python<'_>) -> PyResult<()> {
        let _running = self.run()?;
        self.close_once(py)?;
        self.ended.store(true, Relaxed);
        Ok(())
    }

    /// Closes the source because a stop fired; the error of that comes at the end.
    #[cold]
    pub(super) fn close_after_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.ended.store(true, Relaxed);
        let closed = self.close_once(py);
        *lock(&self.error)? = closed.err().map(|error| error.into_value(py));
        Ok(())
    }

    /// The error of closing the source after a stop, once.
    pub(super) fn take_error(&self, py: Python<'_>) -> PyResult<()> {
        let error = lock(&self.error)?.take();
        error.map_or(Ok(()), |error| Err(PyErr::from_value(error.into_bound(py).into_any())))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.deltas)?;
        visit.call(&self.iterator)?;
        // Where another call has it, it stands outside of the cycle.
        if let Ok(again) = self.again.try_lock() {
            visit.call(&*again)?;
        }
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
