//! Whose turn it is: calls from any number of threads use one stream, one at a time.
//!
//! Two calls that change a stream at once are a mistake of the caller, who would not know in which order the text was read:
//! the second one is an error. A call that only reads waits for the call that runs, without the GIL, and a call that changes
//! the stream waits for those that read. A call from inside of another one on the same thread, such as from a source or an
//! `__index__`, would wait for ever: it is an error.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors::runtime_error;

/// Whether calls exclude each other without a lock. Objects of a free-threaded build are larger; `always_lock` makes a
/// build for tests do what that one does.
pub(crate) const GIL: bool = !cfg!(always_lock) && size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

/// A value that one call at a time uses.
pub(crate) struct Turns<T> {
    /// Whether a call that changes the value runs, or waits for calls that read it.
    changing: AtomicBool,
    /// The thread whose call has the value, or `NOBODY`.
    holder: AtomicU32,
    value: Mutex<T>,
}

/// The value, until the call that has it ends.
pub(crate) struct Turn<'a, T> {
    turns: &'a Turns<T>,
    changes: bool,
    pub(crate) value: MutexGuard<'a, T>,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Turns<T> {
        Turns { changing: AtomicBool::new(false), holder: AtomicU32::new(NOBODY), value: Mutex::new(value) }
    }

    /// The value, for a call that changes it. Raises `RuntimeError` if another such call runs. `name` is what the error
    /// calls the value.
    #[inline]
    pub(crate) fn change(&self, name: &str) -> PyResult<Turn<'_, T>> {
        let thread = this_thread();
        self.refuse_own_thread(thread, name)?;
        if self.changing.swap(true, Relaxed) {
            return Err(in_use(name, "another thread"));
        }
        Ok(self.wait(thread, true))
    }

    /// The value, for a call that only reads it. Waits for the call that has it.
    pub(crate) fn read(&self, name: &str) -> PyResult<Turn<'_, T>> {
        let thread = this_thread();
        self.refuse_own_thread(thread, name)?;
        Ok(self.wait(thread, false))
    }

    /// Runs `action` with the value if no call has it, and returns `None` otherwise. `action` must not run code of Python.
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
            // A call that failed leaves the value as it was.
            Err(TryLockError::Poisoned(value)) => value.into_inner(),
            Err(TryLockError::WouldBlock) => self.wait_detached(),
        };
        self.holder.store(thread, Relaxed);
        Turn { turns: self, changes, value }
    }

    /// Waits without the GIL: the call that has the value may need it.
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

/// The number of no thread.
pub(crate) const NOBODY: u32 = 0;

/// The number of this thread; no other thread of the process has it.
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
