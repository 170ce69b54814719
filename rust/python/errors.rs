//! Makes Python errors.

use std::collections::TryReserveError;
use std::error::Error;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use stopscan::{StopSetError, StopSetErrorKind, VocabularyError};

pub(crate) fn value_error(words: impl ToString) -> PyErr {
    PyValueError::new_err(words.to_string())
}

pub(crate) fn type_error(words: impl ToString) -> PyErr {
    PyTypeError::new_err(words.to_string())
}

pub(crate) fn runtime_error(words: impl ToString) -> PyErr {
    PyRuntimeError::new_err(words.to_string())
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
        true => PyMemoryError::new_err(raised.to_string()),
        false => value_error(raised),
    }
}
