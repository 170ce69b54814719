//! What a set is made of, as Python gives it: read, compared, compiled, and given back.

use std::collections::HashSet;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::arguments::{Strings, items, pairs, size, string, text};
use super::errors::{memory_error, value_error};
use super::objects::{self, collect, dict, new_string, owned, room};
use super::repeat::Repeat;
use crate::room::NoRoom;
use crate::{Emit, Set, SetBuilder, StopSetError, StopSetErrorKind, Target, Text, keep};

/// The arguments of a set, each thing once.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Given {
    pub(super) stop: Vec<String>,
    pub(super) visible: Vec<String>,
    pub(super) patterns: Vec<String>,
    pub(super) max_held: Option<usize>,
    pub(super) protect: Vec<(String, String)>,
    pub(super) regions: Option<Vec<(String, Vec<Lead>)>>,
    pub(super) stop_in: Option<Vec<String>>,
    pub(super) repeat: Option<crate::Repeat>,
}

/// A marker, and where it leads.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Lead {
    marker: String,
    target: String,
    kept: bool,
}

/// From so many bytes of stops on, compiling takes long enough to let other threads run.
const LONG: usize = 16_384;

impl Given {
    pub(super) fn read(
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        visible: Option<&Bound<'_, PyAny>>,
        patterns: Option<&Bound<'_, PyAny>>,
        max_held: Option<&Bound<'_, PyAny>>,
        repeat: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Given> {
        let max_held = max_held.map(|max_held| size(max_held, "max_held")).transpose()?;
        let [stop, visible] = [Strings::new(stop, "stop")?, Strings::new(visible, "visible stop")?];
        let patterns = owned_all(&Strings::new(patterns, "pattern")?)?;
        let given = Given { patterns, max_held, ..Given::default() };
        let length = stop.code_points()? + visible.code_points()?;
        if length >= LONG && !given.patterns.is_empty() {
            // Patterns that are refused are to be refused before long strings are copied.
            let patterns = given.builder::<Text>();
            py.detach(|| patterns.check_patterns(length))?;
        }
        Ok(Given {
            stop: owned_all(&stop)?,
            visible: owned_all(&visible)?,
            repeat: repeat.map(Repeat::of).transpose()?,
            ..given
        })
    }

    pub(super) fn read_pairs(&mut self, protect: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        for pair in &pairs(protect)? {
            let markers = pair.texts()?;
            self.protect.push((owned(markers[0])?, owned(markers[1])?));
        }
        Ok(())
    }

    /// Returns the names as they were given.
    pub(super) fn read_regions<'py>(
        &mut self,
        regions: &Bound<'py, PyAny>,
        name: &str,
    ) -> PyResult<Vec<Bound<'py, PyString>>> {
        let (mut names, mut graph) = (Vec::new(), Vec::new());
        for (region, leads) in items(regions, name)? {
            let name = text(&region, || "region".into())?.to_owned();
            let leads = read_leads(&leads, &name)?;
            graph.push((name, leads));
            names.push(region);
        }
        self.regions = Some(graph);
        Ok(names)
    }

    pub(super) fn read_stop_in(&mut self, stop_in: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if let Some(stop_in) = stop_in.filter(|stop_in| !stop_in.is_none()) {
            self.stop_in = Some(owned_all(&Strings::new(Some(stop_in), "stop_in")?)?);
        }
        Ok(())
    }

    fn builder<E: Emit>(&self) -> SetBuilder<E> {
        let mut builder = SetBuilder::default().stop(&self.stop).visible(&self.visible).patterns(&self.patterns);
        if let Some(max_held) = self.max_held {
            builder = builder.max_held(max_held);
        }
        for (name, leads) in self.regions.iter().flatten() {
            builder = builder.region(name.as_str(), leads.iter().map(|lead| (&lead.marker, lead.target())));
        }
        if let Some(repeat) = self.repeat {
            builder = builder.repeat(repeat);
        }
        match &self.stop_in {
            Some(stop_in) => builder.stop_in(stop_in),
            None => builder,
        }
    }

    /// Compiles the set, and forgets what was given twice.
    pub(super) fn compile<E: Emit>(
        &mut self,
        py: Python<'_>,
        with: impl FnOnce(SetBuilder<E>) -> SetBuilder<E>,
    ) -> PyResult<Set<E>> {
        let bytes: usize = self.stop.iter().chain(&self.visible).map(String::len).sum();
        room(self.size())?; // for the builder's copy
        let builder = with(self.builder());
        let long = bytes >= LONG || !self.patterns.is_empty();
        let set = if long { py.detach(|| builder.build()) } else { builder.build() }?;
        for texts in [&mut self.stop, &mut self.visible, &mut self.patterns] {
            forget_repeated(texts)?;
        }
        self.stop_in = Some(set.stop_in().map(str::to_owned).collect());
        Ok(set)
    }

    /// About how many bytes its strings take.
    fn size(&self) -> usize {
        let markers = self.regions.iter().flatten().flat_map(|(_, leads)| leads).map(|lead| &lead.marker);
        let texts = self.stop.iter().chain(&self.visible).chain(&self.patterns).chain(markers);
        texts.map(|text| text.len() + 2 * size_of::<String>()).sum()
    }

    /// The graph as a new dict.
    pub(super) fn graph<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(regions) = &self.regions else {
            return Ok(None);
        };
        let graph = dict(py)?;
        for (region, leads) in regions {
            let markers = dict(py)?;
            for Lead { marker, target, kept } in leads {
                let target = new_string(py, target)?;
                markers.set_item(
                    new_string(py, marker)?,
                    if *kept { keep_class(py)?.call1(objects::tuple(py, [Ok(target)])?)? } else { target.into_any() },
                )?;
            }
            graph.set_item(new_string(py, region)?, markers)?;
        }
        Ok(Some(graph))
    }
}

