use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::arguments::{Strings, hash, items, string, text, value_error};
use super::stop_set::{Rebuild, rebuild};

/// Compiled markers that cut a text into segments, and stops: immutable, hashable, picklable, shared by any number of
/// threads and segmenters.
///
/// ``markers`` has the regions, and for each its markers with the region that each leads to; a stream begins in the
/// first. Only the markers and stops of the region that is open are live; the earliest end wins, the longest at the
/// same character. ``stop``, ``visible``, ``patterns`` and ``max_held`` are those of ``StopSet``; the stops live in the
/// regions of ``stop_in``, by default in all. A ``SegmentSet`` in the place of ``markers`` is that set.
///
/// Raises ``ValueError`` for an empty stop or marker, a string that is both, a region that is missing, a marker that
/// can never be reached because another one of its region ends inside it, more than 100 regions, or more than
/// 8,000,000 bytes of UTF-8 in all of them; ``TypeError`` for what is no string or mapping; ``UnicodeEncodeError`` for
/// a lone surrogate.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> SegmentSet(markers, stop=["END"], stop_in=["answer"]).region_after("<think>\n")
/// 'reasoning'
#[pyclass(module = "stopscan.segments", frozen)]
pub(super) struct SegmentSet {
    pub(super) core: crate::SegmentSet,
    /// The names of the regions; a stream begins in the first.
    #[pyo3(get)]
    pub(super) regions: Py<PyTuple>,
    /// The name of each region once more: an array is quicker than a tuple.
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
    /// The most code points that may be held for a pattern, ``None`` for the limit of the library.
    #[pyo3(get)]
    max_held: Option<usize>,
    /// The regions in which stops fire.
    #[pyo3(get)]
    stop_in: Py<PyTuple>,
    given: Given,
}

/// What a set was made of, each thing once.
#[derive(PartialEq, Eq, Hash)]
struct Given {
    markers: Vec<(String, Vec<(String, String)>)>,
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: Vec<String>,
    max_held: Option<usize>,
    stop_in: Vec<String>,
}

#[pymethods]
impl SegmentSet {
    #[new]
    #[pyo3(signature = (markers, /, *, stop = None, visible = None, patterns = None, stop_in = None, max_held = None))]
    fn new(
        markers: &Bound<'_, PyAny>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<usize>,
    ) -> PyResult<Py<SegmentSet>> {
        if let Ok(segments) = markers.cast::<SegmentSet>() {
            return match stop.or(visible).or(patterns).or(stop_in).is_some() || max_held.is_some() {
                false => Ok(segments.clone().unbind()),
                true => Err(PyTypeError::new_err("a SegmentSet is complete: it takes no stops or options")),
            };
        }
        Py::new(markers.py(), SegmentSet::compile(markers, stop, visible, patterns, stop_in, max_held)?)
    }

    /// The region that is open after ``prefix``, the assistant's own part of a prompt: some chat templates end with
    /// ``<think>``. The user's words are not to be in it.
    ///
    /// >>> SegmentSet({"answer": {"<think>": "reasoning"}, "reasoning": {}}).region_after("<think>\n")
    /// 'reasoning'
    #[pyo3(signature = (prefix, /))]
    fn region_after<'py>(&self, prefix: &Bound<'py, PyAny>) -> PyResult<Py<PyString>> {
        let name = self.core.region_after(string(prefix, "prefix")?.to_str()?);
        Ok(self.name(self.core.region(name).unwrap_or_default(), prefix.py()))
    }

    /// The markers of each region, and the region that each leads to; a new dict each time.
    #[getter]
    fn markers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let regions = PyDict::new(py);
        for (region, markers) in &self.given.markers {
            let leads = PyDict::new(py);
            for (marker, lead) in markers {
                leads.set_item(marker, lead)?;
            }
            regions.set_item(region, leads)?;
        }
        Ok(regions)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<SegmentSet>().is_ok_and(|other| self.given == other.get().given)
    }

    fn __hash__(&self) -> u64 {
        hash(&self.given)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut repr = format!("SegmentSet({}", self.markers(py)?.repr()?);
        for (name, value) in [("stop", &self.stop), ("visible", &self.visible), ("patterns", &self.patterns)] {
            if !value.bind(py).is_empty() {
                repr += &format!(", {name}={}", value.bind(py).repr()?);
            }
        }
        if self.given.stop_in.len() < self.names.len() {
            repr += &format!(", stop_in={}", self.stop_in.bind(py).repr()?);
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
        let (py, set) = (slf.py(), slf.get());
        let options = PyDict::new(py);
        options.set_item("stop", &set.stop)?;
        options.set_item("visible", &set.visible)?;
        options.set_item("patterns", &set.patterns)?;
        options.set_item("stop_in", &set.stop_in)?;
        options.set_item("max_held", set.max_held)?;
        rebuild(slf.get_type(), PyTuple::new(py, [set.markers(py)?])?, options)
    }
}

