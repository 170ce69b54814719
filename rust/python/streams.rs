//! The Python classes for streams of deltas. Threads can share a stream. Most deltas are read without its lock.

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use stopscan::host::{NOTHING_PASSES, Place};
use stopscan::{Emit, Options, Segmented, Segments, Set, Snapshot, Stream, Text};

use crate::arguments::{SNAPSHOT, options, read_snapshot, read_text, short_text, string, with_text};
use crate::errors::OrRaise;
use crate::matches::StopMatch;
use crate::objects::{self, bytes, new_string, rebuild, room};
use crate::sets::{SegmentSet, StopSet, short_repr};
use crate::turns::{GIL, Turn, Turns};
use crate::unlocked::Unlocked;

/// The methods that `StopScanner`, `Segmenter`, `TokenScanner` and `TokenSegmenter` share.
macro_rules! stream_methods {
    ($class:ident, $name:ident: $set:ident) => {
        #[pymethods]
        impl $class {
            /// Returns a copy of the stream. The copy and the stream go on independently.
            fn copy(&self, py: Python<'_>) -> PyResult<$class> {
                Ok($class { stream: self.stream.copy(py)? })
            }

            /// Goes back to the start of the stream. Returns nothing.
            fn reset(&self) -> PyResult<()> {
                self.stream.guarded().change(|core| core.restart())?
            }

            /// Returns the state of the stream as bytes. A stream with an equal set and equal options can ``restore``
            /// it, also in another process or on another machine. The bytes do not contain the set, the tokenizer or
            /// the vocabulary.
            fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                bytes(py, self.stream.guarded().snapshot()?.as_bytes())
            }

            /// Replaces the state of the stream by the state in ``snapshot``. Returns nothing.
            ///
            /// Raises ``ValueError`` for a snapshot that was made with another set or other options, for damaged bytes,
            /// and for an unknown version of the format. After an error the stream is as before.
            #[pyo3(signature = (snapshot))]
            fn restore(&self, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
                let snapshot = read_snapshot(snapshot)?;
                self.stream.guarded().change(|core| core.resume(&snapshot))?
            }

            /// The name of the region that is open.
            #[getter]
            fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
                self.stream.guarded().region(py)
            }

            /// The stop that fired, or ``None``. Its ``offset`` counts code points of the input, markers included.
            #[getter]
            fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
                self.stream.guarded().found(py)
            }

            /// The text that is withheld because it may be the beginning of a hidden stop, or of a marker that is not
            /// in the output.
            #[getter]
            fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.guarded().held(py)
            }

            /// The text after the stop in the delta or token that completed the stop.
            #[getter]
            fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.guarded().unused(py)
            }

            #[doc = concat!("The ``", stringify!($set), "`` of the stream.")]
            #[getter]
            fn $name(&self, py: Python<'_>) -> Py<$set> {
                self.stream.guarded().set.clone_ref(py)
            }

            fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.guarded().repr(py, stringify!($class))
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

/// The methods that `StopScanner` and `Segmenter` share.
macro_rules! delta_methods {
    ($class:ident, $name:ident: $set:ident, $out:ty) => {
        stream_methods!($class, $name: $set);

        #[pymethods]
        impl $class {
            /// Returns the held text, which belongs to the open region. Call ``flush`` at the end of the stream.
            ///
            /// The held text can then no longer become a stop or marker. But a pattern that waits for the next
            /// character, such as one that ends with ``\b``, may complete here.
            fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py)
            }

            /// Returns the held text and ``text``, joined, without scanning ``text``.
            ///
            /// Use it for text that must not be scanned, such as the arguments of a tool call. The text that was held
            /// can then no longer become a stop or marker. An open region stays open. After a match the result is
            /// empty.
            ///
            /// >>> scanner = StopScanner("END")
            /// >>> scanner.feed("EN"), scanner.bypass("-"), scanner.feed("D")
            /// ('', 'EN-', 'D')
            #[pyo3(signature = (text, /))]
            fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.bypass(text)
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
/// - ``region``: where the stream begins: a region, or a state of one, such as ``"answer/after reasoning"``.
///
/// Only one thread at a time may feed a scanner: a ``feed`` during another ``feed`` raises ``RuntimeError``. Any thread
/// may read ``match``, ``held`` and ``region``: the read waits until a running ``feed`` has ended.
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
        let options = options(include_stop, start_protected, region)?;
        Ok(StopScanner { stream: Deltas::with_options(StopSet::of(stop)?, &options)? })
    }

    /// Reads ``delta`` and returns the text that is safe to emit now. If nothing is held, this is the object ``delta``
    /// itself.
    ///
    /// After a match the text is ``""``. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes in a later delta with ``armed=True`` does fire.
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
}

