//! Hugging Face's `tokenizer.json`: the tokens, and what its decoder makes of them.

use std::collections::HashSet;

use super::byte_level::Spelling;
use super::{Strays, TokenKind, Vocabulary, VocabularyBuilder, VocabularyError};

mod decoder;
mod file;

use decoder::{Decoding, Pieces};
use file::File;

/// The vocabulary of a `tokenizer.json`.
pub(crate) fn read(json: &[u8]) -> Result<Vocabulary, VocabularyError> {
    let File { added_tokens, decoder, model } =
        serde_json::from_slice(json).map_err(|error| VocabularyError::NoTokenizer(error.to_string()))?;
    let decoding = Decoding::of(decoder.as_ref()).map_err(VocabularyError::NotNative)?;
    let mut tokens = model.vocab.0;
    for added in &added_tokens {
        tokens.put(added.id, added.content.clone()).map_err(VocabularyError::NoTokenizer)?;
    }
    // The library leaves out by the text: of several ids with one text all are special, or none is.
    let special = added_tokens.iter().filter(|added| added.special).map(|added| &*added.content).collect();
    let tokens = tokens.iter();
    match decoding {
        Decoding::ByteLevel => byte_level(tokens, &special),
        Decoding::Pieces(pieces) => in_pieces(tokens, &special, &pieces),
    }
    .build()
}

fn byte_level<'a>(tokens: impl Iterator<Item = Option<&'a str>>, special: &HashSet<&str>) -> VocabularyBuilder {
    let spelling = Spelling::new();
    tokens.fold(Vocabulary::builder(), |builder, token| match token {
        Some(token) => builder.token(&spelling.bytes(token), kind(token, special)),
        None => builder.gap(),
    })
}

fn in_pieces<'a>(
    tokens: impl Iterator<Item = Option<&'a str>>,
    special: &HashSet<&str>,
    pieces: &Pieces,
) -> VocabularyBuilder {
    let builder = Vocabulary::builder()
        .strays(if pieces.byte_fallback { Strays::Runs } else { Strays::Parts })
        .strip_first_space(pieces.strips || pieces.dropped.is_some());
    tokens.fold(builder, |builder, token| match token {
        Some(token) => piece(builder, token, kind(token, special), pieces),
        None => builder.gap(),
    })
}

fn piece(builder: VocabularyBuilder, token: &str, kind: TokenKind, pieces: &Pieces) -> VocabularyBuilder {
    let text = pieces.text(token);
    if let Some(byte) = pieces.byte(&text) {
        let builder = builder.byte(byte);
        return if pieces.strips && byte == b' ' { builder.at_start("") } else { builder };
    }
    let builder = builder.token(text.as_bytes(), kind);
    match pieces.first(token) {
        Some(first) => builder.at_start(first),
        None => builder,
    }
}

fn kind(token: &str, special: &HashSet<&str>) -> TokenKind {
    if special.contains(token) { TokenKind::SPECIAL } else { TokenKind::default() }
}
