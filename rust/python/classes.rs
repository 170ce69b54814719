//! What the two classes of sets and the four classes of streams have in common. PyO3 has no generic classes: these macros
//! write the methods that are the same in all of them.

/// The methods of a set, after those of its own class. `$example` shows `region_after`.
macro_rules! set_class {
    ($class:ident, $example:literal, $($own:tt)*) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// The name of the region, or of the state of a region, that is open after ``prefix``.
            ///
            /// ``prefix`` is the assistant's own part of a prompt. Some chat templates end this part with ``<think>``.
            /// Leave the user's words out of ``prefix``.
            ///
            #[doc = $example]
            #[pyo3(signature = (prefix, /))]
            fn region_after<'py>(&self, prefix: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
                let region = with_text(string(prefix, "prefix")?, |prefix| Ok(self.core.region_after(prefix)))?;
                new_string(prefix.py(), region)
            }

            /// The most code points that are held for a pattern. ``None`` means the limit of the library, 65,536.
            #[getter]
            fn max_held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                some_int(py, self.given.max_held)
            }

            /// The ``Repeat`` of the set, or ``None`` if loops are no stop.
            #[getter]
            fn repeat(&self) -> Option<Repeat> {
                self.given.repeat.map(Repeat)
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                other.cast::<$class>().is_ok_and(|other| self.given == other.get().given)
            }

            fn __hash__(&self) -> u64 {
                hash(&self.given)
            }

            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
                slf
            }
        }
    };
}

/// The methods of a stream, after those of its own class. `$stream` is the field that has the stream.
macro_rules! stream_class {
    ($class:ident, $($own:tt)*) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// A copy of the stream. The copy and the stream go on independently.
            fn copy(&self, py: Python<'_>) -> PyResult<$class> {
                self.stream.copy(py).map($class::of)
            }

            /// The state of the stream, as bytes. ``restore`` puts the state into a stream of an equal set and equal
            /// options, in another process or on another machine, too. The set, the tokenizer and the vocabulary are
            /// not in the bytes.
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

            /// The text that is withheld because it may be the beginning of a hidden stop, or of a marker that is taken
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

/// The methods of a stream of deltas.
macro_rules! delta_class {
    ($class:ident, $out:ty, $($own:tt)*) => {
        stream_class! { $class,
            $($own)*

            /// The held text, for the end of the stream. After ``flush`` nothing is held. The text belongs to the open
            /// region.
            ///
            /// No stop and no marker goes across a flush. A pattern that needs to see the text behind may complete
            /// here.
            fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, $out>> {
                self.stream.flush(py)
            }

            /// Makes the object ready for another stream. Returns nothing.
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

/// The methods of a stream of tokens.
macro_rules! token_class {
    ($class:ident, $out:ty, $($own:tt)*) => {
        stream_class! { $class,
            $($own)*

            /// What is safe to emit after ``token_id``. After the end of the stream the result is empty.
            ///
            /// Raises ``ValueError`` for an id that the tokenizer does not have, and ``TypeError`` for an id that is
            /// not an integer. After an error the stream is as before. An EOS or stop token need not be an id of the
            /// tokenizer.
            #[pyo3(signature = (token_id, /))]
            #[inline]
            fn feed<'py>(&self, token_id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed(token_id)
            }

            /// What is safe to emit after all of ``token_ids``: the results of ``feed`` for each id, joined.
            ///
            /// Use ``feed_many`` for a step that brings several tokens. Tokens after the end of the stream are not
            /// read. If an id is wrong, ``feed_many`` raises the error of ``feed`` and reads no id.
            #[pyo3(signature = (token_ids, /))]
            fn feed_many<'py>(&self, token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, $out>> {
                self.stream.feed_many(token_ids)
            }

            /// The rest of the text, when the stream ends for another ``reason``: half a character as U+FFFD, and held
            /// text.
            ///
            /// ``reason`` is a reason of ``Finish`` that needs no stop or token id. Any other reason raises
            /// ``ValueError``. After the end of the stream the result is empty, and nothing changes.
            #[pyo3(signature = (reason = None), text_signature = "($self, reason='eos')")]
            fn close<'py>(
                &self,
                py: Python<'py>,
                #[pyo3(from_py_with = given)] reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.close(py, reason)
            }

            /// What is safe to emit after a token without text. The token is counted. With a ``reason`` the token ends
            /// the stream. Engines need this method, because their models have more ids than their tokenizers.
            #[pyo3(signature = (reason = None))]
            fn _count<'py>(
                &self,
                py: Python<'py>,
                reason: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, $out>> {
                self.stream.count(py, reason)
            }

            /// Goes back to the start of the stream, after the prompt. Returns nothing.
            fn reset(&self) -> PyResult<()> {
                self.stream.reset()
            }

            /// The ``Finish`` of the stream. ``None`` while the stream goes on.
            #[getter]
            fn finish(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
                self.stream.finish(py)
            }

            /// How many tokens were fed, for a usage report.
            #[getter]
            fn tokens_seen<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
                int(py, self.stream.seen())
            }

            /// How many tokens there are up to the last token that has a part in the emitted text. Cut ids and logprobs
            /// there.
            #[getter]
            fn tokens_kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
                int(py, self.stream.kept()?)
            }
        }
    };
}

pub(super) use {delta_class, set_class, stream_class, token_class};
