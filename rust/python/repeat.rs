use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use super::arguments::{hash, size, unexpected};
use super::objects::{dict, int, new_string, rebuild, set_item, tuple};

/// A stop that fires at the first character that proves that the text repeats itself.
///
/// The text repeats itself if a block of at most ``max_period`` code points was written ``count`` times, and the copies
/// have at least ``min_length`` code points together. The oldest copy may be incomplete. The stop is visible, and fires
/// in every region.
///
/// Raises ``ValueError`` for a ``count`` below 3, a ``max_period`` outside of 1 to 65,536 and a ``min_length`` below
/// 32.
///
/// >>> StopSet(repeat=Repeat()).find("I will now fix the bug.\n" * 20).period
/// 24
#[pyclass(module = "stopscan", frozen)]
pub(super) struct Repeat(pub(super) crate::Repeat);

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
        let default = crate::Repeat::default();
        let part = |given: Option<_>, name, default| given.map_or(Ok(default), |given| size(given, name));
        let count = part(count, "count", default.count())?;
        let max_period = part(max_period, "max_period", default.max_period())?;
        let min_length = part(min_length, "min_length", default.min_length())?;
        Ok(Repeat(crate::Repeat::new(count, max_period, min_length)?))
    }

    /// How often a block must be written.
    #[getter]
    fn count<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        int(py, self.0.count())
    }

    /// The greatest length of a block, in code points.
    #[getter]
    fn max_period<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        int(py, self.0.max_period())
    }

    /// The least length of all copies together, in code points.
    #[getter]
    fn min_length<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        int(py, self.0.min_length())
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
        let options = dict(py)?;
        set_item(&options, "max_period", repeat.max_period(py)?)?;
        set_item(&options, "min_length", repeat.min_length(py)?)?;
        rebuild(slf.get_type(), tuple(py, [repeat.count(py)])?, options, None)
    }
}

impl Repeat {
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<crate::Repeat> {
        match object.cast::<Repeat>() {
            Ok(repeat) => Ok(repeat.get().0),
            Err(_) => Err(unexpected(object, "repeat", "Repeat", "")),
        }
    }
}
