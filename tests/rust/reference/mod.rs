//! The rules of matching, spelled out as directly as Rust can say them, and as slowly as need be.
//!
//! The whole text is kept as one string. After every character the reference asks, with `ends_with`, which stops and
//! markers complete there. There is no automaton, no state but the text itself, and nothing is ever undone.

use stopscan::{StopMatch, StopScanner, StopSet, StopSetError};

/// What a scanner is told.
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
        StopSet::builder()
            .stop(self.stop.iter().map(String::as_str))
            .visible(self.visible.iter().map(String::as_str))
            .protect(self.protect.iter().map(|(open, close)| (open.as_str(), close.as_str())))
            .build()
    }

    /// The library's scanner.
    pub fn scanner(&self) -> StopScanner {
        let set = self.set().expect("these rules compile");
        let scanner = match self.start_protected {
            true => StopScanner::start_protected(&set).expect("these rules protect a region"),
            false => StopScanner::new(&set),
        };
        scanner.include_stop(self.include_stop)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    pub sequence: String,
    pub offset: usize,
    pub end: usize,
}

impl From<StopMatch<'_>> for Match {
    fn from(found: StopMatch<'_>) -> Match {
        Match { sequence: found.sequence().into(), offset: found.offset(), end: found.end() }
    }
}

/// What a caller does.
#[derive(Clone, Debug)]
pub enum Op {
    Feed { delta: String, armed: bool },
    Bypass(String),
    Flush,
    Reset,
}

/// The library's scanner and the reference, side by side: they must not differ in anything.
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

    /// What both return.
    pub fn apply(&mut self, op: Op) -> String {
        let expected = match &op {
            Op::Feed { delta, armed } => self.reference.feed(delta, *armed),
            Op::Bypass(text) => self.reference.bypass(text),
            Op::Flush => self.reference.flush(),
            Op::Reset => self.reference.reset(),
        };
        // What is done to a copy first must not show in the original.
        let copy = apply(&mut self.scanner.clone(), &op);
        let out = apply(&mut self.scanner, &op);
        self.done.push(op);
        let context = || format!("after {:#?}\nof {:#?}", self.done, self.rules);
        assert_eq!(out, expected, "output {}", context());
        assert_eq!(copy, expected, "output of a copy {}", context());
        assert_eq!(self.scanner.held(), self.held(), "held text {}", context());
        assert_eq!(self.scanner.unused(), self.unused(), "unused text {}", context());
        assert_eq!(self.scanner.stop_match().map(Match::from), self.matched(), "match {}", context());
        out
    }

    pub fn held(&self) -> &str {
        self.reference.held()
    }

    pub fn matched(&self) -> Option<Match> {
        self.reference.matched.clone()
    }

    pub fn unused(&self) -> &str {
        &self.reference.unused
    }
}

fn apply(scanner: &mut StopScanner, op: &Op) -> String {
    match op {
        Op::Feed { delta, armed: true } => scanner.feed(delta).into(),
        Op::Feed { delta, armed: false } => scanner.feed_unarmed(delta).into(),
        Op::Bypass(text) => scanner.bypass(text).into(),
        Op::Flush => scanner.flush().into(),
        Op::Reset => {
            scanner.reset();
            String::new()
        }
    }
}

/// A scanner by the book.
struct Reference<'a> {
    /// The stops that can fire.
    stops: Vec<&'a str>,
    /// Those of them that are cut from the output.
    hidden: Vec<&'a str>,
    protect: Vec<(&'a str, &'a str)>,
    /// The closing marker of the region that the text starts in.
    start: Option<&'a str>,
    /// Everything fed and bypassed, through the stop.
    text: String,
    /// Where partial matches may begin: the last region's edge, bypass or flush.
    edge: usize,
    /// How much of the text was returned.
    sent: usize,
    /// The closing marker of the open region.
    region: Option<&'a str>,
    matched: Option<Match>,
    unused: String,
}

impl<'a> Reference<'a> {
    fn new(rules: &'a Rules) -> Reference<'a> {
        let everything: Vec<&str> = rules.stop.iter().chain(&rules.visible).map(String::as_str).collect();
        let protect: Vec<(&str, &str)> = rules.protect.iter().map(|(open, close)| (&**open, &**close)).collect();
        let openings = protect.iter().map(|pair| pair.0);
        let enders: Vec<&str> = everything.iter().copied().chain(openings).collect();
        let ends_early = |stop: &str, other: &&str| without_last_character(stop).contains(other);
        let fires = |stop: &&str| !enders.iter().any(|other| ends_early(stop, other));
        let stops: Vec<&str> = everything.into_iter().filter(fires).collect();
        let is_hidden = |stop: &&str| !rules.include_stop && rules.stop.iter().any(|hidden| hidden == stop);
        let hidden = stops.iter().copied().filter(is_hidden).collect();
        let start = protect.first().map(|pair| pair.1).filter(|_| rules.start_protected);
        let (text, edge, sent, matched, unused) = Default::default();
        Reference { stops, hidden, protect, start, text, edge, sent, region: start, matched, unused }
    }

    fn reset(&mut self) -> String {
        self.text.clear();
        self.unused.clear();
        (self.edge, self.sent, self.matched) = Default::default();
        self.region = self.start;
        String::new()
    }

    fn held(&self) -> &'a str {
        if self.matched.is_some() || self.region.is_some() {
            return "";
        }
        let seen = &self.text[self.edge..];
        let prefixes = self.hidden.iter().flat_map(|stop| stop.char_indices().map(|(length, _)| &stop[..length]));
        prefixes.filter(|prefix| seen.ends_with(prefix)).max_by_key(|prefix| prefix.len()).unwrap_or_default()
    }

    fn feed(&mut self, delta: &str, armed: bool) -> String {
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

    fn bypass(&mut self, text: &str) -> String {
        if self.matched.is_some() {
            return String::new();
        }
        self.text.push_str(text);
        self.flush()
    }

    fn flush(&mut self) -> String {
        if self.matched.is_some() {
            return String::new();
        }
        self.edge = self.text.len();
        self.send()
    }

    fn complete(&mut self, armed: bool) {
        let seen = &self.text[self.edge..];
        if let Some(closing) = self.region {
            if seen.ends_with(closing) {
                self.region = None;
                self.edge = self.text.len();
            }
            return;
        }
        let longest_of = |found: &mut dyn Iterator<Item = &'a str>| {
            found.filter(|text| seen.ends_with(text)).max_by_key(|text| text.len()).unwrap_or_default()
        };
        let stop = if armed { longest_of(&mut self.stops.iter().copied()) } else { "" };
        let opening = longest_of(&mut self.protect.iter().map(|pair| pair.0));
        if stop.len() > opening.len() {
            let end = self.text.chars().count();
            self.matched = Some(Match { sequence: stop.into(), offset: end - stop.chars().count(), end });
        } else if !opening.is_empty() {
            self.region = self.protect.iter().find(|pair| pair.0 == opening).map(|pair| pair.1);
            self.edge = self.text.len();
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

fn without_last_character(text: &str) -> &str {
    text.char_indices().next_back().map_or("", |(last, _)| &text[..last])
}