delta_methods!(StopScanner, stops: StopSet, PyString);

/// Cuts one stream into segments: give ``feed`` each delta, emit the segments that ``feed`` returns, and call ``flush``
/// at the end.
///
/// A segment is a tuple: the region, the text, and the part. Markers are taken out of the text. The segments' texts and
/// the markers between them, joined in order, are the input.
///
/// The part is a number that distinguishes two tool calls in a row. It is 0 at the start of the stream. A marker adds 1
/// if it leads to another region or state, or is kept in the text with ``keep``. A marker with ``stay`` adds nothing.
/// Text of one part may come in several segments. Join the text of the reasoning and of the answer by region, and the
/// text of calls by part.
///
/// - ``segments``: a ``SegmentSet``, or the markers that make a set.
/// - ``region``: where the stream begins. The default is the first region.
/// - ``include_stop``: whether every stop stays in the output.
///
/// Only one thread at a time may feed a segmenter: a ``feed`` during another ``feed`` raises ``RuntimeError``. Any
/// thread may read ``match``, ``held`` and ``region``: the read waits until a running ``feed`` has ended.
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

#[pymethods]
impl Segmenter {
    #[new]
    #[pyo3(signature = (segments, /, *, region = None, include_stop = false))]
    pub(crate) fn new(
        segments: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        include_stop: bool,
    ) -> PyResult<Segmenter> {
        let options = options(include_stop, false, region)?;
        Ok(Segmenter { stream: Deltas::with_options(SegmentSet::of(segments)?, &options)? })
    }

    /// Reads ``delta`` and returns the list of segments that are safe to emit now. No segment is empty, and two
    /// segments in a row always belong to different parts.
    ///
    /// After a match the list is empty. With ``armed=False``, a stop that completes inside ``delta`` does not fire. A
    /// stop that begins inside ``delta`` and completes in a later delta with ``armed=True`` does fire. Markers also
    /// count with ``armed=False``.
    ///
    /// Raises ``TypeError`` for a delta that is not a string and ``UnicodeEncodeError`` for a lone surrogate. After an
    /// error the segmenter is as before.
    #[pyo3(signature = (delta, /, *, armed = true))]
    #[inline]
    fn feed<'py>(&self, delta: &Bound<'py, PyAny>, armed: bool) -> PyResult<Bound<'py, PyList>> {
        let delta = string(delta, "delta")?;
        if let Some(text) = short_text(delta)?
            && !text.is_empty()
            && let Some(node) = self.stream.feed_plain(text)
        {
            return Segmented::whole(self.stream.set.get(), node, self.stream.unlocked.part(), delta);
        }
        self.stream.feed(delta, armed)
    }
}

delta_methods!(Segmenter, segments: SegmentSet, PyList);

impl<E: PyEmit> Core for Stream<E> {
    type Emit = E;
    type Unread = ();

    fn stream(&self) -> &Stream<E> {
        self
    }

    fn stream_mut(&mut self) -> &mut Stream<E> {
        self
    }

    fn is_idle(&self) -> bool {
        self.idle_node().is_some()
    }

    fn fork(&self) -> PyResult<Stream<E>> {
        Ok(self.clone())
    }

    fn restart(&mut self) -> PyResult<()> {
        self.reset();
        Ok(())
    }

    fn state(&self) -> PyResult<Snapshot> {
        Ok(self.snapshot())
    }

