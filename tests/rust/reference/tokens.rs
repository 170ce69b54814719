//! The reference for the decoding of token ids: after each token, it decodes all tokens again.

use std::str;

use stopscan::{Strays, TokenOptions, UnknownIds, Vocabulary};

use super::stops::Rules;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    Text(Vec<u8>),
    Byte(u8),
    Special(String),
    Gap,
}

/// A vocabulary, and the stops and options of a scanner over it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tokens: Vec<Token>,
    pub strays: Strays,
    pub strip_first_space: bool,
    pub special_ends_character: bool,
    pub rules: Rules,
    pub options: TokenOptions,
}

/// A character of the text, and the position of the last token that spells a part of it. Positions are counted from 1.
/// The position 0 stands for the prompt.
pub(super) type Character = (char, usize);

/// A byte of text, and the number of its token.
type Byte = (u8, usize);

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

impl Plan {
    pub fn vocabulary(&self) -> Vocabulary {
        let builder = Vocabulary::builder()
            .strays(self.strays)
            .strip_first_space(self.strip_first_space)
            .special_ends_character(self.special_ends_character);
        let add = |builder: stopscan::VocabularyBuilder, token: &Token| match token {
            Token::Text(bytes) => builder.text(bytes),
            Token::Byte(b' ') if self.strips_byte() => builder.byte(b' ').at_start(""),
            Token::Byte(byte) => builder.byte(*byte),
            Token::Special(text) => builder.special(text),
            Token::Gap => builder.gap(),
        };
        self.tokens.iter().fold(builder, add).build().expect("these tokens compile")
    }

    /// Whether the decoder leaves out a space at the beginning of the text, even if a byte token spells it. Llama's
    /// decoder does, because it strips the decoded text and not the tokens.
    fn strips_byte(&self) -> bool {
        self.strip_first_space && self.strays == Strays::Runs
    }

