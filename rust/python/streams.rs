//! A stream of deltas as Python objects share it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use stopscan::host::{NOTHING_PASSES, Place, Shape};
use stopscan::{Emit, Options, Output, Segmented, Segments, Set, Snapshot, Stream, Text};

use crate::arguments::{SNAPSHOT, options, read_snapshot, read_text, short_text, string, with_text};
use crate::errors::OrRaise;
use crate::matches::StopMatch;
use crate::objects::{self, bytes, int, new_string, rebuild, room, set_item};
use crate::sets::{SegmentSet, StopSet, short_repr};
use crate::turns::{Turn, Turns};

/// The methods that all four classes of streams have.
macro_rules! stream_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Returns a copy of the stream. The copy and the stream go on independently.
            fn copy(&self, py: Python<'_>) -> PyResult<$class> {
                self.stream.copy(py).map($class::of)
            }

            /// Returns the state of the stream as bytes, for ``restore`` of a stream with an equal set and equal options,
            /// also in another process or on another machine. The bytes do not have the set, the tokenizer or the
            /// vocabulary.
            fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                bytes(py, self.stream.snapshot(py)?.as_bytes())
            }

            /// Puts the state of ``snapshot`` into the stream. Returns nothing.
            ///
            /// Raises ``ValueError`` for a snapshot of another set or other options, for damaged bytes and for an
            /// unknown version. After an error the stream is as before.
            #[pyo3(signature = (snapshot))]
            fn restore(&self, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
                self.stream.restore(snapshot.py(), &read_snapshot(snapshot)?)
            }

            /// The region that is open.
            #[getter]
            fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
                self.stream.region(py)
            }

            /// The match of the stop that fired, or ``None``. Its offset counts all text, markers included.
            #[getter]
            fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
                self.stream.found(py)
            }

            /// The text that is withheld because it may be the beginning of a hidden stop or of a marker that is taken
            /// out.
            #[getter]
            fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.held(py)
            }

            fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                let found = self.stream.found(py)?;
                crate::streams::stream_repr(
                    py,
                    stringify!($class),
                    self.stream.region(py)?,
                    self.stream.held(py)?,
                    found,
                )
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<$class> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<$class> {
                self.copy(py)
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
                let (arguments, options) = slf.get().stream.arguments(slf.py())?;
                rebuild(slf.get_type(), arguments, options, Some(slf.get().snapshot(slf.py())?))
            }

            fn __setstate__(&self, state: &Bound<'_, PyAny>) -> PyResult<()> {
                self.restore(state)
            }
        }
    };
}
pub(crate) use stream_methods;

/// The `repr` of a stream.
pub(crate) fn stream_repr<'py>(
    py: Python<'py>,
    class: &str,
    region: Py<PyString>,
    held: Bound<'py, PyString>,
    found: Option<Py<StopMatch>>,
) -> PyResult<Bound<'py, PyString>> {
    let found = found.map_or_else(|| py.None(), Py::into_any).into_bound(py);
    let (region, held, found) = (short_repr(region.bind(py))?, short_repr(&held)?, short_repr(&found)?);
    new_string(py, &format!("<{class} region={region} held={held} match={found}>"))
}

/// The methods that both classes of streams of deltas have.
macro_rules! delta_methods {
    ($class:ident, $out:ty) => {
        stream_methods!($class);

        #[pymethods]
        impl $class {
            /// Returns the held text, for the end of the stream. After ``flush`` nothing is held. The text belongs to the
            /// open region.
            ///
            /// No stop and no marker goes across a flush. A pattern that waits for the next character, such as one that
            /// ends with ``\b``, may complete here.
            fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py)
            }

            /// Goes back to the start of the stream. Returns nothing.
            fn reset(&self) -> PyResult<()> {
                self.stream.reset()
            }

            /// The text after the stop in the delta that completed the stop.
            #[getter]
            fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.unused(py)
            }
        }
    };
}

