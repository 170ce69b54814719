//! What the four classes of streams have in common. PyO3 has no generic classes: these macros write the methods that
//! are the same in all of them.

/// The methods of a stream, after those of its own class. `$stream` is the field that has the stream.
macro_rules! stream_class {
    ($class:ident, $($own:tt)*) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// An equal stream that goes on independently.
            fn copy(&self, py: Python<'_>) -> PyResult<$class> {
                self.stream.copy(py).map($class::of)
            }

            /// The state of the stream as bytes, for one of an equal set and equal options, in another process or on
            /// another machine. The set, the tokenizer and the vocabulary are not in it.
            fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                bytes(py, self.stream.snapshot(py)?.as_bytes())
            }

            /// Makes the stream the one that ``snapshot`` is of.
            ///
            /// Raises ``ValueError`` for one of another set or other options, for damaged bytes and for an unknown
            /// version; the stream is then as before.
            #[pyo3(signature = (snapshot, /))]
            fn restore(&self, snapshot: &Bound<'_, PyAny>) -> PyResult<()> {
                self.stream.restore(snapshot.py(), &read_snapshot(snapshot)?)
            }

            /// The region that is open.
            #[getter]
            fn region(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
                self.stream.region(py)
            }

            /// The stop that fired, or ``None``. Its offset counts all the text, markers included.
            #[getter]
            fn r#match(&self, py: Python<'_>) -> PyResult<Option<Py<StopMatch>>> {
                self.stream.found(py)
            }

            /// The text that is withheld because it may still turn into a hidden stop, or into a marker that is taken
            /// out.
            #[getter]
            fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.held(py)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<$class> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<$class> {
                self.copy(py)
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickle<'py>> {
                let (arguments, options) = slf.get().stream.arguments(slf.py())?;
                let (make, arguments) = rebuild(slf.get_type(), arguments, options)?;
                Ok((make, arguments, slf.get().snapshot(slf.py())?))
            }

            fn __setstate__(&self, state: &Bound<'_, PyAny>) -> PyResult<()> {
                self.restore(state)
            }
        }
    };
}

/// The methods of a stream of deltas.
macro_rules! delta_class {
    ($class:ident, $out:ty, $($own:tt)*) => {
        stream_class! { $class,
            $($own)*

            /// What is held, at the end of the stream; nothing is held after it. It belongs to the region that is open.
            ///
            /// No stop and no marker spans a flush; a pattern that needs to see what follows may complete here.
            fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py)
            }

            /// Goes back to the start of a stream.
            fn reset(&self) -> PyResult<()> {
                self.stream.reset()
            }

            /// What followed the stop in the delta that completed it.
            #[getter]
            fn unused<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
                self.stream.unused(py)
            }
        }
    };
}

/// The methods of a stream of tokens.
macro_rules! token_class {
    ($class:ident, $out:ty, $($own:tt)*) => {
        stream_class! { $class,
            $($own)*

            /// What is safe to emit now that ``token_id`` was read; nothing once the stream is over.
            ///
            /// Raises ``ValueError`` for an id that the tokenizer does not have and ``TypeError`` for what is no
            /// integer; the stream is then as before. An id that ends the stream need not be the tokenizer's.
            #[pyo3(signature = (token_id, /))]
            #[inline]
            fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed(token_id)
            }

            /// What is safe to emit now that all of ``token_ids`` were read: what ``feed`` gives for each, joined.
            ///
            /// It is for steps that bring several tokens. Those after the end of the stream are not read. If an id is
            /// wrong, none was read.
            #[pyo3(signature = (token_ids, /))]
            fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed_many(token_ids)
            }

            /// The rest, when the stream ends for another ``reason``: half a character as U+FFFD, and what is held.
            ///
            /// ``reason`` is one of ``Finish`` that needs no stop or token id; any other raises ``ValueError``. Once
            /// the stream is over there is nothing more, and nothing changes.
            #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
            fn close<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.close(py, reason)
            }

            /// What is safe to emit now that a token without text was counted, which ends the stream if there is a
            /// ``reason``. It is for engines: their models have more ids than their tokenizers.
            #[pyo3(signature = (reason = None))]
            fn _count<'py>(
                &self,
                py: Python<'py>,
                reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.count(py, reason)
            }

            /// Goes back to the start of the stream, after the prompt.
            fn reset(&self) -> PyResult<()> {
                self.stream.reset()
            }

            /// Why the stream is over, as soon as it is; until then ``None``.
            #[getter]
            fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
                self.stream.finish(py)
            }

            /// How many tokens were fed, for usage.
            #[getter]
            fn tokens_seen(&self) -> usize {
                self.stream.seen()
            }

            /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and
            /// logprobs.
            #[getter]
            fn tokens_kept(&self) -> PyResult<usize> {
                self.stream.kept()
            }
        }
    };
}

pub(super) use {delta_class, stream_class, token_class};
