//! A stream of tokens as Python objects share it, with a way past its lock.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use stopscan::host::{Cursor, Decode, Ends, Limits, NOTHING_PASSES, Native, Reader, Sink, Writer, code_points};
use stopscan::{
    Emit, EndReason, Options, Segmented, Snapshot, Stream, Text, TokenOptionsError, TokenStream, UnknownIds,
};

use crate::arguments::{SNAPSHOT, TokenArguments, options, read_snapshot, token_id, token_list, unknown};
use crate::errors::{OrRaise, value_error};
use crate::matches::{StopMatch, finished, reason_of};
use crate::objects::{self, bytes, int, new_string, rebuild, room, set_item, some_int};
use crate::sets::{SegmentSet, StopSet};
use crate::streams::{Core, Guarded, PyEmit, State, set_options, stream_methods};
use crate::vocabulary::{Ready, Vocabulary};

/// The methods that both classes of streams of tokens have.
macro_rules! token_methods {
    ($class:ident, $out:ty) => {
        stream_methods!($class);

        #[pymethods]
        impl $class {
            /// What is safe to emit after all of ``token_ids``: the results of ``feed`` for each id, joined.
            ///
            /// Use ``feed_many`` for a step that brings several tokens. Tokens after the end of the stream are not
            /// read. If an id is wrong, ``feed_many`` raises the error of ``feed`` and reads no id.
            #[pyo3(signature = (token_ids, /))]
            fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed_many(token_ids)
            }

            /// Ends the stream for ``reason`` and returns the rest of its text: half a character as U+FFFD, and the
            /// held text.
            ///
            /// ``reason`` is a reason of ``Finish`` that needs no stop and no token id; any other reason raises
            /// ``ValueError``. After the end of the stream the result is empty, and nothing changes.
            #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
            fn flush<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py, reason)
            }

            /// Goes back to the start of the stream. Returns nothing.
            fn reset(&self) -> PyResult<()> {
                self.stream.reset()
            }

            /// The ``Finish`` of the stream. ``None`` while the stream goes on.
            #[getter]
            fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
                self.stream.finish(py)
            }

            /// How many tokens were fed, for a usage report.
            #[getter]
            fn tokens_seen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
                int(py, self.stream.seen())
            }

            /// How many tokens there are up to the last token that has a part in the emitted text. Cut ids and logprobs
            /// there.
            #[getter]
            fn tokens_kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
                int(py, self.stream.kept()?)
            }

            /// The number of tokens of each region, for a usage report. Each call makes a new dict.
            ///
            /// A token counts in the region where its last character lies. Tokens with which a marker ends, tokens that
            /// end the stream, and tokens that a stop cuts count in no region. Without regions the dict is
            /// ``{"answer": tokens_kept}``.
            #[getter]
            fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                self.stream.tokens_in(py)
            }
        }
    };
}

/// Scans one stream of token ids: ``feed`` returns the text that is safe to emit, and ``finish`` says why the stream
/// ended.
///
/// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``stop``, ``include_stop``,
/// ``start_protected`` and ``region`` are those of ``StopScanner``.
///
/// - ``stop_token_ids``, ``eos_token_ids``: tokens that end the stream. The text of such a token is not emitted.
/// - ``max_tokens``: how many tokens the stream may have.
/// - ``min_tokens``: the number of tokens at the start of the stream in which stops and stop tokens are ignored. A stop
///   string that begins there and completes later fires. An EOS there has no text, and the stream goes on.
/// - ``eos_ends_early``: whether an EOS among the first ``min_tokens`` tokens ends the stream, as in an engine that ends
///   its row there.
/// - ``unknown_ids``: ``"refuse"`` raises ``ValueError`` for an id that the tokenizer lacks. ``"count"`` takes it as a
///   token without text: models have more ids than their tokenizers.
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
/// the text of the tokenizer's ``decode`` of all ids. The text of a token that ends the stream is neither scanned nor
/// emitted: a stop fires there only if it is the token's whole text. A token that is all of a live marker is one step:
/// no stop fires inside it.
///
/// >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     print(scanner.feed(token_id), end="")
/// ...     if scanner.finish:
/// ...         break
#[pyclass(module = "stopscan.tokens", frozen)]
pub(crate) struct TokenScanner {
    stream: Tokens<Text>,
}

