//! New Python errors, or the error that there is no memory for their words. PyO3 makes the words when an error is raised,
//! and panics then.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::type_object::PyTypeInfo;

use super::objects::{new_string, tuple};

pub(super) fn value_error(words: impl ToString) -> PyErr {
    error::<PyValueError>(words)
}

pub(super) fn type_error(words: impl ToString) -> PyErr {
    error::<PyTypeError>(words)
}

pub(super) fn runtime_error(words: impl ToString) -> PyErr {
    error::<PyRuntimeError>(words)
}

pub(super) fn memory_error(words: impl ToString) -> PyErr {
    error::<PyMemoryError>(words)
}

/// The error is made at once: PyO3 would make it while it is raised.
#[cold]
fn error<E: PyTypeInfo>(words: impl ToString) -> PyErr {
    Python::attach(|py| {
        let words = tuple(py, [new_string(py, &words.to_string())]);
        words.and_then(|words| py.get_type::<E>().call1(words)).map_or_else(|no_memory| no_memory, PyErr::from_value)
    })
}
