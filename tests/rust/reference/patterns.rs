//! The reference for patterns, which is compared with the library.
//!
//! After every character it asks, for each place in the text, which stops begin at this place and complete with this
//! character. To find the text that a scanner must hold, it tries every continuation of the text.

use stopscan::{StopSet, StopSetError};

use super::pattern::Pattern;

/// The stops and options of a scanner.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub stop: Vec<String>,
    pub visible: Vec<String>,
    pub patterns: Vec<Pattern>,
    pub visible_patterns: Vec<Pattern>,
    pub max_held: Option<usize>,
    pub include_stop: bool,
    /// An opening and a closing marker.
    pub protect: Option<(String, String)>,
}

impl Rules {
    pub fn set(&self) -> Result<StopSet, StopSetError> {
        let texts = |patterns: &[Pattern]| patterns.iter().map(Pattern::text).collect::<Vec<_>>();
        let builder = StopSet::builder().stop(&self.stop).visible(&self.visible).patterns(texts(&self.patterns));
        let builder = builder.visible_patterns(texts(&self.visible_patterns));
        let builder = builder.protect(self.protect.iter().map(|(open, close)| (open, close)));
        match self.max_held {
            Some(max_held) => builder.max_held(max_held).build(),
            None => builder.build(),
        }
    }

    /// Returns all patterns, the hidden ones first. Each comes with its index in this sequence, and whether it is
    /// hidden.
    fn all_patterns(&self) -> impl Iterator<Item = (usize, &Pattern, bool)> {
        let hidden = self.patterns.iter().map(|pattern| (pattern, true));
        let all = hidden.chain(self.visible_patterns.iter().map(|pattern| (pattern, false))).enumerate();
        all.map(|(index, (pattern, hidden))| (index, pattern, hidden))
    }

    /// Whether `max_held` allows a match that needs `length` characters to be held.
    fn allows(&self, length: usize, hidden: bool) -> bool {
        !hidden || self.max_held.is_none_or(|most| length <= most)
    }
}

/// A stop that the last character of a text completes. (For `END\b`, this character may come after the stop.) If a
/// character completes several stops, the stop that begins first fires. Of several stops that begin there, the one that
/// ends first fires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    start: usize,
    end: usize,
    /// The index of the pattern among all patterns, the hidden ones first, or `None` for a stop string. `None` is
    /// smaller than any index, so a string wins over a pattern at the same place.
    pattern: Option<usize>,
    hidden: bool,
}

/// A stop that has fired: which one, and its place in the text, in code points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    pub pattern: Option<String>,
    pub start: usize,
    pub end: usize,
    pub(super) hidden: bool,
}

pub struct Reference<'a> {
    rules: &'a Rules,
    /// `can_begin` tries all continuations of a text that consist of these characters.
    alphabet: Vec<char>,
    /// The most characters of a continuation.
    reach: usize,
}

/// The state after a text was read.
pub(super) struct Reading {
    pub(super) fired: Option<Fired>,
    /// Where the current region began. `None` if this region is protected.
    region: Option<usize>,
    /// The position at which the latest stop begins that completed in unarmed text. (No stop fires in unarmed text.) A
    /// stop that begins at this position or earlier would contain the completed stop, so it cannot fire.
    over: Option<usize>,
}

