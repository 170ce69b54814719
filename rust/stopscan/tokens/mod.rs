//! Streams of token ids: decodes the ids, and returns the text that is safe to emit.

mod decoder;
mod ledger;
mod options;
mod snapshot;
mod stream;

pub use decoder::{Decode, Native, Sink, TokenDecoder};
pub use options::{EndReason, Finish, TokenOptions, TokenOptionsError, UnknownIds, end_bit};
pub use stream::{TokenScanner, TokenSegmenter, TokenStream};