/// Scans one stream: give ``feed`` each delta, emit the text that ``feed`` returns, and call ``flush`` at the end.
///
/// The returned texts, joined, are the text before the stop, or all text if no stop fires.
///
/// - ``stop``: a ``StopSet``, or the stops that make a set.
/// - ``include_stop``: whether every stop stays in the output.
/// - ``start_protected``: whether the stream begins inside the first protected region of the set.
/// - ``region``: the region of the set, or the state of a region, in which the stream begins.
///
/// One thread at a time feeds a scanner: two calls of ``feed`` at once raise ``RuntimeError``. Any thread may read ``match``,
/// ``held`` and ``region`` meanwhile: it waits until the call has ended.
///
/// >>> scanner = StopScanner(["END"])
/// >>> scanner.feed("The E"), scanner.held
/// ('The ', 'E')
/// >>> scanner.feed("ND."), scanner.match, scanner.unused
/// ('', StopMatch('END', 4), '.')
#[pyclass(module = "stopscan", frozen)]
pub(crate) struct StopScanner {
    pub(crate) stream: Deltas<Text>,
}

impl StopScanner {
    fn of(stream: Deltas<Text>) -> StopScanner {
        StopScanner { stream }
    }
}

#[pymethods]
impl StopScanner {
    #[new]
    #[pyo3(signature = (stop, *, include_stop = false, start_protected = false, region = None))]
    pub(crate) fn new(
        stop: &Bound<'_, PyAny>,
        include_stop: bool,
        start_protected: bool,
        region: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<StopScanner> {
        Deltas::new(StopSet::of(stop)?, &options(include_stop, start_protected, region)?).map(StopScanner::of)
    }

    /// Reads ``delta`` and returns the text that is safe to emit now: the object ``delta`` itself if nothing is held.
    ///
    /// After a match the text is ``""``. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes later, in armed text, does fire.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the scanner is as before.
    ///
    /// >>> StopScanner("END").feed("END E", armed=False)
    /// 'END '
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyString>> {
        let delta = string(delta, "delta")?;
        if let Some(text) = short_text(delta)?
            && self.stream.feed_plain(text).is_some()
        {
            return Ok(delta.clone());
        }
        self.stream.feed(delta, armed)
    }

    /// Returns the held text and ``text``, joined, without scanning ``text``.
    ///
    /// Use it for text that is not to be scanned, such as the arguments of a tool call. The scanner forgets the beginning
    /// of a stop that was held. An open region stays open. After a match the result is ``""``.
    ///
    /// >>> scanner = StopScanner("END")
    /// >>> scanner.feed("EN"), scanner.bypass("-"), scanner.feed("D")
    /// ('', 'EN-', 'D')
    #[pyo3(signature = (text, /))]
    fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        self.stream.bypass(text)
    }

    /// The ``StopSet`` of the scanner.
    #[getter]
    fn stops(&self, py: Python<'_>) -> Py<StopSet> {
        self.stream.set.clone_ref(py)
    }
}

delta_methods!(StopScanner, PyString);

/// Cuts one stream into segments: give ``feed`` each delta, emit the segments that ``feed`` returns, and call ``flush``
/// at the end.
///
/// A segment is a tuple: the region, the text, and the part. Markers are taken out of the text. The segments' texts and
/// the markers between them, joined in order, are the input.
///
/// The part is a number that tells two tool calls in a row apart: it counts the markers that led to another state, from 0
/// at the start of the stream. Text of one part may come in several segments. Join the text of the reasoning and of the
/// answer by region, and the text of calls by part.
///
/// - ``segments``: a ``SegmentSet``, or the markers that make a set.
/// - ``region``: where the stream begins. The default is the first region.
/// - ``include_stop``: whether every stop stays in the output.
///
/// One thread at a time feeds a segmenter: two calls of ``feed`` at once raise ``RuntimeError``. Any thread may read
/// ``match``, ``held`` and ``region`` meanwhile: it waits until the call has ended.
///
/// >>> segmenter = Segmenter({"answer": {"<think>": "reasoning"}, "reasoning": {"</think>": "answer"}})
/// >>> segmenter.feed("<think>5?</thi"), segmenter.held
/// ([('reasoning', '5?', 1)], '</thi')
/// >>> segmenter.feed("nk>6."), segmenter.region
/// ([('answer', '6.', 2)], 'answer')
#[pyclass(module = "stopscan.segments", frozen)]
pub(crate) struct Segmenter {
    pub(crate) stream: Deltas<Segmented>,
}

