use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::segment_set::SegmentSet;
use super::segmenter::beginning_in;
use super::stop_match::StopMatch;
use super::stop_set::rebuild;
use super::token_arguments::limits;
use super::token_scanner::Pickle;
use super::tokens::{State, Tokens, given};
use crate::stream::AsRegions;

/// Cuts one stream of token ids into segments: ``feed`` returns the text that is safe to emit with its region,
/// ``finish`` says why the stream ended.
///
/// The first argument is a tokenizer or the ``Vocabulary`` of one. ``segments``, ``region`` and ``include_stop`` are
/// those of ``Segmenter``, all else is as with ``TokenScanner``. A marker that is one special token leads to its region
/// although ``skip_special_tokens`` leaves it out; one that is spelled with special tokens and others, such as
/// Harmony's, is only found with ``skip_special_tokens=False``.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> segmenter = TokenSegmenter(tokenizer, markers, eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     for region, text in segmenter.feed(token_id):
/// ...         print(region, text)
/// >>> reasoning_tokens = segmenter.tokens_in["reasoning"]
#[pyclass(module = "stopscan.tokens", frozen)]
pub(super) struct TokenSegmenter {
    segments: Py<SegmentSet>,
    tokens: Tokens<crate::Segmenter>,
}

#[pymethods]
impl TokenSegmenter {
    #[new]
    #[pyo3(
        signature = (
            tokenizer_or_vocabulary, segments, /, *, region = None, stop_token_ids = None, eos_token_ids = None,
            min_tokens = None, max_tokens = None, include_stop = false, skip_special_tokens = true,
            prompt_token_ids = None
        ),
        text_signature = "(tokenizer_or_vocabulary, segments, /, *, region=None, stop_token_ids=(), eos_token_ids=(), \
            min_tokens=0, max_tokens=None, include_stop=False, skip_special_tokens=True, prompt_token_ids=())"
    )]
    #[allow(clippy::too_many_arguments)]
    fn new(
        tokenizer_or_vocabulary: &Bound<'_, PyAny>,
        segments: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        stop_token_ids: Option<&Bound<'_, PyAny>>,
        eos_token_ids: Option<&Bound<'_, PyAny>>,
        min_tokens: Option<&Bound<'_, PyAny>>,
        max_tokens: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
        skip_special_tokens: bool,
        prompt_token_ids: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenSegmenter> {
        let limits = limits(stop_token_ids, eos_token_ids, min_tokens, max_tokens)?;
        let segments = SegmentSet::of(segments)?;
        let segmenter = beginning_in(segments.get(), region, include_stop)?;
        let tokens = Tokens::new(tokenizer_or_vocabulary, segmenter, limits, skip_special_tokens, prompt_token_ids)?;
        Ok(TokenSegmenter { segments, tokens })
    }

    /// The segments that are safe to emit now that ``token_id`` was read; none once the stream is over.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have and ``TypeError`` for what is no integer; the
    /// stream is then as before. An id that ends the stream need not be the tokenizer's.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = token_id.py();
        let segments = self.segments.get();
        match self.tokens.pass(segments.core.as_regions(), token_id) {
            Some((region, text)) => PyList::new(py, [PyTuple::new(py, [&segments.names[region as usize], text])?]),
            None => self.tokens.feed(token_id, |safe| self.tuples(py, safe)),
        }
    }

    /// The segments that are safe to emit now that all of ``token_ids`` were read: what ``feed`` gives for each,
    /// neighbours of one region joined.
    ///
    /// It is for steps that bring several tokens. Those after the end of the stream are not read. If an id is wrong,
    /// none was read.
    #[pyo3(signature = (token_ids, /))]
    fn feed_many<'py>(&self, py: Python<'py>, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.tuples(py, &self.tokens.feed_many(token_ids)?)
    }

    /// The segments of the rest, when the stream ends for another ``reason``: half a character as U+FFFD, and what is
    /// held.
    ///
    /// ``reason`` is one of ``Finish`` that needs no stop or token id; any other raises ``ValueError``. Once the stream
    /// is over there are none, and nothing changes.
    #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
    fn close<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.tokens.close(py, reason, |safe| self.tuples(py, safe))
    }

    /// A segmenter in the same state that goes on independently.
    fn copy(&self, py: Python<'_>) -> PyResult<TokenSegmenter> {
        Ok(TokenSegmenter { segments: self.segments.clone_ref(py), tokens: self.tokens.copy(py)? })
    }

    /// Goes back to the start of the stream, after the prompt.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.tokens.reset(py)
    }

    /// The region that is open.
    #[getter]
    fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let region = self.tokens.with(|reading| reading.decoding.stream().reader.stream.cursor.region)?;
        Ok(self.segments.get().name(region, py))
    }

    /// Why the stream is over, as soon as it is; until then ``None``.
    #[getter]
    fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.tokens.finish(py)
    }

    /// The stop string that fired, or ``None``. Its offset counts all the text, markers included.
    #[getter]
    fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.tokens.found(py)
    }

    /// The text that is withheld because it may still turn into a marker or a hidden stop.
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

    /// How many tokens the emitted text of each region has, for a usage report; a new dict each time.
    ///
    /// One that has a part in several counts in the first. Markers count in none, and neither does what is cut with a
    /// stop or held.
    #[getter]
    fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = self.tokens.with(|reading| {
            reading.decoding.stream().ledger.tally.as_ref().map_or(Vec::new(), |tally| tally.counts.clone())
        })?;
        let regions = PyDict::new(py);
        for (name, count) in self.segments.get().names.iter().zip(counts) {
            regions.set_item(name, count)?;
        }
        Ok(regions)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<TokenSegmenter> {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<TokenSegmenter> {
        self.copy(py)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickle<'py>> {
        let (py, TokenSegmenter { segments, tokens }) = (slf.py(), slf.get());
        let arguments = PyTuple::new(py, [tokens.vocabulary.as_any(), segments.as_any()])?;
        let (make, arguments) = rebuild(slf.get_type(), arguments, tokens.options(py)?)?;
        Ok((make, arguments, tokens.state(py)?))
    }

    fn __setstate__(&self, py: Python<'_>, state: State) -> PyResult<()> {
        self.tokens.restore(py, state)
    }
}

impl TokenSegmenter {
    fn tuples<'py>(&self, py: Python<'py>, safe: &[(u32, String)]) -> PyResult<Bound<'py, PyList>> {
        let names = &self.segments.get().names;
        let tuple = |(region, text): &(u32, String)| {
            PyTuple::new(py, [names[*region as usize].bind(py), &PyString::new(py, text)])
        };
        PyList::new(py, safe.iter().map(tuple).collect::<PyResult<Vec<_>>>()?)
    }
}