impl TokenScanner {
    fn of(stream: Tokens<Text>) -> TokenScanner {
        TokenScanner { stream }
    }
}

#[pymethods]
impl TokenScanner {
    #[new]
    #[pyo3(
        signature = (
            tokenizer_or_vocabulary, /, stop = None, *, stop_token_ids = None, eos_token_ids = None,
            min_tokens = None, max_tokens = None, include_stop = false, start_protected = false, region = None,
            skip_special_tokens = true, prompt_token_ids = None, unknown_ids = "refuse", eos_ends_early = false
        ),
        text_signature = "(tokenizer_or_vocabulary, /, stop=(), *, stop_token_ids=(), eos_token_ids=(), min_tokens=0, \
            max_tokens=None, include_stop=False, start_protected=False, region=None, skip_special_tokens=True, \
            prompt_token_ids=(), unknown_ids='refuse', eos_ends_early=False)"
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
        unknown_ids: &str,
        eos_ends_early: bool,
    ) -> PyResult<TokenScanner> {
        let py = tokenizer_or_vocabulary.py();
        let arguments = TokenArguments {
            stop_token_ids,
            eos_token_ids,
            min_tokens,
            max_tokens,
            skip_special_tokens,
            prompt_token_ids,
            unknown_ids,
            eos_ends_early,
        };
        let stops = StopSet::of(&stop.unwrap_or_else(|| py.None().into_bound(py)))?;
        let options = options(include_stop, start_protected, region)?;
        Tokens::new(tokenizer_or_vocabulary, stops, &options, &arguments).map(TokenScanner::of)
    }

    /// What is safe to emit after ``token_id``. After the end of the stream the result is empty.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have, and ``TypeError`` for an id that is
    /// not an integer. After an error the stream is as before. An EOS or stop token need not be an id of the
    /// tokenizer.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.feed(token_id)
    }
}

token_methods!(TokenScanner, PyString);

/// Cuts one stream of token ids into segments: ``feed`` returns the segments that are safe to emit, and ``finish`` says
/// why the stream ended.
///
/// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``segments``, ``region`` and
/// ``include_stop`` are those of ``Segmenter``. All other arguments are those of ``TokenScanner``.
///
/// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
/// >>> segmenter = TokenSegmenter(tokenizer, markers, eos_token_ids=2)
/// >>> for token_id in generate(prompt):
/// ...     for region, text, part in segmenter.feed(token_id):
/// ...         print(region, text)
/// >>> reasoning_tokens = segmenter.tokens_in["reasoning"]
#[pyclass(module = "stopscan.tokens", frozen)]
pub(crate) struct TokenSegmenter {
    stream: Tokens<Segmented>,
}

impl TokenSegmenter {
    fn of(stream: Tokens<Segmented>) -> TokenSegmenter {
        TokenSegmenter { stream }
    }
}

#[pymethods]
impl TokenSegmenter {
    #[new]
    #[pyo3(
        signature = (
            tokenizer_or_vocabulary, segments, /, *, region = None, stop_token_ids = None, eos_token_ids = None,
            min_tokens = None, max_tokens = None, include_stop = false, skip_special_tokens = true,
            prompt_token_ids = None, unknown_ids = "refuse", eos_ends_early = false
        ),
        text_signature = "(tokenizer_or_vocabulary, segments, /, *, region=None, stop_token_ids=(), eos_token_ids=(), \
            min_tokens=0, max_tokens=None, include_stop=False, skip_special_tokens=True, prompt_token_ids=(), \
            unknown_ids='refuse', eos_ends_early=False)"
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
        unknown_ids: &str,
        eos_ends_early: bool,
    ) -> PyResult<TokenSegmenter> {
        let arguments = TokenArguments {
            stop_token_ids,
            eos_token_ids,
            min_tokens,
            max_tokens,
            skip_special_tokens,
            prompt_token_ids,
            unknown_ids,
            eos_ends_early,
        };
        let segments = SegmentSet::of(segments)?;
        let options = options(include_stop, false, region)?;
        Tokens::new(tokenizer_or_vocabulary, segments, &options, &arguments).map(TokenSegmenter::of)
    }

    /// What is safe to emit after ``token_id``. After the end of the stream the result is empty.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have, and ``TypeError`` for an id that is
    /// not an integer. After an error the stream is as before. An EOS or stop token need not be an id of the
    /// tokenizer.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.stream.feed(token_id)
    }
}

