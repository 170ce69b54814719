//! Why a stream of tokens is over, as the Python class `stopscan.finish.Finish` says it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::tokens::{Finish, Reader, TokenStream};

static FINISH: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    FINISH.import(py, "stopscan.finish", "Finish")
}

/// The end of `stream`, for whatever reason but that it was closed.
pub(super) fn finished<R: Reader>(py: Python<'_>, stream: &TokenStream<R>) -> PyResult<Option<Py<PyAny>>> {
    let finish = match stream.finish {
        None | Some(Finish::Closed) => return Ok(None),
        Some(Finish::StopSequence) => {
            let found = stream.reader.stream().stop_match();
            let stop = found.map(|found| (found.sequence(), found.offset()));
            let (sequence, offset) = stop.unzip();
            class(py)?.call1(("stop_sequence", sequence, offset))?
        }
        Some(Finish::StopToken(id)) => class(py)?.call1(("stop_token", id))?,
        Some(Finish::Eos) => class(py)?.call1(("eos",))?,
        Some(Finish::Length) => class(py)?.call1(("length",))?,
    };
    Ok(Some(finish.unbind()))
}

/// The end for a reason that the caller has.
pub(super) fn closed(reason: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = reason.py();
    if ["stop_sequence", "stop_token"].iter().any(|stop| reason.eq(stop).unwrap_or(false)) {
        let reason = reason.repr()?;
        return Err(PyValueError::new_err(format!("reason: {reason} is what a token says, not its host")));
    }
    Ok(class(py)?.call1((reason,))?.unbind())
}
