//! A scanner for patterns by the book, and the library's beside it.
//!
//! After every character each place of the text is asked whether a stop begins there and ends here, and what is held is
//! found by trying every continuation.

use regex::Regex;
use stopscan::{Options, StopScanner, StopSet, StopSetError};

use super::Match;

/// What a scanner is told.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub stop: Vec<String>,
    pub visible: Vec<String>,
    pub patterns: Vec<Pattern>,
    pub include_stop: bool,
}

/// A pattern in its parts, so that the reference can look around by itself.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub lead: Lead,
    pub body: String,
    /// Whether `\b` stands at the end.
    pub trail: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    Nothing,
    Word,
    Line,
}

impl Pattern {
    pub fn text(&self) -> String {
        let lead = match self.lead {
            Lead::Nothing => "",
            Lead::Word => r"\b",
            Lead::Line => "(?m)^",
        };
        format!("{lead}(?:{}){}", self.body, if self.trail { r"\b" } else { "" })
    }
}

impl Rules {
    pub fn set(&self) -> Result<StopSet, StopSetError> {
        let patterns = self.patterns.iter().map(Pattern::text);
        StopSet::builder().stop(&self.stop).visible(&self.visible).patterns(patterns).build()
    }

    pub fn scanner(&self) -> StopScanner {
        let options = Options { include_stop: self.include_stop, ..Options::default() };
        StopScanner::with_options(&self.set().expect("these rules compile"), options).expect("no region is asked for")
    }
}

/// A stop that has fired: which, and where it lies, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    pub pattern: Option<String>,
    pub sequence: String,
    pub start: usize,
    pub end: usize,
    hidden: bool,
}

pub struct Reference<'a> {
    rules: &'a Rules,
    bodies: Vec<Regex>,
    /// What continuations are made of.
    alphabet: Vec<char>,
    /// How long they may be, in characters.
    reach: usize,
    /// The strings that can fire.
    strings: Vec<(String, bool)>,
}

