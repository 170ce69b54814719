//! Why a stream of tokens is over, as the Python class `stopscan.finish.Finish` says it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

use super::errors::value_error;
use super::objects::{self, int, new_string, some_int, tuple};
use crate::tokens::TokenStream;
use crate::{Emit, EndReason, Finish};

static FINISH: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    objects::class(py, &FINISH, "stopscan.finish", "Finish")
}

/// The end of `stream`.
pub(super) fn finished<'py, E: Emit, D>(py: Python<'py>, stream: &TokenStream<E, D>) -> PyResult<Option<Py<PyAny>>> {
    let none = || py.None().into_bound(py);
    let finish = |reason: &str, stop: Bound<'py, PyAny>, offset: Option<usize>| {
        let arguments = [new_string(py, reason)?.into_any(), stop, some_int(py, offset)?];
        class(py)?.call1(tuple(py, arguments.map(Ok))?)
    };
    let finish = match stream.finish() {
        None => return Ok(None),
        Some(Finish::StopSequence) => {
            let found = stream.stop_match();
            let sequence = found.as_ref().map(|found| new_string(py, found.sequence())).transpose()?;
            finish("stop_sequence", sequence.map_or_else(none, Bound::into_any), found.map(|found| found.offset()))?
        }
        Some(Finish::StopToken(id)) => finish("stop_token", int(py, id as usize)?.into_any(), None)?,
        Some(Finish::Ended(reason)) => {
            let found = stream.stop_match().filter(|_| matches!(reason, EndReason::Repetition));
            finish(reason.name(), none(), found.map(|found| found.offset()))?
        }
    };
    Ok(Some(finish.unbind()))
}

/// The end for a reason that the caller has.
pub(super) fn reason_of(reason: &Bound<'_, PyAny>) -> PyResult<EndReason> {
    let py = reason.py();
    if reason
        .cast::<PyString>()
        .is_ok_and(|reason| reason.to_str().is_ok_and(|reason| matches!(reason, "stop_sequence" | "stop_token")))
    {
        let reason = reason.repr()?;
        let reason = reason.to_str()?;
        return Err(value_error(format!("reason: {reason} is what a token says, not its host")));
    }
    let checked = class(py)?.call1(tuple(py, [Ok(reason.clone())])?)?; // it says what is wrong with a reason
    let name: String = checked.getattr(new_string(py, "reason")?)?.extract()?;
    EndReason::from_name(&name).ok_or_else(|| value_error(format!("unknown finish reason {name:?}")))
}