    fn resume(&mut self, snapshot: &Snapshot) -> PyResult<()> {
        self.restore(snapshot).or_raise()
    }
}

/// A stream of deltas that threads of Python can share.
pub(crate) type Deltas<E> = Guarded<Stream<E>>;

impl<E: PyEmit> Deltas<E> {
    fn with_options(set: Py<E::Class>, options: &Options) -> PyResult<Deltas<E>> {
        let stream = Stream::with_options(E::core(set.get()), options).or_raise()?;
        Ok(Guarded::new(set, stream))
    }

    fn guarded(&self) -> &Deltas<E> {
        self
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Deltas<E>> {
        Ok(Guarded::new(self.set.clone_ref(py), self.fork()?))
    }

    /// Slow path: reads any `delta` with the lock held, and returns the safe output.
    #[cold]
    pub(crate) fn feed<'py>(&self, delta: &Bound<'py, PyString>, armed: bool) -> PyResult<Bound<'py, E::Out>> {
        with_text(delta, |text| self.feed_locked(delta, text, armed).map(|fed| fed.0))
    }

    /// Reads `delta` with the lock held. `text` is the text of `delta`, which the caller has already read. Returns the
    /// safe output, and whether a stop has fired.
    #[cold]
    pub(crate) fn feed_locked<'py>(
        &self,
        delta: &Bound<'py, PyString>,
        text: &str,
        armed: bool,
    ) -> PyResult<(Bound<'py, E::Out>, bool)> {
        self.change(|stream| {
            stream.ask_memory(text).or_raise()?;
            let output = read_text(delta.py(), text, || match armed {
                true => stream.feed(text),
                false => stream.feed_unarmed(text),
            });
            let safe = E::emit(delta.py(), self.set.get(), output.into(), Some((delta, text)))?;
            Ok((safe, stream.stop_match().is_some()))
        })?
    }

    pub(crate) fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, E::Out>> {
        self.change(|stream| {
            stream.ask_memory("").or_raise()?;
            E::emit(py, self.set.get(), stream.flush().into(), None)
        })?
    }

    pub(crate) fn bypass<'py>(&self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, E::Out>> {
        let delta = string(text, "text")?;
        with_text(delta, |text| {
            self.change(|stream| {
                stream.ask_memory(text).or_raise()?;
                E::emit(delta.py(), self.set.get(), stream.bypass(text).into(), Some((delta, text)))
            })?
        })
    }

    /// Returns the arguments that make an equal stream, for pickle.
    pub(crate) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        self.look(|stream| add_options(&options, &stream.options()))??;
        Ok(((&self.set,).into_pyobject(py)?, options))
    }
}

/// Adds `options` to `arguments`, the keyword arguments with which pickle makes a stream again.
pub(crate) fn add_options(arguments: &Bound<'_, PyDict>, options: &Options) -> PyResult<()> {
    arguments.set_item("include_stop", options.include_stop)?;
    if options.start_protected {
        arguments.set_item("start_protected", true)?;
    }
    match &options.region {
        None => Ok(()),
        Some(region) => arguments.set_item("region", new_string(arguments.py(), region)?),
    }
}

