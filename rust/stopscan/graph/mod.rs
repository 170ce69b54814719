//! A compiled set: a graph of nodes. A stream is always at one node. The node's automaton finds the stops and markers
//! that are live (looked for) there. A marker that completes moves the stream to the node to which the marker leads.
//!
//! A node is what users call a state of a region: `tool_call/in reasoning` is a state of the region `tool_call`. In
//! most sets each region has one state. The markers of a `StopSet` stay in the text. The markers of a `SegmentSet` are
//! taken out, or kept as the beginning of the text of the region to which they lead.

use std::ops::Range;

use crate::automaton::{Automaton, ROOT, State, WordKind, Words};
use crate::patterns::{Found, Machines, PatternHit, PatternList, PatternState};
use crate::repeat::{Loop, Loops, Repeat};
use crate::snapshot::{Fingerprint, Writer};
use crate::text::{Place, Plain};

mod compile;

pub(crate) use compile::{Distinct, MarkerText, compile};
pub use compile::{Target, keep, stay};

/// The name of the region of ordinary text, if a set was given no regions.
pub(crate) const ANSWER: &str = "answer";

#[derive(Debug)]
pub struct Graph {
    nodes: Box<[Node]>,
    /// The names of the regions, in the order of their first nodes.
    regions: Box<[Box<str>]>,
    /// For each stop string, its index in the list that the user gave: the list of hidden stops or that of visible
    /// stops.
    indices: Box<[u32]>,
    patterns: PatternList,
    /// How often and how long text must repeat to end a stream. `None` if the set has no stop for loops.
    repeat: Option<Repeat>,
    /// The stop strings, if stops fire in none of the regions. No automaton then has these strings, but the set must
    /// still list them. Empty for a set in which stops can fire.
    dormant: Words,
    /// Whether the set has protected regions: no stop fires between the markers of a pair. Node 0 is then ordinary
    /// text, and each later node is the text between the markers of one pair.
    protects: bool,
    /// Whether markers stay in the text, as in a `StopSet`.
    stay: bool,
}

#[derive(Debug)]
struct Node {
    name: Box<str>,
    /// The index of the node's region in `Graph::regions`.
    region: u32,
    /// Whether stops are live (looked for) in the node.
    live: bool,
    /// Recognises text in which no stop or marker begins. Use it only if no stop or marker has begun before the text.
    plain: Plain,
    automaton: Automaton,
    /// Finds the patterns (regular expressions), if the set has any and stops fire at the node.
    machines: Option<Machines>,
    /// Where each marker of the node leads.
    leads: Box<[Lead]>,
}

/// Where a marker leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) node: u32,
    pub(crate) marker: MarkerText,
}

impl Graph {
    fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn words(&self, node: u32) -> &Words {
        self.node(node).automaton.words()
    }

    pub(crate) fn patterns(&self) -> &PatternList {
        &self.patterns
    }

    pub(crate) fn repeat(&self) -> Option<&Repeat> {
        self.repeat.as_ref()
    }

    /// Returns the automaton that finds the strings of a node, and the machines (tables) that find its patterns.
    pub(crate) fn machines(&self, node: u32) -> (&Automaton, Option<&Machines>) {
        let Node { automaton, machines, .. } = self.node(node);
        (automaton, machines.as_ref())
    }

    pub(crate) fn name(&self, node: u32) -> &str {
        &self.node(node).name
    }

