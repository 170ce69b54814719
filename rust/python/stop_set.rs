use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::arguments::{hash, options, read_text, string, with_text};
use super::classes::set_class;
use super::errors::{type_error, value_error};
use super::given::{Given, names, shown, tuple};
use super::objects::{self, dict, new_string, rebuild, set_item, some_int};
use super::repeat::Repeat;
use super::stop_match::StopMatch;

/// A compiled set of stops: immutable, hashable, picklable, shared by any number of threads and scanners.
///
/// The stop that completes first fires. If several stops complete at the same character, the longest stop fires.
///
/// - ``stop``: hidden stops, which are cut from the output. A string is one stop. ``StopSet(stops)`` of a ``StopSet``
///   is that set.
/// - ``visible``: stops that stay in the output.
/// - ``patterns``: regular expressions in the syntax of Rust's regex crate, with ASCII ``\d``, ``\s``, ``\w`` and
///   ``\b``. They are hidden stops. The match that completes first fires.
/// - ``max_held``: how many code points are held for a pattern. A longer match is given up, and its text is released. A
///   pattern that could hold ordinary text for ever needs this limit.
/// - ``protect``: pairs of an opening and a closing marker. No stop fires between the markers.
/// - ``regions``: a graph of regions as in ``SegmentSet``. In a ``StopSet`` the markers stay in the text. ``protect``
///   is short for a graph with the region ``answer``, in which stops fire, and a region for each pair, named after the
///   opening marker of the pair.
/// - ``stop_in``: the regions in which stops fire. The default is all regions, with ``protect`` the answer alone.
/// - ``repeat``: a ``Repeat`` that makes loops a stop.
///
/// A stop that is given twice counts once.
///
/// Raises ``ValueError`` for an empty stop or marker, a string with two meanings, a pattern that cannot be taken, more
/// than 8,000,000 bytes of UTF-8, or more than 99 pairs. Raises ``TypeError`` for a stop that is not a string, and
/// ``UnicodeEncodeError`` for a lone surrogate.
///
/// >>> StopSet(["is", "a"]).find("this a")
/// StopMatch('is', 2)
#[pyclass(module = "stopscan", frozen)]
pub(super) struct StopSet {
    pub(super) core: crate::StopSet,
    /// The name of each node's region.
    pub(super) names: Vec<Py<PyString>>,
    /// The hidden stops.
    #[pyo3(get)]
    stop: Py<PyTuple>,
    /// The visible stops.
    #[pyo3(get)]
    visible: Py<PyTuple>,
    /// The patterns.
    #[pyo3(get)]
    patterns: Py<PyTuple>,
    /// The opening and closing markers of the protected regions.
    #[pyo3(get)]
    protect: Py<PyTuple>,
    /// The regions in which stops fire.
    #[pyo3(get)]
    stop_in: Py<PyTuple>,
    given: Given,
}

