//! The Python classes for streams of token ids. Threads can share a stream. Most tokens are read without its lock.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::call::PyCallArgs;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use stopscan::host::{Decode, Native, Reader, Sink, Writer, end_bit};
use stopscan::{
    Emit, EndReason, Options, Segmented, Snapshot, Stream, Text, TokenOptions, TokenOptionsError, TokenStream,
    UnknownIds,
};

use crate::arguments::{options, read_snapshot, token_id, token_list, token_options, unknown};
use crate::errors::{OrRaise, value_error};
use crate::matches::{StopMatch, finished, reason_of};
use crate::objects::{self, bytes, new_string, rebuild, room};
use crate::sets::{SegmentSet, StopSet};
use crate::streams::{Core, Guarded, PyEmit, add_options, same_or_new, stream_methods};
use crate::unlocked::UnreadTokens;
use crate::vocabulary::{Ready, Vocabulary};

/// Defines the Python class `TokenScanner` or `TokenSegmenter`. `$own` has the arguments that only this class has. The
/// expression `$set` makes the set from these arguments, and the expression `$start_protected` makes the option
/// `start_protected`. `$emit` is the kind of output, and `$out` is the Python class of the output.
macro_rules! token_class {
    (
        $(#[$doc:meta])*
        $class:ident emits $emit:ty as $out:ty, with $name:ident: $set_class:ident;
        signature ($($signature:tt)*) $text_signature:literal;
        arguments ($($own:ident: $type:ty),*);
        set $set:expr;
        start_protected $start_protected:expr;
    ) => {
        $(#[$doc])*
        #[pyclass(module = "stopscan.tokens", frozen)]
        pub(crate) struct $class {
            stream: Tokens<$emit>,
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(
                signature = (
                    $($signature)*, include_stop = false, region = None, stop_token_ids = None, eos_token_ids = None,
                    min_tokens = None, max_tokens = None, skip_special_tokens = true, prompt_token_ids = None,
                    unknown_ids = "refuse", eos_ends_early = false
                ),
                text_signature = $text_signature
            )]
            #[allow(clippy::too_many_arguments)]
            fn new(
                tokenizer_or_vocabulary: &Bound<'_, PyAny>,
                $($own: $type,)*
                include_stop: bool,
                region: Option<&Bound<'_, PyAny>>,
                stop_token_ids: Option<&Bound<'_, PyAny>>,
                eos_token_ids: Option<&Bound<'_, PyAny>>,
                min_tokens: Option<&Bound<'_, PyAny>>,
                max_tokens: Option<&Bound<'_, PyAny>>,
                skip_special_tokens: bool,
                prompt_token_ids: Option<&Bound<'_, PyAny>>,
                unknown_ids: &str,
                eos_ends_early: bool,
            ) -> PyResult<$class> {
                let set = $set?;
                let token_options = token_options(
                    stop_token_ids,
                    eos_token_ids,
                    min_tokens,
                    max_tokens,
                    skip_special_tokens,
                    unknown_ids,
                    eos_ends_early,
                )?;
                let options = options(include_stop, $start_protected, region)?;
                let stream = Tokens::new(tokenizer_or_vocabulary, set, &options, token_options, prompt_token_ids)?;
                Ok($class { stream })
            }

            /// Returns what is safe to emit after all of ``token_ids``: the results of ``feed`` for each id, joined.
            ///
            /// Use ``feed_many`` if a step of the model yields several tokens. Tokens after the end of the stream
            /// change nothing. If an id is invalid, ``feed_many`` raises the same error as ``feed``, and no id counts.
            #[pyo3(signature = (token_ids, /))]
            fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed_many(token_ids)
            }

            /// Ends the stream for ``reason`` and returns the rest of its text: the held text, and U+FFFD if the last
            /// character is incomplete.
            ///
            /// ``reason`` is any reason of ``Finish`` except ``"stop_sequence"`` and ``"stop_token"``, which only the
            /// stream sets. Other values raise ``ValueError``. After the end of the stream the result is empty, and
            /// nothing changes.
            #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
            fn flush<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py, reason)
            }

            /// The ``Finish`` of the stream. ``None`` while the stream goes on.
            #[getter]
            fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
                self.stream.finish(py)
            }

            /// The number of tokens that were fed, for a usage report.
            #[getter]
            fn tokens_seen(&self) -> usize {
                self.stream.guarded.unlocked.unread.seen()
            }

            /// How many tokens to keep: all tokens up to the last one that has text in the output. Cut token ids and
            /// logprobs to this length.
            #[getter]
            fn tokens_kept(&self) -> PyResult<usize> {
                self.stream.guarded.look(|stream| stream.tokens_kept())
            }

            /// How many tokens each region has, for a usage report. Each call makes a new dict.
            ///
            /// A token counts in the region of its last character. If a stop cuts a token in two, the token counts if
            /// some of its text was emitted. Three kinds of tokens count in no region: a token that completes a marker,
            /// a token that a stop cuts off as a whole, and a stop token or EOS that ends the stream. Without regions
            /// the dict is ``{"answer": tokens_kept}``.
            #[getter]
            fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                self.stream.tokens_in(py)
            }
        }

        stream_methods!($class, $name: $set_class);
    };
}

