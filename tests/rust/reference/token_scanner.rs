//! The reference for token scanners (a simple program), and a comparison of the library's token scanner with it.

use stopscan::{EndReason, Finish, Strays, TokenDecoder, TokenOptionsError, TokenScanner, UnknownIds, UnknownToken};

use super::Match;
use super::stops::Reference;
use super::tokens::{Character, Plan, Token};

/// A call of a token scanner's method.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Feed(u32),
    Close,
    Reset,
}

/// The library's token scanner and its reference (a simple program that does the same), side by side: all results must
/// be equal.
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
    /// For each token, the region in which it counts, which is the region of its last character. `None` if the token
    /// completes a marker, because this token counts in no region.
    regions: Vec<Option<&'a str>>,
    /// The position, counted from 1, of the last special token that is a marker but adds no text to the stream.
    marked: usize,
}

impl<'a> TokenPair<'a> {
    /// Returns `None` if the library refuses `plan` (a vocabulary, stops and options). It refuses a prompt with an
    /// unknown id. If special tokens are skipped, it also refuses a marker that consists of a special token and other
    /// text, because this marker could never be found.
    pub fn new(plan: &'a Plan) -> Option<TokenPair<'a>> {
        let vocabulary = plan.vocabulary();
        let scanner = TokenScanner::new(&vocabulary, plan.rules.scanner(), &plan.options);
        if let Some(id) = plan.unknown_in_prompt() {
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
            scanner: scanner.expect("the ids of the prompt are known, or need not be"),
            decoder,
            stops: Reference::new(&plan.rules),
            ids: Vec::new(),
            scanned: 0,
            emitted: 0,
            kept: 0,
            finish: None,
            regions: Vec::new(),
            marked: 0,
        };
        pair.reset();
        Some(pair)
    }

    pub fn is_over(&self) -> bool {
        self.finish.is_some()
    }

    /// Applies `step` to this reference, to the scanner and to a copy of the scanner. Panics if their results differ.
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
            for (region, count) in scanner.tokens_in() {
                assert_eq!(count, self.count_in(region), "tokens in {region:?} at {}", context());
            }
        }
    }

    /// Panics unless the library's decoder by itself, without a scanner, returns the right text of all tokens.
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
        self.regions.clear();
        self.marked = 0;
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
        let (stop, eos) = (options.stop_token_ids.contains(&id), options.eos_token_ids.contains(&id));
        if stop && armed {
            return Ok(self.end_at(id, Finish::StopToken(id), armed));
        }
        if eos && (armed || options.eos_ends_early) {
            return Ok(self.end_at(id, Finish::Ended(EndReason::Eos), armed));
        }
        let token = self.plan.token(id);
        let unknown = token.is_none() && !eos;
        if unknown && options.unknown_ids == UnknownIds::Refuse {
            return Err(UnknownToken(id));
        }
        // Here an EOS does not end the stream, and it adds no text. So the EOS is replaced by `u32::MAX`, an id without
        // a token.
        self.ids.push(if eos { u32::MAX } else { id });
        self.stops.marker_ended = false;
        let marker = self.plan.own_text(&self.ids, self.ids.len()).filter(|_| !eos);
        let mut out = self.scan(false, armed, marker.as_deref());
        if let (Some(Token::Special(marker)), true, false) = (token, options.skip_special_tokens, eos) {
            if armed && self.stops.fires(marker) {
                out += &self.scan(true, armed, None);
            }
            if self.stops.leads(marker) {
                self.stops.marker_ended = true;
                self.marked = self.ids.len();
            }
            let safe = self.stops.pass_special(marker, armed);
            if self.stops.matched.is_some() {
                self.finish = Some(Finish::StopSequence);
            }
            out += &self.emit(safe);
        }
        self.regions.push(if self.stops.marker_ended { None } else { Some(self.stops.open()) });
        if Some(self.ids.len()) == options.max_tokens && !self.is_over() {
            out += &self.end(Finish::Ended(EndReason::Length), armed);
        }
        Ok(out)
    }

    /// Returns how many tokens have their last character in `region`. Counts the tokens up to the last one with emitted
    /// text. If a marker without text comes later, counts the tokens up to this marker. If no region is protected,
    /// returns the count of all kept tokens.
    fn count_in(&self, region: &str) -> usize {
        if self.plan.rules.protect.is_empty() {
            return self.kept;
        }
        let out = self.regions.iter().take(self.kept.max(self.marked));
        out.filter(|other| **other == Some(region)).count()
    }

    fn close(&mut self) -> String {
        if self.is_over() {
            return String::new();
        }
        self.end(Finish::Ended(EndReason::Unknown), self.ids.len() > self.plan.options.min_tokens)
    }

    /// Ends the stream at a stop token or an EOS, whose text is not emitted. If this text is a stop, the stop fires.
    fn end_at(&mut self, id: u32, finish: Finish, armed: bool) -> String {
        let with_token = [&self.ids[..], &[id]].concat();
        let stop = self.plan.own_text(&with_token, with_token.len()).filter(|_| armed);
        let mut out = self.scan(true, armed, None);
        if let Some(stop) = stop.filter(|stop| self.stops.fires(stop)) {
            let safe = self.stops.pass_special(&stop, true);
            self.finish = Some(Finish::StopSequence);
            out += &self.emit(safe);
        }
        if !self.is_over() {
            out += &self.end(finish, armed);
        }
        self.ids.push(u32::MAX);
        out
    }

    fn end(&mut self, finish: Finish, armed: bool) -> String {
        let mut out = self.scan(true, armed, None);
        if !self.is_over() {
            let safe = self.stops.flush();
            out += &self.emit(safe);
            self.finish = Some(finish);
        }
        out
    }

    /// Scans the text that the newest token has added. `own` is the text of this token alone. If the added text equals
    /// `own` and is a marker, no stop fires inside it.
    fn scan(&mut self, ended: bool, armed: bool, own: Option<&str>) -> String {
        let characters = self.plan.spelled(&self.ids, ended);
        let new = &characters[self.scanned..];
        self.scanned = characters.len();
        let text = |characters: &[Character]| characters.iter().map(|character| character.0).collect::<String>();
        let newest = new.iter().position(|character| character.1 == self.ids.len()).unwrap_or(new.len());
        let (before, newest) = (text(&new[..newest]), text(&new[newest..]));
        let mut safe = self.stops.feed(&before, armed);
        safe += &match own {
            Some(own) if own == newest && self.stops.leads(own) => self.stops.feed_marker(own, armed),
            _ => self.stops.feed(&newest, armed),
        };
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
