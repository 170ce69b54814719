//! Sets of stops and markers: their arguments, how they are compiled and compared, and their pickles.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyString, PyTuple, PyType};
use stopscan::{Emit, Format, Options, Set, SetBuilder, StopSetBuilder, Target, keep, stay};

use crate::arguments::{Strings, hash, items, options, pairs, read_text, size, string, text, unexpected, with_text};
use crate::errors::{OrRaise, type_error, value_error};
use crate::matches::StopMatch;
use crate::objects::{self, new_string, rebuild, room};

/// The methods that `StopSet` and `SegmentSet` share.
macro_rules! set_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Returns the name of the region, or of the state of a region, that is open after ``prefix``.
            ///
            /// ``prefix`` is the assistant's own part of a prompt. Some chat templates end this part with ``<think>``.
            /// Leave the user's words out of ``prefix``.
            ///
            /// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {}}
            /// >>> SegmentSet(markers).region_after("<think>\n")
            /// 'reasoning'
            #[pyo3(signature = (prefix, /))]
            fn region_after<'py>(&self, prefix: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
                let region = with_text(string(prefix, "prefix")?, |prefix| Ok(self.core.region_after(prefix)))?;
                new_string(prefix.py(), region)
            }

            /// The hidden stops: those that are cut from the output.
            #[getter]
            fn stop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                texts(py, self.core.stop())
            }

            /// The visible stops: those that stay in the output.
            #[getter]
            fn visible<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                texts(py, self.core.visible())
            }

            /// The regular expressions that are hidden stops.
            #[getter]
            fn patterns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                texts(py, self.core.patterns())
            }

            /// The regular expressions that are visible stops.
            #[getter]
            fn visible_patterns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                texts(py, self.core.visible_patterns())
            }

            /// The regions in which stops fire.
            #[getter]
            fn stop_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                texts(py, self.core.stop_in())
            }

            /// The most code points that are withheld while a hidden pattern may match. ``None`` means the default,
            /// 65,536.
            #[getter]
            fn max_held(&self) -> Option<usize> {
                self.core.max_held()
            }

            /// The rule for loops (text that repeats itself). ``None`` if loops are not a stop.
            #[getter]
            fn repeat(&self) -> Option<Repeat> {
                self.core.repeat().map(Repeat)
            }

            /// Returns the number of stops: hidden stops, visible stops and patterns, and one more if there is a
            /// `repeat`.
            fn __len__(&self) -> usize {
                self.core.len()
            }

            /// Always returns true, also for a set without stops.
            fn __bool__(&self) -> bool {
                true
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                other.cast::<$class>().is_ok_and(|other| self.core == other.get().core)
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
        }
    };
}

/// A compiled set of stops: immutable, hashable, picklable, shared by any number of threads and scanners.
///
/// The stop that completes first fires. If several stops complete at the same character, the longest stop fires.
///
/// - ``stop``: hidden stops, which are cut from the output. A single string is one stop. ``StopSet(stops)`` returns
///   ``stops`` itself if it is a ``StopSet``.
/// - ``visible``: stops that stay in the output.
/// - ``patterns``: regular expressions in the syntax of Rust's regex crate, with ASCII ``\d``, ``\s``, ``\w`` and
///   ``\b``. They are hidden stops. The match that completes first fires.
/// - ``visible_patterns``: regular expressions whose match stays in the output. No text is withheld for them.
/// - ``max_held``: the most code points that are withheld while one of the ``patterns`` may still match. A longer match
///   does not fire: its text is emitted. Without ``max_held`` the limit is 65,536, and a pattern that could withhold
///   ordinary text for ever is refused.
/// - ``protect``: pairs of an opening and a closing marker. Between the markers, no stop except a loop fires. The two
///   markers of a pair may be equal: one opens a region, and the next closes it.
/// - ``regions``: a graph of regions as in ``SegmentSet``. In a ``StopSet`` the markers stay in the text. ``protect``
///   is a short form of such a graph: it has the region ``answer``, in which stops fire, and a region for each pair,
///   named after the opening marker of the pair.
/// - ``stop_in``: the regions in which stops fire. The default is all regions; with ``protect``, only the answer.
/// - ``repeat``: a ``Repeat`` that makes loops a stop.
///
/// A stop that is given twice counts once.
///
/// Raises ``ValueError`` for an empty stop or marker, a string with two meanings (such as a stop that is hidden and
/// visible), a pattern that is not supported, more than 8,000,000 bytes of UTF-8, or more than 99 pairs. Raises
/// ``TypeError`` for a stop that is not a string, and ``UnicodeEncodeError`` for a lone surrogate.
///
/// >>> StopSet(["is", "a"]).find("this a")
/// StopMatch('is', 2)
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct StopSet {
    pub(crate) core: stopscan::StopSet,
    /// For each node, the name of its region. A node is a region, or a state of a region.
    pub(crate) names: Vec<Py<PyString>>,
}

