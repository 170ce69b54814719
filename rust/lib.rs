//! Exact stop sequences for streams of text, as LLM servers and token loops need them.
//!
//! A [`StopSet`] is compiled once; a [`StopScanner`] reads one stream, delta by delta, and returns the text that is
//! safe to emit.
//!
//! ```
//! use stopscan::{StopScanner, StopSet};
//!
//! let stops = StopSet::new(["END", "\n\nHuman:"])?;
//! let mut scanner = StopScanner::new(&stops);
//! let mut text = String::new();
//! for delta in ["Once upon", " a time. E", "ND"] {
//!     text += scanner.feed(delta);
//!     if let Some(found) = scanner.stop_match() {
//!         assert_eq!((found.sequence(), found.offset()), ("END", 18));
//!         break;
//!     }
//! }
//! text += scanner.flush();
//! assert_eq!(text, "Once upon a time. ");
//! # Ok::<(), stopscan::StopSetError>(())
//! ```
//!
//! The rules:
//!
//! - The stop that completes first wins; of those that complete at the same character, the longest.
//! - The result does not depend on how the text is cut into deltas.
//! - Held text is the longest suffix of the text that is a proper prefix of a hidden stop that can fire.
//! - Nothing is lost: what `feed` and `flush` return, joined, is the text before the stop, or all of it.
//! - No stop fires in a protected region, and no partial match crosses its edges.
//! - Offsets count code points.
//!
//! DESIGN.md, in the repository, says how it works and why it is fast.

mod automaton;
mod builder;
mod held;
mod patterns;
mod prefilter;
#[cfg(feature = "python")]
mod python;
mod scanner;
mod set;
mod stop_match;

pub use builder::{MAX_SET_BYTES, StopSetBuilder, StopSetError};
pub use scanner::StopScanner;
pub use set::StopSet;
pub use stop_match::StopMatch;
