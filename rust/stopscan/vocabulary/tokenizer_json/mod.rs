//! Reads the tokens of Hugging Face's `tokenizer.json`, and the way in which its decoder makes text from them.

use std::collections::{HashMap, HashSet};

use super::byte_level::Spelling;
use super::{Strays, TokenKind, Vocabulary, VocabularyBuilder, VocabularyError};

mod decoder;
mod file;

use decoder::{Decoding, Pieces};
use file::{Added, File, Tokens};

/// Reads the vocabulary of a `tokenizer.json`. Checks the ids of the added tokens, because the tokenizers library may
/// give them other ids when it loads the file. If `given` is true, that library wrote the ids, so they are not checked.
pub fn read(json: &[u8], given: bool) -> Result<Vocabulary, VocabularyError> {
    let File { added_tokens, decoder, model } =
        serde_json::from_slice(json).map_err(|error| VocabularyError::NoTokenizer(error.to_string()))?;
    let decoding = Decoding::of(decoder.as_ref()).map_err(VocabularyError::NotNative)?;
    let mut tokens = model.vocab.0;
    if !given {
        check_ids(&added_tokens, &tokens)?;
    }
    for added in &added_tokens {
        tokens.put(added.id, added.content.clone()).map_err(VocabularyError::NoTokenizer)?;
    }
    // The tokenizers library skips special tokens by their text: it skips every id that has one of these texts.
    let special = added_tokens.iter().filter(|added| added.special).map(|added| &*added.content).collect();
    let tokens = tokens.iter();
    match decoding {
        Decoding::ByteLevel => byte_level(tokens, &special),
        Decoding::Pieces(pieces) => in_pieces(tokens, &special, &pieces)?,
    }
    .build()
}

/// Returns an error if the tokenizers library would give an added token another id than the file does. If the model has
/// a token with the same text, the library takes its id. Otherwise the library takes the next free id, which it finds
/// by counting tokens. If there are gaps between the ids of the model, this count is wrong, so a model with gaps is not
/// checked.
fn check_ids(added_tokens: &[Added], model: &Tokens) -> Result<(), VocabularyError> {
    let of_model: HashMap<&str, u32> = (0..).zip(model.iter()).filter_map(|(id, token)| Some((token?, id))).collect();
    if model.iter().any(|token| token.is_none()) {
        return Ok(());
    }
    let mut given: HashSet<&str> = HashSet::new();
    let mut next = model.iter().count() as u32; // a Unigram model may have a text twice
    for Added { id, content, .. } in added_tokens {
        if content.is_empty() || !given.insert(content) {
            continue;
        }
        let expected = of_model.get(&**content).copied().unwrap_or(next);
        if *id != expected {
            let problem =
                format!("added token {content:?} has id {id}, but the tokenizers library gives it {expected}");
            return Err(VocabularyError::NoTokenizer(problem));
        }
        next = next.max(id + 1);
    }
    Ok(())
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
) -> Result<VocabularyBuilder, VocabularyError> {
    let builder = Vocabulary::builder()
        .strays(if pieces.byte_fallback { Strays::Runs } else { Strays::Parts })
        .strip_first_space(pieces.strips || pieces.dropped.is_some());
    let mut tokens = tokens;
    tokens.try_fold(builder, |builder, token| match token {
        Some(token) if pieces.is_byte_at_start(token) => {
            let steps = "Metaspace before ByteFallback, with a token that is a byte at the start of a text alone";
            Err(VocabularyError::NotNative(steps.into()))
        }
        Some(token) => Ok(piece(builder, token, kind(token, special), pieces)),
        None => Ok(builder.gap()),
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
