use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::arguments::value_error;
use super::decoding::Decoding;
use super::finish::closed;
use super::guarded::Guarded;
use super::reading::Reading;
use super::stop_match::StopMatch;
use super::stop_set::{StopSet, rebuild};
use super::token_arguments::{items, limits};
use super::token_state::{TokenState, restore, state};
use super::vocabulary::Vocabulary;
use crate::Options;
use crate::stream::AsRegions;
use crate::tokens::{Ends, Limits};

/// Scans one stream of token ids: ``feed`` returns the text that is safe to emit, ``finish`` says why it ended.
///
/// The first argument is a tokenizer or the ``Vocabulary`` of one. ``stop``, ``include_stop`` and ``start_protected``
/// are those of ``StopScanner``. The stream ends at a stop, at a token of ``stop_token_ids`` or ``eos_token_ids``
/// (their text is not emitted), or with ``max_tokens`` tokens; of those that come with one token, the first of this list
/// is reported. None of the first three counts in the first ``min_tokens`` tokens; a stop string that completes later
/// counts although it began there. ``prompt_token_ids`` are what the text continues: they decide on a leading space,
/// and the stream may complete their last character.
///
/// The text is that of the tokenizer's ``decode`` of all ids. With ``skip_special_tokens``, special tokens have no
/// text, so that no stop spelled by one is found; a marker that is one opens or closes its region all the same.
///
/// >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     print(scanner.feed(token_id), end="")
/// ...     if scanner.finish:
/// ...         break
#[pyclass(module = "stopscan.tokens", frozen)]
pub(super) struct TokenScanner {
    /// How many tokens were fed.
    seen: AtomicUsize,
    max_tokens: usize,
    /// A bit for each id that ends the stream, as its lowest six bits say.
    end_bits: u64,
    limits: Arc<Limits>,
    vocabulary: Py<Vocabulary>,
    stops: Py<StopSet>,
    reading: Guarded<Reading>,
}

#[pymethods]
impl TokenScanner {
    #[new]
    #[pyo3(
        signature = (
            tokenizer_or_vocabulary, stop = None, /, *, stop_token_ids = None, eos_token_ids = None,
            min_tokens = None, max_tokens = None, include_stop = false, start_protected = false,
            skip_special_tokens = true, prompt_token_ids = None
        ),
        text_signature = "(tokenizer_or_vocabulary, stop=(), /, *, stop_token_ids=(), eos_token_ids=(), min_tokens=0, \
            max_tokens=None, include_stop=False, start_protected=False, skip_special_tokens=True, prompt_token_ids=())"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        tokenizer_or_vocabulary: &Bound<'_, PyAny>,
        stop: Option<Bound<'_, PyAny>>,
        stop_token_ids: Option<&Bound<'_, PyAny>>,
        eos_token_ids: Option<&Bound<'_, PyAny>>,
        min_tokens: Option<&Bound<'_, PyAny>>,
        max_tokens: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
        start_protected: bool,
        skip_special_tokens: bool,
        prompt_token_ids: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenScanner> {
        let py = tokenizer_or_vocabulary.py();
        let limits = limits(stop_token_ids, eos_token_ids, min_tokens, max_tokens)?;
        let stops = StopSet::of(&stop.unwrap_or_else(|| py.None().into_bound(py)))?;
        let options = Options { include_stop, start_protected };
        let scanner = crate::StopScanner::with_options(&stops.get().core, options).map_err(value_error)?;
        let vocabulary = Vocabulary::of(tokenizer_or_vocabulary)?;
        let prompt = prompt_token_ids.map_or(Ok(Vec::new()), |ids| items(ids, "prompt_token_ids"))?;
        let decoding = Decoding::new(vocabulary.bind(py), scanner, limits, skip_special_tokens, &prompt)?;
        Ok(TokenScanner::from_reading(vocabulary, stops, Reading { decoding, finish: None }))
    }