token_class! {
    /// Scans one stream of token ids: ``feed`` returns the text that is safe to emit, and ``finish`` says why the
    /// stream ended.
    ///
    /// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``stop``, ``include_stop``,
    /// ``start_protected`` and ``region`` are the same as in ``StopScanner``.
    ///
    /// - ``stop_token_ids``, ``eos_token_ids``: tokens that end the stream. The text of such a token is not emitted.
    /// - ``max_tokens``: the number of tokens after which the stream ends.
    /// - ``min_tokens``: the number of tokens at the start of the stream in which stops and stop tokens are ignored. A
    ///   stop string that begins in these tokens and completes later fires. An EOS among them has no text, and the
    ///   stream goes on.
    /// - ``eos_ends_early``: whether an EOS among the first ``min_tokens`` tokens ends the stream. Set it for an engine
    ///   that ends the sequence there.
    /// - ``unknown_ids``: ``"refuse"`` raises ``ValueError`` for an id that the tokenizer lacks. ``"count"`` counts the
    ///   id as a token without text, also in ``prompt_token_ids``. Use it for a model that has more ids than its
    ///   tokenizer.
    /// - ``prompt_token_ids``: the tokens of the prompt. They decide whether the first token keeps its leading space.
    ///   If the prompt ends inside a character, the stream may complete that character.
    /// - ``skip_special_tokens``: whether special tokens are left out of the text. The default is true. A stop or a
    ///   marker that is one special token is still found. A marker that has a special token and other text raises
    ///   ``ValueError``: pass ``skip_special_tokens=False``.
    ///
    /// A pickle contains the vocabulary, once for all streams in the pickle. To move a stream to a process that has the
    /// tokenizer, use ``snapshot``, which does not contain the vocabulary.
    ///
    /// If a token ends the stream for several reasons, ``finish`` reports the first of: stop, stop token, EOS,
    /// ``max_tokens``. The text equals the tokenizer's ``decode`` of all ids. The text of a stop token or EOS that ends
    /// the stream is neither scanned nor emitted, but a stop string that is the whole text of this token still fires.
    /// (The text of the token that reaches ``max_tokens`` is emitted.) If a token's whole text is a marker of the open
    /// region, no stop fires inside the token.
    ///
    /// >>> scanner = TokenScanner(tokenizer, ["END"], eos_token_ids=2)
    /// >>> for token_id in generate(prompt):
    /// ...     print(scanner.feed(token_id), end="")
    /// ...     if scanner.finish:
    /// ...         break
    TokenScanner emits Text as PyString, with stops: StopSet;
    signature (tokenizer_or_vocabulary, /, stop = None, *, start_protected = false)
        "(tokenizer_or_vocabulary, /, stop=(), *, stop_token_ids=(), eos_token_ids=(), min_tokens=0, max_tokens=None, \
        include_stop=False, start_protected=False, region=None, skip_special_tokens=True, prompt_token_ids=(), \
        unknown_ids='refuse', eos_ends_early=False)";
    arguments (stop: Option<&Bound<'_, PyAny>>, start_protected: bool);
    set StopSet::of(stop);
    start_protected start_protected;
}

#[pymethods]
impl TokenScanner {
    /// Returns the text that is safe to emit after ``token_id``. After the end of the stream the result is ``""``.
    ///
    /// Raises ``ValueError`` for an id that the tokenizer does not have, and ``TypeError`` for an id that is not an
    /// integer. After an error the stream is as before. Some ids are accepted even if the tokenizer does not have them:
    /// an EOS, a stop token that ends the stream, and every id after the end of the stream.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.feed(token_id)
    }
}

