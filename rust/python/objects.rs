//! Makes Python objects, or raises `MemoryError`. PyO3's own constructors of strings, tuples, lists and dicts panic if
//! there is no memory.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::errors::OrRaise;
use crate::turns::GIL;

pub(crate) fn new_string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}

pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |target| {
        target.copy_from_slice(bytes);
        Ok(())
    })
}

pub(crate) fn list<'py, T: PyTypeCheck>(
    py: Python<'py>,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = py.get_type::<PyList>().call0()?.cast_into::<PyList>()?;
    for item in items {
        list.append(item?)?;
    }
    Ok(list)
}

pub(crate) fn tuple<'py, T: PyTypeCheck>(
    py: Python<'py>,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    list(py, items)?.as_sequence().to_tuple()
}

pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Ok(py.get_type::<PyDict>().call0()?.cast_into::<PyDict>()?)
}

pub(crate) fn set_item<'py>(dict: &Bound<'py, PyDict>, name: &str, value: impl IntoPyObject<'py>) -> PyResult<()> {
    dict.set_item(new_string(dict.py(), name)?, value)
}

/// Makes an int, or raises `MemoryError`. PyO3's own conversion panics if there is no memory, so it is used only for
/// ints below 257, which CPython always has ready. A larger int is computed from such ints.
pub(crate) fn int(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyInt>> {
    let low = (number & 0xFF).into_pyobject(py)?;
    match number >> 8 {
        0 => Ok(low),
        high => Ok(int(py, high)?.lshift(8)?.bitor(low)?.cast_into::<PyInt>()?),
    }
}

pub(crate) fn some_int(py: Python<'_>, number: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
    number.map_or_else(|| Ok(py.None().into_bound(py)), |number| Ok(int(py, number)?.into_any()))
}

/// Returns the class `name` of a Python module. The first call imports the module and keeps the class in `known`.
pub(crate) fn class<'py>(
    py: Python<'py>,
    known: &'py PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    let import = || {
        let module = py.import(new_string(py, module)?)?;
        Ok::<_, PyErr>(module.getattr(new_string(py, name)?)?.cast_into::<PyType>()?.unbind())
    };
    Ok(known.get_or_try_init(py, import)?.bind(py))
}

/// Returns the result of a `__reduce__`. It tells pickle to make an object of `class` from the arguments and the
/// options (keyword arguments), and then to set the object's state. Uses `__newobj_ex__`, because pickle's protocols 0
/// and 1 can pass keyword arguments only to this function.
pub(crate) fn rebuild<'py>(
    class: Bound<'py, PyType>,
    arguments: Bound<'py, PyTuple>,
    options: Bound<'py, PyDict>,
    state: Option<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    let make = py.import(new_string(py, "copyreg")?)?.getattr(new_string(py, "__newobj_ex__")?)?;
    let arguments = tuple(py, [class.into_any(), arguments.into_any(), options.into_any()].map(Ok))?;
    let state = state.map(Bound::into_any);
    tuple(py, [make, arguments.into_any()].into_iter().chain(state).map(Ok))
}

/// Collects items in a list. Raises `MemoryError` if the list cannot grow.
pub(crate) fn collect<T>(items: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    for item in items {
        all.try_reserve(1).or_raise()?;
        all.push(item?);
    }
    Ok(all)
}

/// Raises `MemoryError` if `bytes` bytes cannot be allocated now. Call this before code that allocates as much,
/// because Rust aborts the process if an allocation fails.
pub(crate) fn room(bytes: usize) -> PyResult<()> {
    stopscan::host::ask_memory(bytes).or_raise()
}

/// Makes a list of one segment, as `feed` returns for most deltas: puts the segment in a template list, copies that
/// list, and takes the segment out again. (PyO3's own constructors panic if there is no memory.)
pub(crate) struct ListTemplate(Py<PyList>);

impl ListTemplate {
    pub(crate) fn new(py: Python<'_>) -> PyResult<ListTemplate> {
        Ok(ListTemplate(list(py, [Ok(py.None().into_bound(py))])?.unbind()))
    }

    #[inline]
    pub(crate) fn list<'py>(&self, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let items = self.0.bind(item.py());
        items.set_item(0, item)?;
        let filled = items.as_sequence().to_list()?;
        items.set_item(0, item.py().None())?;
        match filled.get_item(0)?.is(item) {
            true => Ok(filled),
            false => list(item.py(), [Ok(item.clone())]),
        }
    }
}

/// Makes the segments (tuples) of one region by copying a template, as `ListTemplate` makes lists. The template keeps
/// the last part number, because most segments have the same part number as the previous segment.
pub(crate) struct SegmentTemplate {
    /// The items of the template: region, text, part number.
    items: Py<PyList>,
    part: AtomicU32,
}

impl SegmentTemplate {
    pub(crate) fn new(py: Python<'_>, region: &Py<PyString>) -> PyResult<SegmentTemplate> {
        let items = [region.bind(py).as_any().clone(), py.None().into_bound(py), int(py, 0)?.into_any()];
        Ok(SegmentTemplate { items: list(py, items.map(Ok))?.unbind(), part: AtomicU32::new(0) })
    }

    #[inline]
    pub(crate) fn segment<'py>(&self, text: &Bound<'py, PyString>, part: u32) -> PyResult<Bound<'py, PyTuple>> {
        let items = self.items.bind(text.py());
        if !GIL {
            return self.segment_of_its_own(text, part);
        }
        if self.part.load(Relaxed) != part {
            items.set_item(2, int(text.py(), part as usize)?)?;
            self.part.store(part, Relaxed);
        }
        items.set_item(1, text)?;
        let segment = items.as_sequence().to_tuple()?;
        items.set_item(1, text.py().None())?;
        match segment.get_borrowed_item(1)?.is(text) && self.part.load(Relaxed) == part {
            true => Ok(segment),
            false => self.segment_of_its_own(text, part),
        }
    }

    /// Makes the segment without the template, which may have the wrong text: without the GIL, another thread may have
    /// changed it; with the GIL, a finalizer that ran during the copy may have changed it.
    #[cold]
    fn segment_of_its_own<'py>(&self, text: &Bound<'py, PyString>, part: u32) -> PyResult<Bound<'py, PyTuple>> {
        let region = self.items.bind(text.py()).get_item(0)?;
        tuple(text.py(), [region, text.as_any().clone(), int(text.py(), part as usize)?.into_any()].map(Ok))
    }
}
