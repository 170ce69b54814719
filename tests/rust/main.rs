//! The crate against its oracle, its vectors and its promises.

mod api;
mod case;
mod patterns;
mod properties;
mod reference;
mod segments;
mod snapshots;
mod tokens;
mod vectors;
