use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple};

use super::arguments::{options, read_snapshot};
use super::classes::{stream_class, token_class};
use super::objects::{bytes, int, rebuild};
use super::stop_match::StopMatch;
use super::stop_set::StopSet;
use super::token_arguments::limits;
use super::tokens::{Tokens, given};
use crate::Text;

/// Scans one stream of token ids: ``feed`` returns the text that is safe to emit, and ``finish`` says why the stream
/// ended.
///
/// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``stop``, ``include_stop``,
/// ``start_protected`` and ``region`` are those of ``StopScanner``.
///
/// - ``stop_token_ids``, ``eos_token_ids``: tokens that end the stream. The text of such a token is not emitted.
/// - ``max_tokens``: how many tokens the stream may have.
/// - ``min_tokens``: in the first ``min_tokens`` tokens no stop, stop token or EOS counts. A stop string that begins
///   there and completes later counts.
/// - ``prompt_token_ids``: the tokens that the text continues. They decide on a leading space, and the stream may
///   complete their last character.
/// - ``skip_special_tokens``: whether special tokens have no text. The default is true. A stop or a marker that is one
///   special token counts all the same. A marker of a special token and text together is a ``ValueError``: pass
///   ``skip_special_tokens=False``.
///
/// A pickle has the vocabulary, once for all streams in the pickle. To move a stream to a process that has the
/// tokenizer, use ``snapshot``: that has no vocabulary.
///
/// If a token brings several ends, ``finish`` reports the first of: stop, stop token, EOS, ``max_tokens``. The text is
/// the text of the tokenizer's ``decode`` of all ids.
///
/// >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     print(scanner.feed(token_id), end="")
/// ...     if scanner.finish:
/// ...         break
#[pyclass(module = "stopscan.tokens", frozen)]
pub(super) struct TokenScanner {
    stream: Tokens<Text>,
}

impl TokenScanner {
    fn of(stream: Tokens<Text>) -> TokenScanner {
        TokenScanner { stream }
    }
}

token_class! { TokenScanner, PyString,
    #[new]
    #[pyo3(
        signature = (
            tokenizer_or_vocabulary, stop = None, /, *, stop_token_ids = None, eos_token_ids = None,
            min_tokens = None, max_tokens = None, include_stop = false, start_protected = false, region = None,
            skip_special_tokens = true, prompt_token_ids = None
        ),
        text_signature = "(tokenizer_or_vocabulary, stop=(), /, *, stop_token_ids=(), eos_token_ids=(), min_tokens=0, \
            max_tokens=None, include_stop=False, start_protected=False, region=None, skip_special_tokens=True, \
            prompt_token_ids=())"
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
        region: Option<&Bound<'_, PyAny>>,
        skip_special_tokens: bool,
        prompt_token_ids: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<TokenScanner> {
        let py = tokenizer_or_vocabulary.py();
        let limits = limits(stop_token_ids, eos_token_ids, min_tokens, max_tokens)?;
        let stops = StopSet::of(&stop.unwrap_or_else(|| py.None().into_bound(py)))?;
        let options = options(include_stop, start_protected, region)?;
        let tokenizer = tokenizer_or_vocabulary;
        Tokens::new(tokenizer, stops, &options, limits, skip_special_tokens, prompt_token_ids).map(TokenScanner::of)
    }
}