token_methods!(TokenSegmenter, PyList);

/// What most tokens need comes first, as in `Guarded`, and the stream is elsewhere: so the objects of a server's streams
/// lie close together, and a token that passes the lock fetches one or two lines of memory.
#[repr(C)]
pub(crate) struct Tokens<E: PyEmit> {
    /// How many tokens were fed.
    pub(crate) seen: AtomicUsize,
    pub(crate) max_tokens: usize,
    /// A bit for each id that ends the stream, as its lowest six bits say.
    pub(crate) end_bits: u64,
    pub(crate) vocabulary: Py<Vocabulary>,
    pub(crate) guarded: Guarded<Box<TokenStream<E, Decoding>>>,
    pub(crate) set: Py<E::Class>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) include_stop: bool,
    pub(crate) unread: UnreadTokens,
}

impl<E: Emit> Core for Box<TokenStream<E, Decoding>> {
    type Emit = E;

    fn stream(&self) -> &Stream<E> {
        self.text()
    }

    fn stream_mut(&mut self) -> &mut Stream<E> {
        self.text_mut()
    }

    fn is_idle(&self) -> bool {
        TokenStream::is_idle(self)
    }
}

impl<E: PyEmit> Tokens<E> {
    pub(crate) fn new(
        tokenizer: &Bound<'_, PyAny>,
        set: Py<E::Class>,
        options: &Options,
        arguments: &TokenArguments<'_, '_>,
    ) -> PyResult<Tokens<E>> {
        let py = tokenizer.py();
        let limits = arguments.limits()?;
        let stream = Stream::with_options(E::core(set.get()), options).or_raise()?;
        let vocabulary = Vocabulary::of(tokenizer)?;
        let prompt = arguments.prompt_token_ids.map_or(Ok(Vec::new()), |ids| token_list(ids, "prompt_token_ids"))?;
        let decoding = Decoding::new(vocabulary.bind(py), arguments.skip_special_tokens, &prompt)?;
        decoding.check(py, &stream)?;
        Ok(Tokens::of(vocabulary, set, TokenStream::with_decoder(decoding, stream, limits)))
    }

    fn of(vocabulary: Py<Vocabulary>, set: Py<E::Class>, stream: TokenStream<E, Decoding>) -> Tokens<E> {
        let limits = stream.limits();
        Tokens {
            seen: AtomicUsize::new(stream.tokens_seen()),
            max_tokens: limits.max_tokens,
            end_bits: limits.ends.bits(),
            limits: limits.clone(),
            vocabulary,
            set,
            include_stop: stream.text().options().include_stop,
            unread: UnreadTokens::default(),
            guarded: Guarded::new(Box::new(stream), None),
        }
    }

