//! A stream of deltas as Python objects share it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::arguments::{SNAPSHOT, read_text, short_text, string, with_text};
use super::guarded::{Core, Guarded, State};
use super::objects::{self, new_string};
use super::show::{Show, same_or_new};
use super::stop_match::StopMatch;
use crate::stream::Mark;
use crate::{Emit, Options, Snapshot, Stream};

#[repr(C)]
pub(super) struct Deltas<E: Show> {
    pub(super) set: Py<E::Class>,
    guarded: Guarded<Stream<E>>,
}

impl<E: Emit> Core for Stream<E> {
    type Emit = E;

    fn stream(&self) -> &Stream<E> {
        self
    }

    fn stream_mut(&mut self) -> &mut Stream<E> {
        self
    }

    fn is_idle(&self) -> bool {
        Stream::is_idle(self)
    }
}

impl<E: Show> Deltas<E> {
    pub(super) fn new(set: Py<E::Class>, options: &Options) -> PyResult<Deltas<E>> {
        let stream = Stream::with_options(E::core(set.get()), options)?;
        Ok(Deltas { set, guarded: Guarded::new(stream, None) })
    }

    /// What `whole` makes of `text` at its node, if reading the text changes nothing but counters; then it is read.
    #[inline(always)]
    pub(super) fn pass<T, X>(
        &self,
        text: &str,
        armed: bool,
        whole: impl FnOnce(u32) -> Result<T, X>,
    ) -> Result<Option<T>, X> {
        let Some((node, length)) = self.guarded.plain(E::core(self.set.get()).graph(), text) else {
            return Ok(None);
        };
        let whole = whole(node)?;
        Ok(self.guarded.pass(text, length, armed).then_some(whole))
    }

    #[inline(always)]
    pub(super) fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, E::Out>> {
        let delta = string(delta, "delta")?;
        if let Some(text) = short_text(delta)?
            && (E::EMPTY || !text.is_empty())
            && let Some(safe) = self.pass(text, armed, |node| E::whole(self.set.get(), node, delta))?
        {
            return Ok(safe);
        }
        self.read_any(delta, armed)
    }

    #[cold]
    fn read_any<'py>(&self, delta: &Bound<'py, PyString>, armed: bool) -> PyResult<Bound<'py, E::Out>> {
        with_text(delta, |text| self.read(delta, text, armed).map(|read| read.0))
    }

    /// What `delta` gives, and whether a stop has fired.
    #[cold]
    pub(super) fn read<'py>(
        &self,
        delta: &Bound<'py, PyString>,
        text: &str,
        armed: bool,
    ) -> PyResult<(Bound<'py, E::Out>, bool)> {
        self.guarded.with(|state| {
            let stream = &mut state.core;
            stream.ask_room(text)?;
            let before = stream.mark(text.len());
            let output = read_text(delta.py(), text, || match armed {
                true => stream.feed(text),
                false => stream.feed_unarmed(text),
            });
            let safe = E::delta(self.set.get(), output, delta, text);
            let safe = noted(state, delta.py(), safe, before)?;
            Ok((safe, state.found.is_some()))
        })?
    }

    pub(super) fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, E::Out>> {
        self.guarded.with(|state| {
            let none = new_string(py, "")?;
            let before = state.core.mark(0);
            let safe = E::delta(self.set.get(), state.core.flush(), &none, "\0");
            noted(state, py, safe, before)
        })?
    }

    pub(super) fn reset(&self) -> PyResult<()> {
        self.guarded.with(|state| {
            state.core.reset();
            state.found = None;
        })
    }

    pub(super) fn copy(&self, py: Python<'_>) -> PyResult<Deltas<E>> {
        Ok(Deltas { set: self.set.clone_ref(py), guarded: self.guarded.copy(py)? })
    }

    pub(super) fn snapshot(&self, _: Python<'_>) -> PyResult<Snapshot> {
        self.guarded.with(|state| {
            objects::room(SNAPSHOT * state.core.size())?;
            Ok(state.core.snapshot())
        })?
    }

    pub(super) fn restore(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        self.guarded.with(|state| {
            let core = state.core.like(snapshot)?;
            let mut restored = State { core, found: None };
            restored.note_match(py)?;
            *state = restored;
            Ok(())
        })?
    }

    pub(super) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let node = self.guarded.with(|state| state.core.cursor.node)?;
        Ok(E::names(self.set.get())[node as usize].clone_ref(py))
    }

    pub(super) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.guarded.found(py)
    }

    pub(super) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.guarded.with(|state| new_string(py, state.core.held()))?
    }

    pub(super) fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.guarded.with(|state| new_string(py, state.core.unused()))?
    }

    /// What makes such a stream again.
    pub(super) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = objects::dict(py)?;
        self.guarded.with(|state| {
            objects::set_item(&options, "include_stop", state.core.include_stop)?;
            set_start(&state.core, &options)
        })??;
        Ok((objects::tuple(py, [Ok(self.set.bind(py).clone())])?, options))
    }
}

impl Deltas<crate::Text> {
    pub(super) fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let delta = string(text, "text")?;
        with_text(delta, |text| {
            self.guarded.with(|state| {
                state.core.ask_room(text)?;
                let before = state.core.mark(text.len());
                let safe = same_or_new(delta, text, state.core.bypass(text).text);
                noted(state, delta.py(), safe, before)
            })?
        })
    }
}

/// `safe`, and the match is made for Python. If there is no memory for one of them, the stream is as it was `before`.
#[inline]
fn noted<E: Emit, T>(
    state: &mut State<Stream<E>>,
    py: Python<'_>,
    safe: PyResult<T>,
    before: Option<Mark>,
) -> PyResult<T> {
    let noted = safe.and_then(|safe| state.note_match(py).map(|()| safe));
    if noted.is_err()
        && let Some(before) = before
    {
        state.core.undo(before);
        state.found = None;
    }
    noted
}

/// The option that says where `stream` began.
pub(super) fn set_start<E: Emit>(stream: &Stream<E>, options: &Bound<'_, PyDict>) -> PyResult<()> {
    match stream.start {
        0 => Ok(()),
        // Regions that are named after markers need not have names of their own.
        1 if stream.graph().protected().is_some() => objects::set_item(options, "start_protected", true),
        node => objects::set_item(options, "region", new_string(options.py(), stream.graph().name(node))?),
    }
}