    /// The node with this name.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.nodes.iter().position(|node| &*node.name == name).map(|node| node as u32)
    }

    /// The index of a node's region in `regions`.
    #[inline(always)]
    pub(crate) fn region(&self, node: u32) -> u32 {
        self.node(node).region
    }

    pub(crate) fn regions(&self) -> impl Iterator<Item = &str> {
        self.regions.iter().map(|name| &**name)
    }

    pub(crate) fn region_name(&self, region: u32) -> &str {
        &self.regions[region as usize]
    }

    /// The node of the first protected region.
    pub(crate) fn protected(&self) -> Option<u32> {
        self.protects.then_some(1)
    }

    /// Returns the recogniser of text in which no stop or marker of the node begins. Use it only if no stop or marker
    /// has begun before the text.
    #[inline(always)]
    pub(crate) fn plain(&self, node: u32) -> &Plain {
        &self.node(node).plain
    }

    /// Fast path: returns the length of `text` if it is short and no stop or marker begins in it. The automaton need
    /// not read this text: the caller only counts it, and notes it in the stream's `History`. Returns `None` for any
    /// other text. Call this only if no stop or marker has begun before `text`.
    #[inline(always)]
    pub(crate) fn plain_length(&self, node: u32, text: &str) -> Option<Place> {
        Some(Place { code_points: self.plain(node).code_points(text)?, bytes: text.len() })
    }

    /// Returns how many bytes at the end of the text must be held, because they may become a hidden stop or a marker
    /// that is taken out of the text.
    #[inline]
    pub(crate) fn held(&self, cursor: Cursor, hides_stops: bool) -> usize {
        self.node(cursor.node).automaton.held(cursor.state, hides_stops)
    }

    pub(crate) fn markers(&self, node: u32) -> impl Iterator<Item = &str> {
        self.words(node).of_kind(WordKind::Marker)
    }

    /// The markers of all nodes.
    pub(crate) fn all_markers(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).flat_map(|node| self.markers(node))
    }

    /// Returns the marker of `node` whose text is `text`, even if a stop inside this marker always completes first.
    pub(crate) fn marker(&self, node: u32, text: &str) -> Option<Word> {
        self.word(node, self.words(node).stops()..self.words(node).len(), text)
    }

    /// Returns where the marker `word` leads.
    pub(crate) fn lead_of(&self, word: Word) -> Lead {
        self.node(word.node).leads[word.index as usize - self.words(word.node).stops()]
    }

    pub(crate) fn kind(&self, word: Word) -> WordKind {
        self.words(word.node).kind(word.index as usize)
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        self.node(word.node).automaton.words.text(word.index as usize)
    }

    /// Returns the index of a stop in the list that the user gave: the list of hidden stops or that of visible stops.
    pub(crate) fn index(&self, stop: Word) -> usize {
        self.indices[stop.index as usize] as usize
    }

    /// Returns the stop string with this text, if stops are looked for at `node`.
    pub(crate) fn stop(&self, node: u32, text: &str) -> Option<Word> {
        self.word(node, 0..self.words(node).stops(), text)
    }

    fn word(&self, node: u32, mut indices: Range<usize>, text: &str) -> Option<Word> {
        let index = indices.find(|&index| self.words(node).text(index) == text)?;
        Some(Word { node, index: index as u32 })
    }

    /// Returns all stop strings of the set. The returned `Words` may also have markers, after the stops.
    pub(crate) fn stops(&self) -> &Words {
        self.nodes.iter().find(|node| node.live).map_or(&self.dormant, |node| node.automaton.words())
    }

    /// The names of the regions in which stops can fire.
    pub(crate) fn stop_in(&self) -> impl Iterator<Item = &str> {
        let live = |region| self.nodes.iter().any(|node| node.region as usize == region && node.live);
        self.regions().enumerate().filter(move |(region, _)| live(*region)).map(|(_, name)| name)
    }

    /// Returns the stop or marker that has begun at `cursor`: its index, and how many of its bytes were read. If
    /// several have begun, returns one that began first.
    pub(crate) fn partial(&self, cursor: Cursor) -> (u32, usize) {
        let text = self.node(cursor.node).automaton.text(cursor.state);
        let word = self.words(cursor.node).with_literals().position(|word| word.as_bytes().starts_with(&text));
        (word.unwrap_or_default() as u32, text.len())
    }

    /// The reverse of `partial`: returns the cursor at `node` after the first `length` bytes of the stop or marker with
    /// the index `word`. Returns `None` if there is no node with this number, or if it has no word with this index, or
    /// no state for these bytes.
    pub(crate) fn resume(&self, node: u32, word: u32, length: usize) -> Option<Cursor> {
        let Node { automaton, .. } = self.nodes.get(node as usize)?;
        if length == 0 {
            return Some(Cursor::start(node));
        }
        let text = automaton.words().with_literals().nth(word as usize)?.as_bytes();
        Some(Cursor { node, state: automaton.state(text.get(..length)?)? })
    }
}

/// The stops, patterns, regions and options that a builder collects for a set. `compile` makes a graph of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recipe {
    pub(crate) stop: Vec<String>,
    pub(crate) visible: Vec<String>,
    pub(crate) patterns: Vec<String>,
    pub(crate) visible_patterns: Vec<String>,
    pub(crate) max_held: Option<usize>,
    pub(crate) protect: Vec<(String, String)>,
    pub(crate) regions: Vec<StateRecipe>,
    pub(crate) stop_in: Option<Vec<String>>,
    pub(crate) repeat: Option<Repeat>,
}

