//! The Python module `stopscan._stopscan`. Only this file names PyO3.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyString, PyTuple, PyType};

use crate::scanner::snapshot::Snapshot;
use crate::set::Cursor;
use crate::stop_match::code_points;

#[pymodule]
mod _stopscan {
    #[pymodule_export]
    use super::{StopMatch, StopScanner, StopSet, StopStream, scan, truncate};
}

/// The stop that fired and where: ``text[offset:end] == sequence``.
///
/// ``offset`` and ``end`` count code points of the whole text of the stream. Matches are ordered by their place.
///
/// >>> StopMatch("END", 26).end
/// 29
#[pyclass(module = "stopscan", frozen)]
struct StopMatch {
    /// The stop, as the user gave it.
    #[pyo3(get)]
    sequence: Py<PyString>,
    /// Where the stop begins, in code points.
    #[pyo3(get)]
    offset: usize,
    /// Where the stop ends, in code points.
    #[pyo3(get)]
    end: usize,
}

impl StopMatch {
    fn from_core(py: Python<'_>, found: crate::StopMatch<'_>) -> PyResult<Py<StopMatch>> {
        let sequence = PyString::new(py, found.sequence()).unbind();
        Py::new(py, StopMatch { sequence, offset: found.offset(), end: found.end() })
    }

    fn key<'a>(&'a self, py: Python<'a>) -> PyResult<(usize, usize, &'a str)> {
        Ok((self.offset, self.end, self.sequence.bind(py).to_str()?))
    }
}

