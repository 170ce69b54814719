//! What comes out of a stream, as Python objects: a string, or a list of segments.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyList, PyString, PyTuple};

use super::objects::{self, new_string};
use super::segment_set::SegmentSet;
use super::stop_set::StopSet;
use crate::{Emit, Output, Segmented, Segments, Set, Text};

/// What a stream emits, and the Python class of its sets.
pub(super) trait Show: Emit {
    type Class: PyClass<Frozen = True> + Sync;
    type Out;

    /// Whether an empty text comes out.
    const EMPTY: bool;

    fn core(set: &Self::Class) -> &Set<Self>;

    /// The name of each node's region.
    fn names(set: &Self::Class) -> &[Py<PyString>];

    /// A text that is safe as it is.
    fn whole<'py>(set: &Self::Class, node: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, Self::Out>>;

    /// What comes out where no text is safe.
    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, Self::Out>>;

    /// What a delta gives; the delta's own object where it is the whole of a text.
    fn delta<'py>(
        set: &Self::Class,
        output: Self::Output<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, Self::Out>>;

    /// What is safe behind the last token.
    fn safe<'py>(py: Python<'py>, set: &Self::Class, tokens: Self::Tokens<'_>) -> PyResult<Bound<'py, Self::Out>>;
}

impl Show for Text {
    type Class = StopSet;
    type Out = PyString;

    const EMPTY: bool = true;

    #[inline(always)]
    fn core(set: &StopSet) -> &Set<Text> {
        &set.core
    }

    fn names(set: &StopSet) -> &[Py<PyString>] {
        &set.names
    }

    #[inline(always)]
    fn whole<'py>(_: &StopSet, _: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
        Ok(text.clone())
    }

    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
        new_string(py, "")
    }

    fn delta<'py>(
        _: &StopSet,
        output: Output<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        same_or_new(delta, text, output.text)
    }

    fn safe<'py>(py: Python<'py>, _: &StopSet, safe: &str) -> PyResult<Bound<'py, PyString>> {
        new_string(py, safe)
    }
}

impl Show for Segmented {
    type Class = SegmentSet;
    type Out = PyList;

    const EMPTY: bool = false;

    #[inline(always)]
    fn core(set: &SegmentSet) -> &Set<Segmented> {
        &set.core
    }

    fn names(set: &SegmentSet) -> &[Py<PyString>] {
        &set.names
    }

    #[inline(always)]
    fn whole<'py>(set: &SegmentSet, node: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
        set.one.list(segment(set, node, text)?.as_any())
    }

    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        objects::list::<PyTuple>(py, [])
    }

    fn delta<'py>(
        set: &SegmentSet,
        output: Segments<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        segments(delta.py(), set, output, |safe| same_or_new(delta, text, safe))
    }

    fn safe<'py>(py: Python<'py>, set: &SegmentSet, safe: Segments<'_>) -> PyResult<Bound<'py, PyList>> {
        segments(py, set, safe, |safe| new_string(py, safe))
    }
}

/// The segment of a text at a node.
#[inline(always)]
pub(super) fn segment<'py>(set: &SegmentSet, node: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyTuple>> {
    set.drafts[node as usize].tuple(text)
}

fn segments<'py>(
    py: Python<'py>,
    set: &SegmentSet,
    segments: Segments<'_>,
    string: impl Fn(&str) -> PyResult<Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyList>> {
    let tuple = |segment: crate::Segment<'_>| {
        let name = set.regions.iter().zip(set.core.regions()).find(|(_, name)| *name == segment.region);
        let name = name.map_or_else(|| new_string(py, segment.region), |(object, _)| Ok(object.bind(py).clone()))?;
        objects::tuple(py, [Ok(name), string(segment.text)])
    };
    objects::list(py, segments.into_iter().map(tuple))
}

/// The text that `delta` released as a Python string: the delta's own object when it is the whole of its text.
#[inline]
pub(super) fn same_or_new<'py>(delta: &Bound<'py, PyString>, text: &str, safe: &str) -> PyResult<Bound<'py, PyString>> {
    if std::ptr::eq(safe, text) { Ok(delta.clone()) } else { new_string(delta.py(), safe) }
}
