use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::arguments::value_error;
use super::stop_match::StopMatch;
use super::stop_set::{StopSet, rebuild};
use super::token_arguments::limits;
use super::tokens::{State, Tokens, given};
use crate::Options;
use crate::stream::AsRegions;

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
    stops: Py<StopSet>,
    tokens: Tokens<crate::StopScanner>,
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
        let tokens = Tokens::new(tokenizer_or_vocabulary, scanner, limits, skip_special_tokens, prompt_token_ids)?;
        Ok(TokenScanner { stops, tokens })
    }

    /// The text that is safe to emit now that ``token_id`` was read; ``""`` once the stream is over.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have and ``TypeError`` for what is no integer; the
    /// stream is then as before. An id that ends the stream need not be the tokenizer's.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let py = token_id.py();
        match self.tokens.pass(self.stops.get().core.as_regions(), token_id) {
            Some((_, text)) => Ok(text.bind(py).clone()),
            None => self.tokens.feed(token_id, |safe| Ok(PyString::new(py, safe))),
        }
    }

    /// The text that is safe to emit now that all of ``token_ids`` were read: what ``feed`` gives for each, joined.
    ///
    /// It is for steps that bring several tokens. Those after the end of the stream are not read. If an id is wrong,
    /// none was read.
    #[pyo3(signature = (token_ids, /))]
    fn feed_many<'py>(&self, py: Python<'py>, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        Ok(PyString::new(py, &self.tokens.feed_many(token_ids)?))
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
        self.tokens.close(py, reason, |safe| Ok(PyString::new(py, safe)))
    }

    /// A scanner in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<TokenScanner> {
        Ok(TokenScanner { stops: self.stops.clone_ref(py), tokens: self.tokens.copy(py)? })
    }

    /// Goes back to the start of the stream, after the prompt.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.tokens.reset(py)
    }

    /// Why the stream is over, as soon as it is; until then ``None``.
    #[getter]
    fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.tokens.finish(py)
    }

    /// The stop string that fired, or ``None``.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.tokens.found(py)
    }

    /// The text that is withheld because it may still turn into a hidden stop.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.tokens.held(py)
    }

    /// How many tokens were fed, for usage.
    #[getter]
    fn tokens_seen(&self) -> usize {
        self.tokens.seen()
    }

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
    #[getter]
    fn tokens_kept(&self) -> PyResult<usize> {
        self.tokens.kept()
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<TokenScanner> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<TokenScanner> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickle<'py>> {
        let (py, TokenScanner { stops, tokens }) = (slf.py(), slf.get());
        let arguments = PyTuple::new(py, [tokens.vocabulary.as_any(), stops.as_any()])?;
        let (make, arguments) = rebuild(slf.get_type(), arguments, tokens.options(py)?)?;
        Ok((make, arguments, tokens.state(py)?))
    }

    fn __setstate__(&self, py: Python<'_>, state: State) -> PyResult<()> {
        self.tokens.restore(py, state)
    }
}

/// What a pickle calls, with what, and the state that it sets.
pub(super) type Pickle<'py> = (Bound<'py, PyAny>, (Bound<'py, PyType>, Bound<'py, PyTuple>, Bound<'py, PyDict>), State);
