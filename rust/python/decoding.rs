//! Who decodes the tokens of a stream: the core, or for other vocabularies a window over the tokenizer's own `decode`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::token_arguments::{token_id, unknown};
use super::vocabulary::Vocabulary;
use crate::tokens::{Finish, Limits, Native, Reader, TokenStream};

pub(super) enum Decoding<R: Reader> {
    Native(Native<R>),
    Window(Window<R>),
}

/// A stream that a Python object decodes: `stopscan.tokens._window.Window`.
pub(super) struct Window<R: Reader> {
    pub(super) decoder: Py<PyAny>,
    /// The decoder after the prompt.
    pub(super) start: Py<PyAny>,
    stream: TokenStream<R>,
}

/// Pieces of text, each with the number of the last token that has a part in it.
type Pieces = Vec<(String, usize)>;

impl<R: Reader> Window<R> {
    fn feed(&mut self, py: Python<'_>, id: u32) -> PyResult<()> {
        self.stream.begin();
        if self.stream.is_over() {
            return Ok(());
        }
        if self.stream.ends_at(id) {
            return self.read_end(py, id);
        }
        let armed = self.stream.is_armed();
        let number = self.stream.number();
        let step = self.decoder.bind(py).call_method1("step", (id, number))?;
        let (pieces, marker): (Pieces, Option<String>) = step.extract()?;
        read(&mut self.stream, &pieces, armed);
        if let Some(marker) = marker {
            self.stream.read_marker(&marker);
        }
        if self.stream.count() {
            self.end(py, Finish::Length, armed)?;
        }
        Ok(())
    }

    /// Reads a token that ends the stream. A stop that its text completes ends it first.
    fn read_end(&mut self, py: Python<'_>, id: u32) -> PyResult<()> {
        let mut with_token = self.stream.clone();
        read(&mut with_token, &self.tail(py, Some(id))?, true);
        with_token.end(Finish::Closed);
        if with_token.finish == Some(Finish::StopSequence) {
            self.stream = with_token;
        }
        self.end(py, self.stream.end_of(id), true)?;
        self.stream.ledger.seen += 1;
        Ok(())
    }

    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        self.stream.begin();
        let armed = self.stream.was_armed();
        self.end(py, Finish::Closed, armed)
    }

    fn end(&mut self, py: Python<'_>, finish: Finish, armed: bool) -> PyResult<()> {
        let tail = if self.stream.is_over() { Vec::new() } else { self.tail(py, None)? };
        read(&mut self.stream, &tail, armed);
        self.stream.end(finish);
        Ok(())
    }

    fn tail(&self, py: Python<'_>, id: Option<u32>) -> PyResult<Pieces> {
        self.decoder.bind(py).call_method1("tail", (id, self.stream.number()))?.extract()
    }
}

fn read<R: Reader>(stream: &mut TokenStream<R>, pieces: &Pieces, armed: bool) {
    for (text, token) in pieces {
        stream.read(text, *token, armed);
    }
}

fn copy(py: Python<'_>, decoder: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    decoder.call_method0(py, "copy")
}

impl<R: Reader> Decoding<R> {
    pub(super) fn new(
        vocabulary: &Bound<'_, Vocabulary>,
        reader: R,
        limits: Limits,
        skip_special: bool,
        prompt: &[Bound<'_, PyAny>],
    ) -> PyResult<Decoding<R>> {
        let py = vocabulary.py();
        let stream = TokenStream::new(reader, limits);
        let Vocabulary { core, native, .. } = vocabulary.get();
        if *native {
            let mut native = Native::from_stream(core, stream, skip_special);
            for token in prompt {
                let id = token_id(token, "prompt_token_ids")?;
                let read = id.is_some_and(|id| native.read_prompt(id).is_ok());
                if !read {
                    return Err(PyValueError::new_err(format!("prompt_token_ids: {}", unknown(token).value(py))));
                }
            }
            return Ok(Decoding::Native(native));
        }
        let prompt = PyList::new(py, prompt)?;
        let start = vocabulary.call_method1("_window", (skip_special, prompt))?.unbind();
        Ok(Decoding::Window(Window { decoder: copy(py, &start)?, start, stream }))
    }

    pub(super) fn stream(&self) -> &TokenStream<R> {
        match self {
            Decoding::Native(native) => &native.stream,
            Decoding::Window(window) => &window.stream,
        }
    }

    pub(super) fn stream_mut(&mut self) -> &mut TokenStream<R> {
        match self {
            Decoding::Native(native) => &mut native.stream,
            Decoding::Window(window) => &mut window.stream,
        }
    }

    /// Whether a token of whole characters that begins nothing is just its text.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Decoding::Native(native) if native.is_idle())
    }

    /// Reads a token; what is safe then is in the stream.
    pub(super) fn feed(&mut self, py: Python<'_>, id: u32) -> PyResult<()> {
        match self {
            Decoding::Native(native) => Ok(native.feed(id)?),
            Decoding::Window(window) => window.feed(py, id),
        }
    }

    pub(super) fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.close(),
            Decoding::Window(window) => window.close(py)?,
        }
        Ok(())
    }

    pub(super) fn reset(&mut self, py: Python<'_>) -> PyResult<()> {
        match self {
            Decoding::Native(native) => native.reset(),
            Decoding::Window(window) => {
                window.decoder = copy(py, &window.start)?;
                window.stream.reset();
            }
        }
        Ok(())
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Decoding<R>> {
        Ok(match self {
            Decoding::Native(native) => Decoding::Native(native.clone()),
            Decoding::Window(Window { decoder, start, stream }) => Decoding::Window(Window {
                decoder: copy(py, decoder)?,
                start: start.clone_ref(py),
                stream: stream.clone(),
            }),
        })
    }
}
