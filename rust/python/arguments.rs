//! Reads the arguments of Python calls. Errors name the argument, the type that was expected and the type that came.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFrozenSet, PyIterator, PyList, PyMapping, PySet, PyString, PyTuple};
use stopscan::{Options, Snapshot, TokenOptions, UnknownIds};

use crate::errors::{OrRaise, type_error, value_error};
use crate::objects::{collect, list, room};

/// The strings of one argument, such as stops or markers. Error messages name a string by `name` and its index, such as
/// `stop 3`.
pub(crate) struct Strings<'py> {
    name: String,
    pub(crate) items: Vec<Bound<'py, PyString>>,
}

impl<'py> Strings<'py> {
    /// Reads the strings of `object`: a string, an iterable of strings, or `None`.
    pub(crate) fn new(object: Option<&Bound<'py, PyAny>>, name: &str) -> PyResult<Strings<'py>> {
        let mut strings = Strings { name: name.into(), items: Vec::new() };
        let Some(object) = object.filter(|object| !object.is_none()) else {
            return Ok(strings);
        };
        if let Ok(string) = object.cast::<PyString>() {
            strings.items.push(string.clone());
            return Ok(strings);
        }
        // Refuses a mapping: it is iterable, but its values would be lost.
        let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        if object.is_instance_of::<PyBytes>() || !is_list && object.cast::<PyMapping>().is_ok() {
            return Err(no_string(object, name));
        }
        let items = iterated(object, || no_string(object, name))?.enumerate();
        strings.items = collect(items.map(|(index, item)| match item?.cast_into::<PyString>() {
            Ok(string) => Ok(string),
            Err(error) => Err(no_string(&error.into_inner(), &format!("{name} {index}"))),
        }))?;
        // Sorts the strings of a Python `set`. Their order differs between processes, but a snapshot fits only stops in
        // the same order.
        if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
            let sorted = list(object.py(), strings.items.into_iter().map(Ok))?;
            sorted.sort()?;
            strings.items = collect(sorted.iter().map(|item| Ok(item.cast_into::<PyString>()?)))?;
        }
        Ok(strings)
    }

    pub(crate) fn texts(&self) -> PyResult<Vec<&str>> {
        let text = |(index, item)| text(item, || format!("{} {index}", self.name));
        collect(self.items.iter().enumerate().map(text))
    }
}

/// Reads the argument `protect`: an iterable of pairs, each of an opening and a closing marker.
pub(crate) fn pairs<'py>(object: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Strings<'py>>> {
    let mut pairs = Vec::new();
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(pairs);
    };
    for (index, pair) in iterated(object, || unexpected(object, "protect", "pairs of markers", ""))?.enumerate() {
        let pair = pair?;
        let name = format!("protect {index}");
        if pair.is_instance_of::<PyString>() || pair.is_instance_of::<PyBytes>() {
            return Err(type_error(format!("{name}: expected a pair of markers, got one string")));
        }
        let both = Strings::new(Some(&pair), &name)?;
        if both.items.len() != 2 {
            return Err(value_error(format!("{name}: expected a pair of markers, got {} strings", both.items.len())));
        }
        pairs.push(both);
    }
    Ok(pairs)
}

/// Returns the keys and values of a mapping whose keys are strings.
pub(crate) fn items<'py, 'a>(
    object: &'a Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyAny>)>> {
    let mapping = object.cast::<PyMapping>().map_err(|_| unexpected(object, name, "a mapping", ""))?;
    let mut items = Vec::new();
    for item in mapping.items()?.iter() {
        let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
        items.push((string(&key, &format!("{name}: key"))?.clone(), value));
    }
    Ok(items)
}

/// Returns an iterator over `object`. If `object` is not iterable, raises the error that `unexpected` returns. Any
/// other error of `object` reaches the caller unchanged.
pub(crate) fn iterated<'py>(
    object: &Bound<'py, PyAny>,
    unexpected: impl FnOnce() -> PyErr,
) -> PyResult<Bound<'py, PyIterator>> {
    object.try_iter().map_err(|error| match error.is_instance_of::<PyTypeError>(object.py()) {
        true => unexpected(),
        false => error,
    })
}