    #[cold]
    pub(crate) fn read<'py>(&self, token: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        self.change(|stream| {
            if stream.finish().is_some() {
                return E::nothing(token.py());
            }
            let id = token_id(token, "token_id")?.ok_or_else(|| unknown(token))?;
            self.safe(token.py(), stream.try_feed(id)?)
        })?
    }

    pub(crate) fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let tokens = token_list(token_ids, "token_ids")?;
        let py = token_ids.py();
        let (mut ids, mut wrong) = (Vec::new(), None);
        room(size_of::<u32>() * 2 * tokens.len())?;
        for token in &tokens {
            match token_id(token, "token_ids").and_then(|id| id.ok_or_else(|| unknown(token))) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    wrong = Some(error);
                    break;
                }
            }
        }
        let Vocabulary { core, native, .. } = self.vocabulary.get();
        self.change(|stream| {
            // What comes out, and what is kept of each token.
            let bytes: usize = ids.iter().map(|&id| 16 + core.bytes(id).map_or(0, <[u8]>::len)).sum();
            room(4 * bytes + 2 * stream.text().size())?;
            if wrong.is_none() && *native && ids.iter().all(|&id| core.contains(id)) {
                return self.safe(py, stream.try_feed_many(&ids)?);
            }
            // Tokens behind the end of the stream are not read, so that only the copy tells whether one is wrong.
            let mut copy = stream.try_clone()?;
            let safe = self.safe(py, copy.try_feed_many(&ids)?)?;
            if let Some(error) = wrong.filter(|_| copy.finish().is_none()) {
                return Err(error);
            }
            *stream = copy;
            Ok(safe)
        })?
    }

    pub(crate) fn flush<'py>(
        &self,
        py: Python<'py>,
        reason: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, E::Out>> {
        let reason = reason.map_or(Ok(EndReason::Eos), |reason| reason_of(&reason))?;
        self.change(|stream| self.safe(py, stream.try_flush(reason)?))?
    }

    fn safe<'py>(&self, py: Python<'py>, safe: E::Tokens<'_>) -> PyResult<Bound<'py, E::Out>> {
        E::safe(py, self.set.get(), safe)
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Tokens<E>> {
        let stream = self.look(|stream| {
            room(2 * stream.text().size())?;
            stream.try_clone()
        })??;
        Ok(Tokens::of(self.vocabulary.clone_ref(py), self.set.clone_ref(py), stream))
    }

    pub(crate) fn reset(&self) -> PyResult<()> {
        self.change(|stream| stream.try_reset())?
    }

    pub(crate) fn snapshot(&self, _: Python<'_>) -> PyResult<Snapshot> {
        self.look(|stream| {
            room(SNAPSHOT * stream.text().size())?;
            stream.try_snapshot()
        })?
    }

    pub(crate) fn restore(&self, _: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        self.change(|stream| stream.try_restore(snapshot)?.or_raise())?
    }

    pub(crate) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let node = self.look(|stream| stream.text().node())?;
        Ok(E::names(self.set.get())[node as usize].clone_ref(py))
    }

    pub(crate) fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.guarded.is_idle() {
            true => Ok(None),
            false => self.look(|stream| finished(py, stream))?,
        }
    }

    pub(crate) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.look(|stream| stream.stop_match().map(|found| StopMatch::from_core(py, found)).transpose())?
    }

    pub(crate) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.look(|stream| new_string(py, stream.held()))?
    }

    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Relaxed)
    }

    pub(crate) fn kept(&self) -> PyResult<usize> {
        self.look(|stream| stream.tokens_kept())
    }

    pub(crate) fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = objects::dict(py)?;
        self.look(|stream| {
            stream.tokens_in().try_for_each(|(name, count)| counts.set_item(new_string(py, name)?, int(py, count)?))
        })??;
        Ok(counts)
    }

    /// What makes such a stream again.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (stop_token_ids, eos_token_ids) = self.limits.ends.ids();
        let ints = |ids: &[u32]| objects::list(py, ids.iter().map(|&id| int(py, id as usize)));
        let options = objects::dict(py)?;
        set_item(&options, "stop_token_ids", ints(stop_token_ids)?)?;
        set_item(&options, "eos_token_ids", ints(eos_token_ids)?)?;
        if self.limits.unknown_ids == UnknownIds::Count {
            set_item(&options, "unknown_ids", "count")?;
        }
        set_item(&options, "eos_ends_early", self.limits.eos_ends_early)?;
        set_item(&options, "min_tokens", int(py, self.limits.min_tokens)?)?;
        set_item(&options, "max_tokens", some_int(py, Some(self.limits.max_tokens).filter(|&max| max != usize::MAX))?)?;
        self.look(|stream| {
            set_item(&options, "skip_special_tokens", stream.decoder().skips_special())?;
            set_options(&options, &stream.text().options())
        })??;
        let arguments = [self.vocabulary.bind(py).as_any().clone(), self.set.bind(py).as_any().clone()];
        Ok((objects::tuple(py, arguments.map(Ok))?, options))
    }

    /// What `action` does with the stream, for a call that changes it. Raises `RuntimeError` if another such call runs.
    pub(crate) fn change<T>(&self, action: impl FnOnce(&mut TokenStream<E, Decoding>) -> T) -> PyResult<T> {
        self.guarded.change(|state| self.with(state, action))
    }

    /// What `action` does with the stream, for a call that only reads it. Waits for the call that runs.
    pub(crate) fn look<T>(&self, action: impl FnOnce(&mut TokenStream<E, Decoding>) -> T) -> PyResult<T> {
        self.guarded.read(|state| self.with(state, action))
    }

    /// What `action` does with the stream, which first reads the tokens that passed the lock.
    fn with<T>(
        &self,
        state: &mut State<Box<TokenStream<E, Decoding>>>,
        action: impl FnOnce(&mut TokenStream<E, Decoding>) -> T,
    ) -> T {
        let stream = &mut state.core;
        let begun = self.unread.ids();
        stream.skip_tokens(self.seen.load(Relaxed) - begun.len() - stream.tokens_seen());
        for id in begun {
            let _ = stream.try_feed(id); // the vocabulary has it
        }
        self.unread.forget();
        let result = action(stream);
        self.seen.store(stream.tokens_seen(), Relaxed);
        result
    }
}