token_class! {
    /// Cuts one stream of token ids into segments: ``feed`` returns the segments that are safe to emit, and ``finish``
    /// says why the stream ended.
    ///
    /// The first argument is a tokenizer, or the ``Vocabulary`` of a tokenizer. ``segments``, ``region`` and
    /// ``include_stop`` are the same as in ``Segmenter``. All other arguments are the same as in ``TokenScanner``.
    ///
    /// >>> markers = {"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}}
    /// >>> segmenter = TokenSegmenter(tokenizer, markers, eos_token_ids=2)
    /// >>> for token_id in generate(prompt):
    /// ...     for region, text, part in segmenter.feed(token_id):
    /// ...         print(region, text)
    /// >>> reasoning_tokens = segmenter.tokens_in["reasoning"]
    TokenSegmenter emits Segmented as PyList, with segments: SegmentSet;
    signature (tokenizer_or_vocabulary, segments, /, *)
        "(tokenizer_or_vocabulary, segments, /, *, region=None, stop_token_ids=(), eos_token_ids=(), min_tokens=0, \
        max_tokens=None, include_stop=False, skip_special_tokens=True, prompt_token_ids=(), unknown_ids='refuse', \
        eos_ends_early=False)";
    arguments (segments: &Bound<'_, PyAny>);
    set SegmentSet::of(segments);
    start_protected false;
}

#[pymethods]
impl TokenSegmenter {
    /// Returns the list of segments that are safe to emit after ``token_id``. After the end of the stream it is empty.
    ///
    /// Raises the errors of ``TokenScanner.feed``. After an error the stream is as before.
    #[pyo3(signature = (token_id, /))]
    #[inline]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        self.stream.feed(token_id)
    }
}

/// A stream of tokens that threads of Python can share.
///
/// The fields that most tokens need come first, as in `Guarded`. The large `TokenStream` is not among them: it is
/// behind a pointer (`Box`), and the fast path does not read it. So a token on the fast path fetches only one or two
/// cache lines.
#[repr(C)]
pub(crate) struct Tokens<E: PyEmit> {
    max_tokens: usize,
    end_bits: u64,
    vocabulary: Py<Vocabulary>,
    guarded: Guarded<Box<TokenStream<E, Decoding>>>,
    options: Arc<TokenOptions>,
    include_stop: bool,
}

impl<E: PyEmit> Core for Box<TokenStream<E, Decoding>> {
    type Emit = E;
    type Unread = UnreadTokens;

    fn stream(&self) -> &Stream<E> {
        self.text()
    }

    fn stream_mut(&mut self) -> &mut Stream<E> {
        self.text_mut()
    }

    fn is_idle(&self) -> bool {
        TokenStream::is_idle(self)
    }

    fn catch_up(&mut self, unread: &UnreadTokens) {
        let begun = unread.ids();
        // Normally, `unread.seen()` is not less than `tokens_seen()`. It can be less after a panic of PyO3 in the
        // previous call, when there was no memory for an object of a few bytes. Then skip no tokens.
        self.skip_tokens((unread.seen() - begun.len()).saturating_sub(self.tokens_seen()));
        for id in begun {
            let _ = self.try_feed(id); // no error: the vocabulary has this id
        }
        unread.forget();
    }

    fn publish(&self, unread: &UnreadTokens) {
        unread.set_seen(self.tokens_seen());
    }

    fn fork(&self) -> PyResult<Box<TokenStream<E, Decoding>>> {
        self.try_clone().map(Box::new)
    }

    fn restart(&mut self) -> PyResult<()> {
        self.try_reset()
    }

    fn state(&self) -> PyResult<Snapshot> {
        self.try_snapshot()
    }

    fn resume(&mut self, snapshot: &Snapshot) -> PyResult<()> {
        self.try_restore(snapshot)?.or_raise()
    }
}

