//! Makes Python objects whose size depends on the caller's input. If there is not enough memory, the functions of this
//! file raise `MemoryError`, but PyO3's constructors of strings, tuples, lists and dicts panic. So stopscan uses PyO3's
//! constructors only for objects of a few bytes, such as an int or one segment.

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

/// Returns what `__reduce__` must return, so that pickle can make an object again. pickle calls `class` with the
/// `arguments` and the `options` (keyword arguments), and then sets the object's `state`. Uses `__newobj_ex__`, because
/// only this function can take keyword arguments in pickle's protocols 0 and 1.
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

/// Raises `MemoryError` if `bytes` bytes cannot be allocated now. Call it before code that allocates this many bytes,
/// because Rust aborts the process if an allocation fails.
pub(crate) fn room(bytes: usize) -> PyResult<()> {
    stopscan::host::ask_memory(bytes).or_raise()
}