/// An argument that may be left out, but not `None`.
pub(crate) fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}

impl<E: PyEmit> Tokens<E> {
    #[inline(always)]
    pub(crate) fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let Some((id, seen, Ready { shape, text })) = self.ready(token_id) else {
            return self.read(token_id);
        };
        let text = text.bind(token_id.py());
        if let Some(node) = self.guarded.plain_by(*shape) {
            let safe = E::whole(self.set.get(), node, self.guarded.part(), text)?;
            self.guarded.count(shape.bytes(), shape.continued());
            self.seen.store(seen, Relaxed);
            return Ok(safe);
        }
        match self.walk(id, text)? {
            Some(safe) => {
                self.seen.store(seen, Relaxed);
                Ok(safe)
            }
            None => self.read(token_id),
        }
    }

    /// A token that ends no stream and is only its text, and how many there are with it. Only an `int` is read here: any
    /// other object may run code of its own when it is read, and is read once, under the lock.
    #[inline(always)]
    fn ready(&self, token_id: &Bound<'_, PyAny>) -> Option<(u32, usize, &Ready)> {
        let id: u32 = token_id.cast_exact::<PyInt>().ok()?.extract().ok()?;
        let seen = self.seen.load(Relaxed) + 1;
        let ends = self.end_bits & Ends::bit(id) != 0 && self.limits.ends.contains(id);
        if seen >= self.max_tokens || ends {
            return None;
        }
        Some((id, seen, self.vocabulary.get().ready.get(id as usize)?.as_ref()?))
    }

    /// What is safe now that a token was read in which a word may begin, or go on; `None` if the core has to read it. That
    /// reads a word that ends, and one that goes on for long.
    #[inline(never)]
    fn walk<'py>(&self, id: u32, ready: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, E::Out>>> {
        let (set, py) = (self.set.get(), ready.py());
        let core = E::core(set);
        let vocabulary = &self.vocabulary.get().core;
        let text = vocabulary.text(id);
        let Some(node) = self.guarded.node_to_count_at() else {
            let Some((node, length)) = self.guarded.plain(core, text) else {
                return Ok(None);
            };
            let safe = E::whole(set, node, self.guarded.part(), ready)?;
            return Ok(self.guarded.pass(text, length).then_some(safe));
        };
        let before = Cursor { node, state: self.unread.state() };
        let Some(after) = core.skim(before, text) else {
            return Ok(None);
        };
        let goes_on = after != Cursor::start(node);
        let kept = core.held_at(after, self.include_stop);
        let held = core.held_at(before, self.include_stop);
        if goes_on && !self.unread.has_room() {
            return Ok(None);
        }
        let output = |safe: &str| match safe {
            "" => E::nothing(py),
            safe => E::whole(set, node, self.guarded.part(), &new_string(py, safe)?),
        };
        let safe = match (held, kept) {
            (0, 0) => E::whole(set, node, self.guarded.part(), ready)?,
            (0, _) => output(&text[..text.len() - kept])?,
            _ => {
                let safe = |joined: &str, length: usize| output(&joined[length - held..joined.len() - kept]);
                match self.unread.with_text(vocabulary, text, safe) {
                    Some(safe) => safe?,
                    None => return Ok(None),
                }
            }
        };
        if goes_on {
            self.unread.push(id, after.state);
            self.guarded.let_pass(NOTHING_PASSES);
        } else {
            for text in self.unread.ids().map(|id| vocabulary.text(id)).chain([text]) {
                self.guarded.count(text.len(), text.len() - code_points(text));
            }
            self.unread.forget();
            self.guarded.let_pass(core.filter(node));
        }
        Ok(Some(safe))
    }
}