impl<'a> Reference<'a> {
    pub fn new(rules: &'a Rules, alphabet: &str, reach: usize) -> Reference<'a> {
        let whole = |pattern: &Pattern| Regex::new(&format!("^(?:{})$", pattern.body)).expect("it is a regex");
        let bodies = rules.patterns.iter().map(whole).collect();
        let mut reference =
            Reference { rules, bodies, alphabet: alphabet.chars().collect(), reach, strings: Vec::new() };
        let hidden = rules.stop.iter().map(|stop| (stop.clone(), true));
        let strings: Vec<(String, bool)> =
            hidden.chain(rules.visible.iter().map(|stop| (stop.clone(), false))).collect();
        let ends_early = |stop: &str| {
            let inner = super::without_last_character(stop);
            strings.iter().any(|(other, _)| inner.contains(other.as_str()))
                || ["", "\n", "a", "."].iter().all(|before| reference.matches_inside(before, inner))
        };
        reference.strings = strings.iter().filter(|(stop, _)| !ends_early(stop)).cloned().collect();
        reference
    }

    /// Whether a pattern completes in `inner`, which stands behind `before`.
    fn matches_inside(&self, before: &str, inner: &str) -> bool {
        let text = format!("{before}{inner}");
        let ends = (before.len() + 1..=text.len()).filter(|&end| text.is_char_boundary(end));
        ends.into_iter().any(|end| self.pattern_at(&text[..end], before.len()).is_some())
    }

    /// What fires in `text`, the first characters of which are known to fire nothing.
    pub fn find(&self, text: &str, quiet: usize) -> Option<Fired> {
        let ends = (quiet + 1..=text.len()).filter(|&end| text.is_char_boundary(end));
        ends.into_iter().find_map(|end| self.completes(&text[..end], 0))
    }

    /// What completes with the last character of `text` and began at `from` or later: what began first, then the longer
    /// one, then a string.
    fn completes(&self, text: &str, from: usize) -> Option<Fired> {
        let string = self.strings.iter().filter(|(stop, _)| text[from..].ends_with(stop));
        let string = string.max_by_key(|(stop, _)| stop.len());
        let string = string.map(|(stop, hidden)| Fired {
            pattern: None,
            sequence: stop.clone(),
            start: text.len() - stop.len(),
            end: text.len(),
            hidden: *hidden && !self.rules.include_stop,
        });
        let pattern = self.pattern_at(text, from);
        match (string, pattern) {
            (Some(string), Some(pattern)) => {
                let first = (pattern.start, string.end) < (string.start, pattern.end);
                Some(if first { pattern } else { string })
            }
            (string, pattern) => string.or(pattern),
        }
    }

    /// The match of a pattern that completes with the last character of `text` and begins at `from` or later.
    fn pattern_at(&self, text: &str, from: usize) -> Option<Fired> {
        let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
        let starts = (from..text.len()).filter(|&start| text.is_char_boundary(start));
        starts.into_iter().find_map(|start| {
            // Of one beginning, the one that ends with the character before the one that ended earlier.
            [text.len(), last].into_iter().filter(|&end| start < end).find_map(|end| {
                let fits = |index: &usize| self.fits(*index, text, start, end);
                let index = (0..self.bodies.len()).find(fits)?;
                Some(Fired {
                    pattern: Some(self.rules.patterns[index].text()),
                    sequence: text[start..end].into(),
                    start,
                    end,
                    hidden: !self.rules.include_stop,
                })
            })
        })
    }

    /// Whether the pattern matches this part of `text` and completes at its end.
    fn fits(&self, index: usize, text: &str, start: usize, end: usize) -> bool {
        let pattern = &self.rules.patterns[index];
        let before = text[..start].chars().next_back();
        let first = text[start..].chars().next();
        let leads = match pattern.lead {
            Lead::Nothing => true,
            Lead::Word => is_word(before) != is_word(first),
            Lead::Line => before.is_none() || before == Some('\n'),
        };
        let last = text[..end].chars().next_back();
        let behind = text[end..].chars().next();
        // Without `\b` at its end a pattern completes with its last character, with it one later.
        let completes = match pattern.trail {
            false => end == text.len(),
            true => end < text.len() && is_word(last) != is_word(behind),
        };
        completes && leads && self.bodies[index].is_match(&text[start..end])
    }

    /// What the end of the text completes.
    pub fn at_end(&self, text: &str) -> Option<Fired> {
        // A character that is no letter and that no body has stands for the end; then one that is.
        let confirmed = |end: &str| {
            let longer = format!("{text}{end}");
            self.pattern_at(&longer, 0).filter(|found| found.end == text.len())
        };
        match is_word(text.chars().next_back()) {
            true => confirmed("\u{7f}"),
            false => None,
        }
    }

    /// How much of the end of `text`, which fires nothing, may still become a hidden stop. A beginning is judged by what
    /// follows it, as those of strings are: not by what began before.
    pub fn held(&self, text: &str) -> usize {
        let starts = (0..=text.len()).filter(|&start| text.is_char_boundary(start));
        let can = |start: &usize| self.can_begin(&mut text.to_owned(), *start, self.reach);
        starts.into_iter().find(|start| *start < text.len() && can(start)).map_or(0, |start| text.len() - start)
    }

    /// Whether some continuation of `text` makes a hidden stop fire that begins at `start`.
    fn can_begin(&self, text: &mut String, start: usize, reach: usize) -> bool {
        if reach == 0 {
            return false;
        }
        self.alphabet.iter().any(|&letter| {
            text.push(letter);
            let can = match self.completes(text, start) {
                Some(fired) => fired.start == start && fired.hidden,
                None => self.can_begin(text, start, reach - 1),
            };
            text.pop();
            can
        })
    }
}

fn is_word(character: Option<char>) -> bool {
    character.is_some_and(|character| character == '_' || character.is_ascii_alphanumeric())
}

/// Panics unless the library does what the reference does, for the text in each of the given cuts.
pub fn check(rules: &Rules, reference: &Reference<'_>, text: &str, cuts: &[Vec<usize>], check_held: bool) {
    let context = || format!("in {text:?} with {rules:#?}");
    let fired = reference.find(text, 0);
    let at_end = if fired.is_none() { reference.at_end(text) } else { None };
    let expected = fired.clone().or(at_end.clone());
    let kept = expected.as_ref().map_or(text.len(), |fired| if fired.hidden { fired.start } else { fired.end });
    for cut in cuts {
        let mut scanner = rules.scanner();
        let (mut out, mut at) = (String::new(), 0);
        for &end in cut.iter().chain([&text.len()]) {
            out += scanner.feed(&text[at..end]).text;
            at = end;
            let seen = &text[..end];
            if check_held && scanner.stop_match().is_none() {
                assert_eq!(scanner.held().len(), reference.held(seen), "held after {seen:?} {}", context());
            }
            if scanner.stop_match().is_none() {
                assert_eq!(format!("{out}{}", scanner.held()), seen, "lost {}", context());
                scanner = StopScanner::restore(scanner.stops(), &scanner.snapshot()).expect("it is its own");
            }
        }
        assert_eq!(
            scanner.stop_match().map(|found| found.byte_offset()),
            fired.as_ref().map(|f| f.start),
            "{}",
            context()
        );
        out += scanner.flush().text;
        let found = scanner.stop_match();
        assert_eq!(found.map(|found| found.byte_offset()), expected.as_ref().map(|fired| fired.start), "{}", context());
        assert_eq!(found.map(|found| found.sequence()), expected.as_ref().map(|f| &*f.sequence), "{}", context());
        assert_eq!(
            found.and_then(|found| found.pattern()),
            expected.as_ref().and_then(|f| f.pattern.as_deref()),
            "{}",
            context()
        );
        assert_eq!(out, &text[..kept], "output {}", context());
    }
    let set = rules.set().expect("these rules compile");
    let found = set.find(text).map(Match::from);
    assert_eq!(found.map(|found| found.byte_offset), expected.as_ref().map(|fired| fired.start), "find {}", context());
}
