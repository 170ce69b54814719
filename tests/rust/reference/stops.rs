//! The reference for scanners (a simple program), and a comparison of the library's scanner with it.

use std::slice;

use stopscan::{Options, Output, StopScanner, StopSet, StopSetError};

use super::{Match, Op, firing, longest_beginning, longest_end, match_at_end};

/// The stops, markers and options of a scanner.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub stop: Vec<String>,
    pub visible: Vec<String>,
    pub protect: Vec<(String, String)>,
    pub include_stop: bool,
    pub start_protected: bool,
}

impl Rules {
    pub fn set(&self) -> Result<StopSet, StopSetError> {
        let protect = self.protect.iter().map(|(open, close)| (open, close));
        StopSet::builder().stop(&self.stop).visible(&self.visible).protect(protect).build()
    }

    pub fn options(&self) -> Options {
        Options::default().include_stop(self.include_stop).start_protected(self.start_protected)
    }

    /// The library's scanner.
    pub fn scanner(&self) -> StopScanner {
        let set = self.set().expect("these rules compile");
        StopScanner::with_options(&set, &self.options()).expect("they start protected only if a region is protected")
    }
}

/// The library's scanner and its reference (a simple program that does the same), side by side: all results must be
/// equal.
pub struct Pair<'a> {
    rules: &'a Rules,
    scanner: StopScanner,
    reference: Reference<'a>,
    done: Vec<Op>,
}

impl<'a> Pair<'a> {
    pub fn new(rules: &'a Rules) -> Pair<'a> {
        Pair { rules, scanner: rules.scanner(), reference: Reference::new(rules), done: Vec::new() }
    }

    /// Applies `op` to the scanner and to the reference, and returns the output. Panics if they differ.
    pub fn apply(&mut self, op: Op) -> String {
        let held = self.held().len();
        let expected = match &op {
            Op::Feed { delta, armed } => self.reference.feed(delta, *armed),
            Op::Bypass(text) => self.reference.bypass(text),
            Op::Flush => self.reference.flush(),
            Op::Reset => self.reference.reset(),
        };
        // The same call on a copy, and on a scanner restored from a snapshot, must give the same result. It must not
        // change the original.
        let copy = apply(&mut self.scanner.clone(), &op);
        let mut resumed = self.scanner.clone();
        resumed.reset();
        resumed.restore(&self.scanner.snapshot()).expect("the snapshot is its own");
        let elsewhere = apply(&mut resumed, &op);
        let out = apply(&mut self.scanner, &op);
        let released = expected.len().saturating_sub(held);
        let expected = Given { text: expected, released, matched: self.matched() };
        let context = || format!("after {:#?}\nof {:#?}", [&self.done[..], slice::from_ref(&op)].concat(), self.rules);
        assert_eq!(out, expected, "output {}", context());
        assert_eq!(copy, expected, "output of a copy {}", context());
        assert_eq!(elsewhere, expected, "output elsewhere {}", context());
        assert_eq!(self.scanner.held(), self.held(), "held text {}", context());
        assert_eq!(self.scanner.unused(), self.unused(), "unused text {}", context());
        assert_eq!(self.scanner.stop_match().map(Match::from), self.matched(), "match {}", context());
        self.done.push(op);
        expected.text
    }

    pub fn held(&self) -> &'a str {
        self.reference.held()
    }

    pub fn matched(&self) -> Option<Match> {
        self.reference.matched.clone()
    }

    pub fn unused(&self) -> &str {
        &self.reference.unused
    }
}

/// The results of a call, as owned values.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Given {
    pub text: String,
    released: usize,
    matched: Option<Match>,
}

impl From<Output<'_>> for Given {
    fn from(output: Output<'_>) -> Given {
        Given { text: output.text.into(), released: output.released, matched: output.stop_match.map(Match::from) }
    }
}

pub fn apply(scanner: &mut StopScanner, op: &Op) -> Given {
    match op {
        Op::Feed { delta, armed: true } => scanner.feed(delta).into(),
        Op::Feed { delta, armed: false } => scanner.feed_unarmed(delta).into(),
        Op::Bypass(text) => scanner.bypass(text).into(),
        Op::Flush => scanner.flush().into(),
        Op::Reset => {
            scanner.reset();
            Given::default()
        }
    }
}

#[derive(Clone)]
pub(super) struct Reference<'a> {
    rules: &'a Rules,
    /// The stops that can fire.
    stops: Vec<&'a str>,
    /// The stops that can fire and are cut from the output.
    hidden: Vec<&'a str>,
    /// All text that was fed, and all text that was sent past the scanner (`bypass`), up to the end of the stop.
    text: String,
    /// No stop or marker may begin before this position. It is the end of the last marker, the end of the last bypassed
    /// text, or the end of the text at the last flush.
    edge: usize,
    /// How many bytes of `text` were returned.
    sent: usize,
    /// The markers of the protected region that is open. `None` outside of protected regions.
    region: Option<&'a (String, String)>,
    pub(super) matched: Option<Match>,
    unused: String,
    /// Whether a marker ended with the last character.
    pub(super) marker_ended: bool,
}

