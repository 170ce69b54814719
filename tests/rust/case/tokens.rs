use arbitrary::{Arbitrary, Result, Unstructured};
use stopscan::{Strays, TokenOptions, UnknownIds};

use super::segments::rules as segment_rules;
use super::stops::rules;
use super::words::Words;
use crate::reference::segments;
use crate::reference::stops::Rules;
use crate::reference::token_scanner::{Step, TokenPair};
use crate::reference::token_segmenter::check_segmenter;
use crate::reference::tokens::{Plan, Token};

/// The most tokens of a case. Longer cases test nothing new.
const MOST_STEPS: usize = 60;

/// Bytes that are invalid UTF-8, or only the beginning of a character.
const STRAYS: [&[u8]; 8] =
    [b"\xFF", b"\x80", b"\xE4\xBD", b"\xF0", b"\xF0\x9F\x98", b"\xC3", b"\xED\xA0\x80", b"\xBD\xFFa"];

/// A vocabulary with options (`plan`), and two streams of its tokens. The stream `steps` is for a scanner, whose stops
/// and markers are in `plan`. The stream `ids` is for a segmenter, whose stops and markers are in `segments`.
#[derive(Clone, Debug)]
pub struct Case {
    plan: Plan,
    segments: segments::Rules,
    ids: Vec<u32>,
    steps: Vec<Step>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let words = Words::arbitrary(u)?;
        let strays = *u.choose(&[Strays::Parts, Strays::Runs, Strays::Bytes])?;
        let mut plan = Plan {
            tokens: vec![Token::Gap],
            strays,
            strip_first_space: u.arbitrary()?,
            special_ends_character: u.arbitrary()?,
            rules: stops_of_strays(rules(&words, u)?, u)?,
            options: TokenOptions::default(),
        };
        plan.options.min_tokens = if u.ratio(1, 4)? { u.int_in_range(0..=8)? } else { 0 };
        let least = plan.options.min_tokens;
        plan.options.max_tokens = if u.ratio(1, 4)? { Some(u.int_in_range(least..=20)?) } else { None };
        plan.options.skip_special_tokens = u.arbitrary()?;
        plan.options.unknown_ids = *u.choose(&[UnknownIds::Refuse, UnknownIds::Count])?;
        plan.options.eos_ends_early = u.arbitrary()?;
        // Draws the id of a token that ends the stream. Draws only small ids, because large ids are seldom in a stream.
        let end = |u: &mut Unstructured<'_>| u.int_in_range(0..=12);
        if u.ratio(1, 3)? {
            plan.options.stop_token_ids = vec![end(u)?];
        }
        if u.ratio(1, 3)? {
            plan.options.eos_token_ids = vec![end(u)?, end(u)?];
        }
        let prompted = if u.ratio(1, 3)? { u.int_in_range(0..=8)? } else { 0 };
        let segments = segment_rules(&words, u)?;
        let mut ids = Vec::new();
        let mut steps = Vec::new();
        while !u.is_empty() && ids.len() < MOST_STEPS {
            for token in tokens(u, &words, strays)? {
                let known = plan.tokens.iter().position(|other| *other == token);
                let id = known.unwrap_or(plan.tokens.len()) as u32;
                if known.is_none() {
                    plan.tokens.push(token);
                }
                ids.push(id);
                steps.push(step(u, id)?);
            }
        }
        let prompted = prompted.min(ids.len());
        plan.options.prompt_token_ids = ids.drain(..prompted).collect();
        steps.drain(..prompted);
        Ok(Case { plan, segments, ids, steps })
    }
}

impl Case {
    /// Panics unless the library does what the reference, a simple program, does at every step.
    pub fn check(self) {
        let Some(mut pair) = TokenPair::new(&self.plan) else {
            return;
        };
        pair.check_decoder(&self.ids);
        check_segmenter(&self.plan, &self.segments, &self.ids);
        for step in self.steps {
            let inert = pair.is_over();
            pair.apply(step);
            if inert {
                pair.apply(Step::Reset); // the stream had ended before `step`, so it goes on only after a reset
            }
        }
        pair.apply(Step::Close);
    }
}

/// Adds, in one case of four, a stop that contains U+FFFD. As stray bytes are decoded as U+FFFD, they can complete this
/// stop.
fn stops_of_strays(mut rules: Rules, u: &mut Unstructured<'_>) -> Result<Rules> {
    if u.ratio(1, 4)? {
        let word = rules.stop.first().map_or("", |stop| stop);
        rules.stop.push(u.choose(&["\u{FFFD}".into(), "\u{FFFD}".repeat(2), format!("{word}\u{FFFD}")])?.clone());
    }
    Ok(rules)
}

/// Draws one or several tokens. One token may be a gap (an id without a token), a special token, an empty token or a
/// word. Several tokens are text or stray bytes (invalid UTF-8) that are cut. With `Strays::Parts`, the cuts are at
/// random bytes. Otherwise, each byte becomes a byte token, or the text is cut once, between two characters.
fn tokens(u: &mut Unstructured<'_>, words: &Words, strays: Strays) -> Result<Vec<Token>> {
    let bytes = match u.int_in_range(0..=15)? {
        0 => return Ok(vec![Token::Gap]),
        1 => return Ok(vec![Token::Special(u.choose(&words.words)?.clone())]),
        2 => return Ok(vec![Token::Special("<s>".into())]),
        3 => u.choose(&STRAYS)?.to_vec(),
        4 => b" ".to_vec(),
        5 => return Ok(vec![Token::Text(Vec::new())]),
        6 => return Ok(vec![Token::Text(u.choose(&words.words)?.clone().into_bytes())]),
        _ => words.text(u)?.chars().take(12).collect::<String>().into_bytes(),
    };
    if strays == Strays::Parts {
        return cut(u, &bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && u.ratio(3, 4)? => {
            let at = u.int_in_range(0..=text.chars().count())?;
            let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
            let whole = [&text[..at], &text[at..]].into_iter().filter(|part| !part.is_empty());
            Ok(whole.map(|part| Token::Text(part.into())).collect())
        }
        Ok(text) => Ok(text.bytes().map(Token::Byte).collect()),
        Err(stray) => Ok(stray.into_bytes().into_iter().map(Token::Byte).collect()),
    }
}

fn cut(u: &mut Unstructured<'_>, mut bytes: &[u8]) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    while !bytes.is_empty() {
        let (token, rest) = bytes.split_at(u.int_in_range(1..=bytes.len().min(6))?);
        tokens.push(Token::Text(token.into()));
        bytes = rest;
    }
    Ok(tokens)
}

fn step(u: &mut Unstructured<'_>, id: u32) -> Result<Step> {
    Ok(match u.int_in_range(0..=63)? {
        63 => Step::Close,
        62 => Step::Reset,
        61 => Step::Feed(u32::MAX),
        _ => Step::Feed(id),
    })
}
