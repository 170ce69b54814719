//! From token ids to safe text.

mod decoded;
mod decoder;
mod ends;
mod finish;
mod ledger;
mod native;
mod options;
mod report;
mod snapshot;
mod step;
mod stream;
#[cfg(feature = "python")]
mod undo;

pub use decoder::TokenDecoder;
pub use finish::{EndReason, Finish};
pub use options::{TokenOptions, TokenOptionsError};
pub use stream::{TokenScanner, TokenSegmenter, TokenStream};
#[cfg(feature = "python")]
pub(crate) use {
    decoder::Sink,
    ends::Ends,
    native::{Decode, Native},
    options::Limits,
    undo::Mark,
};
