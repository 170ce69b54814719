use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::arguments::{string, value_error};
use super::guarded::{Guarded, State, same_or_new};
use super::stop_match::StopMatch;
use super::stop_set::StopSet;
use crate::patterns::Begun;
use crate::stop_match::Place;
use crate::stream::AsRegions;
use crate::{Options, Snapshot};

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
pub(super) struct StopScanner {
    /// The set it scans for.
    #[pyo3(get)]
    stops: Py<StopSet>,
    scanning: Guarded<crate::StopScanner>,
}

#[pymethods]
impl StopScanner {
    #[new]
    #[pyo3(signature = (stop, /, *, include_stop = false, start_protected = false))]
    pub(super) fn new(stop: &Bound<'_, PyAny>, include_stop: bool, start_protected: bool) -> PyResult<StopScanner> {
        let stops = StopSet::of(stop)?;
        let options = Options { include_stop, start_protected };
        let core = crate::StopScanner::with_options(&stops.get().core, options).map_err(value_error)?;
        Ok(StopScanner { stops, scanning: Guarded::new(core, None) })
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
        match self.pass_over(text) {
            true => Ok(delta.clone()),
            false => self.scanning.with(|state| feed(state, delta, text, armed))?,
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
        self.scanning.with(|state| same_or_new(delta, text, state.core.bypass(text).text))
    }

    /// The held text, at the end of the stream; nothing is held after it. No stop spans a flush; a pattern that ends
    /// with ``\b`` may complete here.
    pub(super) fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.scanning.with(|state| {
            let held = PyString::new(py, state.core.flush().text);
            state.note_match(py)?;
            Ok(held)
        })?
    }

    /// Goes back to the start of a stream.
    fn reset(&self) -> PyResult<()> {
        self.scanning.with(|state| {
            state.core.reset();
            state.found = None;
        })
    }

    /// A scanner in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<StopScanner> {
        Ok(StopScanner { stops: self.stops.clone_ref(py), scanning: self.scanning.copy(py)? })
    }

    /// The stop that fired, or ``None``.
    #[getter]
    pub(super) fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.scanning.found(py)
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    #[getter]
    pub(super) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.scanning.held(py)
    }

    /// What followed the stop in the delta that completed it.
    #[getter]
    pub(super) fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.scanning.unused(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<StopScanner> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<StopScanner> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (Py<StopSet>,), Pickled)> {
        let snapshot = slf.get().scanning.with(|state| state.core.snapshot())?;
        Ok((slf.get_type(), (slf.get().stops.clone_ref(slf.py()),), pickled(snapshot)))
    }

    fn __setstate__(&self, py: Python<'_>, state: Pickled) -> PyResult<()> {
        let core = crate::StopScanner::restore(&self.stops.get().core, &unpickled(state))
            .ok_or_else(|| PyValueError::new_err("not the state of a scanner with these stops"))?;
        self.scanning.with(|state| {
            *state = State { core, found: None };
            state.note_match(py)
        })?
    }
}

impl StopScanner {
    /// Reads `text` if that changes nothing but how much was read; returns whether it did.
    #[inline(always)]
    pub(super) fn pass_over(&self, text: &str) -> bool {
        self.scanning.pass_over(self.stops.get().core.as_regions(), text).is_some()
    }

    /// The safe text, and whether a stop has fired.
    pub(super) fn read<'py>(&self, delta: &Bound<'py, PyString>, text: &str) -> PyResult<(Bound<'py, PyString>, bool)> {
        self.scanning.with(|state| Ok((feed(state, delta, text, true)?, state.found.is_some())))?
    }
}

fn feed<'py>(
    state: &mut State<crate::StopScanner>,
    delta: &Bound<'py, PyString>,
    text: &str,
    armed: bool,
) -> PyResult<Bound<'py, PyString>> {
    let output = if armed { state.core.feed(text) } else { state.core.feed_unarmed(text) };
    let safe = same_or_new(delta, text, output.text);
    state.note_match(delta.py())?;
    Ok(safe)
}

/// A `Snapshot` as Python pickles it.
pub(super) type Pickled = (bool, u32, (u32, String), (usize, usize), Option<PickledThreads>, PickledStop, String);
type PickledThreads = (u8, String, Vec<(usize, u8)>);
type PickledStop = Option<(String, Option<usize>)>;

pub(super) fn pickled(snapshot: Snapshot) -> Pickled {
    let Snapshot { include_stop, start, region, partial, read, begun, fired, unused } = snapshot;
    let begun = begun.map(|Begun { before, text, threads }| (before, text, threads));
    (include_stop, start, (region, partial), (read.code_points, read.bytes), begun, fired, unused)
}

pub(super) fn unpickled(state: Pickled) -> Snapshot {
    let (include_stop, start, (region, partial), (code_points, bytes), begun, fired, unused) = state;
    let begun = begun.map(|(before, text, threads)| Begun { before, text, threads });
    Snapshot { include_stop, start, region, partial, read: Place { code_points, bytes }, begun, fired, unused }
}