/// A line break, or a bracket, begins a word again and again that goes on for no more tokens than these.
const MOST: usize = 4;

#[derive(Default)]
pub(crate) struct UnreadTokens {
    /// The state of the automaton behind them; the root if there are none.
    state: AtomicU32,
    len: AtomicU32,
    ids: [AtomicU32; MOST],
}

impl UnreadTokens {
    pub(crate) fn state(&self) -> u32 {
        self.state.load(Relaxed)
    }

    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = u32> {
        self.ids[..self.len()].iter().map(|id| id.load(Relaxed))
    }

    pub(crate) fn has_room(&self) -> bool {
        self.len() < MOST
    }

    /// What `action` does with their text and `text` behind it, and with the length of theirs; `None` if there is no
    /// memory for it.
    pub(crate) fn with_text<T>(
        &self,
        vocabulary: &stopscan::Vocabulary,
        text: &str,
        action: impl FnOnce(&str, usize) -> T,
    ) -> Option<T> {
        let texts = || self.ids().map(|id| vocabulary.text(id));
        let length = texts().map(str::len).sum();
        let mut joined = String::new();
        joined.try_reserve_exact(length + text.len()).ok()?;
        texts().chain([text]).for_each(|text| joined.push_str(text));
        Some(action(&joined, length))
    }

    pub(crate) fn push(&self, id: u32, state: u32) {
        if let Some(last) = self.ids.get(self.len()) {
            last.store(id, Relaxed);
            self.len.store(self.len() as u32 + 1, Relaxed);
            self.state.store(state, Relaxed);
        }
    }

    pub(crate) fn forget(&self) {
        self.len.store(0, Relaxed);
        self.state.store(0, Relaxed);
    }

    fn len(&self) -> usize {
        (self.len.load(Relaxed) as usize).min(MOST)
    }
}

pub(crate) enum Decoding {
    Native(Native),
    /// The Python object `stopscan.tokens._window.Window`.
    Window(Window),
}

pub(crate) struct Window {
    now: Py<PyAny>,
    /// The window after the prompt.
    start: Py<PyAny>,
    skips_special: bool,
}

/// A piece of text, and the number of the last token that has a part in it.
type Piece = (String, usize);

