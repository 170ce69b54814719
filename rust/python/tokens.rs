//! A stream of tokens as Python objects share it, with a way past its lock.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::arguments::SNAPSHOT;
use super::decoding::Decoding;
use super::deltas::set_start;
use super::finish::{finished, reason_of};
use super::guarded::{Core, Guarded};
use super::objects::{self, int, new_string, set_item, some_int};
use super::show::Show;
use super::stop_match::StopMatch;
use super::token_arguments::{items, token_id, unknown};
use super::unread_tokens::UnreadTokens;
use super::vocabulary::Vocabulary;
use crate::stream::Emit;
use crate::tokens::{Decode, Limits, Mark, Native, TokenStream};
use crate::{EndReason, Options, Snapshot, Stream};

/// What most tokens need comes first, as in `Guarded`, and the stream is elsewhere: so the objects of a server's streams
/// lie close together, and a token that passes the lock fetches one or two lines of memory.
#[repr(C)]
pub(super) struct Tokens<E: Show> {
    /// How many tokens were fed.
    pub(super) seen: AtomicUsize,
    pub(super) max_tokens: usize,
    /// A bit for each id that ends the stream, as its lowest six bits say.
    pub(super) end_bits: u64,
    pub(super) vocabulary: Py<Vocabulary>,
    pub(super) guarded: Guarded<Box<TokenStream<E, Decoding>>>,
    pub(super) set: Py<E::Class>,
    pub(super) limits: Arc<Limits>,
    pub(super) hides_stops: bool,
    pub(super) unread: UnreadTokens,
}

impl<E: Emit> Core for Box<TokenStream<E, Decoding>> {
    type Emit = E;

    fn stream(&self) -> &Stream<E> {
        &self.decoded.stream
    }

    fn stream_mut(&mut self) -> &mut Stream<E> {
        &mut self.decoded.stream
    }

    fn is_idle(&self) -> bool {
        TokenStream::is_idle(self)
    }
}

