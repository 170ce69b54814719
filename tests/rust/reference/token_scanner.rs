//! A token scanner by the book, and the library's beside it.

use stopscan::{EndReason, Finish, Strays, TokenDecoder, TokenOptionsError, TokenScanner, UnknownToken};

use super::Match;
use super::stops::Reference;
use super::tokens::{Character, Plan, Token};

/// What a caller does.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Feed(u32),
    Close,
    Reset,
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
            if armed && self.stops.fires(marker) {
                out += &self.scan(true, armed);
            }
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

fn apply(scanner: &mut TokenScanner, step: Step) -> Result<String, UnknownToken> {
    match step {
        Step::Feed(id) => scanner.feed(id).map(String::from),
        Step::Close => Ok(scanner.flush(EndReason::Unknown).into()),
        Step::Reset => {
            scanner.reset();
            Ok(String::new())
        }
    }
}
