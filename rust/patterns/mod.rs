//! Regular expressions as stops.
//!
//! regex-syntax reads a pattern and regex-automata makes a DFA of all of a set's. A `Machine` is that DFA beside what
//! else could complete first, as one table; `Threads` read a stream with it.

mod machine;
mod snapshot;
mod source;
mod syntax;
mod threads;

pub(crate) use machine::Machine;
pub(crate) use snapshot::Begun;
pub(crate) use source::{Refusal, Source};
pub(crate) use threads::{MAX_HELD, PatternHit, Threads};
