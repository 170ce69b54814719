//! The tests of the crate: comparisons with references, the named cases in `tests/vectors/`, and examples.

mod api;
mod case;
mod formats;
mod loops;
mod patterns;
mod patterns_costs;
mod patterns_syntax;
mod properties;
mod random;
mod reference;
mod repeat;
mod rewrite;
mod segments;
mod snapshots;
#[cfg(feature = "serde")]
mod tokenizer_json;
mod tokens;
mod vectors;
mod worst_texts;
