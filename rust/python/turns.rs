//! Lets calls from any number of threads use one stream, one at a time.
//!
//! If two calls change a stream at once, the second one raises an error: the caller would not know in which order the
//! stream got their texts. A call that changes nothing, such as a getter, waits for the call that is running, without
//! the GIL. A call that changes the stream waits for calls that change nothing. A call from inside another call on the
//! same thread, such as from the iterable that the outer call reads or from an `__index__` method, would wait for ever,
//! so it raises an error.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors::runtime_error;

/// Whether this Python has a GIL. Under the GIL only one thread runs at a time, so fast paths need no lock. The size of
/// a Python object tells: it is larger in a free-threaded Python. The flag `always_lock`, for tests, makes this false.
pub(crate) const GIL: bool = !cfg!(always_lock) && size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

/// A value that only one call at a time uses.
pub(crate) struct Turns<T> {
    /// Whether a call that changes the value has begun: it is running, or it waits for calls that read the value.
    changing: AtomicBool,
    /// The thread whose call uses the value, or `NOBODY`.
    holder: AtomicU32,
    value: Mutex<T>,
}

/// A guard. The call that holds it may use the value of a `Turns`, and no other call may.
pub(crate) struct Turn<'a, T> {
    turns: &'a Turns<T>,
    changes: bool,
    pub(crate) value: MutexGuard<'a, T>,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Turns<T> {
        Turns { changing: AtomicBool::new(false), holder: AtomicU32::new(NOBODY), value: Mutex::new(value) }
    }

    /// Returns the value to a call that changes it. Raises `RuntimeError` if another call is already changing the
    /// value. The error message contains `name`, the name of the value.
    #[inline]
    pub(crate) fn change(&self, name: &str) -> PyResult<Turn<'_, T>> {
        let thread = this_thread();
        self.refuse_own_thread(thread, name)?;
        if self.changing.swap(true, Relaxed) {
            return Err(in_use(name, "another thread"));
        }
        Ok(self.wait(thread, true))
    }

    /// Returns the value for a call that only reads it. If another call is using the value, waits until that call ends.
    pub(crate) fn read(&self, name: &str) -> PyResult<Turn<'_, T>> {
        let thread = this_thread();
        self.refuse_own_thread(thread, name)?;
        Ok(self.wait(thread, false))
    }

    /// Runs `action` with the value if no call uses it. Otherwise returns `None`. `action` must not run Python code.
    #[inline]
    pub(crate) fn if_free<R>(&self, action: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.value.try_lock().ok().map(|mut value| action(&mut value))
    }

    fn refuse_own_thread(&self, thread: u32, name: &str) -> PyResult<()> {
        match self.holder.load(Relaxed) == thread {
            true => Err(in_use(name, "a call on this thread")),
            false => Ok(()),
        }
    }

    #[inline]
    fn wait(&self, thread: u32, changes: bool) -> Turn<'_, T> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            // The mutex is poisoned: another call panicked while it had the lock. Only PyO3 panics, when there is no
            // memory for an object of a few bytes, and never in the middle of a change. So the value can still be used.
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait_detached(),
        };
        self.holder.store(thread, Relaxed);
        Turn { turns: self, changes, value }
    }

    /// Waits without the GIL, because the call that uses the value may need the GIL.
    #[cold]
    fn wait_detached(&self) -> MutexGuard<'_, T> {
        Python::attach(|py| self.value.lock_py_attached(py)).unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.turns.holder.store(NOBODY, Relaxed);
        if self.changes {
            self.turns.changing.store(false, Relaxed);
        }
    }
}

/// Stands for no thread: a number that no thread has.
pub(crate) const NOBODY: u32 = 0;

/// Returns the id of this thread. No other thread of the process has the same id.
#[inline]
pub(crate) fn this_thread() -> u32 {
    static THREADS: AtomicU32 = AtomicU32::new(NOBODY);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(NOBODY) };
    }
    NUMBER.with(|number| {
        if number.get() == NOBODY {
            number.set(THREADS.fetch_add(1, Relaxed).wrapping_add(1).max(1));
        }
        number.get()
    })
}

#[cold]
pub(crate) fn in_use(name: &str, by: &str) -> PyErr {
    runtime_error(format!("the {name} is in use by {by}"))
}
