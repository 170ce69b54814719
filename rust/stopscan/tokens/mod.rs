//! From token ids to safe text.

mod decoder;
mod ledger;
mod options;
mod snapshot;
mod stream;

pub use decoder::{Decode, Native, Sink, TokenDecoder};
pub use options::{EndReason, Ends, Finish, Limits, TokenOptions, TokenOptionsError, UnknownIds};
pub use stream::{TokenScanner, TokenSegmenter, TokenStream};