#[pymethods]
impl StopMatch {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str, &'static str) {
        ("sequence", "offset", "end")
    }

    #[new]
    fn new(sequence: Bound<'_, PyAny>, offset: usize) -> PyResult<StopMatch> {
        let text = string(&sequence, "sequence")?;
        let end = offset.checked_add(code_points(text.to_str()?.as_bytes()));
        let end = end.ok_or_else(|| PyValueError::new_err(format!("offset {offset} is too large")))?;
        Ok(StopMatch { sequence: text.clone().unbind(), offset, end })
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: pyo3::basic::CompareOp, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<StopMatch>() else {
            return Ok(py.NotImplemented());
        };
        let order: Ordering = self.key(py)?.cmp(&other.get().key(py)?);
        Ok(op.matches(order).into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(hash(self.key(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("StopMatch({}, {})", self.sequence.bind(py).repr()?, self.offset))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyString>, usize)) {
        (slf.get_type(), (slf.get().sequence.clone_ref(slf.py()), slf.get().offset))
    }
}

/// A compiled set of stops: immutable, hashable, picklable, shared by any number of threads and scanners.
///
/// The stop that completes first wins; of those that complete at the same character, the longest. ``stop`` and
/// ``visible`` may be a bare string; hidden stops are cut from the output, visible ones stay in it. ``protect`` has
/// pairs of an opening and a closing marker between which no stop fires. What is given twice counts once.
///
/// Raises ``ValueError`` for an empty stop or marker, a string with two meanings, or more than 8,000,000 bytes of
/// UTF-8; ``TypeError`` for what is no string; ``UnicodeEncodeError`` for a lone surrogate.
///
/// >>> StopSet(["is", "a"]).find("this a")
/// StopMatch('is', 2)
#[pyclass(module = "stopscan", frozen)]
struct StopSet {
    core: crate::StopSet,
    /// The hidden stops.
    #[pyo3(get)]
    stop: Py<PyTuple>,
    /// The visible stops.
    #[pyo3(get)]
    visible: Py<PyTuple>,
    /// The opening and closing markers of the protected regions.
    #[pyo3(get)]
    protect: Py<PyTuple>,
}

#[pymethods]
impl StopSet {
    #[new]
    #[pyo3(signature = (stop = None, /, *, visible = None, protect = None))]
    fn new(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        protect: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StopSet> {
        let stop = strings(stop, "stop")?;
        let visible = strings(visible, "visible stop")?;
        let protect = pairs(protect)?;
        let core = crate::StopSet::builder()
            .stop(texts(&stop)?)
            .visible(texts(&visible)?)
            .protect(texts(&protect)?.chunks_exact(2).map(|pair| (pair[0], pair[1])))
            .build()
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(StopSet {
            stop: PyTuple::new(py, core.stop().collect::<Vec<_>>())?.unbind(),
            visible: PyTuple::new(py, core.visible().collect::<Vec<_>>())?.unbind(),
            protect: PyTuple::new(py, core.protect().collect::<Vec<_>>())?.unbind(),
            core,
        })
    }

    /// The match that a scanner reports for the whole of ``text``, or ``None``.
    ///
    /// >>> StopSet(["b", "ab"]).find("xab")
    /// StopMatch('ab', 1)
    #[pyo3(signature = (text, /, *, start_protected = false))]
    fn find(&self, py: Python<'_>, text: &Bound<'_, PyAny>, start_protected: bool) -> PyResult<Option<Py<StopMatch>>> {
        let start = self.start(start_protected)?;
        let found = self.core.find_from(start, string(text, "text")?.to_str()?);
        found.map(|found| StopMatch::from_core(py, found)).transpose()
    }

    /// The text before the match that a scanner reports for the whole of ``text``, and that match.
    ///
    /// The text goes through the stop if the stop is visible; it is ``text`` itself when no stop fires.
    ///
    /// >>> StopSet("END").truncate("The END.")
    /// ('The ', StopMatch('END', 4))
    #[pyo3(signature = (text, /, *, include_stop = false, start_protected = false))]
    fn truncate<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        include_stop: bool,
        start_protected: bool,
    ) -> PyResult<(Bound<'py, PyString>, Option<Py<StopMatch>>)> {
        let start = self.start(start_protected)?;
        let text = string(text, "text")?;
        let (kept, found) = self.core.truncate_from(start, text.to_str()?, include_stop);
        match found {
            None => Ok((text.clone(), None)),
            Some(found) => Ok((PyString::new(text.py(), kept), Some(StopMatch::from_core(text.py(), found)?))),
        }
    }

    /// How many stops there are, hidden and visible.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Always true: a set without stops is a set all the same.
    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<StopSet>().is_ok_and(|other| {
            let (one, other) = (&self.core, &other.get().core);
            one.stop().eq(other.stop()) && one.visible().eq(other.visible()) && one.protect().eq(other.protect())
        })
    }

    fn __hash__(&self) -> u64 {
        let core = &self.core;
        hash((core.stop().collect::<Vec<_>>(), core.visible().collect::<Vec<_>>(), core.protect().collect::<Vec<_>>()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut repr = format!("StopSet({}", self.stop.bind(py).repr()?);
        for (name, value) in [("visible", &self.visible), ("protect", &self.protect)] {
            if !value.bind(py).is_empty() {
                repr += &format!(", {name}={}", value.bind(py).repr()?);
            }
        }
        Ok(repr + ")")
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((Py<PyTuple>,), Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("visible", &self.visible)?;
        options.set_item("protect", &self.protect)?;
        Ok(((self.stop.clone_ref(py),), options))
    }
}

impl StopSet {
    fn start(&self, protected: bool) -> PyResult<Cursor> {
        self.core
            .start(protected)
            .ok_or_else(|| PyValueError::new_err("start_protected needs a set that protects a region"))
    }
}

/// Scans one stream: ``feed`` it each delta, emit what it returns, ``flush`` at the end.
///
/// What it returned, joined, is the text before the stop, or all of it. ``stop`` is a ``StopSet`` or what makes one.
/// ``include_stop`` makes every stop visible; ``start_protected`` begins inside the set's first protected region. A
/// scanner used from two threads at once raises ``RuntimeError``.
///
/// >>> scanner = StopScanner(["END"])
/// >>> scanner.feed("The E"), scanner.held
/// ('The ', 'E')
/// >>> scanner.feed("ND."), scanner.match, scanner.unused
/// ('', StopMatch('END', 4), '.')
#[pyclass(module = "stopscan", frozen)]
struct StopScanner {
    /// The set it scans for.
    #[pyo3(get)]
    stops: Py<StopSet>,
    /// While the scanner is idle, the code points it skipped since the core last knew; else `NOT_IDLE`.
    ///
    /// A lock costs a fifth of a `feed`. Under the GIL the commonest delta, which changes nothing but the count of code
    /// points, does without.
    skipped: AtomicUsize,
    state: Mutex<Scanning>,
}

const NOT_IDLE: usize = usize::MAX;

/// Whether calls exclude each other without a lock. Objects of a free-threaded build are larger.
const GIL: bool = size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

struct Scanning {
    core: crate::StopScanner,
    /// The match as Python sees it, made when the stop fired.
    found: Option<Py<StopMatch>>,
}

#[pymethods]
impl StopScanner {
    #[new]
    #[pyo3(signature = (stop, /, *, include_stop = false, start_protected = false))]
    fn new(stop: &Bound<'_, PyAny>, include_stop: bool, start_protected: bool) -> PyResult<StopScanner> {
        let stops = stop_set(stop)?;
        let start = stops.get().start(start_protected)?;
        let core = crate::StopScanner::from_cursor(&stops.get().core, start).include_stop(include_stop);
        Ok(StopScanner::from_core(stops, core, None))
    }

    /// The text that is safe to emit now that ``delta`` was read: ``delta`` itself when nothing is held.
    ///
    /// After a match it is ``""``. With ``armed=False``, stops that complete inside ``delta`` are ignored; one that
    /// completes later, in armed text, fires although it began here. Raises ``TypeError`` for what is no string and
    /// ``UnicodeEncodeError`` for a lone surrogate; the scanner is then as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyString>> {
        let delta = string(delta, "delta")?;
        let text = delta.to_str()?;
        match self.skip(text) {
            true => Ok(delta.clone()),
            false => self.with(|state| state.feed(delta, text, armed))?,
        }
    }

    /// The held text and ``text``, which is not scanned. The partial match is forgotten; an open region stays open.
    ///
    /// It is for text that the caller knows is not to be scanned: reasoning, tool arguments. After a match it is
    /// ``""``.
    #[pyo3(signature = (text, /))]
    fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let delta = string(text, "text")?;
        let text = delta.to_str()?;
        self.with(|state| same_or_new(delta, text, state.core.bypass(text)))
    }

    /// The held text, at the end of the stream; nothing is held after it. No stop spans a flush.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|state| PyString::new(py, state.core.flush()))
    }

    /// Goes back to the start of a stream.
    fn reset(&self) -> PyResult<()> {
        self.with(|state| {
            state.core.reset();
            state.found = None;
        })
    }

    /// A scanner in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<StopScanner> {
        self.with(|state| {
            let found = state.found.as_ref().map(|found| found.clone_ref(py));
            StopScanner::from_core(self.stops.clone_ref(py), state.core.clone(), found)
        })
    }

    /// The stop that fired, or ``None``.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        match self.is_idle() {
            true => Ok(None),
            false => self.with(|state| state.found.as_ref().map(|found| found.clone_ref(py))),
        }
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|state| PyString::new(py, state.core.held()))
    }

    /// What followed the stop in the delta that completed it.
    #[getter]
    fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|state| PyString::new(py, state.core.unused()))
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<StopScanner> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<StopScanner> {
        self.copy(py)
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<StopSet>,) {
        (self.stops.clone_ref(py),)
    }

    fn __getstate__(&self) -> PyResult<State> {
        let state = self.with(|state| state.core.snapshot())?;
        let place = (state.region, state.partial, state.read);
        Ok((state.include_stop, state.start_protected, place, state.matched, state.unused))
    }

    fn __setstate__(&self, py: Python<'_>, state: State) -> PyResult<()> {
        let (include_stop, start_protected, (region, partial, read), matched, unused) = state;
        let snapshot = Snapshot { include_stop, start_protected, region, partial, read, matched, unused };
        let core = crate::StopScanner::restore(&self.stops.get().core, snapshot)
            .ok_or_else(|| PyValueError::new_err("not the state of a scanner with these stops"))?;
        self.with(|state| {
            *state = Scanning { core, found: None };
            state.note_match(py)
        })?
    }
}

