//! Exact stop sequences for streams of text, for LLM servers and token loops.
//!
//! A [`StopSet`] is compiled once; a [`StopScanner`] reads one stream, delta by delta, and returns the text that is
//! safe to emit. A [`SegmentSet`] and a [`Segmenter`] do the same for streams that markers cut into parts, such as
//! reasoning and answer.
//!
//! ```
//! use stopscan::{StopScanner, StopSet};
//!
//! let stops = StopSet::new(["END", "\n\nHuman:"])?;
//! let mut scanner = StopScanner::new(&stops);
//! let mut text = String::new();
//! for delta in ["Once upon", " a time. E", "ND"] {
//!     let output = scanner.feed(delta);
//!     text += output.text;
//!     if let Some(found) = output.stop_match {
//!         assert_eq!((found.sequence(), found.index(), found.offset()), ("END", 0, 18));
//!         break;
//!     }
//! }
//! text += scanner.flush().text;
//! assert_eq!(text, "Once upon a time. ");
//! # Ok::<(), stopscan::StopSetError>(())
//! ```
//!
//! The rules:
//!
//! - The stop that completes first wins. If several stops complete at the same character, the longest stop wins.
//! - The result does not depend on how the text is cut into deltas.
//! - Held text is the longest suffix of the text that is a proper prefix of a hidden stop that can fire, or of a marker
//!   that is taken out.
//! - Nothing is lost: what `feed` and `flush` return, joined, is the text before the stop. If no stop fires, it is the
//!   whole text.
//! - In a protected region no stop fires, except a loop (text that repeats). No partial match crosses the edges of the
//!   region.
//! - Offsets count code points. Byte offsets are also available.
//!
//! A [`TokenScanner`] and a [`TokenSegmenter`] take token ids instead of text. A [`Vocabulary`] has the bytes of each
//! id, and a [`TokenDecoder`] decodes a stream of ids.
//!
//! A [`Rewriter`] replaces keys in a stream, such as placeholders by names.
//!
//! Feature `serde`: a [`Snapshot`] can be serialized, and a [`Vocabulary`] can be made from Hugging Face's
//! `tokenizer.json`.
//!
//! DESIGN.md in the repository explains how stopscan works, and why.

mod automaton;
mod error;
mod formats;
mod graph;
#[doc(hidden)]
pub mod host;
mod patterns;
mod repeat;
mod rewrite;
mod room;
mod set;
mod snapshot;
mod stream;
mod text;
mod tokens;
mod vocabulary;

pub use error::{MAX_REGIONS, MAX_SET_BYTES, StopSetError, StopSetErrorKind};
pub use formats::{Format, State};
pub use graph::{Target, keep, stay};
#[doc(hidden)] // for the tests, which check that every step of compiling patterns is counted
pub use patterns::PatternCosts;
pub use repeat::Repeat;
#[doc(hidden)] // for the tests, the benchmark and the fuzz target, which detect loops without a stream
pub use repeat::{Loop, Loops};
pub use rewrite::{RewriteSet, Rewriter};
pub use set::{SegmentSet, SegmentSetBuilder, Set, SetBuilder, StopSet, StopSetBuilder};
pub use snapshot::{Snapshot, SnapshotError};
pub use stream::{
    Emit, Options, Output, Segment, Segmented, Segmenter, Segments, StopMatch, StopScanner, Stream, Text,
};
pub use tokens::{
    EndReason, Finish, TokenDecoder, TokenOptions, TokenOptionsError, TokenScanner, TokenSegmenter, TokenStream,
    UnknownIds,
};
pub use vocabulary::{Strays, UnknownToken, Vocabulary, VocabularyBuilder, VocabularyError};

/// Runs the examples of docs/rust.md as doctests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/rust.md")]
struct Document;
