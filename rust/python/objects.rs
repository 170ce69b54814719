//! New Python objects, or the error that there is no memory for them. PyO3's own constructors of strings, tuples, lists
//! and dicts panic then.

use std::hint::black_box;

use crate::errors::OrRaise;
use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use pyo3::types::PyDict;
use pyo3::types::PyInt;
use pyo3::types::PyList;
use pyo3::types::PySequence;
use pyo3::types::PyString;
use pyo3::types::PyTuple;
use pyo3::types::PyType;

pub(crate) fn new_string<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, text.as_bytes())
}

pub(crate) fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |target| {
        target.copy_from_slice(bytes);
        Ok(())
    })
}

pub(crate) fn list<'py, T: PyTypeCheck>(
    py: Python<'py>,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyList>> {
    let list = py.get_type::<PyList>().call0()?.cast_into::<PyList>()?;
    for item in items {
        list.append(item?)?;
    }
    Ok(list)
}

pub(crate) fn tuple<'py, T: PyTypeCheck>(
    py: Python<'py>,
    items: impl IntoIterator<Item = PyResult<Bound<'py, T>>>,
) -> PyResult<Bound<'py, PyTuple>> {
    list(py, items)?.as_sequence().to_tuple()
}

pub(crate) fn dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    Ok(py.get_type::<PyDict>().call0()?.cast_into::<PyDict>()?)
}

pub(crate) fn set_item<'py>(dict: &Bound<'py, PyDict>, name: &str, value: impl IntoPyObject<'py>) -> PyResult<()> {
    dict.set_item(new_string(dict.py(), name)?, value)
}

/// A large int is made of ints below 257, which Python always has.
pub(crate) fn int(py: Python<'_>, number: usize) -> PyResult<Bound<'_, PyInt>> {
    let low = (number & 0xFF).into_pyobject(py)?;
    match number >> 8 {
        0 => Ok(low),
        high => Ok(int(py, high)?.lshift(8)?.bitor(low)?.cast_into::<PyInt>()?),
    }
}

pub(crate) fn some_int(py: Python<'_>, number: Option<usize>) -> PyResult<Bound<'_, PyAny>> {
    number.map_or_else(|| Ok(py.None().into_bound(py)), |number| Ok(int(py, number)?.into_any()))
}

/// A class of another module, imported once.
pub(crate) fn class<'py>(
    py: Python<'py>,
    known: &'py PyOnceLock<Py<PyType>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyType>> {
    let import = || {
        let module = py.import(new_string(py, module)?)?;
        Ok::<_, PyErr>(module.getattr(new_string(py, name)?)?.cast_into::<PyType>()?.unbind())
    };
    Ok(known.get_or_try_init(py, import)?.bind(py))
}

/// What a pickle calls to make an object of `class` again, with what, and the state that it sets. Protocols below 2 know
/// no keyword arguments but by this function.
pub(crate) fn rebuild<'py>(
    class: Bound<'py, PyType>,
    arguments: Bound<'py, PyTuple>,
    options: Bound<'py, PyDict>,
    state: Option<Bound<'py, PyBytes>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let py = class.py();
    let make = py.import(new_string(py, "copyreg")?)?.getattr(new_string(py, "__newobj_ex__")?)?;
    let arguments = tuple(py, [class.into_any(), arguments.into_any(), options.into_any()].map(Ok))?;
    let state = state.map(Bound::into_any);
    tuple(py, [make, arguments.into_any()].into_iter().chain(state).map(Ok))
}

/// What an iterator gives, in a list that grows only while there is room.
pub(crate) fn collect<T>(items: impl Iterator<Item = PyResult<T>>) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    for item in items {
        all.try_reserve(1).or_raise()?;
        all.push(item?);
    }
    Ok(all)
}

/// A copy of `text`.
pub(crate) fn owned(text: &str) -> PyResult<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).or_raise()?;
    copy.push_str(text);
    Ok(copy)
}

/// Whoever needs less does not ask: a process without so many bytes is at its end.
const SMALL: usize = 1 << 16;

/// Asks for so many bytes and gives them back: for code that would end the process if there were none.
pub(crate) fn room(bytes: usize) -> PyResult<()> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    let answer = room.try_reserve_exact(bytes);
    black_box(&mut room); // or the compiler would leave it out
    answer.or_raise()
}

/// New tuples or lists that differ in their last item alone, for what is made at every delta: a list of theirs is
/// filled, copied and emptied.
pub(crate) struct Draft {
    items: Py<PyList>,
    last: usize,
}

impl Draft {
    /// A draft that has `first`, if there is one, before the last item.
    pub(crate) fn new(py: Python<'_>, first: Option<&Py<PyString>>) -> PyResult<Draft> {
        let first = first.map(|first| first.bind(py).as_any().clone());
        let items = list(py, first.into_iter().chain([py.None().into_bound(py)]).map(Ok))?;
        Ok(Draft { last: items.len() - 1, items: items.unbind() })
    }

    #[inline]
    pub(crate) fn tuple<'py>(&self, last: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let tuple = self.filled(last, |items| items.to_tuple())?;
        match tuple.get_borrowed_item(self.last)?.is(last) {
            true => Ok(tuple),
            false => self.of_its_own(last)?.as_sequence().to_tuple(),
        }
    }

    #[inline]
    pub(crate) fn list<'py>(&self, last: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let list = self.filled(last, |items| items.to_list())?;
        match list.get_item(self.last)?.is(last) {
            true => Ok(list),
            false => self.of_its_own(last),
        }
    }

    /// What `copy` makes of the items. Without the GIL another thread may fill them at the same time, and with it a
    /// finalizer that runs within `copy`: then the last item is another one.
    #[inline]
    fn filled<'py, T>(
        &self,
        last: &Bound<'py, PyAny>,
        copy: impl FnOnce(&Bound<'py, PySequence>) -> PyResult<T>,
    ) -> PyResult<T> {
        let items = self.items.bind(last.py());
        items.set_item(self.last, last)?;
        let copied = copy(items.as_sequence());
        items.set_item(self.last, last.py().None())?;
        copied
    }

    #[cold]
    fn of_its_own<'py>(&self, last: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let list = self.items.bind(last.py()).as_sequence().to_list()?;
        list.set_item(self.last, last)?;
        Ok(list)
    }
}