impl StopScanner {
    fn from_core(stops: Py<StopSet>, core: crate::StopScanner, found: Option<Py<StopMatch>>) -> StopScanner {
        let skipped = AtomicUsize::new(if core.is_idle() { 0 } else { NOT_IDLE });
        StopScanner { stops, skipped, state: Mutex::new(Scanning { core, found }) }
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.skipped.load(Relaxed) != NOT_IDLE
    }

    /// Reads `text` if that changes nothing but the count of code points; returns whether it did.
    #[inline(always)]
    fn skip(&self, text: &str) -> bool {
        let skipped = self.skipped.load(Relaxed);
        if GIL
            && skipped != NOT_IDLE
            && let Some(code_points) = self.stops.get().core.pass_over(text)
        {
            self.skipped.store(skipped + code_points, Relaxed);
            return true;
        }
        false
    }

    /// What `action` does with the state, unless another thread is at it.
    fn with<T>(&self, action: impl FnOnce(&mut Scanning) -> T) -> PyResult<T> {
        let mut state = self.state.try_lock().map_err(|_| in_use("scanner"))?;
        if self.is_idle() {
            state.core.add_skipped(self.skipped.load(Relaxed));
            self.skipped.store(NOT_IDLE, Relaxed);
        }
        let result = action(&mut state);
        if state.core.is_idle() {
            self.skipped.store(0, Relaxed);
        }
        Ok(result)
    }
}

