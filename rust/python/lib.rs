//! The Python module `stopscan._stopscan`: the crate `stopscan` as Python classes and functions.

use pyo3::prelude::*;

mod arguments;
mod errors;
mod matches;
mod objects;
mod sets;
mod sources;
mod streams;
mod tokens;
mod turns;
mod vocabulary;

#[pymodule]
mod _stopscan {
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use super::matches::StopMatch;
    #[pymodule_export]
    use super::sets::{Repeat, SegmentSet, StopSet, formats, truncate};
    #[pymodule_export]
    use super::sources::{SegmentStream, StopStream, scan, split};
    #[pymodule_export]
    use super::streams::{Segmenter, StopScanner};
    #[pymodule_export]
    use super::tokens::{TokenScanner, TokenSegmenter};
    #[pymodule_export]
    use super::vocabulary::Vocabulary;
}