impl<E: PyEmit> Tokens<E> {
    fn new(
        tokenizer: &Bound<'_, PyAny>,
        set: Py<E::Class>,
        options: &Options,
        token_options: TokenOptions,
        prompt_token_ids: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tokens<E>> {
        let py = tokenizer.py();
        let stream = Stream::with_options(E::core(set.get()), options).or_raise()?;
        let vocabulary = Vocabulary::of(tokenizer)?;
        let prompt = prompt_token_ids.map_or(Ok(Vec::new()), |ids| token_list(ids, "prompt_token_ids"))?;
        let decoding = Decoding::new(vocabulary.bind(py), &token_options, &prompt)?;
        decoding.check(py, &stream)?;
        let stream = TokenStream::with_decoder(decoding, stream, token_options).or_raise()?;
        Ok(Tokens::of(vocabulary, set, Box::new(stream)))
    }

    fn of(vocabulary: Py<Vocabulary>, set: Py<E::Class>, stream: Box<TokenStream<E, Decoding>>) -> Tokens<E> {
        let options = stream.options().clone();
        Tokens {
            max_tokens: options.max_tokens.unwrap_or(usize::MAX),
            end_bits: options.end_bits(),
            vocabulary,
            options,
            include_stop: stream.text().options().include_stop,
            guarded: Guarded::new(set, stream),
        }
    }

    fn guarded(&self) -> &Guarded<Box<TokenStream<E, Decoding>>> {
        &self.guarded
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Tokens<E>> {
        let set = self.guarded.set.clone_ref(py);
        Ok(Tokens::of(self.vocabulary.clone_ref(py), set, self.guarded.fork()?))
    }

    #[inline(always)]
    fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let Some((id, Ready { shape, text })) = self.ready(token_id) else {
            return self.feed_locked(token_id);
        };
        let (unlocked, text) = (&self.guarded.unlocked, text.bind(token_id.py()));
        match unlocked.pass(*shape) {
            Some(node) => E::whole(self.guarded.set.get(), node, unlocked.part(), text),
            None => self.walk(id, text).unwrap_or_else(|| self.feed_locked(token_id)),
        }
    }

    /// Fast path: returns the id, and its text as a Python string that `Vocabulary::ready` has. Returns `None` if the
    /// token can end the stream, or if `Vocabulary::ready` has no text for it.
    ///
    /// Also returns `None` for an object that is not exactly an `int`. Reading this object may run Python code. So only
    /// `feed_locked` reads it, once and with the lock held.
    #[inline(always)]
    fn ready(&self, token_id: &Bound<'_, PyAny>) -> Option<(u32, &Ready)> {
        let id: u32 = token_id.cast_exact::<PyInt>().ok()?.extract().ok()?;
        let last = self.guarded.unlocked.unread.seen() + 1 >= self.max_tokens;
        if last || self.end_bits & end_bit(id) != 0 && self.options.is_end(id) {
            return None;
        }
        Some((id, self.vocabulary.get().ready.get(id as usize)?.as_ref()?))
    }

    /// Fast path: reads a token in which a stop or marker may begin or go on, and returns the safe output. If
    /// `Unlocked::walk` cannot read the token, returns `None` and changes nothing.
    #[inline(never)]
    fn walk<'py>(&self, id: u32, ready: &Bound<'py, PyString>) -> Option<PyResult<Bound<'py, E::Out>>> {
        let (unlocked, set, py) = (&self.guarded.unlocked, self.guarded.set.get(), ready.py());
        let vocabulary = &self.vocabulary.get().core;
        let (text, node) = (vocabulary.text(id), unlocked.idle_node()?);
        let safe = if self.guarded.needs_text {
            self.guarded.feed_plain(text)?;
            unlocked.unread.add();
            text.into()
        } else {
            unlocked.walk(E::core(set), node, self.include_stop, vocabulary, id)?
        };
        let part = unlocked.part(); // read now: making a Python object may run code that feeds the stream
        Some(match safe.is_empty() {
            true => E::emit(py, set, Default::default(), None),
            false => same_or_new(py, &safe, Some((ready, text))).and_then(|safe| E::whole(set, node, part, &safe)),
        })
    }

    #[cold]
    fn feed_locked<'py>(&self, token: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        self.guarded.change(|stream| {
            let id = token_id(token, "token_id")?;
            let safe = match (stream.finish(), id) {
                (Some(_), _) => Default::default(),
                (None, None) => return Err(unknown(token)),
                (None, Some(id)) => {
                    self.ask_memory(stream, &[id])?;
                    stream.try_feed(id)?
                }
            };
            self.emit(token.py(), safe)
        })?
    }

    fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let tokens = token_list(token_ids, "token_ids")?;
        let py = token_ids.py();
        room(size_of::<Option<u32>>() * 2 * tokens.len())?;
        let ids: Vec<Option<u32>> = tokens.iter().map(|token| token_id(token, "token_ids")).collect::<PyResult<_>>()?;
        // In `ids`, `None` stands for an id that is out of range, so no vocabulary has it. `known` has the ids before
        // the first `None`.
        let known: Vec<u32> = ids.iter().map_while(|id| *id).collect();
        let Vocabulary { core, native, .. } = self.vocabulary.get();
        self.guarded.change(|stream| {
            self.ask_memory(stream, &known)?;
            if known.len() == ids.len() && *native && known.iter().all(|&id| core.contains(id)) {
                return self.emit(py, stream.try_feed_many(&known)?);
            }
            // An unknown id is an error, unless it comes after the end of the stream. So a copy of the stream first
            // reads the ids before the unknown id, to see whether they end the stream.
            let mut copy = stream.try_clone()?;
            let safe = self.emit(py, copy.try_feed_many(&known)?)?;
            if let (Some(token), None) = (tokens.get(known.len()), copy.finish()) {
                return Err(unknown(token));
            }
            **stream = copy;
            Ok(safe)
        })?
    }

    /// Raises `MemoryError` if there is no memory for reading `ids`.
    fn ask_memory(&self, stream: &TokenStream<E, Decoding>, ids: &[u32]) -> PyResult<()> {
        /// The memory in bytes that a stream may need for a token besides its text: queues store where each token
        /// starts, and its region.
        const COUNTED: usize = 64;

        let core = &self.vocabulary.get().core;
        room(
            stream.text().memory_for(ids.iter().map(|&id| core.text(id)))
                + COUNTED * ids.len()
                + 2 * stream.text().size(),
        )
    }

    fn flush<'py>(&self, py: Python<'py>, reason: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, E::Out>> {
        let reason = reason.map_or(Ok(EndReason::Eos), |reason| reason_of(&reason))?;
        self.guarded.change(|stream| {
            self.ask_memory(stream, &[])?;
            self.emit(py, stream.try_flush(reason)?)
        })?
    }

    fn emit<'py>(&self, py: Python<'py>, safe: E::Tokens<'_>) -> PyResult<Bound<'py, E::Out>> {
        E::emit(py, self.guarded.set.get(), safe, None)
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.guarded.is_idle() {
            true => Ok(None),
            false => self.guarded.look(|stream| finished(py, stream))?,
        }
    }

    fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        self.guarded.look(|stream| stream.tokens_in().try_for_each(|(name, count)| counts.set_item(name, count)))??;
        Ok(counts)
    }

    /// Returns the arguments that make an equal stream, for pickle.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let ints = |ids: &[u32]| objects::list(py, ids.iter().map(|id| Ok(id.into_pyobject(py)?)));
        let (token_options, options) = (&*self.options, PyDict::new(py));
        options.set_item("stop_token_ids", ints(&token_options.stop_token_ids)?)?;
        options.set_item("eos_token_ids", ints(&token_options.eos_token_ids)?)?;
        if token_options.unknown_ids == UnknownIds::Count {
            options.set_item("unknown_ids", "count")?;
        }
        options.set_item("eos_ends_early", token_options.eos_ends_early)?;
        options.set_item("min_tokens", token_options.min_tokens)?;
        options.set_item("max_tokens", token_options.max_tokens)?;
        options.set_item("skip_special_tokens", token_options.skip_special_tokens)?;
        self.guarded.look(|stream| add_options(&options, &stream.text().options()))??;
        Ok(((&self.vocabulary, &self.guarded.set).into_pyobject(py)?, options))
    }
}