impl<'a> Reference<'a> {
    pub fn new(rules: &'a Rules, alphabet: &str, reach: usize) -> Reference<'a> {
        Reference { rules, alphabet: alphabet.chars().collect(), reach }
    }

    /// Reads `text`. In its first `unarmed` characters no stop fires.
    pub(super) fn read(&self, text: &[char], unarmed: usize) -> Reading {
        let mut reading = Reading { fired: None, region: Some(0), over: None };
        for end in 1..=text.len() {
            let seen = &text[..end];
            let Some(region) = reading.region else {
                let (_, close) = self.rules.protect.as_ref().expect("there is a protected region");
                if ends_with(seen, close) && self.opened(seen).is_some_and(|opened| end >= opened + close.len()) {
                    (reading.region, reading.over) = (Some(end), None);
                }
                continue;
            };
            let events = self.events(seen, region);
            let over = |event: &Event| reading.over.is_some_and(|over| event.start <= over);
            let first = events.iter().filter(|event| end > unarmed && !over(event)).min();
            if self.marker(seen, region).is_some_and(|open| first.is_none_or(|first| open <= first.start)) {
                reading.region = None;
                continue;
            }
            if let Some(event) = first {
                reading.fired = Some(self.fired(event));
                break;
            }
            reading.over = events.iter().map(|event| Some(event.start)).chain([reading.over]).max().flatten();
        }
        reading
    }

    /// Returns where the opening marker begins if `text` ends with this marker. A marker that begins before `region`
    /// does not count.
    fn marker(&self, text: &[char], region: usize) -> Option<usize> {
        let (open, _) = self.rules.protect.as_ref()?;
        let start = text.len().checked_sub(open.chars().count()).filter(|start| *start >= region)?;
        ends_with(text, open).then_some(start)
    }

    /// Where the last opening marker ends, which is where the protected region begins.
    fn opened(&self, text: &[char]) -> Option<usize> {
        let (open, _) = self.rules.protect.as_ref()?;
        (0..=text.len()).rev().find(|&end| ends_with(&text[..end], open))
    }

    fn fired(&self, event: &Event) -> Fired {
        let text = |index| self.rules.all_patterns().nth(index).expect("there is such a pattern").1.text();
        Fired { pattern: event.pattern.map(text), start: event.start, end: event.end, hidden: event.hidden }
    }

    /// Returns the stops that begin at `from` or later and are completed by the last character of `text`. For `END\b`,
    /// this character comes after the stop.
    fn events(&self, text: &[char], from: usize) -> Vec<Event> {
        let mut events = Vec::new();
        let hidden = self.rules.stop.iter().map(|stop| (stop, true));
        for (stop, hidden) in hidden.chain(self.rules.visible.iter().map(|stop| (stop, false))) {
            let start = text.len().checked_sub(stop.chars().count()).filter(|start| *start >= from);
            if let Some(start) = start.filter(|_| ends_with(text, stop)) {
                let hidden = hidden && !self.rules.include_stop;
                events.push(Event { start, end: text.len(), pattern: None, hidden });
            }
        }
        let before = text.len() - 1;
        for (index, pattern, hidden) in self.rules.all_patterns() {
            for start in from..text.len() {
                let cut = hidden && !self.rules.include_stop;
                let event = |end| Event { start, end, pattern: Some(index), hidden: cut };
                // `max_held` does not count the last character, which is never held.
                let allowed = self.rules.allows(before - start, hidden);
                if allowed && pattern.matches_surely(text, start) {
                    events.push(event(text.len()));
                }
                let passed = &text[..before];
                let confirmed = start < before
                    && allowed
                    && !pattern.matches_surely(passed, start)
                    && pattern.matches(passed, start, Some(text[before]));
                if confirmed {
                    events.push(event(before));
                }
            }
        }
        events
    }

    /// Returns the match of a pattern, such as `END\b`, that is complete only because the stream ends after `text`.
    pub(super) fn at_end(&self, text: &[char], reading: &Reading) -> Option<Fired> {
        let region = reading.region?;
        let starts = (region..text.len()).filter(|&start| reading.over.is_none_or(|over| start > over));
        let events = starts.flat_map(|start| {
            let ends = move |pattern: &Pattern| ends_at_end(pattern, text, start);
            let here = self.rules.all_patterns().filter(move |(_, pattern, _)| ends(pattern));
            here.filter(move |(.., hidden)| self.rules.allows(text.len() - start, *hidden)).map(
                move |(index, _, hidden)| {
                    let hidden = hidden && !self.rules.include_stop;
                    Event { start, end: text.len(), pattern: Some(index), hidden }
                },
            )
        });
        events.min().map(|event| self.fired(&event))
    }

    /// Returns how many characters at the end of `text` must be held, if no stop has fired in `text`. The held text
    /// begins at the first position at which a hidden stop may begin that can still fire. For each position, this is
    /// decided as if no other stop had begun earlier in the text.
    pub(super) fn held(&self, text: &[char], reading: &Reading) -> usize {
        let Some(region) = reading.region else {
            return 0;
        };
        let starts = (region..text.len()).filter(|&start| reading.over.is_none_or(|over| start > over));
        let mut starts = starts.filter(|&start| {
            let can_begin = |pattern| self.can_begin(&mut text.to_owned(), start, self.reach, pattern);
            can_begin(false) || can_begin(true)
        });
        starts.next().map_or(0, |start| text.len() - start)
    }

    /// Whether a hidden stop that begins at `start` can still fire, depending on the text that follows. If `pattern` is
    /// true, looks only at patterns. Otherwise, looks only at strings.
    fn can_begin(&self, text: &mut Vec<char>, start: usize, reach: usize, pattern: bool) -> bool {
        let wanted = |event: &Event| event.start == start && event.hidden && event.pattern.is_some() == pattern;
        if pattern
            && self.rules.max_held.is_none_or(|most| text.len() - start <= most)
            && self.rules.patterns.iter().any(|one| ends_at_end(one, text, start))
        {
            return !self.rules.include_stop; // the pattern matches if the stream ends here
        }
        if reach == 0 {
            return false;
        }
        self.alphabet.iter().any(|&letter| {
            text.push(letter);
            let first = self.events(text, start).into_iter().min();
            let marker = self.marker(text, start);
            let can = match (first, marker) {
                (Some(event), marker) => wanted(&event) && marker.is_none_or(|marker| marker > event.start),
                (None, Some(_)) => false,
                (None, None) => self.can_begin(text, start, reach - 1, pattern),
            };
            text.pop();
            can
        })
    }
}

/// Whether `text` from `start` on matches the pattern only if the stream ends there.
fn ends_at_end(pattern: &Pattern, text: &[char], start: usize) -> bool {
    !pattern.matches_surely(text, start) && pattern.matches(text, start, None)
}

fn ends_with(text: &[char], end: &str) -> bool {
    text.ends_with(&end.chars().collect::<Vec<_>>())
}