#[pymethods]
impl StopSet {
    #[new]
    #[pyo3(signature = (
        stop = None, *, patterns = None, visible = None, visible_patterns = None, protect = None, regions = None,
        stop_in = None, max_held = None, repeat = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        visible_patterns: Option<&Bound<'_, PyAny>>,
        protect: Option<&Bound<'_, PyAny>>,
        regions: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<StopSet>> {
        if let Some(stops) = stop.and_then(|stop| stop.cast::<StopSet>().ok()) {
            let others = [patterns, visible, visible_patterns, protect, regions, stop_in, max_held, repeat];
            return match others.iter().all(Option::is_none) {
                true => Ok(stops.clone().unbind()),
                false => Err(type_error("stop is already a StopSet: give no other stops or options")),
            };
        }
        let mut arguments = SetArguments::new([stop, visible, patterns, visible_patterns], max_held, repeat)?;
        let pairs = pairs(protect)?;
        for pair in &pairs {
            let markers = pair.texts()?;
            arguments.add(markers.iter().map(|marker| marker.len()).sum(), |set: StopSetBuilder| {
                set.protect([(markers[0], markers[1])])
            })?;
        }
        let mut names = Vec::new();
        if let Some(regions) = regions.filter(|regions| !regions.is_none()) {
            names = arguments.add_regions(regions, "regions")?;
            if names.is_empty() {
                return Err(value_error("the set needs at least one region"));
            }
        }
        arguments.add_stop_in(stop_in)?;
        let core = arguments.compile(py)?;
        Py::new(py, StopSet { names: node_names(py, &core, &names)?.0, core })
    }

    /// The opening and closing markers of the protected regions.
    #[getter]
    fn protect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        objects::tuple(py, self.core.protect().map(|(open, close)| texts(py, [open, close].into_iter())))
    }

    /// The graph of regions that was given, or ``None``. Each call makes a new dict.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let protects = self.core.protect().next().is_some();
        // A set that was given neither `regions` nor `protect` has only the region "answer", without markers.
        let has_regions = self.core.states().any(|(name, mut markers)| name != "answer" || markers.next().is_some());
        (has_regions && !protects).then(|| markers(py, &self.core)).transpose()
    }

    /// Returns the match that a scanner reports when it reads all of ``text``, or ``None`` if no stop fires.
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
        find(py, &self.core, text, &options(false, start_protected, region)?)
    }

    /// Returns the text before the stop, and the match. If no stop fires, returns ``text`` itself and ``None``.
    ///
    /// A visible stop stays in the text. If a loop fires, the first copy of the repeated block stays. With
    /// ``include_stop=True``, all of the stop stays.
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
            let (kept, found) = read_text(py, text, || self.core.truncate_with(text, &options)).or_raise()?;
            match found {
                None => (string, py.None()).into_pyobject(py),
                Some(found) => (new_string(py, kept)?, StopMatch::from_core(py, found)?).into_pyobject(py),
            }
        })
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        set_repr("StopSet", self.stop(py)?.as_any(), &self.options(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, set) = (slf.py(), slf.get());
        rebuild(slf.get_type(), (set.stop(py)?,), set.options(py)?, None)
    }
}

set_methods!(StopSet);

impl StopSet {
    /// Returns `stop` itself if it is a set. Otherwise makes a set of `stop`, or the empty set if `stop` is `None`.
    pub(crate) fn of<'a, 'py: 'a>(stop: impl Into<Option<&'a Bound<'py, PyAny>>>) -> PyResult<Py<StopSet>> {
        Python::attach(|py| StopSet::new(py, stop.into(), None, None, None, None, None, None, None, None))
    }

    /// Returns the keyword arguments that make the set again, for pickle and `repr`.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (protect, regions) = (self.protect(py)?, self.regions(py)?);
        let protects = !protect.is_empty();
        let own = [("protect", protect.into_any()), ("regions", regions.into_pyobject(py)?)];
        set_options(py, &self.core, own, protects)
    }
}