/// A delta and its text.
pub(crate) type Delta<'a, 'py> = (&'a Bound<'py, PyString>, &'a str);

/// A kind of output (text or segments) for Python: `Class` is the Python class of its sets, and `Out` is the Python
/// class of the object that `feed` returns.
pub(crate) trait PyEmit: Emit {
    type Class: PyClass<Frozen = True> + Sync;
    type Out;

    fn core(set: &Self::Class) -> &Set<Self>;

    /// Returns for each node the name of its region. A node is a region, or a state of a region.
    fn names(set: &Self::Class) -> &[Py<PyString>];

    /// Returns `text` as output: a string, or a list with one segment. The caller must only pass text that is not empty
    /// and is safe to emit as a whole. `node` and `part` say to which region and to which part of the stream the text
    /// belongs.
    fn whole<'py>(
        set: &Self::Class,
        node: u32,
        part: u32,
        text: &Bound<'py, PyString>,
    ) -> PyResult<Bound<'py, Self::Out>>;

    /// Returns the safe output `safe` as a Python object. If a text in it is all of `delta`, uses the object `delta`
    /// itself.
    fn emit<'py>(
        py: Python<'py>,
        set: &Self::Class,
        safe: Self::Tokens<'_>,
        delta: Option<Delta<'_, 'py>>,
    ) -> PyResult<Bound<'py, Self::Out>>;
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

    fn emit<'py>(
        py: Python<'py>,
        _: &StopSet,
        safe: &str,
        delta: Option<Delta<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyString>> {
        same_or_new(py, safe, delta)
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
        let region = &set.names[node as usize];
        PyList::new(text.py(), [(region, text, part).into_pyobject(text.py())?])
    }

    fn emit<'py>(
        py: Python<'py>,
        set: &SegmentSet,
        safe: Segments<'_>,
        delta: Option<Delta<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let tuple = |segment: stopscan::Segment<'_>| {
            let name = set.regions.iter().zip(set.core.regions()).find(|(_, name)| *name == segment.region);
            let name =
                name.map_or_else(|| new_string(py, segment.region), |(object, _)| Ok(object.bind(py).clone()))?;
            (name, same_or_new(py, segment.text, delta)?, segment.part).into_pyobject(py)
        };
        objects::list(py, safe.into_iter().map(tuple))
    }
}

/// Returns `safe` as a Python string. If `safe` is all of the delta's text, returns the object `delta` itself.
#[inline]
pub(crate) fn same_or_new<'py>(
    py: Python<'py>,
    safe: &str,
    delta: Option<Delta<'_, 'py>>,
) -> PyResult<Bound<'py, PyString>> {
    match delta {
        Some((delta, text)) if std::ptr::eq(safe, text) => Ok(delta.clone()),
        _ => new_string(py, safe),
    }
}

/// The value behind the lock: a stream of deltas or of tokens.
pub(crate) trait Core: Sized {
    type Emit: PyEmit;

    /// The tokens that the fast path took without the lock, and that the stream behind the lock must still read. A
    /// stream of deltas has none: `()`.
    type Unread: Default;

    fn stream(&self) -> &Stream<Self::Emit>;

    fn stream_mut(&mut self) -> &mut Stream<Self::Emit>;

    /// Whether the stream is idle: it has not ended, and no stop, marker or character is incomplete. If no stop or
    /// marker begins in the next text, an idle stream only has to count this text.
    fn is_idle(&self) -> bool;

    /// Reads the tokens of `unread`, which were fed without the lock.
    fn catch_up(&mut self, _unread: &Self::Unread) {}

    /// Stores in `unread` how many tokens this stream has read. The fast path, which takes tokens without the lock,
    /// adds its tokens to this count.
    fn publish(&self, _unread: &Self::Unread) {}

    fn fork(&self) -> PyResult<Self>;

    fn restart(&mut self) -> PyResult<()>;

    fn state(&self) -> PyResult<Snapshot>;

    fn resume(&mut self, snapshot: &Snapshot) -> PyResult<()>;
}

/// A stream that threads of Python can share, with its set.
///
/// Taking the lock would be a fifth of the time of a `feed`, so most text is read without it. Two conditions must hold:
/// no stop or marker is incomplete (the stream is *idle*), and none begins in the text (the text is *plain*). Then the
/// stream needs only the length of the text. Under the GIL, `Guarded` adds up these lengths without the lock. Streams
/// with patterns or loops need the text itself, and read it with the lock held.
#[repr(C)]
pub(crate) struct Guarded<C: Core> {
    pub(crate) unlocked: Unlocked<C::Unread>,
    /// Whether `core` needs the text itself and not only its length, because the set has patterns or loops.
    pub(crate) needs_text: bool,
    pub(crate) set: Py<<C::Emit as PyEmit>::Class>,
    core: Turns<C>,
}

