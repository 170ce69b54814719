//! The Python module `stopscan._stopscan`: a file for each class, and what they share. Only this folder names PyO3.

use pyo3::prelude::*;

mod arguments;
mod classes;
mod decoding;
mod delta_stream;
mod deltas;
mod errors;
mod finish;
mod formats;
mod given;
mod guarded;
mod objects;
mod repeat;
mod segment_set;
mod segment_stream;
mod segmenter;
mod show;
mod source;
mod stop_match;
mod stop_scanner;
mod stop_set;
mod stop_stream;
mod token_arguments;
mod token_feed;
mod token_scanner;
mod token_segmenter;
mod tokens;
mod unread_tokens;
mod vocabulary;

#[pymodule]
mod _stopscan {
    #[pymodule_export]
    use super::formats::formats;
    #[pymodule_export]
    use super::repeat::Repeat;
    #[pymodule_export]
    use super::segment_set::SegmentSet;
    #[pymodule_export]
    use super::segment_stream::{SegmentStream, split};
    #[pymodule_export]
    use super::segmenter::Segmenter;
    #[pymodule_export]
    use super::stop_match::StopMatch;
    #[pymodule_export]
    use super::stop_scanner::StopScanner;
    #[pymodule_export]
    use super::stop_set::{StopSet, truncate};
    #[pymodule_export]
    use super::stop_stream::{StopStream, scan};
    #[pymodule_export]
    use super::token_scanner::TokenScanner;
    #[pymodule_export]
    use super::token_segmenter::TokenSegmenter;
    #[pymodule_export]
    use super::vocabulary::Vocabulary;
}
