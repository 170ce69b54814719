//! What a set compiles to: regions, each with an automaton over the stops and markers that are live in it, and where
//! each of its markers leads.
//!
//! Stops and segments are two faces of this. A `StopSet` has ordinary text, in which its stops and the opening markers
//! are live, and one region for each closing marker; its markers stay in the text. A `SegmentSet` has the regions that
//! it is given; its markers are taken out.

use std::collections::HashSet;
use std::slice::from_ref;

use crate::automaton::{Automaton, Config, DENSE_LIMIT, ROOT, State};
use crate::error::{ErrorKind, StopSetError};
use crate::patterns::{MAX_HELD, Machine, PatternHit, Refusal, Source, Threads};
use crate::plain::Plain;
use crate::stop_match::{Place, StopMatch};
use crate::words::{Kind, Words};

/// What a region is made of.
pub(crate) struct Draft {
    pub(crate) words: Words,
    /// The region that each marker leads to.
    pub(crate) leads: Vec<u32>,
    /// Whether the set's patterns are live in it.
    pub(crate) with_patterns: bool,
}

/// The patterns of a set, and how many code points may be held for one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternList {
    pub(crate) patterns: Vec<String>,
    /// Where each stands in the list that the user gave.
    indices: Vec<usize>,
    pub(crate) max_held: Option<usize>,
}

#[derive(Debug)]
struct Region {
    automaton: Automaton,
    /// Reads the patterns, where some are live.
    machine: Option<Machine>,
    /// The region that each marker leads to.
    leads: Vec<u32>,
}

#[derive(Debug)]
pub(crate) struct Regions {
    regions: Box<[Region]>,
    /// Where each stop stands in the list that the user gave.
    indices: Vec<u32>,
    patterns: PatternList,
}

/// Where reading stands: in which region, and in what state of its automaton.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) region: u32,
    pub(crate) state: State,
}

/// A word of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) region: u32,
    pub(crate) index: u32,
}

/// What completed.
#[derive(Clone, Copy)]
pub(crate) enum Completed {
    Word(Word),
    Pattern(PatternHit),
}

/// What completed, and where it ends in the text that was read, in bytes.
pub(crate) struct Completion {
    pub(crate) completed: Completed,
    pub(crate) end: usize,
}

impl Cursor {
    /// The start of a region.
    pub(crate) fn start(region: u32) -> Cursor {
        Cursor { region, state: ROOT }
    }
}

impl Regions {
    /// Compiles the regions; also returns which words of each can never complete.
    pub(crate) fn new(
        drafts: Vec<Draft>,
        indices: Vec<u32>,
        patterns: PatternList,
        holds_markers: bool,
    ) -> Result<(Regions, Vec<Vec<bool>>), StopSetError> {
        let config = Config { holds_markers, dense_limit: DENSE_LIMIT / drafts.len() };
        let mut source = patterns.source(config)?;
        let mut regions = Vec::new();
        let mut pruned = Vec::new();
        for Draft { words, leads, with_patterns } in drafts {
            let source = source.as_mut().filter(|_| with_patterns);
            let (region, hopeless) = Region::new(words, leads, source, config, &patterns)?;
            regions.push(region);
            pruned.push(hopeless);
        }
        Ok((Regions { regions: regions.into(), indices, patterns }, pruned))
    }

    pub(crate) fn len(&self) -> usize {
        self.regions.len()
    }

    pub(crate) fn words(&self, region: u32) -> &Words {
        self.regions[region as usize].automaton.words()
    }

    pub(crate) fn patterns(&self) -> &PatternList {
        &self.patterns
    }

    pub(crate) fn machine(&self, region: u32) -> Option<&Machine> {
        self.regions[region as usize].machine.as_ref()
    }

    /// What is plain text in a region, where no word has begun.
    #[inline(always)]
    pub(crate) fn plain(&self, region: u32) -> &Plain {
        self.regions[region as usize].automaton.plain()
    }

    /// Reads `text` up to the first byte that completes a marker or, if `armed`, a stop that is a string. The cursor is
    /// then behind it: in the region that the marker leads to.
    #[inline]
    pub(crate) fn read(&self, cursor: &mut Cursor, text: &str, armed: bool) -> Option<Completion> {
        let Region { automaton, leads, .. } = &self.regions[cursor.region as usize];
        let mut end = 0;
        loop {
            end += automaton.advance(&mut cursor.state, &text.as_bytes()[end..])?;
            if let Some(index) = automaton.completed(cursor.state, armed) {
                let word = Word { region: cursor.region, index: index as u32 };
                if let Some(marker) = index.checked_sub(automaton.words().stops()) {
                    *cursor = Cursor::start(leads[marker]);
                }
                return Some(Completion { completed: Completed::Word(word), end });
            }
            // A stop, in unarmed text.
        }
    }

