//! Makes Python objects of a caller's input, or raises `MemoryError`. PyO3's own constructors of strings, tuples, lists
//! and dicts panic if there is no memory, so they are used only for objects of a few bytes, such as an int or one
//! segment.

use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use crate::errors::OrRaise;

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
    let list = PyList::empty(py);
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

/// Returns the result of a `__reduce__`. It tells pickle to make an object of `class` from the arguments and the
/// options (keyword arguments), and then to set the object's state. Uses `__newobj_ex__`, because pickle's protocols 0
/// and 1 can pass keyword arguments only to this function.
pub(crate) fn rebuild<'py>(
    class: Bound<'py, PyType>,
    arguments: impl IntoPyObject<'py, Target = PyTuple>,
    options: Bound<'py, PyDict>,
    state: Option<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    let make = py.import("copyreg")?.getattr("__newobj_ex__")?;
    (make, (class, arguments, options), state).into_pyobject(py)
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
