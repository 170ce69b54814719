//! Streams of token ids: they decode the ids, scan the text for stops, and return the text that is safe to emit.

mod decoder;
mod ledger;
mod options;
mod snapshot;
mod stream;

pub use decoder::{Decode, Native, Sink, TokenDecoder};
pub use options::{EndReason, Finish, TokenOptions, TokenOptionsError, UnknownIds, end_bit};
pub use stream::{TokenScanner, TokenSegmenter, TokenStream};