impl SegmentSet {
    fn compile(
        markers: &Bound<'_, PyAny>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        stop_in: Option<&Bound<'_, PyAny>>,
        max_held: Option<usize>,
    ) -> PyResult<SegmentSet> {
        let py = markers.py();
        let (stop, visible) = (Strings::new(stop, "stop")?, Strings::new(visible, "visible stop")?);
        let patterns = Strings::new(patterns, "pattern")?;
        let builder = crate::SegmentSet::builder().stop(stop.texts()?).visible(visible.texts()?);
        let mut builder = builder.patterns(patterns.texts()?);
        if let Some(max_held) = max_held {
            builder = builder.max_held(max_held);
        }
        let mut given = Given {
            markers: Vec::new(),
            stop: distinct(stop.texts()?),
            visible: distinct(visible.texts()?),
            patterns: distinct(patterns.texts()?),
            max_held,
            stop_in: Vec::new(),
        };
        let mut names = Vec::new();
        for (name, leads) in items(markers, "markers")? {
            let region = text(&name, || "region".into())?.to_owned();
            let leads = read_leads(&leads, &region)?;
            builder = builder.region(region.as_str(), leads.iter().map(|(marker, lead)| (marker, lead)));
            given.markers.push((region, leads));
            names.push(name.unbind());
        }
        let live = match stop_in.filter(|stop_in| !stop_in.is_none()) {
            None => given.markers.iter().map(|(name, _)| name.clone()).collect(),
            Some(stop_in) => {
                let live = Strings::new(Some(stop_in), "stop_in")?;
                live.texts()?.into_iter().map(str::to_owned).collect::<Vec<_>>()
            }
        };
        let core = builder.stop_in(&live).build().map_err(value_error)?;
        given.stop_in =
            core.regions().filter(|name| live.iter().any(|other| other == name)).map(str::to_owned).collect();
        Ok(SegmentSet {
            core,
            regions: PyTuple::new(py, &names)?.unbind(),
            names,
            stop: PyTuple::new(py, &given.stop)?.unbind(),
            visible: PyTuple::new(py, &given.visible)?.unbind(),
            patterns: PyTuple::new(py, &given.patterns)?.unbind(),
            max_held,
            stop_in: PyTuple::new(py, &given.stop_in)?.unbind(),
            given,
        })
    }

    /// `segments` itself if it is a set, or the set it makes.
    pub(super) fn of(segments: &Bound<'_, PyAny>) -> PyResult<Py<SegmentSet>> {
        SegmentSet::new(segments, None, None, None, None, None)
    }

    pub(super) fn name(&self, region: u32, py: Python<'_>) -> Py<PyString> {
        self.names[region as usize].clone_ref(py)
    }
}

fn read_leads(object: &Bound<'_, PyAny>, region: &str) -> PyResult<Vec<(String, String)>> {
    let name = format!("markers of region {region:?}");
    let mut leads = Vec::new();
    for (marker, lead) in items(object, &name)? {
        let marker = text(&marker, || name.clone())?.to_owned();
        let lead_name = format!("marker {marker:?}");
        leads.push((marker, text(string(&lead, &lead_name)?, || lead_name.clone())?.to_owned()));
    }
    Ok(leads)
}

fn distinct(texts: Vec<&str>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    texts.into_iter().filter(|text| seen.insert(*text)).map(str::to_owned).collect()
}
