//! Reads token ids and limits, and says which argument is wrong.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arguments::{iterated, unexpected};
use super::errors::value_error;
use super::objects::collect;
use crate::UnknownToken;
use crate::tokens::{Ends, Limits};

impl From<UnknownToken> for PyErr {
    fn from(error: UnknownToken) -> PyErr {
        value_error(error)
    }
}

/// `object` as the id of a token; `None` if it is out of range.
pub(super) fn token_id(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u32>> {
    match object.extract() {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(None),
        Err(error) => Err(no_int(object, name, error)),
    }
}

/// The error for an id that no token has.
pub(super) fn unknown(object: &Bound<'_, PyAny>) -> PyErr {
    value_error(format!("token id {object} is not in the vocabulary"))
}

/// The ids of `object`, one or an iterable of them, that end a stream. The tokenizer need not have them.
fn end_ids(object: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Vec<u32>> {
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(Vec::new());
    };
    let ids = match object.try_iter() {
        Ok(_) => items(object, name)?,
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => vec![object.clone()],
        Err(error) => return Err(error),
    };
    let id = |id| match token_id(id, name)? {
        Some(id) => Ok(id),
        None => Err(value_error(format!("{name}: {id} is no token id"))),
    };
    ids.iter().map(id).collect()
}

/// The items of an iterable of token ids.
pub(super) fn items<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(unexpected(object, name, "token ids", ""));
    }
    collect(iterated(object, || unexpected(object, name, "token ids", ""))?)
}

/// `object` as a number of tokens.
fn count(object: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    object.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(object.py()) {
        true => value_error(format!("{name}: {object} is out of range")),
        false => no_int(object, name, error),
    })
}

/// The error for what is no integer; what its own `__index__` raises comes through.
fn no_int(object: &Bound<'_, PyAny>, name: &str, error: PyErr) -> PyErr {
    match error.is_instance_of::<PyTypeError>(object.py()) {
        true => unexpected(object, name, "int", ""),
        false => error,
    }
}

/// Which tokens end a stream, and when.
pub(super) fn limits(
    stop_token_ids: Option<&Bound<'_, PyAny>>,
    eos_token_ids: Option<&Bound<'_, PyAny>>,
    min_tokens: Option<&Bound<'_, PyAny>>,
    max_tokens: Option<&Bound<'_, PyAny>>,
) -> PyResult<Limits> {
    let min = min_tokens.map_or(Ok(0), |min| count(min, "min_tokens"))?;
    let max = max_tokens.map(|max| count(max, "max_tokens")).transpose()?;
    if min < 0 || max.is_some_and(|max| max < min) {
        let max = max.map_or("None".into(), |max| max.to_string());
        return Err(value_error(format!("min_tokens {min} is not between 0 and max_tokens {max}")));
    }
    Ok(Limits {
        ends: Ends::new(&end_ids(stop_token_ids, "stop_token_ids")?, &end_ids(eos_token_ids, "eos_token_ids")?),
        min_tokens: min as usize,
        max_tokens: max.map_or(usize::MAX, |max| max as usize),
    })
}