/// A region or a state of a region: its name, and its markers with the state to which each leads.
#[derive(Clone, Debug)]
pub(crate) struct StateRecipe {
    pub(crate) name: String,
    pub(crate) markers: Vec<(String, Target)>,
}

impl PartialEq for Graph {
    /// Whether two sets have the same stops and nodes. A set with protected pairs is never equal to a set without them.
    fn eq(&self, other: &Graph) -> bool {
        self.protects == other.protects && self.identity() == other.identity()
    }
}

impl Graph {
    /// The states of all regions, with their markers and the state to which each marker leads. Most regions have one
    /// state.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = (&str, Target)>)> {
        self.nodes.iter().zip(0..).map(|(node, number)| {
            let target = |lead: &Lead| {
                let name = self.name(lead.node);
                match lead.marker {
                    MarkerText::Removed => name.into(),
                    MarkerText::Kept => keep(name),
                    MarkerText::Stays => stay(name),
                }
            };
            (&*node.name, self.markers(number).zip(node.leads.iter().map(target)))
        })
    }

    /// Returns a fingerprint. Sets with the same stops and nodes have the same fingerprint, in every process and with
    /// every version of stopscan.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.identity())
    }

    /// Returns bytes that are equal for two sets if and only if the sets have the same stops and nodes. An empty string
    /// ends each list of stops or markers. It cannot be mistaken for a stop or marker, because none is empty.
    fn identity(&self) -> Vec<u8> {
        fn write<'a>(writer: &mut Writer, texts: impl Iterator<Item = &'a str>) {
            texts.chain([""]).for_each(|text| writer.bytes(text.as_bytes()));
        }

        let mut writer = Writer::default();
        writer.flag(self.stay);
        write(&mut writer, self.stops().of_kind(WordKind::Hidden));
        write(&mut writer, self.stops().of_kind(WordKind::Visible));
        write(&mut writer, self.patterns.of_kind(false));
        write(&mut writer, self.patterns.of_kind(true));
        writer.number(self.patterns.max_held.map_or(0, |max_held| max_held.saturating_add(1)));
        if let Some(repeat) = &self.repeat {
            [repeat.count(), repeat.max_period(), repeat.min_length()].into_iter().for_each(|part| writer.number(part));
        }
        writer.number(0);
        for (number, node) in (0..).zip(&self.nodes) {
            writer.bytes(node.name.as_bytes());
            writer.flag(node.live);
            write(&mut writer, self.markers(number));
            node.leads.iter().for_each(|lead| writer.number(lead.node as usize * 3 + lead.marker as usize));
        }
        writer.0
    }
}

/// The position of a stream: a node, and a state of its automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    #[doc(hidden)]
    pub node: u32,
    #[doc(hidden)]
    pub state: State,
}

/// A stop or marker of a node, by its index in the node's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) node: u32,
    pub(crate) index: u32,
}

/// A stop or marker that completed.
pub(crate) enum Completed {
    Stop(Word),
    /// A marker that is taken out of the text.
    Marker(Word),
    Pattern(PatternHit),
    Loop(Loop),
}

/// A stop or marker that completed, and its end in the text that was scanned, in bytes.
pub(crate) struct Completion {
    pub(crate) completed: Completed,
    pub(crate) end: usize,
}

impl Cursor {
    /// Returns the cursor of a stream that has just come to `node`: no stop or marker has begun.
    pub fn start(node: u32) -> Cursor {
        Cursor { node, state: ROOT }
    }
}