impl Segmenter {
    fn of(stream: Deltas<Segmented>) -> Segmenter {
        Segmenter { stream }
    }
}

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (segments, /, *, region = None, include_stop = false))]
    pub(crate) fn new(
        segments: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
    ) -> PyResult<Segmenter> {
        Deltas::new(SegmentSet::of(segments)?, &options(include_stop, false, region)?).map(Segmenter::of)
    }

    /// Reads ``delta`` and returns the list of segments that are safe to emit now. No segment is empty, and no two
    /// neighbours are of one part.
    ///
    /// After a match the list is empty. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes later, in armed text, does fire. Markers count in unarmed text,
    /// too.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the segmenter is as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyList>> {
        let delta = string(delta, "delta")?;
        if let Some(text) = short_text(delta)?
            && !text.is_empty()
            && let Some((node, part)) = self.stream.feed_plain(text)
        {
            return Segmented::whole(self.stream.set.get(), node, part, delta);
        }
        self.stream.feed(delta, armed)
    }

    /// The ``SegmentSet`` of the segmenter.
    #[getter]
    fn segments(&self, py: Python<'_>) -> Py<SegmentSet> {
        self.stream.set.clone_ref(py)
    }
}

delta_methods!(Segmenter, PyList);

#[repr(C)]
pub(crate) struct Deltas<E: PyEmit> {
    pub(crate) set: Py<E::Class>,
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
        self.idle_node().is_some()
    }
}

impl<E: PyEmit> Deltas<E> {
    pub(crate) fn new(set: Py<E::Class>, options: &Options) -> PyResult<Deltas<E>> {
        let stream = Stream::with_options(E::core(set.get()), options).or_raise()?;
        Ok(Deltas { set, guarded: Guarded::new(stream, None) })
    }

    /// Fast path: if nothing begins in `text`, counts it as read, without the lock, and returns its node and part. All of
    /// the text is safe then. Otherwise returns `None` and changes nothing: the caller then calls `feed_locked`.
    #[inline(always)]
    pub(crate) fn feed_plain(&self, text: &str) -> Option<(u32, u32)> {
        let (node, length) = self.guarded.plain(E::core(self.set.get()), text)?;
        let part = self.guarded.part();
        self.guarded.pass(text, length).then_some((node, part))
    }

    /// What any delta gives.
    #[cold]
    pub(crate) fn feed<'py>(&self, delta: &Bound<'py, PyString>, armed: bool) -> PyResult<Bound<'py, E::Out>> {
        with_text(delta, |text| self.feed_locked(delta, text, armed).map(|fed| fed.0))
    }

    /// What `delta` gives, whose text is `text`, and whether a stop has fired.
    #[cold]
    pub(crate) fn feed_locked<'py>(
        &self,
        delta: &Bound<'py, PyString>,
        text: &str,
        armed: bool,
    ) -> PyResult<(Bound<'py, E::Out>, bool)> {
        self.guarded.change(|state| {
            let stream = &mut state.core;
            stream.ask_memory(text.len()).or_raise()?;
            let output = read_text(delta.py(), text, || match armed {
                true => stream.feed(text),
                false => stream.feed_unarmed(text),
            });
            let safe = E::delta(self.set.get(), output, delta, text)?;
            state.note_match(delta.py())?;
            Ok((safe, state.found.is_some()))
        })?
    }

    pub(crate) fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, E::Out>> {
        self.guarded.change(|state| {
            let none = new_string(py, "")?;
            state.core.ask_memory(0).or_raise()?;
            let safe = E::delta(self.set.get(), state.core.flush(), &none, "\0")?;
            state.note_match(py)?;
            Ok(safe)
        })?
    }

    pub(crate) fn reset(&self) -> PyResult<()> {
        self.guarded.change(|state| {
            state.core.reset();
            state.found = None;
        })
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Deltas<E>> {
        Ok(Deltas { set: self.set.clone_ref(py), guarded: self.guarded.copy(py)? })
    }

    pub(crate) fn snapshot(&self, _: Python<'_>) -> PyResult<Snapshot> {
        self.guarded.read(|state| {
            objects::room(SNAPSHOT * state.core.size())?;
            Ok(state.core.snapshot())
        })?
    }

    pub(crate) fn restore(&self, py: Python<'_>, snapshot: &Snapshot) -> PyResult<()> {
        self.guarded.change(|state| {
            state.core.restore(snapshot).or_raise()?;
            state.found = None;
            state.note_match(py)
        })?
    }

    pub(crate) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let node = self.guarded.read(|state| state.core.node())?;
        Ok(E::names(self.set.get())[node as usize].clone_ref(py))
    }

    pub(crate) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        self.guarded.found(py)
    }

    pub(crate) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.guarded.read(|state| new_string(py, state.core.held()))?
    }

    pub(crate) fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.guarded.read(|state| new_string(py, state.core.unused()))?
    }

    /// What makes such a stream again.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = objects::dict(py)?;
        self.guarded.read(|state| set_options(&options, &state.core.options()))??;
        Ok((objects::tuple(py, [Ok(self.set.bind(py).clone())])?, options))
    }
}