/// Returns `object` as a string. If it is not a string, raises an error that names its type.
#[inline]
pub(crate) fn string<'a, 'py>(object: &'a Bound<'py, PyAny>, name: &str) -> PyResult<&'a Bound<'py, PyString>> {
    // Most strings are exactly of the type `str`. Check for this type first, because this check is faster: it does not
    // call CPython.
    object.cast_exact::<PyString>().or_else(|_| object.cast::<PyString>()).map_err(|_| no_string(object, name))
}

/// Returns the text of `string`. For a lone surrogate, raises a `UnicodeEncodeError` whose reason begins with `name`.
pub(crate) fn text<'a>(string: &'a Bound<'_, PyString>, name: impl FnOnce() -> String) -> PyResult<&'a str> {
    string.to_str().map_err(|error| {
        let value = error.value(string.py()).clone();
        match value.is_instance_of::<PyUnicodeEncodeError>() {
            true => set_reason(&value, &name()).err().unwrap_or(error),
            false => error,
        }
    })
}

/// A string of more code points than this is long. CPython would keep the UTF-8 of a string in memory as long as the
/// string lives. `with_long_text` avoids this for long strings.
const KEPT: usize = 256;

/// Returns the text of `string` if it is short, otherwise `None`. Also returns `None` for a subclass of `str`, which
/// may redefine `__len__`.
#[inline(always)]
pub(crate) fn short_text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<Option<&'a str>> {
    match string.is_exact_instance_of::<PyString>() && string.len()? <= KEPT {
        true => string.to_str().map(Some),
        false => Ok(None),
    }
}

/// Runs `action` with the text of `string`. If `string` is long, CPython does not keep its UTF-8 afterwards.
#[inline(always)]
pub(crate) fn with_text<T>(string: &Bound<'_, PyString>, action: impl FnOnce(&str) -> PyResult<T>) -> PyResult<T> {
    match short_text(string)? {
        Some(text) => action(text),
        None => with_long_text(string, action),
    }
}

#[cold]
#[inline(never)]
fn with_long_text<T>(string: &Bound<'_, PyString>, action: impl FnOnce(&str) -> PyResult<T>) -> PyResult<T> {
    let py = string.py();
    if !string.is_exact_instance_of::<PyString>() {
        // Copies `string` to an ordinary `str`, so that no method of its subclass runs.
        let plain = py.get_type::<PyString>().call_method1(intern!(py, "__str__"), (string,))?;
        return with_text(plain.cast_exact::<PyString>()?, action);
    }
    if string.call_method0(intern!(py, "isascii"))?.is_truthy()? {
        return action(string.to_str()?); // CPython makes no copy: ASCII is its own UTF-8
    }
    // Read the UTF-8 of a copy of `string`, because CPython frees this UTF-8 together with the copy. (`encode_utf8`
    // would return bytes, and Rust would have to check again that they are UTF-8.)
    let copy = string.add(intern!(py, "\n"))?;
    let copied = copy.cast_exact::<PyString>()?.to_str();
    // An error for a lone surrogate must refer to the caller's string, and not to the copy.
    let text = copied.map_err(|error| string.encode_utf8().err().unwrap_or(error))?;
    action(&text[..text.len() - 1])
}

/// Text of at least this many bytes is read without the GIL. If the set has patterns, reading it can take a
/// millisecond.
pub(crate) const LONG: usize = 1_024;

/// Runs `action`, without the GIL if the text is long.
#[inline(always)]
pub(crate) fn read_text<T: Send>(py: Python<'_>, text: &str, action: impl FnOnce() -> T + Send) -> T {
    if text.len() < LONG { action() } else { py.detach(action) }
}

/// Puts `name` before the reason of a `UnicodeEncodeError`.
fn set_reason(error: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    let reason: String = error.getattr("reason")?.extract()?;
    error.setattr("reason", format!("{name}: {reason}"))
}

#[cold]
pub(crate) fn no_string(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    unexpected(object, name, "str", if object.is_instance_of::<PyBytes>() { "; decode it first" } else { "" })
}

#[cold]
pub(crate) fn unexpected(object: &Bound<'_, PyAny>, name: &str, expected: &str, hint: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    type_error(format!("{name}: expected {expected}, got {found}{hint}"))
}

