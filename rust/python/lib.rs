//! The Python module `stopscan._stopscan`: the crate `stopscan` as Python classes and functions.

use pyo3::prelude::*;

mod arguments;
mod errors;
mod matches;
mod objects;
mod rewrite;
mod sets;
mod sources;
mod streams;
mod tokens;
mod turns;
mod unlocked;
mod vocabulary;

#[pymodule]
mod _stopscan {
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;
    use pyo3::sync::PyOnceLock;

    /// Raises `ImportError` if another interpreter of this process has imported the module. Interpreters must not share
    /// Python objects, but the static variables of this module have some.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        static BUILTINS: PyOnceLock<Py<PyModule>> = PyOnceLock::new(); // each interpreter has a module of its own
        let py = module.py();
        let builtins = py.import("builtins")?;
        match BUILTINS.get_or_init(py, || builtins.clone().unbind()).is(&builtins) {
            true => Ok(()),
            false => Err(PyImportError::new_err(
                "stopscan is in use in another interpreter of this process; only one interpreter can import it",
            )),
        }
    }

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::matches::StopMatch;
    #[pymodule_export]
    use super::rewrite::{RewriteSet, Rewriter};
    #[pymodule_export]
    use super::sets::{Repeat, SegmentSet, StopSet, formats, truncate};
    #[pymodule_export]
    use super::sources::{RewriteStream, SegmentStream, StopStream, rewrite, scan, split};
    #[pymodule_export]
    use super::streams::{Segmenter, StopScanner};
    #[pymodule_export]
    use super::tokens::{TokenScanner, TokenSegmenter};
    #[pymodule_export]
    use super::vocabulary::Vocabulary;
}