    /// As `read`, but also for stops that are patterns. `text` begins at `place`.
    pub(crate) fn read_patterns(
        &self,
        cursor: &mut Cursor,
        threads: &mut Threads,
        text: &str,
        place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let region = cursor.region;
        let word = self.read(cursor, text, armed);
        let seen = &text[..word.as_ref().map_or(text.len(), |word| word.end)];
        let max_held = self.patterns.max_held.unwrap_or(MAX_HELD);
        let hit = self.machine(region).and_then(|machine| threads.read(machine, seen, place, armed, max_held));
        if let Some(hit) = hit.filter(|hit| word.as_ref().is_none_or(|word| self.beats(hit, word, place))) {
            cursor.region = region;
            return Some(Completion { completed: Completed::Pattern(hit), end: hit.end });
        }
        if word.as_ref().is_some_and(|word| self.is_marker(word)) || self.machine(region).is_none() {
            threads.forget(seen); // no match crosses a marker
        }
        word
    }

    /// As `read_patterns`, but reads on behind markers: the stop that completes first.
    #[inline]
    pub(crate) fn read_to_stop(
        &self,
        cursor: &mut Cursor,
        mut threads: Option<&mut Threads>,
        text: &str,
        mut place: Place,
        armed: bool,
    ) -> Option<Completion> {
        let mut end = 0;
        loop {
            let rest = &text[end..];
            let completion = match &mut threads {
                None => self.read(cursor, rest, armed)?,
                Some(threads) => self.read_patterns(cursor, threads, rest, place, armed)?,
            };
            end += completion.end;
            if !self.is_marker(&completion) {
                return Some(Completion { end, ..completion });
            }
            if threads.is_some() {
                place.pass(&rest[..completion.end]);
            }
        }
    }

    /// What the end of the text confirms.
    pub(crate) fn confirmed_at_end(&self, cursor: Cursor, threads: &Threads) -> Option<Completed> {
        threads.confirmed_at_end(self.machine(cursor.region)?).map(Completed::Pattern)
    }

    /// Threads for a stream, if there are patterns.
    pub(crate) fn threads(&self) -> Option<Threads> {
        (!self.patterns.patterns.is_empty()).then(Threads::new)
    }

    /// How many bytes at the end of the text read so far may still turn into a hidden stop, if stops are hidden, or
    /// into a marker that is taken out.
    #[inline]
    pub(crate) fn held(&self, cursor: Cursor, hides_stops: bool) -> usize {
        self.regions[cursor.region as usize].automaton.held(cursor.state, hides_stops)
    }

    pub(crate) fn is_marker(&self, completion: &Completion) -> bool {
        matches!(completion.completed, Completed::Word(word) if self.kind(word) == Kind::Marker)
    }

    /// The region to which `marker` leads, if it is live in `region`.
    pub(crate) fn lead(&self, region: u32, marker: &str) -> Option<u32> {
        let Region { automaton, leads, .. } = &self.regions[region as usize];
        let words = automaton.words();
        let index = words.iter().skip(words.stops()).position(|word| word == marker)?;
        Some(leads[index])
    }

    pub(crate) fn kind(&self, word: Word) -> Kind {
        self.words(word.region).kind(word.index as usize)
    }

    pub(crate) fn text(&self, word: Word) -> &str {
        self.words(word.region).text(word.index as usize)
    }

    /// The match of a string that ends at `end`.
    pub(crate) fn word_match(&self, stop: Word, end: Place) -> StopMatch<'_> {
        let visible = self.kind(stop) == Kind::Visible;
        StopMatch::of_word(self.text(stop), self.indices[stop.index as usize] as usize, visible, end)
    }

    /// The match of a pattern, whose text `sequence` ends at `end`.
    pub(crate) fn pattern_match<'a>(&'a self, index: usize, sequence: &'a str, end: Place) -> StopMatch<'a> {
        StopMatch::of_pattern(sequence, &self.patterns.patterns[index], self.patterns.indices[index], end)
    }

    /// The stop of this text.
    pub(crate) fn stop(&self, sequence: &str) -> Option<Word> {
        (0..self.len() as u32).find_map(|region| {
            let words = self.words(region);
            let index = words.iter().take(words.stops()).position(|stop| stop == sequence)?;
            Some(Word { region, index: index as u32 })
        })
    }

    /// The longest suffix of the text read so far that begins a word.
    pub(crate) fn partial(&self, cursor: Cursor) -> String {
        self.regions[cursor.region as usize].automaton.text(cursor.state)
    }

    /// The cursor in a region after `partial`, if there is such a region and that begins a word in it.
    pub(crate) fn resume(&self, region: u32, partial: &str) -> Option<Cursor> {
        let state = self.regions.get(region as usize)?.automaton.state(partial)?;
        Some(Cursor { region, state })
    }

    /// Whether a pattern comes before a string that also completes: the one that completes first, with the same
    /// character the one that began first. From the same place on no pattern is longer: it was read up to the string's
    /// end.
    fn beats(&self, hit: &PatternHit, word: &Completion, place: Place) -> bool {
        let Completed::Word(completed) = word.completed else {
            return false;
        };
        let start = place.bytes + word.end - self.text(completed).len();
        hit.completed < word.end || hit.start.bytes < start
    }
}

