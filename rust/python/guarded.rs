//! The state of one stream as Python objects share it: behind a lock, with a way past it for the commonest delta.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Mutex, TryLockError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::stop_match::StopMatch;
use crate::graph::{Cursor, Graph};
use crate::stream::{Place, code_points};
use crate::{Emit, Stream};

/// What is behind the lock: a stream, or one with a decoder.
pub(super) trait Core {
    type Emit: Emit;

    fn stream(&self) -> &Stream<Self::Emit>;

    fn stream_mut(&mut self) -> &mut Stream<Self::Emit>;

    /// Whether plain text changes nothing but how much was read.
    fn is_idle(&self) -> bool;
}

/// A lock costs a fifth of a `feed`. Under the GIL the commonest delta, in which nothing begins, does without: it
/// changes nothing but how much was read, and while the stream is idle that is counted here.
pub(super) struct Guarded<C> {
    /// While the stream is idle, the bytes that passed since the core last knew; else `NOT_IDLE`.
    passed: AtomicUsize,
    /// How many of them continue a code point.
    continued: AtomicUsize,
    /// The node at which an idle stream is.
    node: AtomicU32,
    state: Mutex<State<C>>,
}

pub(super) struct State<C> {
    pub(super) core: C,
    /// The match as Python sees it, made when the stop fired.
    pub(super) found: Option<Py<StopMatch>>,
}

const NOT_IDLE: usize = usize::MAX;

/// Whether calls exclude each other without a lock. Objects of a free-threaded build are larger; `always_lock` makes a
/// build for tests do what that one does.
pub(super) const GIL: bool = !cfg!(always_lock) && size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

impl<C: Core> Guarded<C> {
    pub(super) fn new(core: C, found: Option<Py<StopMatch>>) -> Guarded<C> {
        let guarded = Guarded {
            passed: AtomicUsize::new(NOT_IDLE),
            continued: AtomicUsize::new(0),
            node: AtomicU32::new(0),
            state: Mutex::new(State { core, found }),
        };
        // Nobody else has it yet.
        let _ = guarded.with(|_| ());
        guarded
    }

    /// What `action` does with the state, unless another thread is at it.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut State<C>) -> T) -> PyResult<T> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => state.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(in_use("scanner", "thread")),
        };
        if self.is_idle() {
            let (bytes, continued) = (self.passed.load(Relaxed), self.continued.load(Relaxed));
            let read = &mut state.core.stream_mut().read;
            *read = *read + Place { bytes, code_points: bytes - continued };
            self.passed.store(NOT_IDLE, Relaxed);
        }
        let result = action(&mut state);
        if state.core.is_idle() {
            self.node.store(state.core.stream().cursor.node, Relaxed);
            self.continued.store(0, Relaxed);
            self.passed.store(0, Relaxed);
        }
        Ok(result)
    }

    /// The node at which `text` is, if reading it changes nothing but how much was read; then it is read.
    #[inline(always)]
    pub(super) fn pass_over(&self, graph: &Graph, text: &str) -> Option<u32> {
        let passed = self.passed.load(Relaxed);
        if !GIL || passed == NOT_IDLE {
            return None;
        }
        let node = self.node.load(Relaxed);
        let code_points = graph.plain(node).code_points(text).or_else(|| read_over(graph, node, text))?;
        self.passed.store(passed + text.len(), Relaxed);
        if code_points != text.len() {
            self.continued.store(self.continued.load(Relaxed) + text.len() - code_points, Relaxed);
        }
        Some(node)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.passed.load(Relaxed) != NOT_IDLE
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Guarded<C>>
    where
        C: Clone,
    {
        self.with(|state| Guarded::new(state.core.clone(), state.found.as_ref().map(|found| found.clone_ref(py))))
    }

    pub(super) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        match self.is_idle() {
            true => Ok(None),
            false => self.with(|state| state.found.as_ref().map(|found| found.clone_ref(py))),
        }
    }
}

impl<C: Core> State<C> {
    /// Makes the match for Python, if a stop has fired.
    pub(super) fn note_match(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.found.is_none() {
            self.found = self.core.stream().stop_match().map(|found| StopMatch::from_core(py, found)).transpose()?;
        }
        Ok(())
    }
}

/// As for plain text, but for any that changes nothing: one in which words begin, but none ends and none goes on.
fn read_over(graph: &Graph, node: u32, text: &str) -> Option<usize> {
    let mut cursor = Cursor::start(node);
    let ended = graph.read_words(&mut cursor, text, true).is_some();
    (!ended && cursor == Cursor::start(node)).then(|| code_points(text))
}

#[cold]
pub(super) fn in_use(name: &str, by: &str) -> PyErr {
    PyRuntimeError::new_err(format!("the {name} is in use by another {by}"))
}
