//! New Python errors, or the error that there is no memory for their words. PyO3 makes the words when an error is raised,
//! and panics then.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::objects::{new_string, tuple};

pub(super) fn value_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyValueError>(), &words.to_string())
}

pub(super) fn type_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyTypeError>(), &words.to_string())
}

pub(super) fn runtime_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyRuntimeError>(), &words.to_string())
}

pub(super) fn memory_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyMemoryError>(), &words.to_string())
}

/// The error is made at once: PyO3 would make it while it is raised.
#[cold]
fn error(class: for<'py> fn(Python<'py>) -> Bound<'py, PyType>, words: &str) -> PyErr {
    Python::attach(|py| {
        let words = tuple(py, [new_string(py, words)]);
        words.and_then(|words| class(py).call1(words)).map_or_else(|no_memory| no_memory, PyErr::from_value)
    })
}