impl Scanning {
    fn feed<'py>(&mut self, delta: &Bound<'py, PyString>, text: &str, armed: bool) -> PyResult<Bound<'py, PyString>> {
        let safe = if armed { self.core.feed(text) } else { self.core.feed_unarmed(text) };
        let safe = same_or_new(delta, text, safe);
        if self.found.is_none() {
            self.note_match(delta.py())?;
        }
        Ok(safe)
    }

    fn note_match(&mut self, py: Python<'_>) -> PyResult<()> {
        self.found = self.core.stop_match().map(|found| StopMatch::from_core(py, found)).transpose()?;
        Ok(())
    }
}

#[cold]
fn in_use(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!("the {name} is in use by another thread"))
}

/// A `Snapshot` as Python pickles it.
type State = (bool, bool, (Option<u32>, String, usize), Option<String>, String);

/// An iterator of non-empty safe text over an iterable of deltas; ``scan`` makes it.
///
/// It flushes at the end of the source, and closes the source as soon as a stop fires. If the source raises, the error
/// comes through and ``held`` still has the withheld text.
#[pyclass(module = "stopscan", frozen)]
struct StopStream {
    scanner: StopScanner,
    deltas: Py<PyAny>,
    iterator: Py<PyIterator>,
    /// Whether a thread is in `__next__`, which runs the source's code.
    running: AtomicBool,
    ended: AtomicBool,
    /// Why the source could not be closed. The text before the stop comes first.
    error: Mutex<Option<PyErr>>,
}

#[pymethods]
impl StopStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let running = if GIL { self.running.load(Relaxed) } else { self.running.swap(true, Relaxed) };
        if running {
            return Err(in_use("stream"));
        }
        self.running.store(true, Relaxed);
        let next = self.next_safe(py);
        self.running.store(false, Relaxed);
        next
    }

    /// Closes the source, as a stop does; the stream ends. Held text stays in ``held``.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.ended.swap(true, Relaxed) {
            return Ok(());
        }
        let closed = close(self.iterator.bind(py));
        // An API client's stream is not its own iterator, and only the stream's close ends the request.
        if self.deltas.is(&self.iterator) { closed } else { close(self.deltas.bind(py)).and(closed) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.deltas)?;
        visit.call(&self.iterator)
    }

    /// The stop that fired, or ``None``.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.scanner.r#match(py)
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.scanner.held(py)
    }

    /// What followed the stop in the delta that completed it.
    #[getter]
    fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.scanner.unused(py)
    }
}

impl StopStream {
    #[inline]
    fn next_safe<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        while !self.ended.load(Relaxed) {
            let Some(delta) = self.iterator.bind(py).clone().next().transpose()? else {
                self.ended.store(true, Relaxed);
                return Ok(Some(self.scanner.flush(py)?).filter(|held| !is_empty(held)));
            };
            let delta = string(&delta, "delta")?;
            let text = delta.to_str()?;
            if self.scanner.skip(text) && !text.is_empty() {
                return Ok(Some(delta.clone()));
            }
            let safe = self.read(delta, text)?;
            if !is_empty(&safe) {
                return Ok(Some(safe));
            }
        }
        match self.error.try_lock() {
            Ok(mut error) => error.take().map_or(Ok(None), Err),
            Err(_) => Err(in_use("stream")),
        }
    }

    #[cold]
    fn read<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<Bound<'py, PyString>> {
        let (safe, stopped) = self.scanner.with(|state| (state.feed(delta, text, true), state.found.is_some()))?;
        if stopped {
            self.close_after_stop(delta.py())?;
        }
        safe
    }

    fn close_after_stop(&self, py: Python<'_>) -> PyResult<()> {
        let closed = self.close(py);
        *self.error.try_lock().map_err(|_| in_use("stream"))? = closed.err();
        Ok(())
    }
}

fn is_empty(text: &Bound<'_, PyString>) -> bool {
    text.to_str().is_ok_and(str::is_empty)
}