impl Graph {
    /// Scans `text`, which begins at `place` in the stream, up to the end of the first stop, or of the first marker
    /// that is taken out. If `armed` is false, stops are ignored. A marker that completes moves the cursor to the node
    /// to which it leads.
    #[inline]
    pub(crate) fn scan(
        &self,
        cursor: &mut Cursor,
        history: Option<&mut History>,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Completion> {
        match history {
            None => self.scan_words(cursor, text, armed),
            Some(history) => self.scan_with_history(cursor, history, text, place, armed),
        }
    }

    /// Does the same as `scan`, for sets without patterns and loops.
    #[inline]
    pub(crate) fn scan_words(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Completion> {
        let mut end = 0;
        loop {
            let automaton = &self.node(cursor.node).automaton;
            let (index, length) = automaton.scan(&mut cursor.state, &text[end..], armed)?;
            end += length;
            if let Some(completed) = self.arrive(cursor, index) {
                return Some(Completion { completed, end });
            }
        }
    }

    fn scan_with_history(
        &self,
        cursor: &mut Cursor,
        history: &mut History,
        text: &str,
        mut place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let mut end = 0;
        loop {
            let rest = &text[end..];
            let found = self.find_completed(cursor, history.threads.as_mut(), rest, place, armed);
            let (length, character) = match &found {
                Some(Found::Word { end, .. }) => (*end, *end),
                Some(Found::Pattern(hit)) => (hit.end, hit.completed),
                None => (rest.len(), rest.len()),
            };
            if let Some(loops) = &mut history.loops {
                // If a stop or a marker completes at the same character as a loop, the loop does not count.
                let looped = loops.feed(&rest[..character], armed);
                if let Some(looped) = looped.filter(|looped| found.is_none() || looped.end < character) {
                    *cursor = Cursor::start(cursor.node);
                    return Some(Completion { end: end + looped.end, completed: Completed::Loop(looped) });
                }
            }
            end += length;
            let completed = match found? {
                Found::Word { index, .. } => self.arrive(cursor, index),
                Found::Pattern(hit) => Some(Completed::Pattern(hit)),
            };
            if let Some(completed) = completed {
                return Some(Completion { completed, end });
            }
            history.forget_loops();
            place.advance(&rest[..length]);
        }
    }

    /// Scans a token whose text is exactly the text of `marker`, a marker of the cursor's node. `text` is this text,
    /// and begins at `place` in the stream. A stop or marker that completes before the last character does not count.
    /// If several complete at the last character, the longest counts.
    pub(crate) fn scan_marker(
        &self,
        cursor: &mut Cursor,
        mut history: Option<&mut History>,
        (text, marker): (&str, Word),
        place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let inside = text.char_indices().next_back().map_or(0, |(last, _)| last);
        let mut threads = history.as_mut().and_then(|history| history.threads.as_mut());
        let (mut end, mut at) = (0, place);
        while end < inside {
            let rest = &text[end..inside];
            let passed = match self.find_completed(cursor, threads.as_deref_mut(), rest, at, false) {
                Some(Found::Word { end, .. }) => &rest[..end],
                _ => rest,
            };
            end += passed.len();
            at.advance(passed);
        }
        match self.find_completed(cursor, threads, &text[inside..], at, armed) {
            Some(Found::Word { index, .. }) if self.words(marker.node).text(index).len() > text.len() => {
                let completed = self.arrive(cursor, index)?;
                return Some(Completion { completed, end: text.len() });
            }
            Some(Found::Pattern(hit)) if (hit.start.bytes, inside + hit.end) < (place.bytes, text.len()) => {
                return Some(Completion { end: inside + hit.end, completed: Completed::Pattern(hit) });
            }
            _ => {}
        }
        if let Some(history) = history {
            history.forget(text);
        }
        let completed = self.arrive(cursor, marker.index as usize)?;
        Some(Completion { completed, end: text.len() })
    }

    /// Returns whether a marker completes if `text` comes next.
    pub(crate) fn completes_marker(&self, mut cursor: Cursor, text: &str) -> bool {
        self.node(cursor.node).automaton.scan(&mut cursor.state, text, false).is_some()
    }

    /// Scans `text` up to the first stop or marker that completes, and returns it. The cursor stays at its node, even
    /// after a marker: only `arrive` moves it to the node to which the marker leads.
    fn find_completed(
        &self,
        cursor: &mut Cursor,
        threads: Option<&mut PatternState>,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Found> {
        let Node { automaton, machines, .. } = self.node(cursor.node);
        match threads {
            None => automaton.scan(&mut cursor.state, text, armed).map(|(index, end)| Found::Word { index, end }),
            Some(threads) => threads.scan(automaton, machines.as_ref(), &mut cursor.state, text, place, armed),
        }
    }

    /// Handles the word (stop or marker) with this index, which has just completed. A marker moves the cursor to the
    /// node to which it leads. Returns the word, or `None` for a marker that stays in the text.
    #[inline]
    fn arrive(&self, cursor: &mut Cursor, index: usize) -> Option<Completed> {
        let Node { automaton, leads, .. } = self.node(cursor.node);
        let word = Word { node: cursor.node, index: index as u32 };
        let Some(marker) = index.checked_sub(automaton.words().stops()) else {
            return Some(Completed::Stop(word));
        };
        *cursor = Cursor::start(leads[marker].node);
        (!self.stay).then_some(Completed::Marker(word))
    }

    /// Returns the node (a region, or a state of a region) at which a stream begins after `prefix`, the assistant's own
    /// part of the prompt. The markers in `prefix` count, the stops do not.
    pub(crate) fn node_after(&self, prefix: &str) -> u32 {
        let mut cursor = Cursor::default();
        let mut rest = prefix;
        while let Some(marker) = self.scan_words(&mut cursor, rest, false) {
            rest = &rest[marker.end..];
        }
        cursor.node
    }
}

/// What a stream remembers for patterns and for loops (text that repeats). Most sets have no patterns and no stop for
/// loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The places where matches of patterns have begun.
    pub(crate) threads: Option<PatternState>,
    /// Finds text that repeats again and again (a loop), if the set has a stop for loops.
    pub(crate) loops: Option<Loops>,
}

impl History {
    /// Makes the history of a new stream, if the set has patterns or loops.
    pub(crate) fn new(graph: &Graph) -> Option<History> {
        let threads = (!graph.patterns().patterns.is_empty()).then(PatternState::default);
        let loops = graph.repeat().map(Loops::new);
        (threads.is_some() || loops.is_some()).then_some(History { threads, loops })
    }

    /// Drops the text that is no longer needed. Each method of a stream, such as `feed`, must call this first.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if let Some(threads) = &mut self.threads {
            threads.begin();
        }
    }

