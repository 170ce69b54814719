//! New Python errors, or the error that there is no memory for their words. PyO3 makes the words when an error is raised,
//! and panics then.

use std::collections::TryReserveError;

use stopscan::{SnapshotError, StopSetError, StopSetErrorKind, TokenOptionsError, UnknownToken, VocabularyError};

use crate::objects::new_string;
use crate::objects::tuple;
use pyo3::exceptions::PyMemoryError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::exceptions::PyTypeError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(crate) fn value_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyValueError>(), &words.to_string())
}

pub(crate) fn type_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyTypeError>(), &words.to_string())
}

pub(crate) fn runtime_error(words: impl ToString) -> PyErr {
    error(|py| py.get_type::<PyRuntimeError>(), &words.to_string())
}

pub(crate) fn memory_error(words: impl ToString) -> PyErr {
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

/// The errors of the core, as Python raises them.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Raise> OrRaise<T> for Result<T, E> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(E::raise)
    }
}

pub(crate) trait Raise {
    fn raise(self) -> PyErr;
}

impl Raise for TryReserveError {
    fn raise(self) -> PyErr {
        PyMemoryError::new_err(())
    }
}

impl Raise for StopSetError {
    fn raise(self) -> PyErr {
        match self.kind() {
            StopSetErrorKind::NoMemory => memory_error(self),
            _ => value_error(self),
        }
    }
}

impl Raise for VocabularyError {
    fn raise(self) -> PyErr {
        match self {
            VocabularyError::NoMemory => memory_error(self),
            _ => value_error(self),
        }
    }
}

impl Raise for SnapshotError {
    fn raise(self) -> PyErr {
        value_error(self)
    }
}

impl Raise for TokenOptionsError {
    fn raise(self) -> PyErr {
        value_error(self)
    }
}

impl Raise for UnknownToken {
    fn raise(self) -> PyErr {
        value_error(self)
    }
}
