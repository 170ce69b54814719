//! From token ids to safe text.

mod decoder;
mod ends;
mod ledger;
mod options;
mod scanner;
mod stream;

pub use decoder::TokenDecoder;
pub use options::TokenOptions;
pub use scanner::TokenScanner;
pub use stream::Finish;
#[cfg(feature = "python")]
pub(crate) use {decoder::Decoder, ends::Ends, stream::Limits, stream::TokenStream};
