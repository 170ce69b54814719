//! The Python classes that replace given texts (the keys) in streams of deltas.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::arguments::{hash, items, no_string, read_snapshot, read_text, short_text, string, text, with_text};
use crate::errors::OrRaise;
use crate::objects::{bytes, collect, new_string, rebuild};
use crate::sets::short_repr;
use crate::streams::{Delta, same_or_new};
use crate::turns::{GIL, Turn, Turns};

/// Keys (the texts to replace) and their replacements, compiled: immutable, hashable, picklable, shared by any number
/// of threads and streams.
///
/// The text is read from left to right. If several keys begin at the same place, the longest of them is replaced. The
/// search goes on after this key. All other text stays. Replacements are not searched for keys.
///
/// ``RewriteSet(replacements)`` returns ``replacements`` itself if it is a ``RewriteSet``.
///
/// >>> RewriteSet({"<P1>": "Ada", "<P12>": "Grace"}).rewrite("<P12> and <P1>.")
/// 'Grace and Ada.'
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct RewriteSet {
    core: stopscan::RewriteSet,
}

#[pymethods]
impl RewriteSet {
    #[new]
    #[pyo3(signature = (replacements))]
    pub(crate) fn new(replacements: &Bound<'_, PyAny>) -> PyResult<Py<RewriteSet>> {
        if let Ok(set) = replacements.cast::<RewriteSet>() {
            return Ok(set.clone().unbind());
        }
        let py = replacements.py();
        let items = items(replacements, "replacements")?;
        let pairs = collect(items.iter().map(|(key, value)| {
            let name = || format!("replacement of {:?}", key.to_string_lossy());
            let value = value.cast::<PyString>().map_err(|_| no_string(value, &name()))?;
            Ok((text(key, || "key".into())?, text(value, name)?))
        }))?;
        let core = py.detach(|| stopscan::RewriteSet::new(pairs)).or_raise()?;
        Py::new(py, RewriteSet { core })
    }

    /// Returns ``text``, a whole text, with its keys replaced. If nothing is replaced, returns the object ``text``
    /// itself.
    #[pyo3(signature = (text, /))]
    fn rewrite<'py>(slf: Py<Self>, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let delta = string(text, "text")?;
        let stream = Rewrites::new(slf);
        let (safe, rest) = (stream.feed(delta)?, stream.flush(text.py())?);
        match rest.len()? {
            0 => Ok(safe),
            _ => Ok(safe.add(rest)?.cast_into::<PyString>()?),
        }
    }

    /// The keys and their replacements, sorted by key. Each call makes a new dict.
    #[getter]
    fn replacements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, value) in self.core.iter() {
            dict.set_item(new_string(py, key)?, new_string(py, value)?)?;
        }
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        self.core.len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<RewriteSet>().is_ok_and(|other| self.core == other.get().core)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.core)
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        new_string(py, &format!("RewriteSet({})", short_repr(self.replacements(py)?.as_any())?))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        rebuild(slf.get_type(), (slf.get().replacements(py)?,), PyDict::new(py), None)
    }
}

/// Replaces keys in one stream: give ``feed`` each delta, emit the text that ``feed`` returns, and call ``flush`` at
/// the end. The output does not depend on how the text is cut into deltas.
///
/// - ``replacements``: a ``RewriteSet``, or a mapping of keys to their replacements.
///
/// Only one thread at a time may feed a rewriter: a ``feed`` during another ``feed`` raises ``RuntimeError``.
///
/// >>> rewriter = Rewriter({"<P1>": "Ada"})
/// >>> rewriter.feed("Dear <P"), rewriter.held, rewriter.feed("1>, <"), rewriter.flush()
/// ('Dear ', '<P', 'Ada, ', '<')
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct Rewriter {
    pub(crate) stream: Rewrites,
}

#[pymethods]
impl Rewriter {
    #[new]
    #[pyo3(signature = (replacements))]
    pub(crate) fn new(replacements: &Bound<'_, PyAny>) -> PyResult<Rewriter> {
        Ok(Rewriter { stream: Rewrites::new(RewriteSet::new(replacements)?) })
    }

