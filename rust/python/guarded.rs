//! The state of one stream as Python objects share it: behind a lock, with a way past it for the commonest delta.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;

use super::arguments::LONG;
use super::errors::runtime_error;
use super::objects::room;
use super::stop_match::StopMatch;
use crate::automaton::ROOT;
use crate::graph::Graph;
use crate::text::{NOTHING_PASSES, Place, Shape};
use crate::{Emit, Stream};

/// What is behind the lock: a stream, or one with a decoder.
pub(super) trait Core {
    type Emit: Emit;

    fn stream(&self) -> &Stream<Self::Emit>;

    fn stream_mut(&mut self) -> &mut Stream<Self::Emit>;

    /// Whether plain text changes nothing but counters.
    fn is_idle(&self) -> bool;
}

/// A lock costs a fifth of a `feed`. Under the GIL the commonest text, in which nothing begins, does without: while the
/// stream is idle it changes nothing but how much was read, and that is counted here. Streams with patterns or loops
/// need the text itself, too: they read it behind the lock, and there is nothing to be made or taken back for it.
///
/// What the commonest text needs comes first: a stream that is out of the cache costs as few lines of it as can be.
#[repr(C)]
pub(super) struct Guarded<C> {
    /// How many bytes passed since the core last knew.
    passed: AtomicUsize,
    /// The filter that a text passes in which nothing begins.
    filter: AtomicU64,
    /// How many of the bytes that passed continue a code point.
    continued: AtomicUsize,
    /// The node at which an idle stream is, or `NOT_IDLE`.
    node: AtomicU32,
    /// Whether the core has to see the text that passes.
    shows_text: bool,
    state: Mutex<State<C>>,
}

const NOT_IDLE: u32 = u32::MAX;

pub(super) struct State<C> {
    pub(super) core: C,
    /// The match as Python sees it, made when the stop fired.
    pub(super) found: Option<Py<StopMatch>>,
}

/// Whether calls exclude each other without a lock. Objects of a free-threaded build are larger; `always_lock` makes a
/// build for tests do what that one does.
pub(super) const GIL: bool = !cfg!(always_lock) && size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

impl<C: Core> Guarded<C> {
    pub(super) fn new(core: C, found: Option<Py<StopMatch>>) -> Guarded<C> {
        let guarded = Guarded {
            passed: AtomicUsize::new(0),
            filter: AtomicU64::new(NOTHING_PASSES),
            continued: AtomicUsize::new(0),
            node: AtomicU32::new(NOT_IDLE),
            shows_text: core.stream().more.is_some(),
            state: Mutex::new(State { core, found }),
        };
        // Nobody else has it yet.
        let _ = guarded.with(|_| ());
        guarded
    }

    /// What `action` does with the state, unless another thread is at it.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut State<C>) -> T) -> PyResult<T> {
        let mut state = lock_of(&self.state, "scanner")?;
        self.tell(state.core.stream_mut());
        let result = action(&mut state);
        if GIL && state.core.is_idle() {
            self.open(state.core.stream());
        }
        Ok(result)
    }

    /// Tells the core what passed; nothing passes then.
    fn tell(&self, stream: &mut Stream<C::Emit>) {
        let (bytes, continued) = (self.passed.load(Relaxed), self.continued.load(Relaxed));
        stream.read = stream.read + Place { bytes, code_points: bytes - continued };
        self.passed.store(0, Relaxed);
        self.continued.store(0, Relaxed);
        self.node.store(NOT_IDLE, Relaxed);
        self.filter.store(NOTHING_PASSES, Relaxed);
    }

    /// Says what passes a stream that is idle.
    fn open(&self, stream: &Stream<C::Emit>) {
        let node = stream.cursor.node;
        self.node.store(node, Relaxed);
        if !self.shows_text {
            self.let_pass(stream.graph().plain(node).filter());
        }
    }

    /// The node at which `text` is, and its length, if reading it changes nothing but counters.
    #[inline(always)]
    pub(super) fn plain(&self, graph: &Graph, text: &str) -> Option<(u32, Place)> {
        let node = self.node.load(Relaxed);
        if node == NOT_IDLE {
            return None;
        }
        let length = graph.plain_length(node, text).or_else(|| read_over(graph, node, text))?;
        Some((node, length))
    }

    /// Reads `text`, which is plain and has this length; `false` if it takes more than that.
    #[inline(always)]
    pub(super) fn pass(&self, text: &str, length: Place, armed: bool) -> bool {
        if self.shows_text {
            return self.show(text, length, armed);
        }
        self.count(length.bytes, length.bytes - length.code_points);
        true
    }

    #[inline(never)]
    fn show(&self, text: &str, length: Place, armed: bool) -> bool {
        let state = self.state.try_lock();
        state.is_ok_and(|mut state| state.core.stream_mut().try_pass_idle(text, length, armed))
    }

    /// The node at which a text is of which the shape tells that nothing begins in it.
    #[inline(always)]
    pub(super) fn plain_by(&self, shape: Shape) -> Option<u32> {
        shape.passes(self.filter.load(Relaxed)).then(|| self.node.load(Relaxed))
    }

    /// Counts a text as passed.
    #[inline(always)]
    pub(super) fn count(&self, bytes: usize, continued: usize) {
        self.passed.store(self.passed.load(Relaxed) + bytes, Relaxed);
        if continued > 0 {
            self.continued.store(self.continued.load(Relaxed) + continued, Relaxed);
        }
    }

    /// The node at which an idle stream is, if all that it needs of a text is how long it is.
    pub(super) fn node_to_count_at(&self) -> Option<u32> {
        (self.is_idle() && !self.shows_text).then(|| self.node.load(Relaxed))
    }

    /// Says what passes by its shape.
    pub(super) fn let_pass(&self, filter: u64) {
        self.filter.store(filter, Relaxed);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.node.load(Relaxed) != NOT_IDLE
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Guarded<C>>
    where
        C: Clone,
    {
        self.with(|state| {
            room(2 * state.core.stream().size())?;
            Ok(Guarded::new(state.core.clone(), state.found.as_ref().map(|found| found.clone_ref(py))))
        })?
    }

    pub(super) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        match self.is_idle() {
            true => Ok(None),
            false => self.with(|state| {
                state.note_match(py)?; // there may have been no memory for it
                Ok(state.found.as_ref().map(|found| found.clone_ref(py)))
            })?,
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

/// As for plain text, but for any that changes nothing: one in which words begin, but none ends and none goes on. A marker
/// that ends changes much, also if it leads back: patterns are live behind it, and the history of loops begins anew.
#[inline(never)]
fn read_over(graph: &Graph, node: u32, text: &str) -> Option<Place> {
    if text.len() >= LONG {
        return None; // other threads are to run meanwhile
    }
    let (automaton, machine) = graph.machines(node);
    let mut state = ROOT;
    let ended = machine.is_some() || automaton.read(&mut state, text, true).is_some();
    (!ended && state == ROOT).then(|| Place::after(text))
}

/// What is behind the lock of a stream, unless another thread has it. A call that failed leaves no lock behind.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    lock_of(mutex, "stream")
}

#[inline]
fn lock_of<'a, T>(mutex: &'a Mutex<T>, name: &str) -> PyResult<MutexGuard<'a, T>> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(in_use(name, "thread")),
    }
}

#[cold]
pub(super) fn in_use(name: &str, by: &str) -> PyErr {
    runtime_error(format!("the {name} is in use by another {by}"))
}
