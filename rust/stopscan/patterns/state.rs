//! What a stream remembers for the patterns of its set, and the scan for patterns and strings together.

use super::alphabet::Kind;
use super::machine::{Machine, Machines};
use super::threads::{PatternHit, Threads, replay, scan, scan_unarmed};
use crate::automaton::{Automaton, State, Words};
use crate::snapshot::{Reader, Writer};
use crate::text::{Held, Place};

#[derive(Clone, Debug, Default)]
pub(crate) struct PatternState {
    /// The matches of hidden patterns that have begun. Their text is held.
    pub(super) hidden: Threads,
    /// The matches of visible patterns that have begun.
    pub(super) visible: Threads,
    /// A copy of the end of the text, for unfinished matches for which no text is held. It begins where the first of
    /// these matches begins. Text is never held for visible patterns. If the stream hides no stop,
    /// it is not held for hidden patterns either.
    pub(super) text: Held,
    /// A second state of the strings' automaton, with which only markers are found. `None` as long as it equals the
    /// first state.
    ///
    /// The states differ after a match of a pattern has completed in text in which no stop may fire. The first state
    /// then forgets all stops and markers that contain this match. But these markers may still complete, so the second
    /// state keeps them.
    pub(super) markers: Option<State>,
    /// The number of bytes that are held because, according to `markers`, they may be the beginning of a marker.
    held_for_markers: usize,
    /// Whether no stop may fire at the last character that was scanned. If so, the end of the text completes no match
    /// either, such as a match of `a$`.
    unarmed: bool,
}

/// The first marker or stop that completes.
pub(crate) enum Found {
    /// A marker or a stop string. `index` is its index among the words of the region. `end` is where it ends in the
    /// scanned text, in bytes.
    Word {
        index: usize,
        end: usize,
    },
    Pattern(PatternHit),
}

impl PatternState {
    /// Drops the part of `self.text` that is no longer needed. Every method of a stream that reads or flushes text must
    /// call this first.
    pub(crate) fn begin(&mut self) {
        self.text.begin();
    }

    /// Scans `text`, which begins at `place`, up to the first character that completes a marker or, if `armed`, a stop.
    /// `machines` finds the region's patterns, and `state` is the state of `automaton`, which finds the region's
    /// strings.
    pub(crate) fn scan(
        &mut self,
        automaton: &Automaton,
        machines: Option<&Machines>,
        state: &mut State,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Found> {
        if !text.is_empty() {
            self.unarmed = !armed;
        }
        let (latest, word) = match machines {
            Some(machines) if !armed => scan_unarmed_stops(automaton, machines, state, text, place),
            _ => (None, automaton.scan(state, text, armed)),
        };
        let words = automaton.words();
        let word = self.marker_first(automaton, state, text, word);
        let seen = &text[..word.map_or(text.len(), |(_, end)| end)];
        match machines {
            Some(machines) if armed => {
                let hit = self.scan_patterns(machines, seen, place);
                if let Some(hit) = hit.filter(|hit| word.is_none_or(|word| beats(hit, machines, words, word, place))) {
                    return Some(Found::Pattern(hit));
                }
            }
            Some(machines) => self.scan_unarmed_patterns(automaton, machines, state, seen, place, latest),
            None => {}
        }
        let is_marker = |(index, _)| (words.stops()..words.len()).contains(&index);
        if machines.is_none() || word.is_some_and(is_marker) {
            self.forget(seen); // no match crosses a marker
        }
        if let Some(state) = self.markers {
            self.follow_markers(automaton, state);
        }
        word.map(|(index, end)| match (index.checked_sub(words.len()), machines) {
            (Some(literal), Some(machines)) => {
                let start = (place + Place::after(&text[..end])).before(words.text(index));
                Found::Pattern(PatternHit { pattern: machines.literals[literal], start, end, completed: end })
            }
            _ => Found::Word { index, end },
        })
    }

    /// Scans `text`, in which stops may fire. Returns the first match of a pattern that is not plain text.
    fn scan_patterns(&mut self, machines: &Machines, text: &str, place: Place) -> Option<PatternHit> {
        let hits = self.with(machines).into_iter().flatten();
        let hits = hits.filter_map(|(threads, machine)| scan(threads, machine, text, place));
        hits.min_by_key(PatternHit::order)
    }

    /// Scans `text`, in which stops are ignored. If a match or a stop string completes, gives up all unfinished matches
    /// that contain it. If a match completes, also gives up the unfinished stop strings that contain it. `latest` is
    /// the last place in the stream at which a completed stop string begins.
    fn scan_unarmed_patterns(
        &mut self,
        automaton: &Automaton,
        machines: &Machines,
        state: &mut State,
        text: &str,
        place: Place,
        latest: Option<usize>,
    ) {
        let mut matches_begin = None;
        for (threads, machine) in self.with(machines).into_iter().flatten() {
            matches_begin = scan_unarmed(threads, machine, text, place).max(matches_begin);
        }
        if let Some(start) = matches_begin.max(latest) {
            for (threads, machine) in self.with(machines).into_iter().flatten() {
                threads.end_through(start, machine);
            }
        }
        if let Some(start) = matches_begin {
            self.end_strings_through(automaton, machines, state, place.bytes + text.len() - start);
        }
    }

    /// Returns the unfinished matches of the hidden patterns with the machine (table) that finds them, and the same for
    /// the visible patterns.
    fn with<'a>(&'a mut self, machines: &'a Machines) -> [Option<(&'a mut Threads, &'a Machine)>; 2] {
        let PatternState { hidden, visible, .. } = self;
        [machines.hidden.as_ref().map(|one| (hidden, one)), machines.visible.as_ref().map(|one| (visible, one))]
    }

