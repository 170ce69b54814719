//! What a stream remembers for the patterns of its set, and the scan for patterns and strings together.

use super::alphabet::Kind;
use super::machine::Machine;
use super::places::{PatternHit, Places, replay, scan, scan_unarmed};
use crate::automaton::{Automaton, State, Words};
use crate::snapshot::{Reader, Writer};
use crate::text::{Held, Place};

#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    pub(super) places: Places,
    /// The text since the first match began. Kept only for streams that hide no stop. In other streams this text is a
    /// part of the held text.
    pub(super) text: Held,
    /// The state with which markers are found, if it is not the state of the strings' automaton. A match that completes
    /// in unarmed text (in which no stop fires) ends the stops that contain it, so the automaton forgets them. But the
    /// match does not end markers: this is the state in which the automaton would be without the match.
    pub(super) markers: Option<State>,
    /// The number of bytes that are held for markers because of the state `markers`.
    held_for_markers: usize,
    /// The number of bytes at the end of the text that may be the beginning of a literal (a pattern that is plain
    /// text).
    pub(super) begun_by_literals: usize,
}

/// The first marker or stop that completes.
pub(crate) enum Found {
    /// A marker, or a stop that is a string: its index among the region's words, and its end in the text that was
    /// scanned, in bytes.
    Word {
        index: usize,
        end: usize,
    },
    Pattern(PatternHit),
}

impl Threads {
    /// Drops the part of `text` that is no longer needed. Every method of the stream that reads or flushes text must
    /// call this first.
    pub(crate) fn begin(&mut self) {
        self.text.begin();
    }

