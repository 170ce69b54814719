use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::arguments::{hash, string, with_text};
use super::classes::set_class;
use super::errors::type_error;
use super::given::{Given, names, shown, tuple};
use super::objects::{self, Draft, dict, new_string, rebuild, set_item, some_int};
use super::repeat::Repeat;

/// Compiled markers that cut a text into segments, and stops: immutable, hashable, picklable, shared by any number of
/// threads and segmenters.
///
/// - ``markers``: for each region its markers, and for each marker the region to which the marker leads. A stream
///   begins in the first region. ``SegmentSet(segments)`` of a ``SegmentSet`` is that set.
/// - ``stop``, ``visible``, ``patterns``, ``max_held``, ``repeat``: as in ``StopSet``.
/// - ``stop_in``: the regions in which stops fire. The default is all regions.
///
/// Only the markers and stops of the open region count. The marker or stop that completes first counts. If several
/// complete at the same character, the longest counts.
///
/// A region can have several states: ``"tool_call/in reasoning"`` is a state of the region ``tool_call``. Mappings name
/// states, and segments name regions. A marker that leads to ``keep("tool_call")`` stays in the text, as the beginning
/// of ``tool_call``.
///
/// Raises ``ValueError`` for an empty stop or marker, a string that is a stop and a marker, a region that is missing, a
/// marker inside which another marker of the region ends, more than 100 regions, or more than 8,000,000 bytes of UTF-8.
/// Raises ``TypeError`` for a value that is not a string or mapping, and ``UnicodeEncodeError`` for a lone surrogate.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> SegmentSet(markers, stop=["END"], stop_in=["answer"]).region_after("<think>\n")
/// 'reasoning'
#[pyclass(module = "stopscan.segments", frozen)]
pub(super) struct SegmentSet {
    pub(super) core: crate::SegmentSet,
    /// The names of the regions; a stream begins in the first.
    pub(super) regions: Vec<Py<PyString>>,
    /// The name of each node's region.
    pub(super) names: Vec<Py<PyString>>,
    /// The segments of each node, without their text.
    pub(super) drafts: Vec<Draft>,
    /// A list of one segment, without it.
    pub(super) one: Draft,
    /// The hidden stops.
    #[pyo3(get)]
    stop: Py<PyTuple>,
    /// The visible stops.
    #[pyo3(get)]
    visible: Py<PyTuple>,
    /// The patterns.
    #[pyo3(get)]
    patterns: Py<PyTuple>,
    /// The regions in which stops fire.
    #[pyo3(get)]
    stop_in: Py<PyTuple>,
    given: Given,
}

set_class! { SegmentSet,
    ">>> SegmentSet({\"answer\": {\"<think>\": \"reasoning\"}, \"reasoning\": {}}).region_after(\"<think>\\n\")\n'reasoning'",

    #[new]
    #[pyo3(signature = (markers, /, *, stop = None, visible = None, patterns = None, stop_in = None, max_held = None, repeat = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        markers: &Bound<'_, PyAny>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<SegmentSet>> {
        if let Ok(segments) = markers.cast::<SegmentSet>() {
            return match [stop, visible, patterns, stop_in, max_held, repeat].iter().all(Option::is_none) {
                true => Ok(segments.clone().unbind()),
                false => Err(type_error("a SegmentSet is complete: it takes no stops or options")),
            };
        }
        let mut given = Given::read(markers.py(), stop, visible, patterns, max_held, repeat)?;
        let names = given.read_regions(markers, "markers")?;
        given.read_stop_in(stop_in)?;
        Py::new(markers.py(), SegmentSet::compile(markers.py(), given, &names)?)
    }

    /// The names of the regions; a stream begins in the first.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        objects::tuple(py, self.regions.iter().map(|name| Ok(name.bind(py).clone())))
    }

    /// For each region and state its markers, and where each marker leads. Each call makes a new dict.
    #[getter]
    fn markers<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.given.graph(py)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        shown("SegmentSet", &self.markers(py)?.into_pyobject(py)?, &self.options(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, set) = (slf.py(), slf.get());
        let markers = set.markers(py)?.into_pyobject(py)?;
        rebuild(slf.get_type(), objects::tuple(py, [Ok(markers)])?, set.options(py)?, None)
    }
}

impl SegmentSet {
    fn compile(py: Python<'_>, mut given: Given, keys: &[Bound<'_, PyString>]) -> PyResult<SegmentSet> {
        let core = given.compile(py, |builder: crate::SegmentSetBuilder| builder)?;
        let (names, regions) = names(py, &core, keys)?;
        Ok(SegmentSet {
            drafts: names.iter().map(|name| Draft::new(py, Some(name))).collect::<PyResult<_>>()?,
            one: Draft::new(py, None)?,
            names,
            regions,
            stop: tuple(py, &given.stop)?,
            visible: tuple(py, &given.visible)?,
            patterns: tuple(py, &given.patterns)?,
            stop_in: tuple(py, given.stop_in.as_deref().unwrap_or_default())?,
            core,
            given,
        })
    }

    /// `segments` itself if it is a set, or the set it makes.
    pub(super) fn of(segments: &Bound<'_, PyAny>) -> PyResult<Py<SegmentSet>> {
        SegmentSet::new(segments, None, None, None, None, None, None)
    }

    /// The options that make it again.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let options = dict(py)?;
        set_item(&options, "stop", &self.stop)?;
        set_item(&options, "visible", &self.visible)?;
        set_item(&options, "patterns", &self.patterns)?;
        if !self.core.lives_by_default() {
            set_item(&options, "stop_in", &self.stop_in)?;
        }
        set_item(&options, "max_held", self.max_held(py)?)?;
        set_item(&options, "repeat", self.repeat())?;
        Ok(options)
    }
}