    /// The text that is safe to emit now that ``token_id`` was read; ``""`` once the stream is over.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have and ``TypeError`` for what is no integer; the
    /// stream is then as before. An id that ends the stream need not be the tokenizer's.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = token_id.py();
        if let Ok(id) = token_id.extract()
            && let Some(text) = self.pass(id)
        {
            return Ok(text.bind(py).clone());
        }
        self.with(|reading| reading.feed(token_id))?
    }

    /// The text that is safe to emit now that all of ``token_ids`` were read: what ``feed`` gives for each, joined.
    ///
    /// It is for steps that bring several tokens. Those after the end of the stream are not read. If an id is wrong,
    /// none was read.
    #[pyo3(signature = (token_ids, /))]
    fn feed_many<'py>(&self, py: Python<'py>, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let ids = items(token_ids, "token_ids")?;
        self.with(|reading| reading.feed_many(py, &ids))?
    }

    /// The rest of the text, when the stream ends for another ``reason``: half a character as U+FFFD, and what is held.
    ///
    /// ``reason`` is one of ``Finish`` that needs no stop or token id; any other raises ``ValueError``. Once the stream
    /// is over it is ``""`` and changes nothing.
    #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
    fn close<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let finish = closed(&reason.unwrap_or_else(|| PyString::new(py, "eos").into_any()))?;
        self.with(|reading| reading.close(py, finish))?
    }

    /// A scanner in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<TokenScanner> {
        let reading = self.with(|reading| reading.copy(py))??;
        Ok(TokenScanner::from_reading(self.vocabulary.clone_ref(py), self.stops.clone_ref(py), reading))
    }

    /// Goes back to the start of the stream, after the prompt.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.with(|reading| {
            reading.decoding.reset(py)?;
            reading.finish = None;
            Ok(())
        })?
    }

    /// Why the stream is over, as soon as it is; until then ``None``.
    #[getter]
    fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.reading.is_idle() {
            true => Ok(None),
            false => self.with(|reading| reading.finish(py))?,
        }
    }

    /// The stop string that fired, or ``None``.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.with(|reading| {
            let found = reading.decoding.stream().scanner.stop_match();
            found.map(|found| StopMatch::from_core(py, found)).transpose()
        })?
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|reading| PyString::new(py, reading.decoding.stream().scanner.held()))
    }

    /// How many tokens were fed, for usage.
    #[getter]
    fn tokens_seen(&self) -> usize {
        self.seen.load(Relaxed)
    }

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
    #[getter]
    fn tokens_kept(&self) -> PyResult<usize> {
        self.with(|reading| reading.decoding.stream().ledger.kept)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<TokenScanner> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<TokenScanner> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickle<'py>> {
        let (py, scanner) = (slf.py(), slf.get());
        let (stop_token_ids, eos_token_ids) = scanner.limits.ends.ids();
        let options = PyDict::new(py);
        options.set_item("stop_token_ids", stop_token_ids)?;
        options.set_item("eos_token_ids", eos_token_ids)?;
        options.set_item("min_tokens", scanner.limits.min_tokens)?;
        options.set_item("max_tokens", Some(scanner.limits.max_tokens).filter(|&max| max != usize::MAX))?;
        let (state, finish) = scanner.with(|reading| {
            if let Decoding::Native(native) = &reading.decoding {
                options.set_item("skip_special_tokens", native.skips_special())?;
            }
            PyResult::Ok((state(py, &reading.decoding)?, reading.finish(py)?))
        })??;
        let arguments = PyTuple::new(py, [scanner.vocabulary.as_any(), scanner.stops.as_any()])?;
        let (make, arguments) = rebuild(slf.get_type(), arguments, options)?;
        Ok((make, arguments, (state, finish)))
    }

    fn __setstate__(&self, py: Python<'_>, state: (TokenState, Option<Py<PyAny>>)) -> PyResult<()> {
        let (state, finish) = state;
        self.with(|reading| {
            restore(py, &mut reading.decoding, &self.stops.get().core, state)?;
            reading.finish = finish;
            Ok(())
        })?
    }
}

/// What a pickle calls, with what, and the state that it sets.
type Pickle<'py> =
    (Bound<'py, PyAny>, (Bound<'py, PyType>, Bound<'py, PyTuple>, Bound<'py, PyDict>), (TokenState, Option<Py<PyAny>>));

impl TokenScanner {
    fn from_reading(vocabulary: Py<Vocabulary>, stops: Py<StopSet>, reading: Reading) -> TokenScanner {
        let stream = reading.decoding.stream();
        TokenScanner {
            seen: AtomicUsize::new(stream.ledger.seen),
            max_tokens: stream.limits.max_tokens,
            end_bits: stream.limits.ends.bits(),
            limits: stream.limits.clone(),
            vocabulary,
            stops,
            reading: Guarded::new(reading, None),
        }
    }

    /// The text of token `id`, if reading it changes nothing but counters; then it is read.
    #[inline(always)]
    fn pass(&self, id: u32) -> Option<&Py<PyString>> {
        let seen = self.seen.load(Relaxed) + 1;
        let ends = self.end_bits & Ends::bit(id) != 0 && self.limits.ends.contains(id);
        if seen >= self.max_tokens || ends {
            return None;
        }
        let vocabulary = self.vocabulary.get();
        let text = vocabulary.ready.get(id as usize)?.as_ref()?;
        let regions = self.stops.get().core.as_regions();
        self.reading.pass_over(regions, vocabulary.core.text(id))?;
        self.seen.store(seen, Relaxed);
        Some(text)
    }

    /// What `action` does with the state, unless another thread is at it.
    fn with<T>(&self, action: impl FnOnce(&mut Reading) -> T) -> PyResult<T> {
        self.reading.with(|state| {
            let reading = &mut state.core;
            reading.decoding.pass(self.seen.load(Relaxed) - reading.decoding.stream().ledger.seen);
            let result = action(reading);
            self.seen.store(reading.decoding.stream().ledger.seen, Relaxed);
            result
        })
    }
}

/// An argument that may be left out, but not `None`.
fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}
