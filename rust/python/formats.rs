use pyo3::prelude::*;

use crate::Format;

/// A marker, the state that it leads to, and whether it stays in the text.
type Lead = (&'static str, &'static str, bool);

/// A state and its markers.
type State = (&'static str, Vec<Lead>);

/// The name and the source of each form, and its states with their markers: what ``stopscan.segments.FORMATS`` is made of.
#[pyfunction]
pub(super) fn formats() -> Vec<(&'static str, &'static str, Vec<State>)> {
    let states =
        |format: &Format| format.states().iter().map(|state| (state.name(), state.markers().collect())).collect();
    Format::all().map(|format| (format.name(), format.source(), states(format))).collect()
}