impl Decoding {
    pub(crate) fn new(
        vocabulary: &Bound<'_, Vocabulary>,
        skips_special: bool,
        prompt: &[Bound<'_, PyAny>],
    ) -> PyResult<Decoding> {
        let py = vocabulary.py();
        let Vocabulary { core, native, .. } = vocabulary.get();
        if !native {
            let prompt = objects::list(py, prompt.iter().cloned().map(Ok))?;
            let start = vocabulary.call_method1("_window", (skips_special, prompt))?.unbind();
            return Ok(Decoding::Window(Window { now: fork(py, &start)?, start, skips_special }));
        }
        let mut native = Native::new(core, skips_special);
        for token in prompt {
            let id = token_id(token, "prompt_token_ids")?;
            if id.is_none_or(|id| native.read_prompt(id).is_err()) {
                return Err(value_error(format!("prompt_token_ids: {}", unknown(token).value(py))));
            }
        }
        Ok(Decoding::Native(native))
    }

    /// Refuses a marker that could not be found.
    pub(crate) fn check<E: Emit>(&self, py: Python<'_>, stream: &Stream<E>) -> PyResult<()> {
        let marker = match self {
            Decoding::Native(native) => return native.check(stream).or_raise(),
            Decoding::Window(window) => {
                let markers =
                    stream.set().states().flat_map(|(_, markers)| markers.map(|(marker, _)| new_string(py, marker)));
                let markers = objects::list(py, markers)?;
                window.now.bind(py).call_method1("spelled", (markers,))?.extract::<Option<String>>()?
            }
        };
        marker.map_or(Ok(()), |marker| Err(value_error(TokenOptionsError::SpelledMarker(marker))))
    }
}

fn fork(py: Python<'_>, window: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    window.call_method0(py, "copy")
}

impl Decode for Decoding {
    type Error = PyErr;

    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => native.step(id, number, sink).or_raise(),
            Decoding::Window(window) => {
                let (pieces, special): (Vec<Piece>, Option<String>) =
                    Python::attach(|py| window.now.bind(py).call_method1("step", (id, number))?.extract())?;
                pieces.iter().for_each(|(text, token)| sink(text, *token));
                Ok(special.map(Cow::Owned))
            }
        }
    }

    fn tail(&self, sink: &mut impl Sink) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.tail(sink).or_raise(),
            Decoding::Window(window) => {
                let pieces: Vec<Piece> = Python::attach(|py| window.now.bind(py).call_method0("tail")?.extract())?;
                pieces.iter().for_each(|(text, token)| sink(text, *token));
                Ok(())
            }
        }
    }

    fn contains(&self, id: u32) -> PyResult<bool> {
        match self {
            Decoding::Native(native) => native.contains(id).or_raise(),
            Decoding::Window(window) => {
                Python::attach(|py| window.now.bind(py).call_method1("contains", (id,))?.extract())
            }
        }
    }

    fn is_whole(&self, id: u32) -> bool {
        match self {
            Decoding::Native(native) => native.is_whole(id),
            // Not known here: a token that also completes a character of the token before it is taken for whole. That
            // matters only if both together spell a marker.
            Decoding::Window(_) => true,
        }
    }

    fn token_text(&self, id: u32) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => native.token_text(id).or_raise(),
            Decoding::Window(window) => Python::attach(|py| {
                let text: Option<String> = window.now.bind(py).call_method1("token_text", (id,))?.extract()?;
                Ok(text.map(Cow::Owned))
            }),
        }
    }

    fn reset(&mut self) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.reset().or_raise(),
            Decoding::Window(window) => {
                window.now = Python::attach(|py| fork(py, &window.start))?;
                Ok(())
            }
        }
    }

    fn fork(&self) -> PyResult<Decoding> {
        match self {
            Decoding::Native(native) => Ok(Decoding::Native(native.clone())),
            Decoding::Window(Window { now, start, skips_special }) => Python::attach(|py| {
                let (now, start) = (fork(py, now)?, start.clone_ref(py));
                Ok(Decoding::Window(Window { now, start, skips_special: *skips_special }))
            }),
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self, Decoding::Native(native) if native.is_idle())
    }

    fn skips_special(&self) -> bool {
        match self {
            Decoding::Native(native) => native.skips_special(),
            Decoding::Window(window) => window.skips_special,
        }
    }

    fn write(&self, writer: &mut Writer) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.write(writer).or_raise(),
            Decoding::Window(Window { now, start, .. }) => Python::attach(|py| {
                for window in [start, now] {
                    writer.bytes(window.call_method0(py, "state")?.bind(py).cast::<PyBytes>()?.as_bytes());
                }
                Ok(())
            }),
        }
    }

    fn resumed(&self, reader: &mut Reader<'_>) -> PyResult<Option<Decoding>> {
        match self {
            Decoding::Native(native) => Ok(native.resumed(reader).or_raise()?.map(Decoding::Native)),
            Decoding::Window(Window { start, skips_special, .. }) => Python::attach(|py| {
                let (Some(first), Some(last)) = (reader.bytes(), reader.bytes()) else {
                    return Ok(None);
                };
                let resumed = |state| start.call_method1(py, "resumed", (PyBytes::new(py, state),));
                Ok(Some(Decoding::Window(Window {
                    start: resumed(first)?,
                    now: resumed(last)?,
                    skips_special: *skips_special,
                })))
            }),
        }
    }
}
