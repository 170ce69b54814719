//! Regular expressions as stops.
//!
//! regex-syntax parses a pattern (`syntax`). The pattern becomes a nondeterministic automaton (`nfa`), and then a
//! deterministic one over classes of characters, for matches that begin at one place (`determinize`, `dfa`). If other
//! stops can complete first, `hold` makes an automaton that also knows which of them have begun later. Streams use the
//! automaton as a table (`machine`). `Places` are the threads of a stream, and `Threads` is the whole state of a stream
//! for its patterns. Patterns come from the users of servers, so their cost is counted before it is spent (`work`).

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