    pub(super) fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(id as usize).filter(|token| **token != Token::Gap)
    }

    /// If unknown ids are refused, returns the first id of the prompt that is not in the vocabulary.
    pub(super) fn unknown_in_prompt(&self) -> Option<u32> {
        let mut unknown = self.options.prompt_token_ids.iter().filter(|&&id| self.token(id).is_none());
        unknown.next().filter(|_| self.options.unknown_ids == UnknownIds::Refuse).copied()
    }

    /// Returns the text of `ids`, the tokens after the prompt. If the stream has not `ended`, leaves out the end of the
    /// text that a later token can still change.
    pub(super) fn spelled(&self, ids: &[u32], ended: bool) -> Vec<Character> {
        let mut out = Vec::new();
        let mut run: Vec<Byte> = Vec::new();
        let mut first = self.strip_first_space;
        let mut stripped = None;
        let prompt = self.options.prompt_token_ids.iter().map(|&id| (id, 0));
        let numbered = ids.iter().zip(1..).map(|(&id, number)| (id, number));
        for (id, number) in prompt.chain(numbered) {
            let token = self.token(id);
            let special = matches!(token, Some(Token::Special(_)));
            if special && self.special_ends_character {
                out.append(&mut self.characters(&std::mem::take(&mut run), stripped, true));
            }
            let bytes = match token {
                None => continue,
                Some(Token::Special(_)) if self.options.skip_special_tokens => continue,
                Some(Token::Byte(byte)) => {
                    if std::mem::take(&mut first) && *byte == b' ' && self.strips_byte() {
                        stripped = Some((' ', number));
                    }
                    run.push((*byte, number));
                    continue;
                }
                Some(Token::Special(text)) => text.as_bytes(),
                Some(Token::Text(bytes)) => bytes,
                Some(Token::Gap) => unreachable!("a gap is no token"),
            };
            let bytes = bytes.strip_prefix(b" ").filter(|_| first).unwrap_or(bytes);
            first = false;
            if self.strays != Strays::Parts {
                out.append(&mut self.characters(&std::mem::take(&mut run), stripped, true));
            }
            run.extend(bytes.iter().map(|&byte| (byte, number)));
            if self.strays != Strays::Parts {
                out.append(&mut self.characters(&std::mem::take(&mut run), stripped, true));
            }
        }
        out.append(&mut self.characters(&run, stripped, ended));
        if out.first() == stripped.as_ref() {
            out.drain(..stripped.map_or(0, |_| 1));
        }
        out.retain(|character| character.1 > 0);
        out
    }

    fn characters(&self, run: &[Byte], stripped: Option<Character>, ended: bool) -> Vec<Character> {
        let mut out = Vec::new();
        let mut at = 0;
        while at < run.len() {
            // Try to read a character of 1 to 4 bytes. At most one length fits, because the first bytes of a character
            // are never a character by themselves.
            let bytes: Vec<u8> = run[at..].iter().map(|byte| byte.0).collect();
            let sizes = 1..=bytes.len().min(4);
            if let Some(character) = sizes.rev().find_map(|size| only_character(&bytes[..size])) {
                at += character.len_utf8();
                out.push((character, run[at - 1].1));
                continue;
            }
            let part = (1..=bytes.len().min(3)).rev().find(|&size| begins_character(&bytes[..size])).unwrap_or(1);
            if part == bytes.len() && begins_character(&bytes) && !ended {
                break;
            }
            let (size, of_all) = match self.strays {
                Strays::Parts => (part, false),
                Strays::Runs => (bytes.len(), true),
                _ => (1, true),
            };
            if let [space] = &mut out[..]
                && Some(*space) == stripped
            {
                space.0 = REPLACEMENT; // before a stray byte, this space is not left out, but becomes U+FFFD
            }
            let tokens = || run[at..at + size].iter().map(|byte| byte.1);
            if of_all {
                out.extend(tokens().map(|token| (REPLACEMENT, token)));
            } else {
                // If the prompt began the character, the U+FFFD belongs to the prompt's text.
                let ours = tokens().all(|token| token > 0);
                out.push((REPLACEMENT, if ours { tokens().next_back().unwrap_or_default() } else { 0 }));
            }
            at += size;
        }
        out
    }

    /// Whether a marker contains a special token but is not one itself.
    pub(super) fn is_spelled(&self, marker: &str) -> bool {
        let specials =
            || self.tokens.iter().filter_map(|token| if let Token::Special(text) = token { Some(text) } else { None });
        specials().all(|special| special != marker) && specials().any(|special| marker.contains(special.as_str()))
    }

    pub(super) fn bytes(&self, id: u32) -> Vec<u8> {
        match self.token(id) {
            Some(Token::Text(bytes)) => bytes.clone(),
            Some(Token::Byte(byte)) => vec![*byte],
            Some(Token::Special(text)) if !self.options.skip_special_tokens => text.clone().into(),
            _ => Vec::new(),
        }
    }

    /// Returns the whole text of the token at position `number` of `ids` (counted from 1). Returns `None` if the bytes
    /// of this token are not valid UTF-8, or if there is no such token.
    pub(super) fn own_text(&self, ids: &[u32], number: usize) -> Option<String> {
        let id = ids[number - 1];
        let bytes = match self.token(id)? {
            Token::Special(text) => text.clone().into_bytes(),
            _ => self.bytes(id),
        };
        let has_text = |id: &u32| match self.token(*id) {
            Some(Token::Special(_)) => !self.options.skip_special_tokens,
            token => token.is_some(),
        };
        let first =
            self.strip_first_space && !self.options.prompt_token_ids.iter().chain(&ids[..number - 1]).any(has_text);
        let strips = first && (self.strips_byte() || !matches!(self.token(id), Some(Token::Byte(_))));
        String::from_utf8(bytes.strip_prefix(b" ").filter(|_| strips).unwrap_or(&bytes).to_vec()).ok()
    }
}

fn only_character(bytes: &[u8]) -> Option<char> {
    let mut characters = str::from_utf8(bytes).ok()?.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Whether `bytes` are the beginning of a character, which more bytes can complete. Tries the next bytes 0x80, 0x90 and
/// 0xA0, because not every next byte is allowed after every first byte.
fn begins_character(bytes: &[u8]) -> bool {
    let completed = |tail: &[u8]| only_character(&[bytes, tail].concat()).is_some();
    let by = |&byte: &u8| completed(&[byte]) || completed(&[byte, 0x80]) || completed(&[byte, 0x80, 0x80]);
    !bytes.is_empty() && [0x80, 0x90, 0xA0].iter().any(by)
}