/// Returns the text before the stop, and the match. If no stop fires, returns ``text`` itself and ``None``.
///
/// ``include_stop=True`` keeps the stop at the end of the text. ``stop`` and the options are the same as in
/// ``StopScanner``.
///
/// >>> truncate("The END.", "END")
/// ('The ', StopMatch('END', 4))
#[pyfunction]
#[pyo3(signature = (text, /, stop, *, include_stop = false, start_protected = false, region = None))]
pub(crate) fn truncate<'py>(
    text: &Bound<'py, PyAny>,
    stop: &Bound<'py, PyAny>,
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    StopSet::of(stop)?.get().truncate(text, include_stop, start_protected, region)
}

/// A compiled set of stops, and of markers that cut a text into segments: immutable, hashable, picklable, shared by
/// any number of threads and segmenters.
///
/// - ``markers``: for each region its markers, and for each marker the region to which the marker leads. A stream
///   begins in the first region. ``SegmentSet(segments)`` returns ``segments`` itself if it is a ``SegmentSet``.
/// - ``stop``, ``visible``, ``patterns``, ``visible_patterns``, ``max_held``, ``repeat``: as in ``StopSet``.
/// - ``stop_in``: the regions in which stops fire. The default is all regions.
///
/// Only the markers and stops of the open region are looked for. The one that completes first counts. If several
/// complete at the same character, the longest counts.
///
/// A region can have several states, each with markers of its own: ``"tool_call/in reasoning"`` is a state of the
/// region ``tool_call``. ``markers`` has the names of states, and a segment has the name of its region. A marker that
/// leads to ``keep("tool_call")`` stays in the text, as the beginning of the text of ``tool_call``. A marker that leads
/// to ``stay("tool_call/body")`` stays in the text and begins no new part.
///
/// Raises ``ValueError`` for an empty stop or marker, a string that is a stop and a marker, an unknown region, a
/// marker that cannot complete because another one ends inside it, over 100 regions, or over 8,000,000 bytes of UTF-8.
/// Raises ``TypeError`` for a value that is not a string or mapping, and ``UnicodeEncodeError`` for a lone surrogate.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> SegmentSet(markers, stop=["END"], stop_in=["answer"]).region_after("<think>\n")
/// 'reasoning'
#[pyclass(module = "stopscan.segments", frozen)]
pub(crate) struct SegmentSet {
    pub(crate) core: stopscan::SegmentSet,
    /// The names of the regions; a stream begins in the first.
    pub(crate) regions: Vec<Py<PyString>>,
    /// For each node, the name of its region. A node is a region, or a state of a region.
    pub(crate) names: Vec<Py<PyString>>,
}

#[pymethods]
impl SegmentSet {
    #[new]
    #[pyo3(signature = (
        markers, stop = None, *, visible = None, patterns = None, visible_patterns = None, stop_in = None,
        max_held = None, repeat = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        markers: &Bound<'_, PyAny>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        visible_patterns: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<SegmentSet>> {
        if let Ok(segments) = markers.cast::<SegmentSet>() {
            let others = [stop, visible, patterns, visible_patterns, stop_in, max_held, repeat];
            return match others.iter().all(Option::is_none) {
                true => Ok(segments.clone().unbind()),
                false => Err(type_error("the first argument is already a SegmentSet: give no stops or options")),
            };
        }
        let mut arguments = SetArguments::new([stop, visible, patterns, visible_patterns], max_held, repeat)?;
        let names = arguments.add_regions(markers, "markers")?;
        arguments.add_stop_in(stop_in)?;
        let py = markers.py();
        let core = arguments.compile(py)?;
        let (names, regions) = node_names(py, &core, &names)?;
        Py::new(py, SegmentSet { names, regions, core })
    }

    /// The names of the regions; a stream begins in the first.
    #[getter]
    fn regions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        objects::tuple(py, self.regions.iter().map(|name| Ok(name.bind(py).clone())))
    }

    /// Returns the match that a segmenter reports when it reads all of ``text``, or ``None`` if no stop fires.
    ///
    /// >>> SegmentSet({"a": {"<": "b"}, "b": {}}, stop="END", stop_in="b").find("END<END")
    /// StopMatch('END', 4)
    #[pyo3(signature = (text, /, *, region = None))]
    fn find(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<StopMatch>>> {
        find(py, &self.core, text, &options(false, false, region)?)
    }

    /// The graph of regions. A key is a region or state, and its value is a dict: from each marker in it to the state
    /// to which the marker leads. Each call makes a new dict.
    #[getter]
    fn markers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        markers(py, &self.core)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        set_repr("SegmentSet", self.markers(py)?.as_any(), &self.options(py)?)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, set) = (slf.py(), slf.get());
        rebuild(slf.get_type(), (set.markers(py)?,), set.options(py)?, None)
    }
}

