//! Who decodes the tokens of a stream: the core, or for other vocabularies a window over the tokenizer's own `decode`.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::value_error;
use super::objects::{self, new_string};
use super::token_arguments::{token_id, unknown};
use super::vocabulary::Vocabulary;
use crate::TokenOptionsError;
use crate::snapshot::{Reader, Writer};
use crate::stream::{Emit, Stream};
use crate::tokens::{Decode, Native, Sink};

pub(super) enum Decoding {
    Native(Native),
    /// The Python object `stopscan.tokens._window.Window`.
    Window(Window),
}

pub(super) struct Window {
    now: Py<PyAny>,
    /// The window after the prompt.
    start: Py<PyAny>,
    skips_special: bool,
}

/// Pieces of text, each with the number of the last token that has a part in it, and a special token that is skipped.
type Read = (Vec<(String, usize)>, Option<String>);

impl Decoding {
    pub(super) fn new(
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
    pub(super) fn check<E: Emit>(&self, py: Python<'_>, stream: &Stream<E>) -> PyResult<()> {
        let marker = match self {
            Decoding::Native(native) => return native.check(stream).map_err(refused),
            Decoding::Window(window) => {
                let markers = objects::list(py, stream.graph().all_markers().map(|marker| new_string(py, marker)))?;
                window.now.bind(py).call_method1("spelled", (markers,))?.extract::<Option<String>>()?
            }
        };
        marker.map_or(Ok(()), |marker| Err(refused(TokenOptionsError::SpelledMarker(marker))))
    }
}

fn refused(error: TokenOptionsError) -> PyErr {
    value_error(error)
}

fn fork(py: Python<'_>, window: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    window.call_method0(py, "copy")
}

impl Window {
    fn read(
        &self,
        name: &str,
        id: Option<u32>,
        number: usize,
        sink: &mut impl Sink,
    ) -> PyResult<Option<Cow<'static, str>>> {
        let (pieces, special): Read =
            Python::attach(|py| self.now.bind(py).call_method1(name, (id, number))?.extract())?;
        pieces.iter().for_each(|(text, token)| sink(text, *token));
        Ok(special.map(Cow::Owned))
    }
}

impl Decode for Decoding {
    type Error = PyErr;

    fn step(&mut self, id: u32, number: usize, sink: &mut impl Sink) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => Ok(native.step(id, number, sink)?),
            Decoding::Window(window) => window.read("step", Some(id), number, sink),
        }
    }

    fn tail(&self, id: Option<u32>, number: usize, sink: &mut impl Sink) -> PyResult<Option<Cow<'_, str>>> {
        match self {
            Decoding::Native(native) => Ok(native.tail(id, number, sink)?),
            Decoding::Window(window) => window.read("tail", id, number, sink),
        }
    }

    fn reset(&mut self) -> PyResult<()> {
        match self {
            Decoding::Native(native) => Ok(native.reset()?),
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
            Decoding::Native(native) => Ok(native.write(writer)?),
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
            Decoding::Native(native) => Ok(native.resumed(reader)?.map(Decoding::Native)),
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
