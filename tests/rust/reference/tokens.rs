//! A token scanner by the book, and the library's beside it: everything is spelled out anew after each token.

use std::iter;
use std::str;

use stopscan::{
    EndReason, Finish, Segments, Strays, TokenDecoder, TokenOptions, TokenOptionsError, TokenScanner, TokenSegmenter,
    UnknownToken, Vocabulary,
};

use super::Match;
use super::segments;
use super::stops::{Reference, Rules};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    Text(Vec<u8>),
    Byte(u8),
    Special(String),
    Gap,
}

/// A vocabulary, and what a scanner over it is told.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tokens: Vec<Token>,
    pub strays: Strays,
    pub strip_first_space: bool,
    pub special_ends_character: bool,
    pub rules: Rules,
    pub options: TokenOptions,
}

/// What a caller does.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Feed(u32),
    Close,
    Reset,
}

/// A character, and the number of the last token that has a part in it; 0 is the prompt.
type Character = (char, usize);

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

    /// Whether the space that a text begins with is left out if it is a byte token, too: Llama's, whose decoder strips
    /// the text.
    fn strips_byte(&self) -> bool {
        self.strip_first_space && self.strays == Strays::Runs
    }

    fn token(&self, id: u32) -> Option<&Token> {
        self.tokens.get(id as usize).filter(|token| **token != Token::Gap)
    }

    /// The text of the prompt and `ids`, all of it or what is certain yet, without what is the prompt's own.
    fn spelled(&self, ids: &[u32], ended: bool) -> Vec<Character> {
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
            // The longest character first: no proper prefix of one is a character.
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
                space.0 = REPLACEMENT; // nothing of the run was in the text yet
            }
            let tokens = || run[at..at + size].iter().map(|byte| byte.1);
            if of_all {
                out.extend(tokens().map(|token| (REPLACEMENT, token)));
            } else {
                // What the prompt has begun is U+FFFD in the prompt's own text.
                let ours = tokens().all(|token| token > 0);
                out.push((REPLACEMENT, if ours { tokens().next_back().unwrap_or_default() } else { 0 }));
            }
            at += size;
        }
        out
    }

    /// Whether a special token has a part in a marker that is none itself.
    fn is_spelled(&self, marker: &str) -> bool {
        let specials =
            || self.tokens.iter().filter_map(|token| if let Token::Special(text) = token { Some(text) } else { None });
        specials().all(|special| special != marker) && specials().any(|special| marker.contains(special.as_str()))
    }

    fn is_end(&self, id: u32) -> bool {
        self.options.stop_token_ids.contains(&id) || self.options.eos_token_ids.contains(&id)
    }
}

fn only_character(bytes: &[u8]) -> Option<char> {
    let mut characters = str::from_utf8(bytes).ok()?.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Whether bytes that are no character become one with more of them; not all of those go everywhere.
fn begins_character(bytes: &[u8]) -> bool {
    let completed = |tail: &[u8]| only_character(&[bytes, tail].concat()).is_some();
    let by = |&byte: &u8| completed(&[byte]) || completed(&[byte, 0x80]) || completed(&[byte, 0x80, 0x80]);
    !bytes.is_empty() && [0x80, 0x90, 0xA0].iter().any(by)
}

/// The library's scanner and the reference, side by side: they must not differ in anything.
pub struct TokenPair<'a> {
    plan: &'a Plan,
    scanner: TokenScanner,
    decoder: TokenDecoder,
    stops: Reference<'a>,
    ids: Vec<u32>,
    /// How many characters were scanned, and how many were emitted.
    scanned: usize,
    emitted: usize,
    kept: usize,
    finish: Option<Finish>,
}

