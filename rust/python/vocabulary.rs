//! The vocabulary of a tokenizer, with a ready Python string for each token.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PySet, PyString, PyType};
use stopscan::host::{Shape, TokenKind, read_tokenizer_json};
use stopscan::{Strays, VocabularyBuilder};

use crate::errors::{OrRaise, value_error};
use crate::objects::{self, collect, new_string, room};

/// Reading a vocabulary needs at most this much memory: `JSON` bytes for each byte of a `tokenizer.json`, or `TOKEN`
/// bytes for each item of a list of tokens. Before the vocabulary is read, `room` checks that there is enough.
const JSON: usize = 4;
const TOKEN: usize = 64;

/// The bytes of each token id of a tokenizer.
///
/// ``stopscan.tokens.Vocabulary`` reads a tokenizer and calls this class. ``tokens`` is the content of a
/// ``tokenizer.json`` as bytes, or a list with one item for each id: a string or bytes for the text of a token, an int
/// for a byte token (the value of its byte), ``None`` for an id without a token. If ``tokens`` is ``None``, the
/// tokenizer itself decodes.
#[pyclass(module = "stopscan._stopscan", frozen, subclass)]
pub(crate) struct Vocabulary {
    /// The vocabulary of the Rust library. It is empty if the tokenizer itself decodes (`native` is false).
    pub(crate) core: stopscan::Vocabulary,
    /// The text of each id as a Python string. `None` for an id without a token, for a special token, and for a token
    /// with a part of a character.
    pub(crate) ready: Box<[Option<Ready>]>,
    /// Whether stopscan decodes streams itself, from the bytes of each token. If not, the tokenizer decodes them.
    #[pyo3(get)]
    pub(crate) native: bool,
}

#[pymethods]
impl Vocabulary {
    #[new]
    #[pyo3(signature = (
        tokens, *, special = None, firsts = None, strays = "parts", strip_first_space = false,
        special_ends_character = false
    ))]
    fn new(
        py: Python<'_>,
        tokens: Option<&Bound<'_, PyAny>>,
        special: Option<&Bound<'_, PySet>>,
        firsts: Option<&Bound<'_, PyDict>>,
        strays: &str,
        strip_first_space: bool,
        special_ends_character: bool,
    ) -> PyResult<Vocabulary> {
        if let Some(json) = tokens.and_then(|tokens| tokens.cast::<PyBytes>().ok()) {
            let json = json.as_bytes();
            room(JSON * json.len())?;
            return Vocabulary::compiled(py, py.detach(|| read_tokenizer_json(json, true)).or_raise()?);
        }
        let Some(&(_, strays)) = STRAYS.iter().find(|known| known.0 == strays) else {
            return Err(value_error(format!("strays must be one of 'parts', 'runs', 'bytes', not {strays:?}")));
        };
        let mut builder = stopscan::Vocabulary::builder()
            .strays(strays)
            .strip_first_space(strip_first_space)
            .special_ends_character(special_ends_character);
        let Some(tokens) = tokens else {
            return Ok(Vocabulary { native: false, ..Vocabulary::compiled(py, builder.build().or_raise()?)? });
        };
        room(TOKEN * tokens.len()?)?;
        for (id, token) in tokens.cast::<PyList>()?.iter().enumerate() {
            let id = id.into_pyobject(py)?;
            builder = add(builder, &token, special.map_or(Ok(false), |special| special.contains(&id))?)?;
            if let Some(first) = firsts.map_or(Ok(None), |firsts| firsts.get_item(&id))? {
                builder = builder.at_start(first.cast::<PyString>()?.to_str()?);
            }
        }
        Vocabulary::compiled(py, builder.build().or_raise()?)
    }

    /// For pickle: returns the argument and the keyword arguments of a call that makes an equal vocabulary.
    fn _parts<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyDict>)> {
        let core = &self.core;
        let (special, firsts) = (PySet::empty(py)?, PyDict::new(py));
        let tokens = PyList::empty(py);
        for id in 0..core.len() as u32 {
            let kind = core.kind(id);
            if kind.is_some_and(|kind| kind.has(TokenKind::SPECIAL)) {
                special.add(id)?;
            }
            tokens.append(match (kind, core.bytes(id)) {
                (Some(kind), Some(bytes)) if kind.has(TokenKind::BYTE) => bytes[0].into_pyobject(py)?.into_any(),
                (Some(kind), _) if kind.has(TokenKind::WHOLE) => match &self.ready[id as usize] {
                    Some(ready) => ready.text.bind(py).clone().into_any(),
                    None => new_string(py, core.text(id))?.into_any(),
                },
                (_, Some(bytes)) => objects::bytes(py, bytes)?.into_any(),
                _ => py.None().into_bound(py),
            })?;
        }
        let strays = STRAYS.iter().find(|known| known.1 == core.strays()).map_or("", |known| known.0);
        for (id, text) in core.firsts() {
            firsts.set_item(id, new_string(py, text)?)?;
        }
        let options = PyDict::new(py);
        options.set_item("special", special)?;
        options.set_item("firsts", firsts)?;
        options.set_item("strays", strays)?;
        options.set_item("strip_first_space", core.strips_first_space())?;
        options.set_item("special_ends_character", core.special_ends_character())?;
        Ok((tokens, options))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }
}

impl Vocabulary {
    fn compiled(py: Python<'_>, core: stopscan::Vocabulary) -> PyResult<Vocabulary> {
        let ready = collect((0..core.len() as u32).map(|id| {
            let (plain, text) = (core.kind(id).is_some_and(TokenKind::is_plain), core.text(id));
            let ready = || Ok::<_, PyErr>(Ready { shape: Shape::of(text), text: new_string(py, text)?.unbind() });
            plain.then(ready).transpose()
        }))?;
        Ok(Vocabulary { ready: ready.into(), core, native: true })
    }

    /// Returns `tokenizer` itself if it is a vocabulary. Otherwise makes one with `stopscan.tokens.Vocabulary`.
    pub(crate) fn of(tokenizer: &Bound<'_, PyAny>) -> PyResult<Py<Vocabulary>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        if let Ok(vocabulary) = tokenizer.cast::<Vocabulary>() {
            return Ok(vocabulary.clone().unbind());
        }
        let vocabulary = CLASS.import(tokenizer.py(), "stopscan.tokens", "Vocabulary")?.call1((tokenizer,))?;
        Ok(vocabulary.cast_into::<Vocabulary>()?.unbind())
    }
}

/// A token's text as a Python string, and its shape (kinds of bytes). The shape and the pointer to the string share a
/// cache line.
pub(crate) struct Ready {
    pub(crate) shape: Shape,
    pub(crate) text: Py<PyString>,
}

const STRAYS: [(&str, Strays); 3] = [("parts", Strays::Parts), ("runs", Strays::Runs), ("bytes", Strays::Bytes)];

fn add(builder: VocabularyBuilder, token: &Bound<'_, PyAny>, special: bool) -> PyResult<VocabularyBuilder> {
    if token.is_none() {
        return Ok(builder.gap());
    }
    if token.is_instance_of::<PyInt>() {
        return Ok(builder.byte(token.extract()?));
    }
    let bytes = match token.cast::<PyString>() {
        Ok(text) => text.to_str()?.as_bytes(),
        Err(_) => token.cast::<PyBytes>()?.as_bytes(),
    };
    Ok(if special { builder.special(bytes) } else { builder.text(bytes) })
}