/// An iterator of the safe text of ``deltas``, with ``match``, ``held`` and ``unused``.
///
/// The source is closed as soon as a stop fires. ``stop`` and the options are those of ``StopScanner``.
///
/// >>> list(scan(["The E", "ast. EN", "D."], "END"))
/// ['The ', 'East. ']
#[pyfunction]
#[pyo3(signature = (deltas, stop, /, *, include_stop = false, start_protected = false))]
fn scan(
    deltas: &Bound<'_, PyAny>,
    stop: &Bound<'_, PyAny>,
    include_stop: bool,
    start_protected: bool,
) -> PyResult<StopStream> {
    let scanner = StopScanner::new(stop, include_stop, start_protected)?;
    Ok(StopStream {
        scanner,
        deltas: deltas.clone().unbind(),
        iterator: deltas.try_iter()?.unbind(),
        running: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        error: Mutex::new(None),
    })
}

/// The text before the first stop in ``text`` (through it with ``include_stop``), and the match or ``None``.
///
/// >>> truncate("The END.", "END")
/// ('The ', StopMatch('END', 4))
#[pyfunction]
#[pyo3(signature = (text, stop, /, *, include_stop = false, start_protected = false))]
fn truncate<'py>(
    text: &Bound<'py, PyAny>,
    stop: &Bound<'py, PyAny>,
    include_stop: bool,
    start_protected: bool,
) -> PyResult<(Bound<'py, PyString>, Option<Py<StopMatch>>)> {
    stop_set(stop)?.get().truncate(text, include_stop, start_protected)
}

/// `stop` itself if it is a set, or the set it makes.
fn stop_set(stop: &Bound<'_, PyAny>) -> PyResult<Py<StopSet>> {
    if let Ok(stops) = stop.cast::<StopSet>() {
        return Ok(stops.clone().unbind());
    }
    Py::new(stop.py(), StopSet::new(stop.py(), Some(stop), None, None)?)
}

/// `object` as a string, or the error that says what came instead.
#[inline]
fn string<'a, 'py>(object: &'a Bound<'py, PyAny>, name: &str) -> PyResult<&'a Bound<'py, PyString>> {
    object.cast::<PyString>().map_err(|_| no_string(object, name))
}

#[cold]
fn no_string(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let hint = if object.is_instance_of::<PyBytes>() { "; decode it first" } else { "" };
    let found = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("{name}: expected str, got {found}{hint}"))
}

/// The strings of `object`: a string, an iterable of them, or nothing.
fn strings<'py>(object: Option<&Bound<'py, PyAny>>, name: &str) -> PyResult<Vec<Bound<'py, PyString>>> {
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(Vec::new());
    };
    if let Ok(string) = object.cast::<PyString>() {
        return Ok(vec![string.clone()]);
    }
    let items = match object.is_instance_of::<PyBytes>() {
        true => return Err(no_string(object, name)),
        false => object.try_iter().map_err(|_| no_string(object, name))?,
    };
    items.enumerate().map(|(index, item)| string(&item?, &format!("{name} {index}")).cloned()).collect()
}

/// The opening and closing markers of `object`, an iterable of pairs, one after the other.
fn pairs<'py>(object: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let mut markers = Vec::new();
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(markers);
    };
    for (index, pair) in object.try_iter()?.enumerate() {
        let pair = pair?;
        let name = format!("protect {index}");
        if pair.is_instance_of::<PyString>() || pair.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(format!("{name}: expected a pair of markers, got one string")));
        }
        let both = strings(Some(&pair), &name)?;
        if both.len() != 2 {
            return Err(PyValueError::new_err(format!("{name}: expected a pair of markers, got {}", both.len())));
        }
        markers.extend(both);
    }
    Ok(markers)
}

fn texts<'a>(strings: &'a [Bound<'_, PyString>]) -> PyResult<Vec<&'a str>> {
    strings.iter().map(|string| string.to_str()).collect()
}

/// `safe` as a Python string: the delta's own object when it is the whole of its text.
#[inline]
fn same_or_new<'py>(delta: &Bound<'py, PyString>, text: &str, safe: &str) -> Bound<'py, PyString> {
    if std::ptr::eq(safe, text) { delta.clone() } else { PyString::new(delta.py(), safe) }
}

fn close(source: &Bound<'_, PyAny>) -> PyResult<()> {
    match source.getattr_opt("close")? {
        Some(close) => close.call0().map(|_| ()),
        None => Ok(()),
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
