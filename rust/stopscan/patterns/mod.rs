//! Regular expressions as stops.
//!
//! regex-syntax reads a pattern. What is made of it is a deterministic automaton over classes of characters, for matches
//! that begin at one place (`dfa`); where other stops can complete first, beside all that has begun later (`least`).
//! `Places` are where matches may have begun in a stream, `reader` reads text for them, and `Threads` are what a stream
//! keeps and asks. Patterns come from the users of servers: what they cost is counted before it is spent (`work`).

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

pub(crate) use compile::PatternList;
pub(crate) use compile::{Compiled, Compiler};
pub(crate) use machine::Machine;
pub(crate) use threads::SavedThreads;
pub(crate) use threads::{Found, PatternHit, Threads};