set_methods!(SegmentSet);

impl SegmentSet {
    /// Returns `segments` itself if it is a set. Otherwise makes a set of it.
    pub(crate) fn of(segments: &Bound<'_, PyAny>) -> PyResult<Py<SegmentSet>> {
        SegmentSet::new(segments, None, None, None, None, None, None, None)
    }

    /// Returns the keyword arguments that make the set again, for pickle and `repr`.
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        set_options(py, &self.core, [("stop", self.stop(py)?.into_any())], false)
    }
}

/// A stop that fires when the text repeats itself, at the first character that completes a loop.
///
/// A loop is a block of at most ``max_period`` code points that comes at least ``count`` times in a row. All copies
/// together have at least ``min_length`` code points, so a short block has to come more often. The first copy of a
/// short block may be incomplete: the end of the block is enough. The stop is visible, and fires in every region.
///
/// Raises ``ValueError`` for a ``count`` below 3, a ``max_period`` outside of 1 to 65,536, or a ``min_length`` below
/// 32.
///
/// >>> StopSet(repeat=Repeat()).find("I will now fix the bug.\n" * 20).period
/// 24
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct Repeat(pub(crate) stopscan::Repeat);

#[pymethods]
impl Repeat {
    #[new]
    #[pyo3(
        signature = (count = None, *, max_period = None, min_length = None),
        text_signature = "(count=4, *, max_period=1024, min_length=256)"
    )]
    fn new(
        count: Option<&Bound<'_, PyAny>>,
        max_period: Option<&Bound<'_, PyAny>>,
        min_length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Repeat> {
        let default = stopscan::Repeat::default();
        let size_or =
            |argument: Option<_>, name, default| argument.map_or(Ok(default), |argument| size(argument, name));
        let count = size_or(count, "count", default.count())?;
        let max_period = size_or(max_period, "max_period", default.max_period())?;
        let min_length = size_or(min_length, "min_length", default.min_length())?;
        Ok(Repeat(stopscan::Repeat::new(count, max_period, min_length).or_raise()?))
    }

    /// The fewest copies of a block that make a loop.
    #[getter]
    fn count(&self) -> usize {
        self.0.count()
    }

    /// The most code points that a block may have.
    #[getter]
    fn max_period(&self) -> usize {
        self.0.max_period()
    }

    /// The fewest code points that all copies of a block must have together.
    #[getter]
    fn min_length(&self) -> usize {
        self.0.min_length()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Repeat>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        hash(self.0)
    }

    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let Repeat(repeat) = self;
        let (count, max_period, min_length) = (repeat.count(), repeat.max_period(), repeat.min_length());
        new_string(py, &format!("Repeat({count}, max_period={max_period}, min_length={min_length})"))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, repeat) = (slf.py(), slf.get());
        let options = [("max_period", repeat.max_period()), ("min_length", repeat.min_length())];
        rebuild(slf.get_type(), (repeat.count(),), options.into_py_dict(py)?, None)
    }
}

impl Repeat {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<stopscan::Repeat> {
        match object.cast::<Repeat>() {
            Ok(repeat) => Ok(repeat.get().0),
            Err(_) => Err(unexpected(object, "repeat", "Repeat", "")),
        }
    }
}

/// A marker, the name of the state to which it leads, and two flags: whether `keep` was given, and whether `stay` was
/// given.
type FormatLead = (&'static str, String, bool, bool);

/// A state and its markers.
type State = (String, Vec<FormatLead>);

/// Returns the known formats of model output, for ``segments.FORMATS``: the name, models and states of each.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, Vec<State>)> {
    let lead = |(marker, target): (_, Target)| (marker, target.name().into(), target.is_kept(), target.stays());
    let states = |format: &Format| {
        format.states().iter().map(|state| (state.name().into(), state.markers().map(lead).collect())).collect()
    };
    Format::all().map(|format| (format.name(), format.source(), states(format))).collect()
}

/// The arguments of a set, collected in its builder.
struct SetArguments<E> {
    set: SetBuilder<E>,
    /// Whether compiling the set takes long, so that the GIL is released meanwhile. It takes long if there are
    /// patterns, or at least `LONG` bytes of stops.
    long: bool,
}

