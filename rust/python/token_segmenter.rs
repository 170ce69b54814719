use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};

use super::arguments::{options, read_snapshot};
use super::classes::{stream_class, token_class};
use super::objects::{bytes, int, rebuild};
use super::segment_set::SegmentSet;
use super::stop_match::StopMatch;
use super::token_arguments::limits;
use super::tokens::{Tokens, given};
use crate::Segmented;

/// Cuts one stream of token ids into segments: ``feed`` returns the segments that are safe to emit, and ``finish`` says
/// why the stream ended.
///
/// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``segments``, ``region`` and
/// ``include_stop`` are those of ``Segmenter``. All other arguments are those of ``TokenScanner``.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> segmenter = TokenSegmenter(tokenizer, markers, eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     for region, text in segmenter.feed(token_id):
/// ...         print(region, text)
/// >>> reasoning_tokens = segmenter.tokens_in["reasoning"]
#[pyclass(module = "stopscan.tokens", frozen)]
pub(super) struct TokenSegmenter {
    stream: Tokens<Segmented>,
}

impl TokenSegmenter {
    fn of(stream: Tokens<Segmented>) -> TokenSegmenter {
        TokenSegmenter { stream }
    }
}

token_class! { TokenSegmenter, PyList,
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
        let options = options(include_stop, false, region)?;
        let tokenizer = tokenizer_or_vocabulary;
        Tokens::new(tokenizer, segments, &options, limits, skip_special_tokens, prompt_token_ids)
            .map(TokenSegmenter::of)
    }

    /// The number of tokens of each region's emitted text, for a usage report. Each call makes a new dict.
    ///
    /// A token with text of several regions counts in the region of its first character. A token that is only a marker
    /// counts in no region. A token that is cut with a stop, or held, counts in no region.
    #[getter]
    fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.stream.tokens_in(py)
    }
}