    /// Sets `markers`, the second state of the strings' automaton, to `state`. Also computes how many bytes are held
    /// for it.
    pub(super) fn follow_markers(&mut self, automaton: &Automaton, state: State) {
        self.markers = Some(state);
        self.held_for_markers = automaton.held(state, false);
    }

    /// Scans `text` with `markers`, the second state of the strings' automaton, which only finds markers. `word` is the
    /// stop or marker that the first state has found, if any. Returns the marker or `word`: the one that ends first or,
    /// if both end at the same place, the longer one.
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

    /// Gives up the stop strings that began `length` bytes ago or earlier. Called after a match has completed in text
    /// in which no stop may fire: these strings contain the match.
    fn end_strings_through(&mut self, automaton: &Automaton, machines: &Machines, state: &mut State, length: usize) {
        if machines.length(*state) < length {
            return;
        }
        let words = automaton.words();
        if words.len() > words.stops() {
            self.markers.get_or_insert(*state);
        }
        // All calls together take linear time. Each byte that is read makes the text of the state at most one byte
        // longer, and each step of this loop makes it shorter. So there are at most as many steps as bytes.
        while machines.length(*state) >= length {
            *state = automaton.fallback(*state);
        }
    }

    /// Returns the match that is complete only because the text ends, as for `a$`. Its `end` and `completed` are 0,
    /// because they count from the end of the text that was read. Returns `None` if no stop may fire at the last
    /// character.
    pub(crate) fn confirmed_at_end(&self, machines: &Machines) -> Option<PatternHit> {
        let hits = [(&self.hidden, &machines.hidden), (&self.visible, &machines.visible)].into_iter();
        let hits = hits.filter_map(|(threads, machine)| threads.confirmed_at_end(machine.as_ref()?));
        let hits = hits.map(|(pattern, start)| PatternHit { pattern, start, end: 0, completed: 0 });
        hits.min_by_key(PatternHit::order).filter(|_| !self.unarmed)
    }

    /// Whether no match has begun and `markers` is `None`. If so, plain text need not be scanned: text that has no byte
    /// with which a stop or marker can begin.
    pub(crate) fn is_idle(&self) -> bool {
        self.hidden.is_empty() && self.visible.is_empty() && self.markers.is_none()
    }