/// If the stops have at least this many bytes together, compiling them releases the GIL.
const LONG: usize = 16_384;

impl<E: Emit> SetArguments<E> {
    /// Reads `stops`, which has four arguments: hidden stops, visible stops, patterns and visible patterns. Also reads
    /// `max_held` and `repeat`.
    fn new(
        stops: [Option<&Bound<'_, PyAny>>; 4],
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<SetArguments<E>> {
        let max_held = max_held.map(|max_held| size(max_held, "max_held")).transpose()?;
        let stop = Strings::new(stops[0], "stop")?;
        let visible = Strings::new(stops[1], "visible stop")?;
        let patterns = Strings::new(stops[2], "pattern")?;
        let visible_patterns = Strings::new(stops[3], "visible pattern")?;
        let (patterns, visible_patterns) = (patterns.texts()?, visible_patterns.texts()?);
        let (stop, visible) = (stop.texts()?, visible.texts()?);
        let bytes: usize = stop.iter().chain(&visible).map(|text| text.len()).sum();
        let long = bytes >= LONG || !patterns.is_empty() || !visible_patterns.is_empty();
        let mut arguments = SetArguments { set: SetBuilder::default(), long };
        let texts = || stop.iter().chain(&visible).chain(&patterns).chain(&visible_patterns);
        let size = texts().map(|text| text.len() + 2 * size_of::<String>()).sum();
        arguments.add(size, |set| {
            let set = set.stop(&stop).visible(&visible).patterns(&patterns).visible_patterns(&visible_patterns);
            max_held.into_iter().fold(set, SetBuilder::max_held)
        })?;
        if let Some(repeat) = repeat {
            let repeat = Repeat::of(repeat)?;
            arguments.add(0, |set| set.repeat(repeat))?;
        }
        Ok(arguments)
    }

    /// Calls `add`, which adds strings to the builder. Together, the strings have `bytes` bytes. If there is no memory
    /// for a copy of them, raises `MemoryError` and does not call `add`.
    fn add(&mut self, bytes: usize, add: impl FnOnce(SetBuilder<E>) -> SetBuilder<E>) -> PyResult<()> {
        room(bytes)?;
        self.set = add(std::mem::take(&mut self.set));
        Ok(())
    }

    /// Adds the regions and their markers. Returns the names of the regions as they were given.
    fn add_regions<'py>(&mut self, regions: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyString>>> {
        let mut names = Vec::new();
        for (region, leads) in items(regions, name)? {
            let name = text(&region, || "region".into())?;
            let leads = read_leads(&leads, name)?;
            let bytes = leads.iter().map(|lead| lead.0.len() + 256).sum();
            self.add(bytes, |set| set.region(name, leads))?;
            names.push(region);
        }
        Ok(names)
    }

    fn add_stop_in(&mut self, stop_in: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match stop_in.filter(|stop_in| !stop_in.is_none()) {
            None => Ok(()),
            Some(stop_in) => {
                let names = Strings::new(Some(stop_in), "stop_in")?;
                let names = names.texts()?;
                self.add(names.iter().map(|name| name.len() + 48).sum(), |set| set.stop_in(&names))
            }
        }
    }

    fn compile(self, py: Python<'_>) -> PyResult<Set<E>> {
        if self.long { py.detach(|| self.set.build()) } else { self.set.build() }.or_raise()
    }
}

fn find<E: Emit>(
    py: Python<'_>,
    set: &Set<E>,
    text: &Bound<'_, PyAny>,
    options: &Options,
) -> PyResult<Option<Py<StopMatch>>> {
    with_text(string(text, "text")?, |text| {
        let found = read_text(py, text, || set.find_with(text, options)).or_raise()?;
        found.map(|found| StopMatch::from_core(py, found)).transpose()
    })
}

/// Returns a new dict: the states of a set, their markers, and the state to which each marker leads.
fn markers<'py, E: Emit>(py: Python<'py>, set: &Set<E>) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (state, leads) in set.states() {
        let markers = PyDict::new(py);
        for (marker, target) in leads {
            let name = new_string(py, target.name())?;
            let target = match (target.is_kept(), target.stays()) {
                (true, _) => keep_class(py)?.call1((name,))?,
                (_, true) => stay_class(py)?.call1((name,))?,
                _ => name.into_any(),
            };
            markers.set_item(new_string(py, marker)?, target)?;
        }
        all.set_item(new_string(py, state)?, markers)?;
    }
    Ok(all)
}