    /// Reads ``delta`` and returns the text that is safe to emit now. If nothing is held and nothing is replaced, this
    /// is the object ``delta`` itself.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the rewriter is as before.
    #[pyo3(signature = (delta, /))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let delta = string(delta, "delta")?;
        if let Some(text) = short_text(delta)?
            && self.stream.is_plain(text)
        {
            return Ok(delta.clone());
        }
        self.stream.feed(delta)
    }

    /// Ends the text: returns the held text with its keys replaced. More text may be fed afterwards, but a key
    /// cannot begin before the flush and end after it.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.stream.flush(py)
    }

    /// Goes back to the start of the stream. Returns nothing.
    fn reset(&self) -> PyResult<()> {
        self.stream.change(|core| core.reset())
    }

    /// Returns a copy of the stream. The copy and the stream go on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<Rewriter> {
        Ok(Rewriter { stream: self.stream.copy(py)? })
    }

    /// Returns the state of the stream as bytes. A rewriter with an equal set can ``restore`` it, also in another
    /// process or on another machine. The bytes do not contain the set.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let snapshot = self.stream.look(|core| core.snapshot())?;
        bytes(py, snapshot.as_bytes())
    }

    /// Replaces the state of the stream by the state in ``snapshot``. Returns nothing.
    ///
    /// Raises ``ValueError`` for a snapshot that was made with another set, for damaged bytes, and for an unknown
    /// version of the format. After an error the stream is as before.
    #[pyo3(signature = (snapshot))]
    fn restore(&self, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
        let snapshot = read_snapshot(snapshot)?;
        self.stream.change(|core| core.restore(&snapshot))?.or_raise()
    }

    /// The text that is withheld because it may be the beginning of a key. If it already is a key, a longer key may
    /// still follow.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.stream.held(py)
    }

    /// The ``RewriteSet`` of the rewriter.
    #[getter]
    fn set(&self, py: Python<'_>) -> Py<RewriteSet> {
        self.stream.set.clone_ref(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Rewriter> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Rewriter> {
        self.copy(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.stream.repr(py, "Rewriter")
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, this) = (slf.py(), slf.get());
        rebuild(slf.get_type(), (&this.stream.set,), PyDict::new(py), Some(this.snapshot(py)?))
    }

    fn __setstate__(&self, state: &Bound<'_, PyAny>) -> PyResult<()> {
        self.restore(state)
    }
}

/// A `Rewriter` that threads of Python can share.
pub(crate) struct Rewrites {
    /// Whether nothing is held. Text in which no key begins can then be returned without taking the lock.
    idle: AtomicBool,
    pub(crate) set: Py<RewriteSet>,
    core: Turns<stopscan::Rewriter>,
}

impl Rewrites {
    fn new(set: Py<RewriteSet>) -> Rewrites {
        let core = stopscan::Rewriter::new(&set.get().core);
        Rewrites { idle: AtomicBool::new(GIL), set, core: Turns::new(core) }
    }

    /// Whether nothing is held and no key begins in `text`. The caller can then return `text` unchanged.
    #[inline(always)]
    pub(crate) fn is_plain(&self, text: &str) -> bool {
        self.idle.load(Relaxed) && self.set.get().core.is_plain(text)
    }

    fn with<T>(&self, mut turn: Turn<'_, stopscan::Rewriter>, action: impl FnOnce(&mut stopscan::Rewriter) -> T) -> T {
        self.idle.store(false, Relaxed);
        let result = action(&mut turn.value);
        self.idle.store(GIL && turn.value.is_idle(), Relaxed);
        result
    }

    fn change<T>(&self, action: impl FnOnce(&mut stopscan::Rewriter) -> T) -> PyResult<T> {
        Ok(self.with(self.core.change("rewriter")?, action))
    }

    fn look<T>(&self, action: impl FnOnce(&mut stopscan::Rewriter) -> T) -> PyResult<T> {
        Ok(self.with(self.core.read("rewriter")?, action))
    }

    #[cold]
    fn feed<'py>(&self, delta: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
        with_text(delta, |text| self.feed_locked((delta, text)))
    }

    /// Reads `delta`. If there is not enough memory for the output, the stream is as before.
    pub(crate) fn feed_locked<'py>(&self, delta: Delta<'_, 'py>) -> PyResult<Bound<'py, PyString>> {
        let (py, text) = (delta.0.py(), delta.1);
        self.change(|core| {
            let safe = read_text(py, text, || core.try_feed(text)).or_raise()?;
            same_or_new(py, safe, Some(delta))
        })?
    }

    pub(crate) fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.change(|core| new_string(py, core.try_flush().or_raise()?))?
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Rewrites> {
        let core = self.look(|core| core.clone())?;
        let idle = AtomicBool::new(GIL && core.is_idle());
        Ok(Rewrites { idle, set: self.set.clone_ref(py), core: Turns::new(core) })
    }

    pub(crate) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.look(|core| new_string(py, core.held()))?
    }

    pub(crate) fn repr<'py>(&self, py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyString>> {
        new_string(py, &format!("<{class} held={}>", short_repr(self.held(py)?.as_any())?))
    }
}