    /// Scans `text`, which begins at `place`, up to the first character that completes a marker or, if `armed`, a stop.
    /// `machine` is the machine of the region's patterns, and `state` is the state of `automaton`, which finds the
    /// region's strings.
    pub(crate) fn scan(
        &mut self,
        automaton: &Automaton,
        machine: Option<&Machine>,
        state: &mut State,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Found> {
        let mut stops_begin = None;
        let word = match (machine, armed) {
            (Some(machine), false) => {
                let (latest, marker) = scan_unarmed_stops(automaton, machine, state, text, place);
                stops_begin = latest;
                marker
            }
            _ => automaton.scan(state, text, armed),
        };
        let words = automaton.words();
        let word = self.marker_first(automaton, state, text, word);
        let seen = &text[..word.map_or(text.len(), |(_, end)| end)];
        match machine {
            Some(machine) if armed => {
                let hit = scan(&mut self.places, machine, seen, place);
                if let Some(hit) = hit.filter(|hit| word.is_none_or(|word| beats(hit, machine, words, word, place))) {
                    return Some(Found::Pattern(hit));
                }
            }
            Some(machine) => {
                let matches_begin = scan_unarmed(&mut self.places, machine, seen, place);
                if let Some(start) = stops_begin {
                    self.places.end_through(start, machine);
                }
                if let Some(start) = matches_begin {
                    self.end_strings_through(automaton, machine, state, place.bytes + seen.len() - start);
                }
            }
            None => {}
        }
        let is_marker = |(index, _)| (words.stops()..words.len()).contains(&index);
        if machine.is_none() || word.is_some_and(is_marker) {
            self.forget(seen); // no match crosses a marker
        }
        if let Some(state) = self.markers {
            self.follow_markers(automaton, state);
        }
        // Counts the bytes that may still become a literal (plain-text pattern). A literal that has just completed is
        // not counted: it is a stop now.
        self.begun_by_literals = match machine {
            Some(machine) if !machine.literals.is_empty() => automaton.held(*state, true),
            _ => 0,
        };
        word.map(|(index, end)| match (index.checked_sub(words.len()), machine) {
            (Some(literal), Some(machine)) => {
                let start = (place + Place::after(&text[..end])).before(words.text(index));
                Found::Pattern(PatternHit { pattern: machine.literals[literal], start, end, completed: end })
            }
            _ => Found::Word { index, end },
        })
    }

    /// Sets `markers` to `state`, and `held_for_markers` to the number of bytes that are held in this state.
    pub(super) fn follow_markers(&mut self, automaton: &Automaton, state: State) {
        self.markers = Some(state);
        self.held_for_markers = automaton.held(state, false);
    }

    /// Moves the state `markers` over `text`. `word` is the stop or marker that `state` found in `text`, if any.
    /// Returns a marker that completes before `word`, or else `word`. If both end at the same place, returns the longer
    /// one.
    fn marker_first(
        &mut self,
        automaton: &Automaton,
        state: &State,
        text: &str,
        word: Option<(usize, usize)>,
    ) -> Option<(usize, usize)> {
        let Some(markers) = &mut self.markers else {
            return word;
        };
        let seen = word.map_or(text.len(), |(_, end)| end);
        let marker = automaton.scan(markers, &text[..seen], false);
        if *markers == *state {
            (self.markers, self.held_for_markers) = (None, 0);
        }
        let length = |index: usize| automaton.words().text(index).len();
        let first =
            |marker: &(usize, usize)| word.is_none_or(|word| marker.1 < word.1 || length(marker.0) > length(word.0));
        marker.filter(first).or(word)
    }

    /// Gives up the stop strings that began `length` bytes ago or earlier: they contain a match that completed in
    /// unarmed text.
    fn end_strings_through(&mut self, automaton: &Automaton, machine: &Machine, state: &mut State, length: usize) {
        if machine.length(*state) < length {
            return;
        }
        let words = automaton.words();
        if words.len() > words.stops() {
            self.markers.get_or_insert(*state);
        }
        // Each byte that is read makes the state's text at most one byte longer, and each fallback makes that text
        // shorter. So the cost is linear.
        while machine.length(*state) >= length {
            *state = automaton.fallback(*state);
        }
    }

    /// Returns the match that only the end of the text completes, as for `a$`. In the result, `end` and `completed` are
    /// 0.
    pub(crate) fn confirmed_at_end(&self, machine: &Machine) -> Option<PatternHit> {
        let (pattern, start) = self.places.confirmed_at_end(machine)?;
        Some(PatternHit { pattern, start, end: 0, completed: 0 })
    }

    /// Whether no match has begun and `markers` is `None`. Text in which no stop or marker begins need not be scanned
    /// then: only its length and its last character matter to patterns.
    pub(crate) fn is_idle(&self) -> bool {
        self.places.is_empty() && self.markers.is_none() && self.begun_by_literals == 0
    }

    /// Ends the matches and markers that have begun. `text` is the text that was read last.
    pub(crate) fn forget(&mut self, text: &str) {
        self.places.forget(text);
        self.text = Held::default();
        self.markers = None;
        self.held_for_markers = 0;
        self.begun_by_literals = 0;
    }

    /// Returns how many bytes at the end of the text, which ends with `delta`, must be held. A stream that hides no
    /// stop holds no text for a match. For such a stream, `self.text` keeps the text since the first match began.
    pub(crate) fn hold(&mut self, delta: &str, hides_stops: bool) -> usize {
        if hides_stops {
            return self.places.held().max(self.held_for_markers);
        }
        self.text.push(delta, self.begun_bytes());
        self.held_for_markers
    }

    /// Returns how many bytes ago the earliest match or literal began that may still complete.
    pub(super) fn begun_bytes(&self) -> usize {
        self.places.held().max(self.begun_by_literals)
    }

    /// The text since the first match began, for streams that hide no stop.
    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the text that is held for a marker because of the state `markers`.
    pub(crate) fn text_for_markers(&self, automaton: &Automaton) -> String {
        let text = self.markers.map(|state| automaton.text(state)).unwrap_or_default();
        String::from_utf8(text[text.len() - self.held_for_markers..].into()).unwrap_or_default()
    }

    /// Adds `text` to the text that is kept. The last `begun_by_literals` bytes of the kept text may be the beginning
    /// of a literal.
    pub(super) fn keep(&mut self, text: &str, begun_by_literals: usize) {
        self.begun_by_literals = begun_by_literals;
        self.text.push(text, text.len());
    }

    /// The number of bytes that `self` takes, roughly.
    pub(crate) fn size(&self) -> usize {
        self.places.size() + self.text.len()
    }

    /// The most bytes of memory by which `self` grows with `bytes` bytes of text.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        self.places.growth(bytes) + self.text.growth(bytes) + self.begun_bytes()
    }
}