    /// Drops all matches and markers that have begun, so that none of them can complete. `text` is the text that was
    /// read last.
    pub(crate) fn forget(&mut self, text: &str) {
        self.hidden.forget(text);
        self.visible.forget(text);
        self.text = Held::default();
        self.markers = None;
        self.held_for_markers = 0;
    }

    /// Returns how many bytes at the end of the text must be held: for unfinished matches, and because they may be the
    /// beginning of a marker. The text ends with `delta`. If `hides_stops` is false, matches stay in the output, and no
    /// text is held for them.
    pub(crate) fn hold(&mut self, delta: &str, hides_stops: bool) -> usize {
        self.text.push(delta, self.kept(hides_stops));
        if hides_stops { self.hidden.held().max(self.held_for_markers) } else { self.held_for_markers }
    }

    /// Returns how many bytes at the end of the text must be kept in `text`: all from the beginning of the first
    /// unfinished match whose text is not held. Returns 0 if there is no such match.
    fn kept(&self, hides_stops: bool) -> usize {
        self.visible.held().max(if hides_stops { 0 } else { self.hidden.held() })
    }

    /// Returns how many bytes ago the first match began.
    fn begun_bytes(&self) -> usize {
        self.hidden.held().max(self.visible.held())
    }

    /// The end of the text, kept for unfinished matches for which no text is held. If one of them completes, its text
    /// is reported.
    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the held text that may be the beginning of a marker, according to the state `markers`.
    pub(crate) fn text_for_markers(&self, automaton: &Automaton) -> String {
        let text = self.markers.map(|state| automaton.text(state)).unwrap_or_default();
        String::from_utf8(text[text.len() - self.held_for_markers..].into()).unwrap_or_default()
    }

    /// The number of bytes that `self` takes, roughly.
    pub(crate) fn size(&self) -> usize {
        self.hidden.size() + self.visible.size() + self.text.len()
    }

    /// The most bytes of memory by which `self` grows when `bytes` more bytes of text are read.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        /// With the default limit on held text, a stream has at most this many unfinished matches of hidden patterns.
        const MOST: usize = 1 << 18;

        let threads = self.hidden.growth(bytes.min(MOST)) + self.visible.growth(bytes);
        threads + self.text.growth(bytes) + self.begun_bytes()
    }
}

/// Scans text in which no stop may fire, up to the first marker. Returns two values, each of which may be `None`. The
/// first is the last place in the stream, in bytes, at which a completed stop string begins. The second is the marker,
/// with its end in `text`.
fn scan_unarmed_stops(
    automaton: &Automaton,
    machines: &Machines,
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
            latest = latest.max(Some(place.bytes + end - machines.shortest[stop] as usize));
        }
    }
    (latest, None)
}

/// Returns whether the match `hit` of a pattern wins over a string that also completes in the text. The one that
/// completes first wins. If both complete at the same character, the one that began first wins. If they also began at
/// the same place, the match wins if it ends earlier: a match of `a\b` ends before the character that completes it.
fn beats(hit: &PatternHit, machines: &Machines, words: &Words, (index, end): (usize, usize), place: Place) -> bool {
    let start = place.bytes + end - words.text(index).len();
    // The rank decides if both begin, end and complete at the same places. A stop string has rank 0, so it wins over
    // every pattern. A literal (a pattern that is plain text) has the rank of a pattern, so the one that comes first in
    // the list wins.
    let rank = index.checked_sub(words.len()).map_or(0, |literal| machines.literals[literal] + 1);
    hit.order() < (end, start, end, rank)
}

/// The threads of a stream (the matches that have begun), as a snapshot stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SavedThreads {
    /// The text since the first match began.
    pub(crate) text: String,
    /// The result of `to_bytes`.
    pub(crate) bytes: Vec<u8>,
}

