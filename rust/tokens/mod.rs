//! From token ids to safe text.

mod decoder;
mod ends;
mod ledger;
mod native;
mod options;
mod reader;
mod scanner;
mod segmenter;
mod stream;

pub use decoder::TokenDecoder;
pub use options::TokenOptions;
pub use scanner::TokenScanner;
pub use segmenter::TokenSegmenter;
pub use stream::Finish;
#[cfg(feature = "python")]
pub(crate) use {
    decoder::Decoder,
    ends::Ends,
    ledger::{Ledger, Tally},
    native::Native,
    reader::{Reader, Safe},
    stream::{Limits, TokenStream},
};