/// Scans unarmed text, in which no stop fires, up to a marker. Returns where the latest of the completed stops begins,
/// in bytes of the stream, and the marker with the place in `text` where it ends.
fn scan_unarmed_stops(
    automaton: &Automaton,
    machine: &Machine,
    state: &mut State,
    text: &str,
    place: Place,
) -> (Option<usize>, Option<(usize, usize)>) {
    let (mut end, mut latest) = (0, None);
    while let Some(length) = automaton.advance(state, &text.as_bytes()[end..]) {
        end += length;
        if let Some(marker) = automaton.completed(*state, false) {
            return (latest, Some((marker, end)));
        }
        if let Some(stop) = automaton.completed(*state, true) {
            latest = latest.max(Some(place.bytes + end - machine.shortest[stop] as usize));
        }
    }
    (latest, None)
}

/// Returns whether a match wins over a string that also completes. The one that completes first wins. If both complete
/// at the same character, the one that began first wins. If both began at the same place, the match wins if it ended
/// before the completing character, as for `a\b`.
fn beats(hit: &PatternHit, machine: &Machine, words: &Words, (index, end): (usize, usize), place: Place) -> bool {
    let start = place.bytes + end - words.text(index).len();
    // If both begin, end and complete at the same places, a stop string wins over a pattern. The string may also be a
    // literal (a pattern that is plain text). Of two patterns, the one that comes first in the list wins.
    let rank = |pattern: usize| pattern + 1;
    let word = index.checked_sub(words.len()).map_or(0, |literal| rank(machine.literals[literal]));
    (hit.completed, hit.start.bytes, hit.end, rank(hit.pattern)) < (end, start, end, word)
}

/// The threads of a stream (the matches that have begun), as a snapshot stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedThreads {
    /// The text since the first match began.
    pub(crate) text: String,
    /// The result of `to_bytes`.
    pub(crate) bytes: Vec<u8>,
}

impl Threads {
    /// Returns the begun matches for a snapshot. `text` is the end of the stream's text, and contains the text of all
    /// begun matches.
    pub(crate) fn begun(&self, automaton: &Automaton, text: &str) -> SavedThreads {
        SavedThreads { text: text[text.len() - self.begun_bytes()..].into(), bytes: self.to_bytes(automaton) }
    }

    /// Returns, in this order: the kind of the last character that was read, the kind of the character before the first
    /// begun match, the number of begun matches, how many bytes ago each of them began, and the text of the state
    /// `markers`.
    fn to_bytes(&self, automaton: &Automaton) -> Vec<u8> {
        let mut writer = Writer::default();
        let (before, lengths) = (self.places.before, Vec::from_iter(self.places.all()));
        let kinds = [before, self.places.before_first().unwrap_or(before)];
        let numbers = kinds.into_iter().map(|kind| kind as usize).chain([lengths.len()]).chain(lengths);
        numbers.for_each(|number| writer.number(number));
        writer.0.extend(self.markers.map(|state| automaton.text(state)).unwrap_or_default());
        writer.0
    }

    /// Reads the begun matches of a stream whose text ends at `end`. Returns `None` if no stream in a region with this
    /// automaton and machine could have written them.
    pub(crate) fn resume(
        automaton: &Automaton,
        machine: Option<&Machine>,
        begun: &SavedThreads,
        end: Place,
        hides_stops: bool,
    ) -> Option<Threads> {
        let SavedThreads { text, bytes } = begun;
        let mut reader = Reader(bytes);
        let kind = |number| Kind::ALL.get(number).copied();
        let (before, before_first) = (kind(reader.number()?)?, kind(reader.number()?)?);
        let starts = (0..reader.count()?).map(|_| text.len().checked_sub(reader.number()?));
        let starts: Vec<usize> = starts.collect::<Option<_>>()?;
        let mut threads = Threads::default();
        threads.places.before = before_first;
        if let Some(&first) = starts.first() {
            let begun = text.get(first..)?;
            let start = Place {
                bytes: end.bytes.checked_sub(begun.len())?,
                code_points: end.code_points.checked_sub(Place::after(begun).code_points)?,
            };
            let starts: Option<Vec<usize>> = starts.iter().map(|start| start.checked_sub(first)).collect();
            replay(&mut threads.places, machine?, begun, start, &starts?)?;
        }
        threads.places.before = before;
        threads.keep(if hides_stops { "" } else { text }, text.len());
        if !reader.0.is_empty() {
            threads.follow_markers(automaton, automaton.state(reader.0)?);
        }
        Some(threads)
    }
}