/// Returns the keyword arguments with which Python makes an equal set. `own` has the arguments that only this class of
/// set has. The other arguments are the same for `StopSet` and `SegmentSet`.
fn set_options<'py, E: Emit>(
    py: Python<'py>,
    set: &Set<E>,
    own: impl IntoIterator<Item = (&'static str, Bound<'py, PyAny>)>,
    protects: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let options = PyDict::new(py);
    own.into_iter().try_for_each(|(name, value)| options.set_item(name, value))?;
    options.set_item("patterns", texts(py, set.patterns())?)?;
    options.set_item("visible", texts(py, set.visible())?)?;
    options.set_item("visible_patterns", texts(py, set.visible_patterns())?)?;
    // Whether `stop_in` is the default. With `protect`, the default is the answer alone, which is the first region.
    // Otherwise the default is all regions.
    let by_default = match protects {
        true => set.stop_in().eq(set.regions().take(1)),
        false => set.stop_in().count() == set.regions().count(),
    };
    if !by_default {
        options.set_item("stop_in", texts(py, set.stop_in())?)?;
    }
    options.set_item("max_held", set.max_held())?;
    options.set_item("repeat", set.repeat().map(Repeat))?;
    Ok(options)
}

type Names = Vec<Py<PyString>>;

/// Returns two lists: for each node the name of its region, and for each region its name. A node is a region, or a
/// state of a region. If `keys` has a string that equals a name, this string is used, and no new one is made.
fn node_names<E: Emit>(py: Python<'_>, set: &Set<E>, keys: &[Bound<'_, PyString>]) -> PyResult<(Names, Names)> {
    let object = |name| match keys.iter().find(|key| key.to_str().is_ok_and(|key| key == name)) {
        Some(key) => Ok(key.clone().unbind()),
        None => new_string(py, name).map(Bound::unbind),
    };
    let regions = set.regions().map(object).collect::<PyResult<Vec<_>>>()?;
    let nodes = (0..set.nodes()).map(|node| regions[set.region_of(node)].clone_ref(py));
    Ok((nodes.collect(), regions))
}

fn texts<'a, 'py>(py: Python<'py>, texts: impl Iterator<Item = &'a str>) -> PyResult<Bound<'py, PyTuple>> {
    objects::tuple(py, texts.map(|text| new_string(py, text)))
}

fn keep_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "stopscan.segments._markers", "keep")
}

fn stay_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "stopscan.segments._markers", "stay")
}

fn read_leads(object: &Bound<'_, PyAny>, region: &str) -> PyResult<Vec<(String, Target)>> {
    let name = format!("markers of region {region:?}");
    let mut leads = Vec::new();
    for (marker, target) in items(object, &name)? {
        let marker = text(&marker, || name.clone())?;
        room(marker.len())?;
        let target_name = format!("marker {marker:?}");
        let is = |class| Ok::<_, PyErr>(!target.is_exact_instance_of::<PyString>() && target.is_instance(class)?);
        let (kept, stays) = (is(keep_class(object.py())?)?, is(stay_class(object.py())?)?);
        let target = text(string(&target, &target_name)?, || target_name.clone())?;
        let target = match (kept, stays) {
            (true, _) => keep(target),
            (_, true) => stay(target),
            _ => target.into(),
        };
        leads.push((marker.to_owned(), target));
    }
    Ok(leads)
}

/// A `repr` of an argument with more code points than this is cut, because tracebacks may show sets of thousands of
/// stops.
const LONG_REPR: usize = 500;

/// Returns the `repr` of a set: the argument `first`, and all `options` that are not empty. An empty `stop_in` is also
/// shown, because it is not the default.
pub(crate) fn set_repr<'py>(
    class: &str,
    first: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyString>> {
    let mut repr = format!("{class}({}", short_repr(first)?);
    for (name, value) in options {
        let name = name.cast::<PyString>()?.to_str()?;
        let empty = value.is_none() || value.cast::<PyTuple>().is_ok_and(|value| value.is_empty() && name != "stop_in");
        if !empty {
            repr += &format!(", {name}={}", short_repr(&value)?);
        }
    }
    new_string(first.py(), &(repr + ")"))
}

/// Returns the `repr` of an argument, or the beginning of a long `repr`.
pub(crate) fn short_repr(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let repr = value.repr()?;
    let repr = repr.to_str()?;
    Ok(match repr.char_indices().nth(LONG_REPR) {
        None => repr.to_owned(),
        Some((end, _)) => format!("{}...", &repr[..end]),
    })
}