impl Region {
    fn new(
        words: Words,
        leads: Vec<u32>,
        mut source: Option<&mut Source>,
        config: Config,
        patterns: &PatternList,
    ) -> Result<(Region, Vec<bool>), StopSetError> {
        let hopeless = match &mut source {
            // A stop in which a match completes can never fire. A marker can, in unarmed text.
            Some(source) => words.iter().take(words.stops()).map(|stop| source.completes_inside(stop)).collect(),
            None => Vec::new(),
        };
        let (automaton, pruned) = Automaton::new(words, &hopeless, config);
        let machine = source.map(|source| patterns.machine(source, &automaton)).transpose()?;
        Ok((Region { automaton, machine, leads }, pruned))
    }
}

impl PatternList {
    pub(crate) fn extend<I>(&mut self, patterns: I)
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.patterns.extend(patterns.into_iter().map(|pattern| pattern.as_ref().to_owned()));
    }

    /// The same, each pattern once.
    pub(crate) fn distinct(&self) -> PatternList {
        let mut seen = HashSet::new();
        let distinct = self.patterns.iter().enumerate().filter(|(_, pattern)| seen.insert(*pattern));
        let (indices, patterns) = distinct.map(|(index, pattern)| (index, pattern.clone())).unzip();
        PatternList { patterns, indices, max_held: self.max_held }
    }

    /// The automaton of the patterns, if there are some.
    fn source(&self, config: Config) -> Result<Option<Source>, StopSetError> {
        if self.patterns.is_empty() {
            return Ok(None);
        }
        Source::new(&self.patterns).map(Some).map_err(|refusal| match refusal {
            Refusal::Pattern(index, problem) => self.refused(index, problem),
            Refusal::TooLarge => self.too_large(&Automaton::new(Words::default(), &[], config).0),
        })
    }

    fn machine(&self, source: &mut Source, automaton: &Automaton) -> Result<Machine, StopSetError> {
        let machine = Machine::new(source, automaton).ok_or_else(|| self.too_large(automaton))?;
        if self.max_held.is_none() && machine.lives_on() {
            return Err(self.unbounded(automaton));
        }
        Ok(machine)
    }

    /// The error that names the first pattern for which there is no room, if it has none alone.
    #[cold]
    fn too_large(&self, automaton: &Automaton) -> StopSetError {
        let fit = |patterns: &[String]| {
            Source::new(patterns).is_ok_and(|mut source| Machine::new(&mut source, automaton).is_some())
        };
        // Each try costs up to the limits, and there may be many patterns: so few are tried.
        let counts: Vec<usize> = (1..self.patterns.len()).collect();
        let index = counts.partition_point(|&count| fit(&self.patterns[..count]));
        match fit(&self.patterns[index..=index]) {
            true => ErrorKind::PatternsTooLarge { patterns: self.patterns.len() }.into(),
            false => self.refused(index, "its automaton is too large".into()),
        }
    }

    /// The error that names the pattern which holds text for ever.
    #[cold]
    fn unbounded(&self, automaton: &Automaton) -> StopSetError {
        let lives_on = |pattern: &String| {
            let machine =
                Source::new(from_ref(pattern)).ok().and_then(|mut source| Machine::new(&mut source, automaton));
            machine.is_some_and(|machine| machine.lives_on())
        };
        let index = self.patterns.iter().position(lives_on).unwrap_or_default();
        self.refused(index, "it can hold text for ever; max_held says for how many characters it may".into())
    }

    /// The error that says what is wrong with a pattern, and where it stands in the list that the user gave.
    #[cold]
    fn refused(&self, index: usize, problem: String) -> StopSetError {
        let (index, pattern) = (self.indices[index], self.patterns[index].clone());
        ErrorKind::Pattern { index, pattern, problem }.into()
    }
}