impl<C: Core> Guarded<C> {
    pub(crate) fn new(set: Py<<C::Emit as PyEmit>::Class>, core: C) -> Guarded<C> {
        let unlocked = Unlocked::default();
        core.publish(&unlocked.unread);
        let needs_text = core.stream().set().needs_text();
        let guarded = Guarded { unlocked, needs_text, set, core: Turns::new(core) };
        let _ = guarded.look(|_| ()); // opens the fast path; cannot fail, as no other thread has the stream yet
        guarded
    }

    /// Runs `action`, which changes the stream. Raises `RuntimeError` if another call is changing the stream.
    #[inline]
    pub(crate) fn change<T>(&self, action: impl FnOnce(&mut C) -> T) -> PyResult<T> {
        Ok(self.with(self.core.change("scanner")?, action))
    }

    /// Runs `action`, which only reads the stream. If another call is using the stream, waits until that call ends.
    pub(crate) fn look<T>(&self, action: impl FnOnce(&mut C) -> T) -> PyResult<T> {
        Ok(self.with(self.core.read("scanner")?, action))
    }

    #[inline]
    fn with<T>(&self, mut turn: Turn<'_, C>, action: impl FnOnce(&mut C) -> T) -> T {
        let core = &mut *turn.value;
        core.stream_mut().skip(self.unlocked.close());
        core.catch_up(&self.unlocked.unread);
        let result = action(core);
        core.publish(&self.unlocked.unread);
        if GIL && core.is_idle() {
            let (stream, node) = (core.stream(), core.stream().node());
            let filter = if self.needs_text { NOTHING_PASSES } else { stream.set().filter(node) };
            self.unlocked.open(node, stream.part(), filter);
        }
        result
    }

    /// Fast path: reads `text` without waiting for the lock, and returns the current node (a region, or a state of a
    /// region). All of `text` is then safe to emit.
    ///
    /// Returns `None` and changes nothing if the stream is not idle, or if `plain_length` returns `None` for `text`. If
    /// the set has patterns or loops, also returns `None` if a loop may complete in `text`, or if another thread has
    /// the lock.
    #[inline(always)]
    pub(crate) fn feed_plain(&self, text: &str) -> Option<u32> {
        let node = self.unlocked.idle_node()?;
        let length = C::Emit::core(self.set.get()).plain_length(node, text)?;
        if self.needs_text {
            return self.skip_text(text, length).then_some(node);
        }
        self.unlocked.count(length.bytes, length.bytes - length.code_points);
        Some(node)
    }

    #[inline(never)]
    fn skip_text(&self, text: &str, length: Place) -> bool {
        self.core.if_free(|core| core.stream_mut().skip_text(text, length)).unwrap_or(false)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.unlocked.idle_node().is_some()
    }

    /// Returns a copy of `core`, the stream behind the lock.
    pub(crate) fn fork(&self) -> PyResult<C> {
        self.look(|core| {
            room(2 * core.stream().size())?;
            core.fork()
        })?
    }

    pub(crate) fn snapshot(&self) -> PyResult<Snapshot> {
        self.look(|core| {
            room(SNAPSHOT * core.stream().size())?;
            core.state()
        })?
    }

    pub(crate) fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let node = self.look(|core| core.stream().node())?;
        Ok(C::Emit::names(self.set.get())[node as usize].clone_ref(py))
    }

    pub(crate) fn found(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
        if self.is_idle() {
            return Ok(None);
        }
        self.look(|core| core.stream().stop_match().map(|found| StopMatch::from_core(py, found)).transpose())?
    }

    pub(crate) fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.look(|core| new_string(py, core.stream().held()))?
    }

    pub(crate) fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.look(|core| new_string(py, core.stream().unused()))?
    }

    pub(crate) fn repr<'py>(&self, py: Python<'py>, class: &str) -> PyResult<Bound<'py, PyString>> {
        let (region, held) = (self.region(py)?, self.held(py)?);
        let found = self.found(py)?.map_or_else(|| py.None(), Py::into_any);
        let (region, held, found) = (short_repr(region.bind(py))?, short_repr(&held)?, short_repr(found.bind(py))?);
        new_string(py, &format!("<{class} region={region} held={held} match={found}>"))
    }
}
