//! What the scanner and the segmenter of token ids have in common: a stream of tokens, with a way past its lock.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::decoding::Decoding;
use super::finish::closed;
use super::guarded::Guarded;
use super::reading::Reading;
use super::stop_match::StopMatch;
use super::token_arguments::items;
use super::token_state::{TokenState, restore, state};
use super::vocabulary::Vocabulary;
use crate::regions::Regions;
use crate::stream::Face;
use crate::tokens::{Ends, Limits, Reader};

pub(super) struct Tokens<R: Reader> {
    /// How many tokens were fed.
    seen: AtomicUsize,
    max_tokens: usize,
    /// A bit for each id that ends the stream, as its lowest six bits say.
    end_bits: u64,
    limits: Arc<Limits>,
    pub(super) vocabulary: Py<Vocabulary>,
    reading: Guarded<Reading<R>>,
}

/// What a pickle has beside the vocabulary, the set and the options.
pub(super) type State = (TokenState, Option<Py<PyAny>>);

impl<R: Reader> Tokens<R> {
    pub(super) fn new(
        tokenizer: &Bound<'_, PyAny>,
        reader: R,
        limits: Limits,
        skip_special: bool,
        prompt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tokens<R>> {
        let vocabulary = Vocabulary::of(tokenizer)?;
        let prompt = prompt.map_or(Ok(Vec::new()), |ids| items(ids, "prompt_token_ids"))?;
        let decoding = Decoding::new(vocabulary.bind(tokenizer.py()), reader, limits, skip_special, &prompt)?;
        Ok(Tokens::from_reading(vocabulary, Reading { decoding, finish: None }))
    }

    fn from_reading(vocabulary: Py<Vocabulary>, reading: Reading<R>) -> Tokens<R> {
        let stream = reading.decoding.stream();
        Tokens {
            seen: AtomicUsize::new(stream.ledger.seen),
            max_tokens: stream.limits.max_tokens,
            end_bits: stream.limits.ends.bits(),
            limits: stream.limits.clone(),
            vocabulary,
            reading: Guarded::new(reading, None),
        }
    }

    /// The text of a token and the region it is in, if reading it changes nothing but counters; then it is read.
    #[inline(always)]
    pub(super) fn pass(&self, regions: &Regions, token_id: &Bound<'_, PyAny>) -> Option<(u32, &Py<PyString>)> {
        let id: u32 = token_id.extract().ok()?;
        let seen = self.seen.load(Relaxed) + 1;
        let ends = self.end_bits & Ends::bit(id) != 0 && self.limits.ends.contains(id);
        if seen >= self.max_tokens || ends {
            return None;
        }
        let vocabulary = self.vocabulary.get();
        let text = vocabulary.ready.get(id as usize)?.as_ref()?;
        let region = self.reading.pass_over(regions, vocabulary.core.text(id))?;
        self.seen.store(seen, Relaxed);
        Some((region, text))
    }

    /// What `show` makes of what is safe now that a token was read.
    #[cold]
    pub(super) fn feed<T>(
        &self,
        token_id: &Bound<'_, PyAny>,
        show: impl FnOnce(&R::Safe) -> PyResult<T>,
    ) -> PyResult<T> {
        self.with(|reading| show(reading.feed(token_id, "token_id")?))?
    }

    pub(super) fn feed_many(&self, token_ids: &Bound<'_, PyAny>) -> PyResult<R::Safe> {
        let ids = items(token_ids, "token_ids")?;
        self.with(|reading| reading.feed_many(token_ids.py(), &ids))?
    }

    pub(super) fn close<T>(
        &self,
        py: Python<'_>,
        reason: Option<Bound<'_, PyAny>>,
        show: impl FnOnce(&R::Safe) -> PyResult<T>,
    ) -> PyResult<T> {
        let finish = closed(&reason.unwrap_or_else(|| PyString::new(py, "eos").into_any()))?;
        self.with(|reading| show(reading.close(py, finish)?))?
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Tokens<R>> {
        let reading = self.with(|reading| reading.copy(py))??;
        Ok(Tokens::from_reading(self.vocabulary.clone_ref(py), reading))
    }

    pub(super) fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|reading| reading.reset(py))?
    }

    pub(super) fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.reading.is_idle() {
            true => Ok(None),
            false => self.with(|reading| reading.finish(py))?,
        }
    }

    pub(super) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.with(|reading| {
            let found = reading.stream().stop_match();
            found.map(|found| StopMatch::from_core(py, found)).transpose()
        })?
    }

    pub(super) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|reading| PyString::new(py, reading.stream().held.as_str()))
    }

    pub(super) fn seen(&self) -> usize {
        self.seen.load(Relaxed)
    }

    pub(super) fn kept(&self) -> PyResult<usize> {
        self.with(|reading| reading.decoding.stream().ledger.kept)
    }

    /// The options that make it again.
    pub(super) fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stop_token_ids, eos_token_ids) = self.limits.ends.ids();
        let options = PyDict::new(py);
        options.set_item("stop_token_ids", stop_token_ids)?;
        options.set_item("eos_token_ids", eos_token_ids)?;
        options.set_item("min_tokens", self.limits.min_tokens)?;
        options.set_item("max_tokens", Some(self.limits.max_tokens).filter(|&max| max != usize::MAX))?;
        self.with(|reading| match &reading.decoding {
            Decoding::Native(native) => options.set_item("skip_special_tokens", native.skips_special()),
            Decoding::Window(_) => Ok(()), // it is in the window
        })??;
        Ok(options)
    }

    pub(super) fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.with(|reading| Ok((state(py, &reading.decoding)?, reading.finish(py)?)))?
    }

    pub(super) fn restore(&self, py: Python<'_>, (state, finish): State) -> PyResult<()> {
        self.with(|reading| {
            restore(py, &mut reading.decoding, state)?;
            reading.finish = finish;
            Ok(())
        })?
    }

    /// What `action` does with the state, unless another thread is at it.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Reading<R>) -> T) -> PyResult<T> {
        self.reading.with(|state| {
            let reading = &mut state.core;
            let stream = reading.decoding.stream_mut();
            stream.pass(self.seen.load(Relaxed) - stream.ledger.seen);
            let result = action(reading);
            self.seen.store(reading.decoding.stream().ledger.seen, Relaxed);
            result
        })
    }
}

/// An argument that may be left out, but not `None`.
pub(super) fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}