impl Deltas<stopscan::Text> {
    pub(crate) fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let delta = string(text, "text")?;
        with_text(delta, |text| {
            self.guarded.change(|state| {
                state.core.ask_memory(text.len()).or_raise()?;
                same_or_new(delta, text, state.core.bypass(text).text)
            })?
        })
    }
}

/// The options of a stream as keyword arguments.
pub(crate) fn set_options(arguments: &Bound<'_, PyDict>, options: &Options) -> PyResult<()> {
    set_item(arguments, "include_stop", options.include_stop)?;
    if options.start_protected {
        set_item(arguments, "start_protected", true)?;
    }
    match &options.region {
        None => Ok(()),
        Some(region) => set_item(arguments, "region", new_string(arguments.py(), region)?),
    }
}

/// What a stream emits, and the Python class of its sets.
pub(crate) trait PyEmit: Emit {
    type Class: PyClass<Frozen = True> + Sync;
    type Out;

    fn core(set: &Self::Class) -> &Set<Self>;

    /// The name of each node's region.
    fn names(set: &Self::Class) -> &[Py<PyString>];

    /// A text that is safe as it is, at a node and of a part.
    fn whole<'py>(
        set: &Self::Class,
        node: u32,
        part: u32,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, Self::Out>>;

    /// What comes out where no text is safe.
    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, Self::Out>>;

    /// What a delta gives; the delta's own object where it is the whole of a text.
    fn delta<'py>(
        set: &Self::Class,
        output: Self::Output<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, Self::Out>>;

    /// What is safe behind the last token.
    fn safe<'py>(py: Python<'py>, set: &Self::Class, tokens: Self::Tokens<'_>) -> PyResult<Bound<'py, Self::Out>>;
}

impl PyEmit for Text {
    type Class = StopSet;
    type Out = PyString;

    #[inline(always)]
    fn core(set: &StopSet) -> &Set<Text> {
        &set.core
    }

    fn names(set: &StopSet) -> &[Py<PyString>] {
        &set.names
    }

    #[inline(always)]
    fn whole<'py>(_: &StopSet, _: u32, _: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
        Ok(text.clone())
    }

    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
        new_string(py, "")
    }

    fn delta<'py>(
        _: &StopSet,
        output: Output<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        same_or_new(delta, text, output.text)
    }

    fn safe<'py>(py: Python<'py>, _: &StopSet, safe: &str) -> PyResult<Bound<'py, PyString>> {
        new_string(py, safe)
    }
}

impl PyEmit for Segmented {
    type Class = SegmentSet;
    type Out = PyList;

    #[inline(always)]
    fn core(set: &SegmentSet) -> &Set<Segmented> {
        &set.core
    }

    fn names(set: &SegmentSet) -> &[Py<PyString>] {
        &set.names
    }

    #[inline(always)]
    fn whole<'py>(set: &SegmentSet, node: u32, part: u32, text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
        set.one.list(segment(set, node, part, text)?.as_any())
    }

    fn nothing(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
        objects::list::<PyTuple>(py, [])
    }

    fn delta<'py>(
        set: &SegmentSet,
        output: Segments<'_>,
        delta: &Bound<'py, PyString>,
        text: &str,
    ) -> PyResult<Bound<'py, PyList>> {
        segments(delta.py(), set, output, |safe| same_or_new(delta, text, safe))
    }

    fn safe<'py>(py: Python<'py>, set: &SegmentSet, safe: Segments<'_>) -> PyResult<Bound<'py, PyList>> {
        segments(py, set, safe, |safe| new_string(py, safe))
    }
}