    /// Whether no match of a pattern has begun and `PatternState::markers` is `None`. If so, plain text need not be
    /// scanned for patterns: text that has no byte with which a stop or marker can begin.
    pub(crate) fn is_idle(&self) -> bool {
        self.threads.as_ref().is_none_or(PatternState::is_idle)
    }

    /// Records plain `text` for patterns and loops. Call this only if no stop or marker begins in `text`, and none has
    /// begun before it. Returns the loop that `text` completes, if there is one.
    pub(crate) fn note_plain(&mut self, text: &str, armed: bool) -> Option<Loop> {
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        self.loops.as_mut()?.feed(text, armed)
    }

    /// Returns how many bytes at the end of the text must be held, because they may be the beginning of a match of a
    /// hidden pattern, or of a marker that `PatternState::markers` finds. The text ends with `delta`.
    ///
    /// If `hides_stops` is false, all matches stay in the output, and nothing is held for them. While a match that
    /// stays in the output is unfinished, the history keeps a copy of its text, to report it when the match completes.
    pub(crate) fn hold(&mut self, delta: &str, hides_stops: bool) -> usize {
        self.threads.as_mut().map_or(0, |threads| threads.hold(delta, hides_stops))
    }

    /// A copy of emitted text, which begins with the first unfinished match that stays in the output. The text of this
    /// match is already emitted, but is reported when the match completes.
    pub(crate) fn kept_text(&self) -> &str {
        self.threads.as_ref().map_or("", PatternState::text)
    }

    /// Forgets all matches and loops that have begun. `text` is the text that was just read. Its last character is
    /// remembered, because `\b` in a pattern may look at it.
    pub(crate) fn forget(&mut self, text: &str) {
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        self.forget_loops();
    }

    pub(crate) fn forget_loops(&mut self) {
        if let Some(loops) = &mut self.loops {
            loops.forget();
        }
    }

    /// Returns the pattern that matches only if the text ends here, as `END$` does after `END`.
    pub(crate) fn confirmed_at_end(&self, graph: &Graph, cursor: Cursor) -> Option<Completed> {
        self.threads.as_ref()?.confirmed_at_end(graph.machines(cursor.node).1?).map(Completed::Pattern)
    }

    /// Fast path: if no loop can complete in `text`, does the same as `note_plain` and returns `true`. Otherwise
    /// changes nothing and returns `false`.
    #[inline(always)]
    pub(crate) fn try_note_plain(&mut self, text: &str) -> bool {
        if let Some(loops) = &mut self.loops
            && !loops.add(text)
        {
            return false;
        }
        if let Some(threads) = &mut self.threads {
            threads.forget(text);
        }
        true
    }

    /// The number of bytes that the history takes, roughly.
    pub(crate) fn size(&self) -> usize {
        self.threads.as_ref().map_or(0, PatternState::size) + self.loops.as_ref().map_or(0, Loops::size)
    }

    /// The most bytes by which the history grows when it reads `bytes` more bytes of text.
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        self.threads.as_ref().map_or(0, |threads| threads.growth(bytes))
            + self.loops.as_ref().map_or(0, |loops| 2 * (loops.size() + bytes))
    }
}
