//! Regular expressions as stops.
//!
//! regex-syntax parses a pattern (`syntax`). All patterns of a set become one nondeterministic automaton (`nfa`), and
//! then a deterministic one (`determinize`, `dfa`), whose states stand for what a match has read since it began. `hold`
//! makes a third automaton, whose states also know which other stops have begun since then. So no text is withheld for
//! a match if another stop must complete first. Streams read an automaton as a table (`machine`). `Threads` has the
//! places where matches may have begun. `PatternState` has all that a stream remembers for its patterns. Patterns come
//! from the users of servers, so every step of compiling them is counted before it is done (`work`).

mod alphabet;
mod compile;
mod costs;
mod determinize;
mod dfa;
mod hold;
mod machine;
mod nfa;
mod state;
mod syntax;
mod threads;
mod work;

pub(crate) use compile::{Compiled, Compiler, PatternList};
pub use costs::PatternCosts;
pub(crate) use machine::Machines;
pub(crate) use state::{Found, PatternState, SavedThreads};
pub(crate) use threads::PatternHit;