/// The segment of a text at a node and of a part.
#[inline(always)]
pub(crate) fn segment<'py>(
    set: &SegmentSet,
    node: u32,
    part: u32,
    text: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyTuple>> {
    set.templates[node as usize].segment(text, &int(text.py(), part as usize)?)
}

fn segments<'py>(
    py: Python<'py>,
    set: &SegmentSet,
    segments: Segments<'_>,
    string: impl Fn(&str) -> PyResult<Bound<'py, PyString>>,
) -> PyResult<Bound<'py, PyList>> {
    let tuple = |segment: stopscan::Segment<'_>| {
        let name = set.regions.iter().zip(set.core.regions()).find(|(_, name)| *name == segment.region);
        let name = name.map_or_else(|| new_string(py, segment.region), |(object, _)| Ok(object.bind(py).clone()))?;
        let text = string(segment.text)?.into_any();
        objects::tuple(py, [name.into_any(), text, int(py, segment.part as usize)?.into_any()].map(Ok))
    };
    objects::list(py, segments.into_iter().map(tuple))
}

/// The text that `delta` released as a Python string: the delta's own object when it is the whole of its text.
#[inline]
pub(crate) fn same_or_new<'py>(delta: &Bound<'py, PyString>, text: &str, safe: &str) -> PyResult<Bound<'py, PyString>> {
    if std::ptr::eq(safe, text) { Ok(delta.clone()) } else { new_string(delta.py(), safe) }
}

/// What is behind the lock: a stream, or one with a decoder.
pub(crate) trait Core {
    type Emit: Emit;

    fn stream(&self) -> &Stream<Self::Emit>;

    fn stream_mut(&mut self) -> &mut Stream<Self::Emit>;

    /// Whether plain text changes nothing but counters.
    fn is_idle(&self) -> bool;
}

/// A lock costs a fifth of a `feed`. Under the GIL the commonest text, in which nothing begins, does without: while the
/// stream is idle it changes nothing but how much was read, and that is counted here. Streams with patterns or loops
/// need the text itself, too: they read it behind the lock.
///
/// What the commonest text needs comes first: a stream that is out of the cache costs as few lines of it as can be.
#[repr(C)]
pub(crate) struct Guarded<C> {
    /// How many bytes passed since the core last knew.
    passed: AtomicUsize,
    /// The filter that a text passes in which nothing begins.
    filter: AtomicU64,
    /// How many of the bytes that passed continue a code point.
    continued: AtomicUsize,
    /// The node at which an idle stream is, or `NOT_IDLE`.
    node: AtomicU32,
    /// How many parts came before the one in which an idle stream is.
    part: AtomicU32,
    /// Whether the core has to see the text that passes.
    needs_text: bool,
    state: Turns<State<C>>,
}

const NOT_IDLE: u32 = u32::MAX;

pub(crate) struct State<C> {
    pub(crate) core: C,
    /// The match as Python sees it, made when the stop fired.
    pub(crate) found: Option<Py<StopMatch>>,
}

/// Whether calls exclude each other without a lock. Objects of a free-threaded build are larger; `always_lock` makes a
/// build for tests do what that one does.
pub(crate) const GIL: bool = !cfg!(always_lock) && size_of::<pyo3::ffi::PyObject>() == 2 * size_of::<usize>();

impl<C: Core> Guarded<C> {
    pub(crate) fn new(core: C, found: Option<Py<StopMatch>>) -> Guarded<C> {
        let guarded = Guarded {
            passed: AtomicUsize::new(0),
            filter: AtomicU64::new(NOTHING_PASSES),
            continued: AtomicUsize::new(0),
            node: AtomicU32::new(NOT_IDLE),
            part: AtomicU32::new(0),
            needs_text: core.stream().set().needs_text(),
            state: Turns::new(State { core, found }),
        };
        // Nobody else has it yet.
        let _ = guarded.read(|_| ());
        guarded
    }

    /// What `action` does with the state, for a call that changes it. Raises `RuntimeError` if another such call runs.
    #[inline]
    pub(crate) fn change<T>(&self, action: impl FnOnce(&mut State<C>) -> T) -> PyResult<T> {
        Ok(self.with(self.state.change("scanner")?, action))
    }

    /// What `action` does with the state, for a call that only reads it. Waits for the call that runs.
    pub(crate) fn read<T>(&self, action: impl FnOnce(&mut State<C>) -> T) -> PyResult<T> {
        Ok(self.with(self.state.read("scanner")?, action))
    }

