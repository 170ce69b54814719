use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::arguments::{Strings, hash, pairs, string, value_error};
use super::stop_match::StopMatch;
use crate::Options;

/// A compiled set of stops: immutable, hashable, picklable, shared by any number of threads and scanners.
///
/// The stop that completes first wins; of those that complete at the same character, the longest. ``stop`` and
/// ``visible`` may be a bare string; hidden stops are cut from the output, visible ones stay in it. ``protect`` has
/// pairs of an opening and a closing marker between which no stop fires. What is given twice counts once. A
/// ``StopSet`` in the place of ``stop`` is that set.
///
/// ``patterns`` are regular expressions in the syntax of Rust's regex crate, with ASCII ``\d``, ``\s``, ``\w`` and
/// ``\b``: hidden stops, of which the match that completes first wins. One that has more than ``max_held`` code points
/// and is not complete is given up, and its text released; a pattern that could hold ordinary text for ever needs that.
///
/// Raises ``ValueError`` for an empty stop or marker, a string with two meanings, a pattern that cannot be scanned for,
/// or more than 8,000,000 bytes of UTF-8 or 99 pairs; ``TypeError`` for what is no string; ``UnicodeEncodeError`` for a
/// lone surrogate.
///
/// >>> StopSet(["is", "a"]).find("this a")
/// StopMatch('is', 2)
#[pyclass(module = "stopscan", frozen)]
pub(super) struct StopSet {
    pub(super) core: crate::StopSet,
    /// The hidden stops.
    #[pyo3(get)]
    stop: Py<PyTuple>,
    /// The visible stops.
    #[pyo3(get)]
    visible: Py<PyTuple>,
    /// The patterns.
    #[pyo3(get)]
    patterns: Py<PyTuple>,
    /// The most code points that may be held for a pattern, ``None`` for the limit of the library.
    #[pyo3(get)]
    max_held: Option<usize>,
    /// The opening and closing markers of the protected regions.
    #[pyo3(get)]
    protect: Py<PyTuple>,
}

#[pymethods]
impl StopSet {
    #[new]
    #[pyo3(signature = (stop = None, /, *, patterns = None, visible = None, protect = None, max_held = None))]
    fn new(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        protect: Option<&Bound<'_, PyAny>>,
        max_held: Option<usize>,
    ) -> PyResult<Py<StopSet>> {
        if let Some(stops) = stop.and_then(|stop| stop.cast::<StopSet>().ok()) {
            return match patterns.or(visible).or(protect).is_some() || max_held.is_some() {
                false => Ok(stops.clone().unbind()),
                true => Err(PyTypeError::new_err("a StopSet is complete: it takes no other stops or options")),
            };
        }
        Py::new(py, StopSet::compile(py, stop, patterns, visible, protect, max_held)?)
    }

    /// The match that a scanner reports for the whole of ``text``, or ``None``.
    ///
    /// >>> StopSet(["b", "ab"]).find("xab")
    /// StopMatch('ab', 1)
    #[pyo3(signature = (text, /, *, start_protected = false))]
    fn find(&self, py: Python<'_>, text: &Bound<'_, PyAny>, start_protected: bool) -> PyResult<Option<Py<StopMatch>>> {
        let options = Options { start_protected, ..Options::default() };
        let found = self.core.find_with(string(text, "text")?.to_str()?, options).map_err(value_error)?;
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
        let options = Options { include_stop, start_protected };
        let text = string(text, "text")?;
        let (kept, found) = self.core.truncate_with(text.to_str()?, options).map_err(value_error)?;
        match found {
            None => Ok((text.clone(), None)),
            Some(found) => Ok((PyString::new(text.py(), kept), Some(StopMatch::from_core(text.py(), found)?))),
        }
    }

    /// How many stops there are: hidden, visible and patterns.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Always true: a set without stops is a set all the same.
    fn __bool__(&self) -> bool {
        true
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<StopSet>().is_ok_and(|other| {
            let (one, other) = (self, other.get());
            let strings =
                |set: &StopSet| set.core.stop().eq(other.core.stop()) && set.core.visible().eq(other.core.visible());
            let regions = |set: &StopSet| set.core.protect().eq(other.core.protect());
            let patterns =
                |set: &StopSet| set.core.patterns().eq(other.core.patterns()) && set.max_held == other.max_held;
            strings(one) && regions(one) && patterns(one)
        })
    }

