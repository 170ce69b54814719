//! The state of a stream of tokens behind its lock.

use pyo3::prelude::*;

use super::decoding::Decoding;
use super::finish::finished;
use super::guarded::Core;
use super::token_arguments::{token_id, unknown};
use crate::stream::{Face, Stream};
use crate::tokens::{Finish, Reader, Safe};

pub(super) struct Reading<R: Reader> {
    pub(super) decoding: Decoding<R>,
    /// Why the stream is over, as Python sees it: made when somebody asks, or by `close`.
    pub(super) finish: Option<Py<PyAny>>,
}

impl<R: Reader> Face for Reading<R> {
    type Set = R::Set;

    fn stream(&self) -> &Stream<R::Set> {
        self.decoding.stream().reader.stream()
    }

    fn stream_mut(&mut self) -> &mut Stream<R::Set> {
        self.decoding.stream_mut().reader.stream_mut()
    }
}

impl<R: Reader> Core for Reading<R> {
    fn is_idle(&self) -> bool {
        self.decoding.is_idle()
    }
}

impl<R: Reader> Reading<R> {
    /// What is safe now that the token `object` was read.
    pub(super) fn feed(&mut self, object: &Bound<'_, PyAny>, name: &str) -> PyResult<&R::Safe> {
        let stream = self.decoding.stream_mut();
        if stream.is_over() {
            stream.begin();
            return Ok(self.decoding.stream().out());
        }
        match token_id(object, name)? {
            Some(id) => self.decoding.feed(object.py(), id)?,
            None => return Err(unknown(object)),
        }
        Ok(self.decoding.stream().out())
    }

    /// What is safe now that all of `tokens` were read; none is, if one of them is wrong.
    pub(super) fn feed_many(&mut self, py: Python<'_>, tokens: &[Bound<'_, PyAny>]) -> PyResult<R::Safe> {
        let mut safe = R::Safe::default();
        let ids: Option<Vec<u32>> = tokens.iter().map(|token| token.extract().ok()).collect();
        if let (Decoding::Native(native), Some(ids)) = (&mut self.decoding, ids)
            && ids.iter().all(|&id| native.vocabulary().contains(id))
        {
            for id in ids {
                if native.pass(id) {
                    safe.push(native.stream.reader.stream().cursor.region, native.text(id));
                } else {
                    native.feed(id)?;
                    safe.append(native.stream.out());
                }
            }
            return Ok(safe);
        }
        let mut trial = self.copy(py)?;
        for token in tokens {
            safe.append(trial.feed(token, "token_ids")?);
        }
        *self = trial;
        Ok(safe)
    }

    /// What was held, now that the stream ends.
    pub(super) fn close(&mut self, py: Python<'_>, finish: Py<PyAny>) -> PyResult<&R::Safe> {
        let over = self.decoding.stream().is_over();
        self.decoding.close(py)?;
        if !over && self.decoding.stream().finish == Some(Finish::Closed) {
            self.finish = Some(finish); // no stop came first
        }
        Ok(self.decoding.stream().out())
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Reading<R>> {
        let finish = self.finish.as_ref().map(|finish| finish.clone_ref(py));
        Ok(Reading { decoding: self.decoding.copy(py)?, finish })
    }

    pub(super) fn reset(&mut self, py: Python<'_>) -> PyResult<()> {
        self.decoding.reset(py)?;
        self.finish = None;
        Ok(())
    }

    pub(super) fn finish(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.finish.is_none() {
            self.finish = finished(py, self.decoding.stream())?;
        }
        Ok(self.finish.as_ref().map(|finish| finish.clone_ref(py)))
    }
}
