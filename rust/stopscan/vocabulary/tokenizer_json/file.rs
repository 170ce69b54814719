//! The parts of a `tokenizer.json` that are read. All other parts, such as the merges, are ignored.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

/// A file with more ids than this is refused. The largest known vocabularies have 300,000.
const MOST_IDS: u32 = 1 << 24;

#[derive(Deserialize)]
pub(super) struct File {
    #[serde(default)]
    pub(super) added_tokens: Vec<Added>,
    pub(super) decoder: Option<Step>,
    pub(super) model: Model,
}

#[derive(Deserialize)]
pub(super) struct Added {
    pub(super) id: u32,
    pub(super) content: String,
    #[serde(default)]
    pub(super) special: bool,
}

/// A decoder: a single step, or a sequence of steps. Each kind of step has some of the fields.
#[derive(Deserialize)]
pub(super) struct Step {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) decoders: Vec<Step>,
    pub(super) pattern: Option<Pattern>,
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) replacement: String,
    pub(super) prepend_scheme: Option<String>,
    pub(super) add_prefix_space: Option<bool>,
    #[serde(default)]
    pub(super) start: usize,
    #[serde(default)]
    pub(super) stop: usize,
}

#[derive(Deserialize)]
pub(super) struct Pattern {
    /// `None` if the pattern is a regular expression.
    #[serde(rename = "String")]
    pub(super) literal: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Model {
    pub(super) vocab: Vocab,
}

/// The tokens of a model. In the file they are a map from text to id or, for a Unigram model, a list of pairs of text
/// and score, in the order of the ids.
pub(super) struct Vocab(pub(super) Tokens);

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Vocab, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Vocab;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a vocabulary")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
        let mut tokens = Tokens::default();
        while let Some((token, id)) = map.next_entry()? {
            tokens.put(id, token).map_err(de::Error::custom)?;
        }
        Ok(Vocab(tokens))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vocab, A::Error> {
        let mut tokens = Tokens::default();
        while let Some((token, IgnoredAny)) = seq.next_element::<(String, IgnoredAny)>()? {
            let id = u32::try_from(tokens.0.len()).map_err(A::Error::custom)?;
            tokens.put(id, token).map_err(A::Error::custom)?;
        }
        Ok(Vocab(tokens))
    }
}

/// The text of each id. `None` for an id without a token.
#[derive(Default)]
pub(super) struct Tokens(Vec<Option<Box<str>>>);

impl Tokens {
    pub(super) fn put(&mut self, id: u32, token: String) -> Result<(), String> {
        if id >= MOST_IDS {
            return Err(format!("the id {id} of {token:?} is not below {MOST_IDS}"));
        }
        let at = id as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, None);
        }
        self.0[at] = Some(token.into());
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.0.iter().map(Option::as_deref)
    }
}