/// Returns `object` as an integer, or `None` if it is out of range. Raises `TypeError` if `object` is not an integer.
/// Any other error of its `__index__` is passed on.
fn integer<'py, T>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    match object.extract() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => Ok(None),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Err(unexpected(object, name, "int", "")),
        Err(error) => Err(error),
    }
}

/// Returns `object` as a `usize`. Raises `TypeError` for a bool, and `ValueError` if it is negative or too large.
pub(crate) fn size(object: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
    if object.is_instance_of::<PyBool>() {
        return Err(unexpected(object, name, "int", ""));
    }
    integer(object, name)?.ok_or_else(|| value_error(format!("{name}: {object} is out of range")))
}

pub(crate) fn options(
    include_stop: bool,
    start_protected: bool,
    region: Option<&Bound<'_, PyAny>>,
) -> PyResult<Options> {
    let options = Options::default().include_stop(include_stop).start_protected(start_protected);
    match region.filter(|region| !region.is_none()) {
        None => Ok(options),
        Some(region) => Ok(options.region(text(string(region, "region")?, || "region".into())?)),
    }
}

/// Making a snapshot needs at most this many times the memory of the stream. Reading a snapshot needs at most this many
/// times its length. Callers first call `room`, which raises an error if there is not enough memory.
pub(crate) const SNAPSHOT: usize = 4;

/// Returns `object` as a snapshot.
pub(crate) fn read_snapshot(object: &Bound<'_, PyAny>) -> PyResult<Snapshot> {
    let bytes = object.cast::<PyBytes>().map_err(|_| unexpected(object, "snapshot", "bytes", ""))?;
    room(SNAPSHOT * bytes.as_bytes().len())?;
    Snapshot::from_bytes(bytes.as_bytes()).or_raise()
}

pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns `object` as a token id, or `None` if it is out of range.
pub(crate) fn token_id(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u32>> {
    integer(object, name)
}

/// The error for an id without a token.
pub(crate) fn unknown(object: &Bound<'_, PyAny>) -> PyErr {
    value_error(format!("token id {object} is not in the vocabulary"))
}

/// Reads the ids that end a stream: `object` is one id or an iterable of ids. The tokenizer need not have these ids.
fn end_ids(object: Option<&Bound<'_, PyAny>>, name: &str) -> PyResult<Vec<u32>> {
    let Some(object) = object.filter(|object| !object.is_none()) else {
        return Ok(Vec::new());
    };
    let ids = match object.try_iter() {
        Ok(_) => token_list(object, name)?,
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => vec![object.clone()],
        Err(error) => return Err(error),
    };
    let id = |id| match token_id(id, name)? {
        Some(id) => Ok(id),
        None => Err(value_error(format!("{name}: {id} is not a token id"))),
    };
    ids.iter().map(id).collect()
}

/// Returns the items of an iterable of token ids.
pub(crate) fn token_list<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(unexpected(object, name, "token ids", ""));
    }
    collect(iterated(object, || unexpected(object, name, "token ids", ""))?)
}

/// Returns the options of a stream of tokens. `prompt_token_ids` is not among them, because only the decoder reads it.
pub(crate) fn token_options(
    stop_token_ids: Option<&Bound<'_, PyAny>>,
    eos_token_ids: Option<&Bound<'_, PyAny>>,
    min_tokens: Option<&Bound<'_, PyAny>>,
    max_tokens: Option<&Bound<'_, PyAny>>,
    skip_special_tokens: bool,
    unknown_ids: &str,
    eos_ends_early: bool,
) -> PyResult<TokenOptions> {
    let unknown_ids = match unknown_ids {
        "refuse" => UnknownIds::Refuse,
        "count" => UnknownIds::Count,
        other => return Err(value_error(format!("unknown_ids: expected 'refuse' or 'count', got {other:?}"))),
    };
    let mut options = TokenOptions::default()
        .stop_token_ids(end_ids(stop_token_ids, "stop_token_ids")?)
        .eos_token_ids(end_ids(eos_token_ids, "eos_token_ids")?)
        .min_tokens(min_tokens.map_or(Ok(0), |min| size(min, "min_tokens"))?)
        .unknown_ids(unknown_ids)
        .eos_ends_early(eos_ends_early)
        .skip_special_tokens(skip_special_tokens);
    options.max_tokens = max_tokens.map(|max| size(max, "max_tokens")).transpose()?;
    Ok(options)
}
