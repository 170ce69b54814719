//! Regular expressions as stops.
//!
//! regex-syntax parses a pattern (`syntax`). The pattern becomes a nondeterministic automaton (`nfa`), and then a
//! deterministic one over classes of characters, for matches that begin at one place (`determinize`, `dfa`). `hold`
//! adds to its states which stops have begun since: if one of them completes first, no text is held for the match.
//! Streams use the automaton as a table (`machine`). `Places` has the places where matches may have begun, and
//! `Threads` the whole state of a stream for its patterns. Patterns come from the users of servers, so their cost is
//! counted before it is spent (`work`).

mod alphabet;
mod compile;
mod determinize;
mod dfa;
mod hold;
mod machine;
mod nfa;
mod places;
mod syntax;
#[cfg(test)]
mod tests;
mod threads;
mod work;

pub(crate) use compile::{Compiled, Compiler, PatternList};
pub(crate) use machine::Machine;
pub(crate) use places::PatternHit;
pub(crate) use threads::{Found, SavedThreads, Threads};
