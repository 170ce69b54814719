//! Why a stream of tokens is over, as the Python class `stopscan.finish.Finish` says it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::tokens::TokenStream;
use crate::{Emit, EndReason, Finish};

static FINISH: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    FINISH.import(py, "stopscan.finish", "Finish")
}

/// The end of `stream`.
pub(super) fn finished<E: Emit, D>(py: Python<'_>, stream: &TokenStream<E, D>) -> PyResult<Option<Py<PyAny>>> {
    let finish = match stream.finish() {
        None => return Ok(None),
        Some(Finish::StopSequence) => {
            let found = stream.stop_match();
            let stop = found.map(|found| (found.sequence(), found.offset()));
            let (sequence, offset) = stop.unzip();
            class(py)?.call1(("stop_sequence", sequence, offset))?
        }
        Some(Finish::StopToken(id)) => class(py)?.call1(("stop_token", id))?,
        Some(Finish::Ended(EndReason::Repetition)) => {
            let offset = stream.stop_match().map(|found| found.offset());
            class(py)?.call1(("repetition", py.None(), offset))?
        }
        Some(Finish::Ended(reason)) => class(py)?.call1((reason.name(),))?,
    };
    Ok(Some(finish.unbind()))
}

/// The end for a reason that the caller has.
pub(super) fn reason_of(reason: &Bound<'_, PyAny>) -> PyResult<EndReason> {
    let py = reason.py();
    if ["stop_sequence", "stop_token"].iter().any(|stop| reason.eq(stop).unwrap_or(false)) {
        let reason = reason.repr()?;
        return Err(PyValueError::new_err(format!("reason: {reason} is what a token says, not its host")));
    }
    let checked = class(py)?.call1((reason,))?; // it says what is wrong with a reason
    let name: String = checked.getattr("reason")?.extract()?;
    EndReason::from_name(&name).ok_or_else(|| PyValueError::new_err(format!("unknown finish reason {name:?}")))
}
