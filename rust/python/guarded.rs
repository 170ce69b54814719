//! The state of one stream as Python objects share it: behind a lock, with a way past it for the commonest delta.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;

use super::arguments::LONG;
use super::errors::runtime_error;
use super::objects::room;
use super::stop_match::StopMatch;
use super::unread_text::UnreadText;
use crate::graph::{Cursor, Graph};
use crate::shape::{NOTHING_PASSES, Shape};
use crate::stream::{Place, code_points};
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
/// need the text itself, too: it is kept here until they have to see it.
///
/// What the commonest text needs comes first: a stream that is out of the cache costs as few lines of it as can be.
#[repr(C)]
pub(super) struct Guarded<C> {
    /// How many bytes passed since the core last knew.
    passed: AtomicUsize,
    /// So many are too many to pass: none does while the stream is not idle.
    room: AtomicUsize,
    /// The filter that a text passes in which nothing begins.
    filter: AtomicU64,
    /// How many of the bytes that passed continue a code point.
    continued: AtomicUsize,
    /// The node at which an idle stream is.
    node: AtomicU32,
    unread: Option<UnreadText>,
    state: Mutex<State<C>>,
}

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
            room: AtomicUsize::new(0),
            filter: AtomicU64::new(NOTHING_PASSES),
            continued: AtomicUsize::new(0),
            node: AtomicU32::new(0),
            unread: UnreadText::of(core.stream()),
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
        let bytes = self.passed.load(Relaxed);
        if bytes > 0 {
            let length = Place { bytes, code_points: bytes - self.continued.load(Relaxed) };
            let mut pass = |text: &str| stream.pass_idle(text, length, true);
            let _ = match &self.unread {
                Some(unread) => unread.read(bytes, pass),
                None => Some(pass("")),
            };
            self.passed.store(0, Relaxed);
            self.continued.store(0, Relaxed);
        }
        self.room.store(0, Relaxed);
        self.filter.store(NOTHING_PASSES, Relaxed);
    }

    /// Says what passes a stream that is idle.
    fn open(&self, stream: &Stream<C::Emit>) {
        let node = stream.cursor.node;
        self.node.store(node, Relaxed);
        match &self.unread {
            Some(unread) => self.room.store(stream.room().min(unread.room()), Relaxed),
            None => {
                self.room.store(usize::MAX, Relaxed);
                self.let_pass(stream.graph().plain(node).filter());
            }
        }
    }

    /// The node at which `text` is, if reading it changes nothing but counters; then it is read.
    #[inline(always)]
    pub(super) fn pass_over(&self, graph: &Graph, text: &str) -> Option<u32> {
        let passed = self.passed.load(Relaxed);
        if passed + text.len() >= self.room.load(Relaxed) {
            return None;
        }
        let node = self.node.load(Relaxed);
        let code_points = graph.plain(node).code_points(text).or_else(|| read_over(graph, node, text))?;
        if let Some(unread) = &self.unread {
            unread.push(passed, text);
        }
        self.passed.store(passed + text.len(), Relaxed);
        if code_points != text.len() {
            self.continued.store(self.continued.load(Relaxed) + text.len() - code_points, Relaxed);
        }
        Some(node)
    }

    /// As `pass_over`, for a text of which the shape tells that nothing begins in it.
    #[inline(always)]
    pub(super) fn pass_by(&self, shape: Shape) -> Option<u32> {
        if !shape.passes(self.filter.load(Relaxed)) {
            return None;
        }
        self.count(shape.bytes(), shape.continued());
        Some(self.node.load(Relaxed))
    }

    /// Counts a text as passed.
    #[inline(always)]
    pub(super) fn count(&self, bytes: usize, continued: usize) {
        self.passed.store(self.passed.load(Relaxed) + bytes, Relaxed);
        self.continued.store(self.continued.load(Relaxed) + continued, Relaxed);
    }

    /// The node at which an idle stream is, if all that it needs of a text is how long it is.
    pub(super) fn node_to_count_at(&self) -> Option<u32> {
        (self.is_idle() && self.unread.is_none()).then(|| self.node.load(Relaxed))
    }

    /// Says what passes by its shape.
    pub(super) fn let_pass(&self, filter: u64) {
        self.filter.store(filter, Relaxed);
    }

    /// Takes `text` back, which has just passed.
    #[cold]
    pub(super) fn take_back(&self, text: &str) {
        let (passed, continued) = (self.passed.load(Relaxed), text.len() - code_points(text));
        self.passed.store(passed.saturating_sub(text.len()), Relaxed);
        self.continued.store(self.continued.load(Relaxed).saturating_sub(continued), Relaxed);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.room.load(Relaxed) > 0
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

/// As for plain text, but for any that changes nothing: one in which words begin, but none ends and none goes on.
#[inline(never)]
fn read_over(graph: &Graph, node: u32, text: &str) -> Option<usize> {
    if text.len() >= LONG {
        return None; // other threads are to run meanwhile
    }
    let mut cursor = Cursor::start(node);
    let has_patterns = graph.machines(node).1.is_some();
    let ended = has_patterns || graph.read_words(&mut cursor, text, true).is_some();
    (!ended && cursor == Cursor::start(node)).then(|| code_points(text))
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