/// Wraps an argument that the caller gave, even `None`. PyO3 alone would treat `None` as if the argument was left out.
fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}

/// Decodes the ids of a stream: `Native` in Rust, `Window` by calling the tokenizer.
pub(crate) enum Decoding {
    Native(Native),
    Window(Window),
}

/// Decodes by calling the tokenizer. Has two objects of the class `stopscan.tokens._window.Window`: `now` decodes the
/// stream, and `start` is a copy of `now` from before the first token of the stream.
pub(crate) struct Window {
    now: Py<PyAny>,
    start: Py<PyAny>,
}

/// Pieces of text, each with the position of the last token that has a part in it.
type Pieces = Vec<(String, usize)>;

impl Window {
    fn call<T>(&self, name: &str, arguments: impl for<'py> PyCallArgs<'py>) -> PyResult<T>
    where
        T: for<'py> FromPyObjectOwned<'py>,
    {
        Python::attach(|py| self.now.bind(py).call_method1(name, arguments)?.extract().map_err(Into::into))
    }
}

impl Decoding {
    fn new(
        vocabulary: &Bound<'_, Vocabulary>,
        options: &TokenOptions,
        prompt: &[Bound<'_, PyAny>],
    ) -> PyResult<Decoding> {
        let py = vocabulary.py();
        let (skips_special, counts) = (options.skip_special_tokens, options.unknown_ids == UnknownIds::Count);
        let Vocabulary { core, native, .. } = vocabulary.get();
        if !native {
            let prompt = objects::list(py, prompt.iter().cloned().map(Ok))?;
            let start = vocabulary.call_method1("_window", (skips_special, prompt, counts))?.unbind();
            return Ok(Decoding::Window(Window { now: fork(&start)?, start }));
        }
        let mut native = Native::new(core, skips_special);
        for token in prompt {
            let id = token_id(token, "prompt_token_ids")?;
            if id.is_none_or(|id| native.decode_prompt(id).is_err()) && !counts {
                return Err(value_error(format!("prompt_token_ids: {}", unknown(token).value(py))));
            }
        }
        Ok(Decoding::Native(native))
    }

    /// Raises an error for a marker that contains both a skipped special token and other text, because this marker
    /// would never be found.
    fn check<E: Emit>(&self, py: Python<'_>, stream: &Stream<E>) -> PyResult<()> {
        let window = match self {
            Decoding::Native(native) => return native.check(stream).or_raise(),
            Decoding::Window(window) => window,
        };
        let markers = stream.set().states().flat_map(|(_, markers)| markers.map(|(marker, _)| new_string(py, marker)));
        match window.call::<Option<String>>("spelled", (objects::list(py, markers)?.unbind(),))? {
            Some(marker) => Err(value_error(TokenOptionsError::SpelledMarker(marker))),
            None => Ok(()),
        }
    }
}

fn fork(window: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    Python::attach(|py| window.call_method0(py, "copy"))
}

impl Decode for Decoding {
    type Error = PyErr;

    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => native.step(id, number, sink).or_raise(),
            Decoding::Window(window) => {
                let (pieces, special): (Pieces, Option<String>) = window.call("step", (id, number))?;
                pieces.iter().for_each(|(text, token)| sink(text, *token));
                Ok(special.map(Cow::Owned))
            }
        }
    }

    fn tail(&self, sink: &mut impl Sink) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.tail(sink).or_raise(),
            Decoding::Window(window) => {
                let pieces: Pieces = window.call("tail", ())?;
                pieces.iter().for_each(|(text, token)| sink(text, *token));
                Ok(())
            }
        }
    }

    fn contains(&self, id: u32) -> PyResult<bool> {
        match self {
            Decoding::Native(native) => native.contains(id).or_raise(),
            Decoding::Window(window) => window.call("contains", (id,)),
        }
    }

    fn is_whole(&self, id: u32) -> bool {
        match self {
            Decoding::Native(native) => native.is_whole(id),
            // If the tokenizer itself decodes, stopscan cannot tell whether a token completes a character that the
            // previous token began. So it assumes that no token does. This matters only if the two tokens together
            // spell a marker.
            Decoding::Window(_) => true,
        }
    }

    fn token_text(&self, id: u32) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => native.token_text(id).or_raise(),
            Decoding::Window(window) => Ok(window.call::<Option<String>>("token_text", (id,))?.map(Cow::Owned)),
        }
    }

    fn reset(&mut self) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.reset().or_raise(),
            Decoding::Window(window) => {
                window.now = fork(&window.start)?;
                Ok(())
            }
        }
    }

    fn fork(&self) -> PyResult<Decoding> {
        match self {
            Decoding::Native(native) => Ok(Decoding::Native(native.clone())),
            Decoding::Window(Window { now, start }) => {
                let start = Python::attach(|py| start.clone_ref(py));
                Ok(Decoding::Window(Window { now: fork(now)?, start }))
            }
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self, Decoding::Native(native) if native.is_idle())
    }

    fn write(&self, writer: &mut Writer) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.write(writer).or_raise(),
            Decoding::Window(Window { now, start }) => Python::attach(|py| {
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
            Decoding::Window(Window { start, .. }) => {
                let (Some(first), Some(last)) = (reader.bytes(), reader.bytes()) else {
                    return Ok(None);
                };
                let resumed =
                    |state| Python::attach(|py| start.call_method1(py, "resumed", (PyBytes::new(py, state),)));
                Ok(Some(Decoding::Window(Window { start: resumed(first)?, now: resumed(last)? })))
            }
        }
    }
}