impl<'a> Reference<'a> {
    pub(super) fn new(rules: &'a Rules) -> Reference<'a> {
        let everything = || rules.stop.iter().chain(&rules.visible);
        let openings = rules.protect.iter().map(|pair| pair.0.as_str());
        let enders: Vec<&str> = everything().map(String::as_str).chain(openings).collect();
        let stops = firing(everything(), &enders);
        let is_hidden = |stop: &&str| !rules.include_stop && rules.stop.iter().any(|hidden| hidden == stop);
        let hidden = stops.iter().copied().filter(is_hidden).collect();
        let region = rules.protect.first().filter(|_| rules.start_protected);
        let (text, edge, sent, matched, unused) = Default::default();
        Reference { rules, stops, hidden, text, edge, sent, region, matched, unused, marker_ended: false }
    }

    pub(super) fn reset(&mut self) -> String {
        *self = Reference::new(self.rules);
        String::new()
    }

    pub(super) fn held(&self) -> &'a str {
        if self.matched.is_some() || self.region.is_some() {
            return "";
        }
        longest_beginning(&self.text[self.edge..], self.hidden.iter().copied())
    }

    pub(super) fn feed(&mut self, delta: &str, armed: bool) -> String {
        if self.matched.is_some() {
            return String::new();
        }
        for (index, character) in delta.char_indices() {
            self.text.push(character);
            self.complete(armed);
            if self.matched.is_some() {
                self.unused = delta[index + character.len_utf8()..].into();
                break;
            }
        }
        self.send()
    }

    /// Feeds a marker of the current region that came as one token. Unlike in `feed`, no stop fires inside the marker.
    pub(super) fn feed_marker(&mut self, marker: &str, armed: bool) -> String {
        if self.matched.is_none() {
            self.text.push_str(marker);
            self.complete(armed);
        }
        self.send()
    }

    /// Whether `text` is a marker that opens or closes a region now.
    pub(super) fn leads(&self, text: &str) -> bool {
        match self.region {
            _ if self.matched.is_some() => false,
            Some((_, closing)) => closing == text,
            None => self.rules.protect.iter().any(|pair| pair.0 == text),
        }
    }

    /// The name of the current region.
    pub(super) fn open(&self) -> &'a str {
        self.region.map_or("answer", |(opening, _)| opening)
    }

    fn bypass(&mut self, text: &str) -> String {
        if self.matched.is_some() {
            return String::new();
        }
        self.text.push_str(text);
        self.flush()
    }

    pub(super) fn flush(&mut self) -> String {
        if self.matched.is_some() {
            return String::new();
        }
        self.edge = self.text.len();
        self.send()
    }

    /// Whether a special token, whose text is left out of the stream's text, is a stop that can fire in the current
    /// region.
    pub(super) fn fires(&self, special: &str) -> bool {
        let mut stops = self.rules.stop.iter().chain(&self.rules.visible);
        self.matched.is_none() && self.region.is_none() && stops.any(|stop| stop == special)
    }

    /// Reads a special token that adds no text. If the token is a stop, the stop fires at the end of the text so far.
    /// If the token is a marker, the marker opens or closes a region.
    pub(super) fn pass_special(&mut self, special: &str, armed: bool) -> String {
        if !armed || !self.fires(special) {
            return self.pass_marker(special);
        }
        let out = self.flush();
        let text = self.text.clone() + special;
        self.matched = Some(match_at_end(&text, special, &self.rules.stop, &self.rules.visible));
        out
    }

    fn pass_marker(&mut self, marker: &str) -> String {
        let opening = self.rules.protect.iter().find(|pair| pair.0 == marker);
        let region = match (self.region, opening) {
            _ if self.matched.is_some() => return String::new(),
            (None, Some(pair)) => Some(pair),
            (Some((_, closing)), _) if closing == marker => None,
            _ => return String::new(),
        };
        let out = self.flush();
        self.region = region;
        out
    }

    fn complete(&mut self, armed: bool) {
        let seen = &self.text[self.edge..];
        self.marker_ended = false;
        if let Some((_, closing)) = self.region {
            if seen.ends_with(closing.as_str()) {
                self.region = None;
                self.edge = self.text.len();
                self.marker_ended = true;
            }
            return;
        }
        let stop = if armed { longest_end(seen, self.stops.iter().copied()) } else { "" };
        let opening = longest_end(seen, self.rules.protect.iter().map(|pair| pair.0.as_str()));
        if stop.len() > opening.len() {
            self.matched = Some(match_at_end(&self.text, stop, &self.rules.stop, &self.rules.visible));
        } else if !opening.is_empty() {
            self.region = self.rules.protect.iter().find(|pair| pair.0 == opening);
            self.edge = self.text.len();
            self.marker_ended = true;
        }
    }

    fn send(&mut self) -> String {
        let withheld = match &self.matched {
            Some(found) if self.hidden.contains(&found.sequence.as_str()) => found.sequence.len(),
            _ => self.held().len(),
        };
        let until = self.text.len() - withheld;
        let out = self.text[self.sent..until].into();
        self.sent = until;
        out
    }
}