impl PatternState {
    /// Returns the unfinished matches for a snapshot. `held` is the held text of the stream.
    pub(crate) fn begun(&self, automaton: &Automaton, held: &str) -> SavedThreads {
        let (kept, begun) = (self.text.as_str(), self.begun_bytes());
        // The text since the first unfinished match began is either kept in `self.text` or held.
        let text = if kept.len() >= begun { kept } else { &held[held.len() - begun..] };
        SavedThreads { text: text.into(), bytes: self.to_bytes(automaton) }
    }

    /// Returns the state as bytes: first the matches of hidden patterns, then the matches of visible patterns, then the
    /// text of the state `markers`. Matches are written as these numbers:
    ///
    /// - the kind of the last character that was read. If matches have begun and no stop may fire at this character,
    ///   the number of kinds is added to it
    /// - the kind of the character before the first unfinished match
    /// - the number of unfinished matches, and how many bytes ago each of them began
    fn to_bytes(&self, automaton: &Automaton) -> Vec<u8> {
        let mut writer = Writer::default();
        for threads in [&self.hidden, &self.visible] {
            let (before, lengths) = (threads.before, Vec::from_iter(threads.all()));
            let [last, first] = [before, threads.before_first().unwrap_or(before)].map(|kind| kind as usize);
            let unarmed = if self.unarmed && !lengths.is_empty() { Kind::ALL.len() } else { 0 };
            let numbers = [last + unarmed, first, lengths.len()].into_iter().chain(lengths);
            numbers.for_each(|number| writer.number(number));
        }
        writer.0.extend(self.markers.map(|state| automaton.text(state)).unwrap_or_default());
        writer.0
    }

    /// Reads the matches that `begun` wrote. `end` is where the text of their stream ends. Returns `None` if no stream
    /// in a region with this automaton and these machines can have written them.
    pub(crate) fn resume(
        automaton: &Automaton,
        machines: Option<&Machines>,
        begun: &SavedThreads,
        end: Place,
        hides_stops: bool,
    ) -> Option<PatternState> {
        let SavedThreads { text, bytes } = begun;
        let mut reader = Reader(bytes);
        let mut resumed = PatternState::default();
        let PatternState { hidden, visible, unarmed, .. } = &mut resumed;
        let hidden = (hidden, machines.and_then(|machines| machines.hidden.as_ref()));
        let visible = (visible, machines.and_then(|machines| machines.visible.as_ref()));
        for (threads, machine) in [hidden, visible] {
            let kind = |number| Kind::ALL.get(number).copied();
            let (last, kinds) = (reader.number()?, Kind::ALL.len());
            let (before, before_first) = (kind(last.checked_sub(kinds).unwrap_or(last))?, kind(reader.number()?)?);
            *unarmed |= last >= kinds;
            let starts = (0..reader.count()?).map(|_| text.len().checked_sub(reader.number()?));
            let starts: Vec<usize> = starts.collect::<Option<_>>()?;
            threads.before = before_first;
            if let Some(&first) = starts.first() {
                let begun = text.get(first..)?;
                let start = Place {
                    bytes: end.bytes.checked_sub(begun.len())?,
                    code_points: end.code_points.checked_sub(Place::after(begun).code_points)?,
                };
                let starts: Option<Vec<usize>> = starts.iter().map(|start| start.checked_sub(first)).collect();
                replay(threads, machine?, begun, start, &starts?)?;
            }
            threads.before = before;
        }
        if resumed.begun_bytes() != text.len() {
            return None;
        }
        let kept = resumed.kept(hides_stops);
        resumed.text.push(text, kept);
        if !reader.0.is_empty() {
            resumed.follow_markers(automaton, automaton.state(reader.0)?);
        }
        Some(resumed)
    }

    /// Returns how many bytes at the end of the text are held for unfinished matches of hidden patterns.
    pub(crate) fn held(&self) -> usize {
        self.hidden.held()
    }
}