    fn __hash__(&self) -> u64 {
        let core = &self.core;
        let strings = (core.stop().collect::<Vec<_>>(), core.visible().collect::<Vec<_>>());
        hash((strings, core.protect().collect::<Vec<_>>(), core.patterns().collect::<Vec<_>>(), self.max_held))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut repr = format!("StopSet({}", self.stop.bind(py).repr()?);
        for (name, value) in [("patterns", &self.patterns), ("visible", &self.visible), ("protect", &self.protect)] {
            if !value.bind(py).is_empty() {
                repr += &format!(", {name}={}", value.bind(py).repr()?);
            }
        }
        if let Some(max_held) = self.max_held {
            repr += &format!(", max_held={max_held}");
        }
        Ok(repr + ")")
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Rebuild<'py>> {
        let set = slf.get();
        let options = PyDict::new(slf.py());
        options.set_item("patterns", &set.patterns)?;
        options.set_item("visible", &set.visible)?;
        options.set_item("protect", &set.protect)?;
        options.set_item("max_held", set.max_held)?;
        rebuild(slf.get_type(), PyTuple::new(slf.py(), [&set.stop])?, options)
    }
}

impl StopSet {
    fn compile(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        protect: Option<&Bound<'_, PyAny>>,
        max_held: Option<usize>,
    ) -> PyResult<StopSet> {
        let (stop, visible) = (Strings::new(stop, "stop")?, Strings::new(visible, "visible stop")?);
        let patterns = Strings::new(patterns, "pattern")?;
        let builder = crate::StopSet::builder().stop(stop.texts()?).visible(visible.texts()?);
        let mut builder = builder.patterns(patterns.texts()?);
        if let Some(max_held) = max_held {
            builder = builder.max_held(max_held);
        }
        for pair in &pairs(protect)? {
            let markers = pair.texts()?;
            builder = builder.protect([(markers[0], markers[1])]);
        }
        let core = builder.build().map_err(value_error)?;
        Ok(StopSet {
            stop: PyTuple::new(py, core.stop().collect::<Vec<_>>())?.unbind(),
            visible: PyTuple::new(py, core.visible().collect::<Vec<_>>())?.unbind(),
            patterns: PyTuple::new(py, core.patterns().collect::<Vec<_>>())?.unbind(),
            max_held,
            protect: PyTuple::new(py, core.protect().collect::<Vec<_>>())?.unbind(),
            core,
        })
    }

    /// `stop` itself if it is a set, or the set it makes.
    pub(super) fn of(stop: &Bound<'_, PyAny>) -> PyResult<Py<StopSet>> {
        StopSet::new(stop.py(), Some(stop), None, None, None, None)
    }
}

/// What a pickle calls, and with what.
pub(super) type Rebuild<'py> = (Bound<'py, PyAny>, (Bound<'py, PyType>, Bound<'py, PyTuple>, Bound<'py, PyDict>));

/// What makes an object of `class` again. Protocols below 2 know no keyword arguments but by this function.
pub(super) fn rebuild<'py>(
    class: Bound<'py, PyType>,
    arguments: Bound<'py, PyTuple>,
    options: Bound<'py, PyDict>,
) -> PyResult<Rebuild<'py>> {
    let make = class.py().import("copyreg")?.getattr("__newobj_ex__")?;
    Ok((make, (class, arguments, options)))
}

/// The text before the first stop in ``text`` (through it with ``include_stop``), and the match or ``None``.
///
/// >>> truncate("The END.", "END")
/// ('The ', StopMatch('END', 4))
#[pyfunction]
#[pyo3(signature = (text, stop, /, *, include_stop = false, start_protected = false))]
pub(super) fn truncate<'py>(
    text: &Bound<'py, PyAny>,
    stop: &Bound<'py, PyAny>,
    include_stop: bool,
    start_protected: bool,
) -> PyResult<(Bound<'py, PyString>, Option<Py<StopMatch>>)> {
    StopSet::of(stop)?.get().truncate(text, include_stop, start_protected)
}
