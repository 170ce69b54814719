//! Makes Python errors. If there is no memory for the message, the result is a `MemoryError`. PyO3 itself would make
//! the message only when the error is raised, and would then panic.

use std::collections::TryReserveError;
use std::error::Error;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use stopscan::{StopSetError, StopSetErrorKind, VocabularyError};

use crate::objects::{new_string, tuple};

pub(crate) fn value_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyValueError>(), &words.to_string())
}

pub(crate) fn type_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyTypeError>(), &words.to_string())
}

pub(crate) fn runtime_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyRuntimeError>(), &words.to_string())
}

/// Makes an error of the Python class `class`. PyO3 itself would make the Python object only when the error is raised,
/// and would panic if there is no memory for it.
#[cold]
fn error(class: for<'py> fn(Python<'py>) -> Bound<'py, PyType>, words: &str) -> PyErr {
    Python::attach(|py| {
        let words = tuple(py, [new_string(py, words)]);
        words.and_then(|words| class(py).call1(words)).map_or_else(|no_memory| no_memory, PyErr::from_value)
    })
}

/// Turns an error of the crate `stopscan` into a Python error: `MemoryError` for a lack of memory, else `ValueError`.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Error + 'static> OrRaise<T> for Result<T, E> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| raised(&error))
    }
}

#[cold]
fn raised(raised: &(dyn Error + 'static)) -> PyErr {
    let of_set = raised.downcast_ref().is_some_and(|set: &StopSetError| set.kind() == StopSetErrorKind::NoMemory);
    let of_vocabulary = matches!(raised.downcast_ref(), Some(VocabularyError::NoMemory));
    match raised.is::<TryReserveError>() || of_set || of_vocabulary {
        true => error(|py| py.get_type::<PyMemoryError>(), &raised.to_string()),
        false => value_error(raised),
    }
}