set_class! { StopSet,
    ">>> StopSet(\"END\", protect=[(\"<think>\", \"</think>\")]).region_after(\"<think>\\n\")\n'<think>'",

    #[new]
    #[pyo3(signature = (
        stop = None, /, *, patterns = None, visible = None, protect = None, regions = None, stop_in = None,
        max_held = None, repeat = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        protect: Option<&Bound<'_, PyAny>>,
        regions: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<StopSet>> {
        if let Some(stops) = stop.and_then(|stop| stop.cast::<StopSet>().ok()) {
            let others = [patterns, visible, protect, regions, stop_in, max_held, repeat];
            return match others.iter().all(Option::is_none) {
                true => Ok(stops.clone().unbind()),
                false => Err(type_error("a StopSet is complete: it takes no other stops or options")),
            };
        }
        let mut given = Given::read(py, stop, visible, patterns, max_held, repeat)?;
        given.read_pairs(protect)?;
        let mut names = Vec::new();
        if let Some(regions) = regions.filter(|regions| !regions.is_none()) {
            if !given.protect.is_empty() {
                return Err(value_error("regions and protect exclude each other"));
            }
            names = given.read_regions(regions, "regions")?;
            if given.regions.as_ref().is_some_and(Vec::is_empty) {
                return Err(value_error("there are no regions"));
            }
        }
        given.read_stop_in(stop_in)?;
        Py::new(py, StopSet::compile(py, given, &names)?)
    }

    /// The graph of regions that was given, or ``None``. Each call makes a new dict.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.given.graph(py)
    }

    /// The match that a scanner reports for the whole of ``text``, or ``None`` if no stop fires.
    ///
    /// >>> StopSet(["b", "ab"]).find("xab")
    /// StopMatch('ab', 1)
    #[pyo3(signature = (text, /, *, start_protected = false, region = None))]
    fn find(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        start_protected: bool,
        region: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<StopMatch>>> {
        let options = options(false, start_protected, region)?;
        with_text(string(text, "text")?, |text| {
            let found = read_text(py, text, || self.core.find_with(text, &options))?;
            found.map(|found| StopMatch::from_core(py, found)).transpose()
        })
    }

    /// The text before the stop, and the match. If no stop fires, ``text`` itself and ``None``.
    ///
    /// A visible stop stays at the end of the text. ``include_stop=True`` makes every stop visible.
    ///
    /// >>> StopSet("END").truncate("The END.")
    /// ('The ', StopMatch('END', 4))
    #[pyo3(signature = (text, /, *, include_stop = false, start_protected = false, region = None))]
    fn truncate<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        include_stop: bool,
        start_protected: bool,
        region: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let options = options(include_stop, start_protected, region)?;
        let string = string(text, "text")?;
        with_text(string, |text| {
            let py = string.py();
            let (kept, found) = read_text(py, text, || self.core.truncate_with(text, &options))?;
            let both = match found {
                None => [string.as_any().clone(), py.None().into_bound(py)],
                Some(found) => {
                    let kept = new_string(py, kept)?.into_any();
                    [kept, StopMatch::from_core(py, found)?.into_bound(py).into_any()]
                }
            };
            objects::tuple(py, both.map(Ok))
        })
    }

    /// How many stops there are: hidden, visible, patterns, and loops.
    fn __len__(&self) -> usize {
        self.core.len()
    }

    /// Always true: a set without stops is a set all the same.
    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown("StopSet", self.stop.bind(py), &self.options(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, set) = (slf.py(), slf.get());
        rebuild(slf.get_type(), objects::tuple(py, [Ok(set.stop.bind(py).clone())])?, set.options(py)?, None)
    }
}

impl StopSet {
    fn compile(py: Python<'_>, mut given: Given, keys: &[Bound<'_, PyString>]) -> PyResult<StopSet> {
        let pairs = given.protect.clone();
        let core = given.compile(py, |builder: crate::StopSetBuilder| builder.protect(pairs))?;
        given.protect = core.protect().map(|(open, close)| (open.to_owned(), close.to_owned())).collect();
        Ok(StopSet {
            names: names(py, &core, keys)?.0,
            stop: tuple(py, &given.stop)?,
            visible: tuple(py, &given.visible)?,
            patterns: tuple(py, &given.patterns)?,
            protect: objects::tuple(py, given.protect.iter().map(|pair| pair_of(py, pair)))?.unbind(),
            stop_in: tuple(py, given.stop_in.as_deref().unwrap_or_default())?,
            core,
            given,
        })
    }

    /// `stop` itself if it is a set, or the set it makes.
    pub(super) fn of(stop: &Bound<'_, PyAny>) -> PyResult<Py<StopSet>> {
        StopSet::new(stop.py(), Some(stop), None, None, None, None, None, None, None)
    }

    /// The options that make it again.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = dict(py)?;
        set_item(&options, "patterns", &self.patterns)?;
        set_item(&options, "visible", &self.visible)?;
        set_item(&options, "protect", &self.protect)?;
        set_item(&options, "regions", self.given.graph(py)?)?;
        if !self.core.lives_by_default() {
            set_item(&options, "stop_in", &self.stop_in)?;
        }
        set_item(&options, "max_held", self.max_held(py)?)?;
        set_item(&options, "repeat", self.repeat())?;
        Ok(options)
    }
}

fn pair_of<'py>(py: Python<'py>, (open, close): &(String, String)) -> PyResult<Bound<'py, PyTuple>> {
    objects::tuple(py, [new_string(py, open), new_string(py, close)])
}

/// The text before the stop, and the match. If no stop fires, ``text`` itself and ``None``.
///
/// ``include_stop=True`` keeps the stop at the end of the text. ``stop`` and the options are those of ``StopScanner``.
///
/// >>> truncate("The END.", "END")
/// ('The ', StopMatch('END', 4))
#[pyfunction]
#[pyo3(signature = (text, stop, /, *, include_stop = false, start_protected = false, region = None))]
pub(super) fn truncate<'py>(
    text: &Bound<'py, PyAny>,
    stop: &Bound<'py, PyAny>,
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    StopSet::of(stop)?.get().truncate(text, include_stop, start_protected, region)
}
