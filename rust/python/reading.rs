//! The state of a token scanner behind its lock.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::decoding::Decoding;
use super::finish::finished;
use super::guarded::Core;
use super::token_arguments::{token_id, unknown};
use crate::stream::Stream;
use crate::tokens::Finish;

/// The bytes of a token, more or less.
const TYPICAL: usize = 8;

pub(super) struct Reading {
    pub(super) decoding: Decoding,
    /// Why the stream is over, as Python sees it: made when somebody asks, or by `close`.
    pub(super) finish: Option<Py<PyAny>>,
}

impl Core for Reading {
    type Set = crate::StopSet;

    fn stream(&self) -> &Stream<crate::StopSet> {
        &self.decoding.stream().scanner.stream
    }

    fn stream_mut(&mut self) -> &mut Stream<crate::StopSet> {
        &mut self.decoding.stream_mut().scanner.stream
    }

    fn is_idle(&self) -> bool {
        self.decoding.is_idle()
    }
}

impl Reading {
    pub(super) fn feed<'py>(&mut self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = token_id.py();
        Ok(PyString::new(py, self.read(token_id, "token_id")?))
    }

    fn read(&mut self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<&str> {
        if self.decoding.stream().is_over() {
            return Ok("");
        }
        match token_id(object, name)? {
            Some(id) => self.decoding.feed(object.py(), id),
            None => Err(unknown(object)),
        }
    }

    pub(super) fn feed_many<'py>(
        &mut self,
        py: Python<'py>,
        tokens: &[Bound<'py, PyAny>],
    ) -> PyResult<Bound<'py, PyString>> {
        let ids: Option<Vec<u32>> = tokens.iter().map(|token| token.extract().ok()).collect();
        if let (Decoding::Native(scanner), Some(ids)) = (&mut self.decoding, ids)
            && ids.iter().all(|&id| scanner.vocabulary().contains(id))
        {
            let mut safe = String::with_capacity(TYPICAL * ids.len());
            for id in ids {
                safe += scanner.feed(id)?;
            }
            return Ok(PyString::new(py, &safe));
        }
        // One of them may be wrong: then none was read.
        let mut trial = self.copy(py)?;
        let safe = trial.read_all(tokens)?;
        *self = trial;
        Ok(PyString::new(py, &safe))
    }

    fn read_all(&mut self, ids: &[Bound<'_, PyAny>]) -> PyResult<String> {
        let mut safe = String::new();
        for id in ids {
            safe += self.read(id, "token_ids")?;
        }
        Ok(safe)
    }

    pub(super) fn close<'py>(&mut self, py: Python<'py>, finish: Py<PyAny>) -> PyResult<Bound<'py, PyString>> {
        if self.decoding.stream().is_over() {
            return Ok(PyString::new(py, ""));
        }
        let rest = PyString::new(py, self.decoding.close(py)?);
        if self.decoding.stream().finish == Some(Finish::Closed) {
            self.finish = Some(finish); // no stop came first
        }
        Ok(rest)
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Reading> {
        let finish = self.finish.as_ref().map(|finish| finish.clone_ref(py));
        Ok(Reading { decoding: self.decoding.copy(py)?, finish })
    }

    pub(super) fn finish(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.finish.is_none() {
            self.finish = finished(py, self.decoding.stream())?;
        }
        Ok(self.finish.as_ref().map(|finish| finish.clone_ref(py)))
    }
}