impl<'a> TokenPair<'a> {
    /// `None` if the prompt has an id that no token has, or a marker could not be found, which must be an error.
    pub fn new(plan: &'a Plan) -> Option<TokenPair<'a>> {
        let vocabulary = plan.vocabulary();
        let scanner = TokenScanner::new(&vocabulary, plan.rules.scanner(), &plan.options);
        let unknown = plan.options.prompt_token_ids.iter().find(|&&id| plan.token(id).is_none());
        if let Some(&id) = unknown {
            assert_eq!(scanner.err(), Some(TokenOptionsError::UnknownToken(id)));
            return None;
        }
        let markers = plan.rules.protect.iter().flat_map(|(open, close)| [open, close]);
        let spelled: Vec<&String> = markers.filter(|marker| plan.is_spelled(marker)).collect();
        if plan.options.skip_special_tokens && !spelled.is_empty() {
            let error = scanner.expect_err("a marker cannot be found");
            assert!(spelled.iter().any(|marker| error == TokenOptionsError::SpelledMarker((*marker).clone())));
            return None;
        }
        let decoder = TokenDecoder::new(&vocabulary).skip_special_tokens(plan.options.skip_special_tokens);
        let mut pair = TokenPair {
            plan,
            scanner: scanner.expect("all of the prompt is known"),
            decoder,
            stops: Reference::new(&plan.rules),
            ids: Vec::new(),
            scanned: 0,
            emitted: 0,
            kept: 0,
            finish: None,
        };
        pair.reset();
        Some(pair)
    }

    pub fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// Panics unless both say the same.
    pub fn apply(&mut self, step: Step) {
        let mut copy = self.scanner.clone();
        let expected = match step {
            Step::Feed(id) => self.feed(id),
            Step::Close => Ok(self.close()),
            Step::Reset => Ok(self.reset()),
        };
        let out = apply(&mut self.scanner, step);
        let context = || format!("{step:?} after {:?} of {:#?}", self.ids, self.plan);
        assert_eq!(out, expected, "output of {}", context());
        assert_eq!(apply(&mut copy, step), expected, "output of a copy of {}", context());
        for scanner in [&self.scanner, &copy] {
            assert_eq!(scanner.finish(), self.finish, "finish at {}", context());
            assert_eq!(scanner.stop_match().map(Match::from), self.stops.matched.clone(), "match at {}", context());
            assert_eq!(scanner.held(), self.stops.held(), "held text at {}", context());
            assert_eq!(scanner.tokens_seen(), self.ids.len(), "tokens seen at {}", context());
            assert_eq!(scanner.tokens_kept(), self.kept, "tokens kept at {}", context());
        }
    }

    /// Panics unless the bare decoder gives the text of all tokens.
    pub fn check_decoder(&mut self, ids: &[u32]) {
        let bare = Plan { options: self.plan.options.clone().prompt_token_ids([]), ..self.plan.clone() };
        let mut text = String::new();
        for count in 1..=ids.len() {
            let id = ids[count - 1];
            match (self.decoder.feed(id), self.plan.token(id)) {
                (Ok(more), Some(_)) => text += more,
                (Err(error), None) => assert_eq!(error, UnknownToken(id)),
                (other, token) => panic!("{other:?} of {token:?}"),
            }
            let certain: String = bare.spelled(&ids[..count], false).iter().map(|character| character.0).collect();
            assert_eq!(text, certain, "text of {:?} of {bare:#?}", &ids[..count]);
        }
        text += self.decoder.flush();
        if bare.strays == Strays::Parts && !bare.special_ends_character && !bare.strip_first_space {
            let bytes: Vec<u8> = ids.iter().flat_map(|&id| bare.bytes(id)).collect();
            assert_eq!(text, String::from_utf8_lossy(&bytes), "text of {ids:?} of {bare:#?}");
        }
    }

    fn reset(&mut self) -> String {
        self.stops.reset();
        self.ids.clear();
        (self.scanned, self.emitted, self.kept) = (0, 0, 0);
        self.finish = (self.plan.options.max_tokens == Some(0)).then_some(Finish::Ended(EndReason::Length));
        String::new()
    }

    fn feed(&mut self, id: u32) -> Result<String, UnknownToken> {
        if self.is_over() {
            return Ok(String::new());
        }
        let options = &self.plan.options;
        let armed = self.ids.len() >= options.min_tokens;
        if armed && self.plan.is_end(id) {
            return Ok(self.end_at(id));
        }
        let token = self.plan.token(id).ok_or(UnknownToken(id))?;
        self.ids.push(id);
        let mut out = self.scan(false, armed);
        if let Token::Special(marker) = token
            && options.skip_special_tokens
        {
            let safe = self.stops.pass_special(marker, armed);
            if self.stops.matched.is_some() {
                self.finish = Some(Finish::StopSequence);
            }
            out += &self.emit(safe);
        }
        if Some(self.ids.len()) == options.max_tokens && !self.is_over() {
            out += &self.end(Finish::Ended(EndReason::Length), armed);
        }
        Ok(out)
    }

    fn close(&mut self) -> String {
        if self.is_over() {
            return String::new();
        }
        self.end(Finish::Ended(EndReason::Unknown), self.ids.len() > self.plan.options.min_tokens)
    }

    /// The end at a token whose text is not emitted, unless that completes a stop.
    fn end_at(&mut self, id: u32) -> String {
        let with_token = [&self.ids[..], &[id]].concat();
        let characters = self.plan.spelled(&with_token, true);
        let mut stops = self.stops.clone();
        stops.feed(&characters[self.scanned..].iter().map(|character| character.0).collect::<String>(), true);
        if stops.matched.is_some() {
            self.ids = with_token;
            return self.end(Finish::StopSequence, true);
        }
        if let (Some(Token::Special(special)), true) = (self.plan.token(id), self.plan.options.skip_special_tokens)
            && self.stops.fires(special)
        {
            let before = self.scan(true, true);
            self.ids = with_token;
            let safe = self.stops.pass_special(special, true);
            self.finish = Some(Finish::StopSequence);
            return before + &self.emit(safe);
        }
        let stop = self.plan.options.stop_token_ids.contains(&id);
        let out = self.end(if stop { Finish::StopToken(id) } else { Finish::Ended(EndReason::Eos) }, true);
        self.ids = with_token;
        out
    }

    fn end(&mut self, finish: Finish, armed: bool) -> String {
        let mut out = self.scan(true, armed);
        if !self.is_over() {
            let safe = self.stops.flush();
            out += &self.emit(safe);
            self.finish = Some(finish);
        }
        out
    }

    fn scan(&mut self, ended: bool, armed: bool) -> String {
        let characters = self.plan.spelled(&self.ids, ended);
        let new: String = characters[self.scanned..].iter().map(|character| character.0).collect();
        self.scanned = characters.len();
        let safe = self.stops.feed(&new, armed);
        if self.stops.matched.is_some() {
            self.finish = Some(Finish::StopSequence);
        }
        self.emit_of(safe, &characters)
    }

    fn emit(&mut self, safe: String) -> String {
        let characters = self.plan.spelled(&self.ids, true);
        self.emit_of(safe, &characters)
    }

    fn emit_of(&mut self, safe: String, characters: &[Character]) -> String {
        self.emitted += safe.chars().count();
        if let Some(last) = self.emitted.checked_sub(1) {
            self.kept = characters[last].1;
        }
        safe
    }
}

impl Plan {
    fn bytes(&self, id: u32) -> Vec<u8> {
        match self.token(id) {
            Some(Token::Text(bytes)) => bytes.clone(),
            Some(Token::Byte(byte)) => vec![*byte],
            Some(Token::Special(text)) if !self.options.skip_special_tokens => text.clone().into(),
            _ => Vec::new(),
        }
    }
}

fn apply(scanner: &mut TokenScanner, step: Step) -> Result<String, UnknownToken> {
    match step {
        Step::Feed(id) => scanner.feed(id).map(String::from),
        Step::Close => Ok(scanner.close(EndReason::Unknown).into()),
        Step::Reset => {
            scanner.reset();
            Ok(String::new())
        }
    }
}

/// Panics unless a segmenter of tokens cuts the text that they spell as the reference does. What ends a stream of tokens
/// is the scanner's to show.
pub fn check_segmenter(plan: &Plan, rules: &segments::Rules, ids: &[u32]) {
    let Plan { options: TokenOptions { skip_special_tokens, prompt_token_ids, .. }, .. } = plan;
    let options = TokenOptions::default().skip_special_tokens(*skip_special_tokens);
    let options = options.prompt_token_ids(prompt_token_ids.clone());
    let segmenter = TokenSegmenter::new(&plan.vocabulary(), rules.segmenter(), &options);
    let mut markers = rules.regions.iter().flat_map(|region| &region.markers);
    let hopeless = *skip_special_tokens && markers.any(|(marker, _)| plan.is_spelled(marker));
    assert_eq!(segmenter.is_err(), hopeless, "{plan:#?}\nby {rules:#?}");
    let Ok(mut segmenter) = segmenter else {
        return;
    };
    let mut reference = segments::Reference::new(rules);
    let ids: Vec<u32> = ids.iter().copied().filter(|&id| plan.token(id).is_some()).collect();
    let mut scanned = 0;
    let mut marks = Vec::new();
    for count in 1..=ids.len() + 1 {
        let ended = count > ids.len();
        let read = &ids[..count.min(ids.len())];
        let characters = plan.spelled(read, ended);
        let new: String = characters[scanned..].iter().map(|character| character.0).collect();
        scanned = characters.len();
        let mut expected = reference.feed(&new, true);
        if ended {
            expected.extend(reference.flush());
        } else if let (Some(Token::Special(marker)), true) = (plan.token(read[count - 1]), options.skip_special_tokens)
        {
            if reference.leads(marker) {
                marks.push((count, scanned));
            }
            expected.extend(reference.pass_special(marker));
        }
        let out = match ended {
            true => owned(segmenter.close(EndReason::Unknown)),
            false => owned(segmenter.feed(read[count - 1]).expect("it is known")),
        };
        let context = || format!("after {read:?} of {plan:#?}\nby {rules:#?}");
        assert_eq!(out, joined(expected), "output {}", context());
        assert_eq!(segmenter.held(), if ended { "" } else { reference.held() }, "held text {}", context());
        assert_eq!(segmenter.region(), segments::region_of(reference.region), "region {}", context());
        assert_eq!(segmenter.stop_match().map(Match::from), reference.matched.clone(), "match {}", context());
        let counts = tokens_in(rules, &reference.labels, &characters, &marks);
        assert_eq!(segmenter.tokens_in().collect::<Vec<_>>(), counts, "tokens of the regions {}", context());
        let kept = characters.iter().zip(&reference.labels).filter(|(_, label)| label.is_some());
        assert_eq!(segmenter.tokens_kept(), kept.map(|(character, _)| character.1).max().unwrap_or(0), "{}", context());
        assert_eq!(segmenter.tokens_seen(), read.len(), "tokens seen {}", context());
        let finish = if ended { Some(Finish::Ended(EndReason::Unknown)) } else { None };
        let finish = reference.matched.as_ref().map_or(finish, |_| Some(Finish::StopSequence));
        assert_eq!(segmenter.finish(), finish, "finish {}", context());
        if finish.is_some() {
            break;
        }
    }
    segmenter.reset();
    assert_eq!(
        (segmenter.region(), segmenter.finish(), segmenter.tokens_seen()),
        (segments::region_of(&rules.region), None, 0)
    );
}

/// How many tokens each region has: for each token it is asked what became of its text. One without text counts with
/// the text that follows, unless it is a marker or comes before one. `marks` has the number of each token that was a
/// marker, and how many characters went before it.
fn tokens_in<'a>(
    rules: &'a segments::Rules,
    labels: &[Option<&str>],
    characters: &[Character],
    marks: &[(usize, usize)],
) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for region in rules.regions.iter().map(|region| segments::region_of(&region.name)) {
        if counts.iter().all(|(name, _)| *name != region) {
            counts.push((region, 0));
        }
    }
    let labels = labels.iter().copied().chain(iter::repeat(None));
    let labelled: Vec<(usize, Option<&str>)> = characters.iter().map(|character| character.1).zip(labels).collect();
    for token in 1..=labelled.last().map_or(0, |last| last.0) {
        let at = labelled.iter().position(|(number, _)| *number >= token).expect("the last one has text");
        let own = labelled[at..].iter().filter(|(number, _)| *number == token);
        let label = match labelled[at].0 == token {
            true => own.filter_map(|(_, label)| *label).next(),
            false => labelled[at].1.filter(|_| !marks.iter().any(|&(mark, before)| token <= mark && before <= at)),
        };
        if let Some(count) = counts.iter_mut().find(|(name, _)| Some(*name) == label) {
            count.1 += 1;
        }
    }
    counts
}

fn owned(segments: Segments<'_>) -> Vec<segments::Segment> {
    segments.into_iter().map(|segment| (segment.region.into(), segment.text.into_owned())).collect()
}

/// Neighbours of one region together.
fn joined(segments: Vec<segments::Segment>) -> Vec<segments::Segment> {
    let mut out: Vec<segments::Segment> = Vec::new();
    for (region, text) in segments {
        match out.last_mut().filter(|last| last.0 == region) {
            Some(last) => last.1.push_str(&text),
            None => out.push((region, text)),
        }
    }
    out
}