impl<E: Show> Tokens<E> {
    pub(super) fn new(
        tokenizer: &Bound<'_, PyAny>,
        set: Py<E::Class>,
        options: &Options,
        limits: Limits,
        skip_special: bool,
        prompt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tokens<E>> {
        let py = tokenizer.py();
        let stream = Stream::with_options(E::core(set.get()), options)?;
        let vocabulary = Vocabulary::of(tokenizer)?;
        let prompt = prompt.map_or(Ok(Vec::new()), |ids| items(ids, "prompt_token_ids"))?;
        let decoding = Decoding::new(vocabulary.bind(py), skip_special, &prompt)?;
        decoding.check(py, &stream)?;
        Ok(Tokens::of(vocabulary, set, TokenStream::with_decoder(decoding, stream, limits)))
    }

    fn of(vocabulary: Py<Vocabulary>, set: Py<E::Class>, stream: TokenStream<E, Decoding>) -> Tokens<E> {
        let limits = &stream.decoded.limits;
        Tokens {
            seen: AtomicUsize::new(stream.tokens_seen()),
            max_tokens: limits.max_tokens,
            end_bits: limits.ends.bits(),
            limits: limits.clone(),
            vocabulary,
            set,
            hides_stops: !stream.decoded.stream.include_stop,
            unread: UnreadTokens::default(),
            guarded: Guarded::new(Box::new(stream), None),
        }
    }

    #[cold]
    pub(super) fn read<'py>(&self, token: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        self.with(|stream| {
            if stream.decoded.is_over() {
                return E::nothing(token.py());
            }
            let id = token_id(token, "token_id")?.ok_or_else(|| unknown(token))?;
            let before = mark(stream, self.vocabulary.get().core.bytes(id).map_or(0, <[u8]>::len));
            stream.step(id)?;
            self.safe(token.py(), stream, before)
        })?
    }

    pub(super) fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let tokens = items(token_ids, "token_ids")?;
        let vocabulary = self.vocabulary.get();
        self.with(|stream| {
            objects::room(size_of::<u32>() * 2 * tokens.len() + 2 * stream.decoded.stream.size())?;
            let ids: Option<Vec<u32>> = tokens.iter().map(|token| token.extract().ok()).collect();
            match ids.filter(|ids| vocabulary.native && ids.iter().all(|&id| vocabulary.core.contains(id))) {
                Some(ids) => {
                    // What comes out, and what is kept of each token.
                    let bytes: usize =
                        ids.iter().map(|&id| 16 + vocabulary.core.bytes(id).map_or(0, <[u8]>::len)).sum();
                    objects::room(4 * bytes)?;
                    let before = mark(stream, bytes);
                    ids.into_iter().try_for_each(|id| stream.read(id))?;
                    self.safe(token_ids.py(), stream, before)
                }
                None => {
                    let mut trial = stream.fork()?;
                    trial.decoded.begin();
                    for token in &tokens {
                        if trial.decoded.is_over() {
                            break;
                        }
                        trial.read(token_id(token, "token_ids")?.ok_or_else(|| unknown(token))?)?;
                    }
                    let safe = E::safe(token_ids.py(), self.set.get(), trial.safe())?;
                    *stream = trial;
                    Ok(safe)
                }
            }
        })?
    }

    pub(super) fn close<'py>(
        &self,
        py: Python<'py>,
        reason: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, E::Out>> {
        let reason = reason.map_or(Ok(EndReason::Eos), |reason| reason_of(&reason))?;
        self.with(|stream| {
            let before = mark(stream, 0);
            stream.end(reason)?;
            self.safe(py, stream, before)
        })?
    }

    pub(super) fn count<'py>(
        &self,
        py: Python<'py>,
        reason: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, E::Out>> {
        let reason = reason.as_ref().map(reason_of).transpose()?;
        self.with(|stream| {
            let before = mark(stream, 0);
            stream.count(reason)?;
            self.safe(py, stream, before)
        })?
    }

    /// What is safe behind the last step; if there is no memory for that, the stream is as it was `before`.
    fn safe<'py>(
        &self,
        py: Python<'py>,
        stream: &mut TokenStream<E, Decoding>,
        before: Option<(Mark, Native)>,
    ) -> PyResult<Bound<'py, E::Out>> {
        let safe = E::safe(py, self.set.get(), stream.safe());
        if safe.is_err()
            && let Some((decoded, native)) = before
        {
            stream.decoded.undo(decoded);
            stream.decoder = Decoding::Native(native);
        }
        safe
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Tokens<E>> {
        let stream = self.with(|stream| {
            objects::room(2 * stream.decoded.stream.size())?;
            stream.fork()
        })??;
        Ok(Tokens::of(self.vocabulary.clone_ref(py), self.set.clone_ref(py), stream))
    }

    pub(super) fn reset(&self) -> PyResult<()> {
        self.with(|stream| stream.restart())?
    }

    pub(super) fn snapshot(&self, _: Python<'_>) -> PyResult<Snapshot> {
        self.with(|stream| {
            objects::room(SNAPSHOT * stream.decoded.stream.size())?;
            stream.to_snapshot()
        })?
    }

    pub(super) fn restore(&self, _: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        self.with(|stream| Ok(stream.take_snapshot(snapshot)??))?
    }

    pub(super) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let node = self.with(|stream| stream.decoded.stream.cursor.node)?;
        Ok(E::names(self.set.get())[node as usize].clone_ref(py))
    }

    pub(super) fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        match self.guarded.is_idle() {
            true => Ok(None),
            false => self.with(|stream| finished(py, stream))?,
        }
    }

    pub(super) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.with(|stream| stream.stop_match().map(|found| StopMatch::from_core(py, found)).transpose())?
    }

    pub(super) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|stream| new_string(py, stream.held()))?
    }

    pub(super) fn seen(&self) -> usize {
        self.seen.load(Relaxed)
    }

    pub(super) fn kept(&self) -> PyResult<usize> {
        self.with(|stream| stream.tokens_kept())
    }

    /// What makes such a stream again.
    pub(super) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let (stop_token_ids, eos_token_ids) = self.limits.ends.ids();
        let ints = |ids: &[u32]| objects::list(py, ids.iter().map(|&id| int(py, id as usize)));
        let options = objects::dict(py)?;
        set_item(&options, "stop_token_ids", ints(stop_token_ids)?)?;
        set_item(&options, "eos_token_ids", ints(eos_token_ids)?)?;
        set_item(&options, "min_tokens", int(py, self.limits.min_tokens)?)?;
        set_item(&options, "max_tokens", some_int(py, Some(self.limits.max_tokens).filter(|&max| max != usize::MAX))?)?;
        self.with(|stream| {
            set_item(&options, "skip_special_tokens", stream.decoder.skips_special())?;
            set_item(&options, "include_stop", stream.decoded.stream.include_stop)?;
            set_start(&stream.decoded.stream, &options)
        })??;
        let arguments = [self.vocabulary.bind(py).as_any().clone(), self.set.bind(py).as_any().clone()];
        Ok((objects::tuple(py, arguments.map(Ok))?, options))
    }

    /// What `action` does with the state, unless another thread is at it.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut TokenStream<E, Decoding>) -> T) -> PyResult<T> {
        self.guarded.with(|state| {
            let stream = &mut state.core;
            let begun = self.unread.ids();
            stream.decoded.pass(self.seen.load(Relaxed) - begun.len() - stream.tokens_seen());
            for id in begun {
                let _ = stream.read(id); // the vocabulary has it
            }
            self.unread.forget();
            let result = action(stream);
            self.seen.store(stream.tokens_seen(), Relaxed);
            result
        })
    }
}

impl Tokens<crate::Segmented> {
    pub(super) fn tokens_in<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = objects::dict(py)?;
        self.with(|stream| {
            let tally = stream.decoded.ledger.tally.iter().flat_map(|tally| &tally.counts);
            self.set
                .get()
                .regions
                .iter()
                .zip(tally)
                .try_for_each(|(name, &count)| counts.set_item(name, int(counts.py(), count)?))
        })??;
        Ok(counts)
    }
}

/// How a stream stands that decodes itself, at the beginning of a step whose tokens have so many bytes. A tokenizer's own
/// `decode` takes no step back.
fn mark<E: Emit>(stream: &mut TokenStream<E, Decoding>, bytes: usize) -> Option<(Mark, Native)> {
    /// The decoder has some of a character, and writes no more than this beside the tokens' bytes.
    const BEGUN: usize = 16;

    stream.decoded.begin();
    match &stream.decoder {
        Decoding::Native(native) => Some((stream.decoded.mark(bytes + BEGUN)?, native.clone())),
        Decoding::Window(_) => None,
    }
}

/// An argument that may be left out, but not `None`.
pub(super) fn given<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(argument.clone()))
}