    #[inline]
    fn with<T>(&self, mut state: Turn<'_, State<C>>, action: impl FnOnce(&mut State<C>) -> T) -> T {
        self.close_fast_path(state.core.stream_mut());
        let result = action(&mut state);
        if GIL && state.core.is_idle() {
            self.open_fast_path(state.core.stream());
        }
        result
    }

    /// Counts in the core what passed, and lets nothing more pass.
    fn close_fast_path(&self, stream: &mut Stream<C::Emit>) {
        let (bytes, continued) = (self.passed.load(Relaxed), self.continued.load(Relaxed));
        stream.skip(Place { bytes, code_points: bytes - continued });
        self.passed.store(0, Relaxed);
        self.continued.store(0, Relaxed);
        self.node.store(NOT_IDLE, Relaxed);
        self.filter.store(NOTHING_PASSES, Relaxed);
    }

    /// Lets text pass in which nothing begins: the stream is idle.
    fn open_fast_path(&self, stream: &Stream<C::Emit>) {
        let node = stream.node();
        self.node.store(node, Relaxed);
        self.part.store(stream.part(), Relaxed);
        if !self.needs_text {
            self.let_pass(stream.set().filter(node));
        }
    }

    /// The node at which `text` is, and its length, if reading it changes nothing but counters.
    #[inline(always)]
    pub(crate) fn plain(&self, set: &Set<C::Emit>, text: &str) -> Option<(u32, Place)> {
        let node = self.node.load(Relaxed);
        if node == NOT_IDLE {
            return None;
        }
        Some((node, set.plain_length(node, text)?))
    }

    /// How many parts came before the one in which an idle stream is.
    #[inline(always)]
    pub(crate) fn part(&self) -> u32 {
        self.part.load(Relaxed)
    }

    /// Reads `text`, which is plain and has this length; `false` if it takes more than that.
    #[inline(always)]
    pub(crate) fn pass(&self, text: &str, length: Place) -> bool {
        if self.needs_text {
            return self.pass_text(text, length);
        }
        self.count(length.bytes, length.bytes - length.code_points);
        true
    }

    #[inline(never)]
    fn pass_text(&self, text: &str, length: Place) -> bool {
        self.state.if_free(|state| state.core.stream_mut().skip_text(text, length)).unwrap_or(false)
    }

    /// The node at which a text is of which the shape tells that nothing begins in it.
    #[inline(always)]
    pub(crate) fn plain_by(&self, shape: Shape) -> Option<u32> {
        shape.passes(self.filter.load(Relaxed)).then(|| self.node.load(Relaxed))
    }

    /// Counts a text as passed.
    #[inline(always)]
    pub(crate) fn count(&self, bytes: usize, continued: usize) {
        self.passed.store(self.passed.load(Relaxed) + bytes, Relaxed);
        if continued > 0 {
            self.continued.store(self.continued.load(Relaxed) + continued, Relaxed);
        }
    }

    /// The node at which an idle stream is, if all that it needs of a text is how long it is.
    pub(crate) fn node_to_count_at(&self) -> Option<u32> {
        (self.is_idle() && !self.needs_text).then(|| self.node.load(Relaxed))
    }

    /// Says what passes by its shape.
    pub(crate) fn let_pass(&self, filter: u64) {
        self.filter.store(filter, Relaxed);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.node.load(Relaxed) != NOT_IDLE
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Guarded<C>>
    where
        C: Clone,
    {
        self.read(|state| {
            room(2 * state.core.stream().size())?;
            Ok(Guarded::new(state.core.clone(), state.found.as_ref().map(|found| found.clone_ref(py))))
        })?
    }

    pub(crate) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        match self.is_idle() {
            true => Ok(None),
            false => self.read(|state| {
                state.note_match(py)?;
                Ok(state.found.as_ref().map(|found| found.clone_ref(py)))
            })?,
        }
    }
}

impl<C: Core> State<C> {
    /// Makes the match for Python, if a stop has fired.
    pub(crate) fn note_match(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.found.is_none() {
            self.found = self.core.stream().stop_match().map(|found| StopMatch::from_core(py, found)).transpose()?;
        }
        Ok(())
    }
}