impl Lead {
    fn target(&self) -> Target {
        if self.kept { keep(self.target.as_str()) } else { self.target.as_str().into() }
    }
}

type Names = Vec<Py<PyString>>;

/// The name of each node's region and of each region, as Python strings: the objects that were given, where there are.
pub(super) fn names<E: Emit>(py: Python<'_>, set: &Set<E>, given: &[Bound<'_, PyString>]) -> PyResult<(Names, Names)> {
    let object = |name| match given.iter().find(|given| given.to_str().is_ok_and(|given| given == name)) {
        Some(given) => Ok(given.clone().unbind()),
        None => new_string(py, name).map(Bound::unbind),
    };
    let regions = set.regions().map(object).collect::<PyResult<Vec<_>>>()?;
    let graph = set.graph();
    let nodes = (0..graph.len() as u32).map(|node| regions[graph.region(node) as usize].clone_ref(py));
    Ok((nodes.collect(), regions))
}

pub(super) fn tuple(py: Python<'_>, texts: &[String]) -> PyResult<Py<PyTuple>> {
    Ok(objects::tuple(py, texts.iter().map(|text| new_string(py, text)))?.unbind())
}

fn keep_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    objects::class(py, &CLASS, "stopscan.segments._keep", "keep")
}

fn read_leads(object: &Bound<'_, PyAny>, region: &str) -> PyResult<Vec<Lead>> {
    let name = format!("markers of region {region:?}");
    let mut leads = Vec::new();
    for (marker, target) in items(object, &name)? {
        let marker = owned(text(&marker, || name.clone())?)?;
        let target_name = format!("marker {marker:?}");
        let kept = !target.is_exact_instance_of::<PyString>() && target.is_instance(keep_class(object.py())?)?;
        let target = text(string(&target, &target_name)?, || target_name.clone())?.to_owned();
        leads.push(Lead { marker, target, kept });
    }
    Ok(leads)
}

fn owned_all(strings: &Strings<'_>) -> PyResult<Vec<String>> {
    collect(strings.texts()?.into_iter().map(owned))
}

/// Keeps the first of equal texts.
fn forget_repeated(texts: &mut Vec<String>) -> PyResult<()> {
    let mut seen = HashSet::new();
    seen.try_reserve(texts.len()).map_err(NoRoom::from)?;
    let mut first = collect(texts.iter().map(|text| Ok(seen.insert(text.as_str()))))?.into_iter();
    texts.retain(|_| first.next().unwrap_or_default());
    Ok(())
}

impl From<StopSetError> for PyErr {
    fn from(error: StopSetError) -> PyErr {
        match error.kind() {
            StopSetErrorKind::NoMemory => memory_error(error),
            _ => value_error(error),
        }
    }
}

/// The `repr` of a set.
pub(super) fn shown<'py>(
    class: &str,
    first: &Bound<'py, PyAny>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyString>> {
    let mut shown = format!("{class}({}", first.repr()?.to_str()?);
    for (name, value) in options {
        let name = name.cast::<PyString>()?.to_str()?;
        let empty = value.is_none() || value.cast::<PyTuple>().is_ok_and(|value| value.is_empty() && name != "stop_in");
        if !empty {
            shown += &format!(", {name}={}", value.repr()?.to_str()?);
        }
    }
    new_string(first.py(), &(shown + ")"))
}
