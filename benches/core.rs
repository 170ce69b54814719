//! Compares stopscan's Rust core with the aho-corasick crate. `StopScanner` is compared with a scanner that is made
//! here from an automaton of that crate. `Rewriter` is compared with the crate's `stream_replace_all`.

use std::alloc::System;
use std::hint::black_box;
use std::time::Duration;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{AhoCorasick, Anchored, Input, MatchKind};
use cap::Cap;
use criterion::{Criterion, Throughput};
use stopscan::{RewriteSet, Rewriter, StopScanner, StopSet};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const ENGLISH: &str = concat!(
    include_str!("../LICENSE"),
    include_str!("../rust/stopscan/automaton/mod.rs"),
    include_str!("../rust/stopscan/graph/mod.rs"),
    include_str!("../rust/stopscan/stream/mod.rs"),
    include_str!("../rust/stopscan/set/mod.rs"),
);
const CHINESE: &str = "停止序列告诉模型在哪里结束回答。文本是一小段一小段到达的，所以匹配可能跨越好几段。\n\n";
const REALISTIC: [&str; 4] = ["END", "</s>", "<|im_end|>", "\n\nHuman:"];
const LONG: usize = 2_000_000;

/// Stops with a running number, such as `<|stop_0001|>`. They look like the special tokens of chat templates.
fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("<|stop_{number:04}|>")).collect()
}

/// Random stops of 20 letters: if there are many, every letter of the text may begin a stop.
fn scattered(count: usize) -> Vec<String> {
    let mut seed = 1u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (seed >> 33) as u8 % 26)
    };
    (0..count).map(|_| (0..20).map(|_| letter()).collect()).collect()
}

fn realistic() -> Vec<String> {
    REALISTIC.map(String::from).to_vec()
}

/// The English text without the lines in which a stop would fire.
fn english() -> String {
    let lines = ENGLISH.split_inclusive('\n');
    lines.filter(|line| !REALISTIC.iter().any(|stop| line.contains(stop))).collect()
}

/// Cuts a text into deltas like those of a tokenizer. A delta is a word with the character before it. Long words are
/// cut after every eight characters.
fn deltas(text: &str) -> Vec<&str> {
    let mut deltas = Vec::new();
    let (mut start, mut count) = (0, 0);
    for (at, character) in text.char_indices().skip(1) {
        count += 1;
        if count == 8 || !character.is_alphanumeric() || !character.is_ascii() {
            deltas.push(&text[start..at]);
            (start, count) = (at, 0);
        }
    }
    deltas.push(&text[start..]);
    deltas
}

trait Feed {
    fn feed<'a>(&'a mut self, delta: &'a str) -> &'a str;
    fn held(&self) -> &str;
    fn reset(&mut self);
}

impl Feed for StopScanner {
    fn feed<'a>(&'a mut self, delta: &'a str) -> &'a str {
        self.feed(delta).text
    }

    fn held(&self) -> &str {
        self.held()
    }

    fn reset(&mut self) {
        self.reset();
    }
}

/// A scanner that uses an automaton of the aho-corasick crate. Until a stop fires, it does the same as a `StopScanner`.
struct Driven<A> {
    automaton: A,
    start: StateID,
    state: StateID,
    /// For each state of the automaton, the number of bytes to hold. The index of a state is its id, shifted right by
    /// `shift` bits.
    holds: Vec<u32>,
    shift: u32,
    held: String,
    safe: String,
    read: usize,
}

impl<A: Automaton> Driven<A> {
    /// Fills `holds`. Feeds each stop to the automaton, byte by byte and without the last byte. In the state after n
    /// bytes, n bytes must be held. The crate `aho-corasick` does not report this length.
    fn new(automaton: A, stops: &[String]) -> Driven<A> {
        let start = automaton.start_state(Anchored::No).unwrap();
        let mut prefixes = Vec::new();
        for stop in stops {
            let mut state = start;
            for (length, &byte) in (1..stop.len() as u32).zip(stop.as_bytes()) {
                state = automaton.next_state(Anchored::No, state, byte);
                prefixes.push((state.as_u32(), length));
            }
        }
        let bits = prefixes.iter().fold(start.as_u32(), |bits, &(state, _)| bits | state);
        let shift = bits.trailing_zeros();
        let last = prefixes.iter().map(|&(state, _)| state).max().unwrap();
        let mut holds = vec![0; (last >> shift) as usize + 1];
        for (state, length) in prefixes {
            holds[(state >> shift) as usize] = length;
        }
        Driven { automaton, start, state: start, holds, shift, held: String::new(), safe: String::new(), read: 0 }
    }

    fn matches(&mut self, text: &str) -> bool {
        for &byte in text.as_bytes() {
            self.state = self.automaton.next_state(Anchored::No, self.state, byte);
            if self.automaton.is_special(self.state) && self.automaton.is_match(self.state) {
                return true;
            }
        }
        false
    }
}

impl<A: Automaton> Feed for Driven<A> {
    fn feed<'a>(&'a mut self, delta: &'a str) -> &'a str {
        assert!(!self.matches(delta));
        self.read += delta.chars().count();
        let hold = self.holds.get(self.state.as_usize() >> self.shift).copied().unwrap_or(0) as usize;
        if hold == 0 && self.held.is_empty() {
            return delta;
        }
        self.held.push_str(delta);
        self.safe.clear();
        self.safe.extend(self.held.drain(..self.held.len() - hold));
        &self.safe
    }

    fn held(&self) -> &str {
        &self.held
    }

    fn reset(&mut self) {
        self.state = self.start;
        self.held.clear();
        self.read = 0;
    }
}

fn dfa(stops: &[String]) -> DFA {
    DFA::builder().match_kind(MatchKind::Standard).build(stops).unwrap()
}

fn nfa(stops: &[String]) -> NFA {
    NFA::builder().match_kind(MatchKind::Standard).build(stops).unwrap()
}

/// Feeds all `deltas`, and returns how many of their bytes were safe to emit.
fn feed_all(scanner: &mut impl Feed, deltas: &[&str]) -> usize {
    scanner.reset();
    let safe: usize = deltas.iter().map(|delta| black_box(scanner.feed(black_box(delta))).len()).sum();
    assert_eq!(safe + scanner.held().len(), deltas.iter().map(|delta| delta.len()).sum::<usize>());
    safe
}

fn feed(criterion: &mut Criterion) {
    let english = english();
    let english = deltas(&english);
    let chinese = CHINESE.repeat(200);
    let chinese = deltas(&chinese);
    let held = vec!["aaaa"; 10_000];
    let cases = [
        ("1 stop", numbered(1), &english),
        ("4 stops", numbered(4), &english),
        ("64 stops", numbered(64), &english),
        ("1000 stops", numbered(1000), &english),
        ("4 realistic stops", realistic(), &english),
        ("4 realistic stops, Chinese", realistic(), &chinese),
        ("4 stops that begin with letters", scattered(4), &english),
        ("1000 stops that begin with letters", scattered(1000), &english),
        ("ab on aaaa, held every time", vec!["ab".into()], &held),
    ];
    for (name, stops, deltas) in cases {
        let mut group = criterion.benchmark_group(format!("feed, {name}"));
        group.throughput(Throughput::Elements(deltas.len() as u64));
        let mut scanner = StopScanner::new(&StopSet::new(&stops).unwrap());
        let safe = feed_all(&mut scanner, deltas);
        group.bench_function("stopscan", |bencher| bencher.iter(|| assert_eq!(feed_all(&mut scanner, deltas), safe)));
        let mut driven = Driven::new(dfa(&stops), &stops);
        group.bench_function("dfa", |bencher| bencher.iter(|| assert_eq!(feed_all(&mut driven, deltas), safe)));
        let mut driven = Driven::new(nfa(&stops), &stops);
        group.bench_function("nfa", |bencher| bencher.iter(|| assert_eq!(feed_all(&mut driven, deltas), safe)));
    }
}

fn long(criterion: &mut Criterion) {
    let english = english();
    let english = &english.repeat(LONG / english.len() + 1)[..LONG];
    let chinese = CHINESE.repeat(LONG / CHINESE.len());
    let cases = [
        ("4 realistic stops", realistic(), english),
        ("64 stops", numbered(64), english),
        ("1000 stops", numbered(1000), english),
        ("1000 stops that begin with letters", scattered(1000), english),
        ("4 realistic stops, Chinese", realistic(), &chinese),
    ];
    for (name, stops, text) in cases {
        let mut group = criterion.benchmark_group(format!("2 MB, {name}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let set = StopSet::new(&stops).unwrap();
        group.bench_function("stopscan", |bencher| {
            bencher.iter(|| assert_eq!(set.truncate(black_box(text)), (text, None)));
        });
        let (dfa, nfa) = (dfa(&stops), nfa(&stops));
        group.bench_function("dfa", |bencher| {
            bencher.iter(|| assert_eq!(dfa.try_find(&Input::new(black_box(text))), Ok(None)));
        });
        group.bench_function("nfa", |bencher| {
            bencher.iter(|| assert_eq!(nfa.try_find(&Input::new(black_box(text))), Ok(None)));
        });
        let mut driven = Driven::new(dfa, &stops);
        group.bench_function("dfa, state by state", |bencher| {
            bencher.iter(|| assert!(!driven.matches(black_box(text))));
        });
    }
}

fn compile(criterion: &mut Criterion) {
    for (name, stops) in [("4", realistic()), ("1000", numbered(1000)), ("100000 of 20 letters", scattered(100_000))] {
        let mut group = criterion.benchmark_group(format!("compile, {name}"));
        group.sample_size(10);
        group.bench_function("stopscan", |bencher| {
            bencher.iter(|| assert_eq!(StopSet::new(black_box(&stops)).unwrap().len(), stops.len()));
        });
        group.bench_function("nfa", |bencher| {
            bencher
                .iter(|| assert_eq!(Driven::new(nfa(black_box(&stops)), &stops).automaton.patterns_len(), stops.len()));
        });
        group.bench_function("dfa", |bencher| {
            bencher
                .iter(|| assert_eq!(Driven::new(dfa(black_box(&stops)), &stops).automaton.patterns_len(), stops.len()));
        });
    }
}

/// Replaces the keys of a text of 2 MB: as a whole, in a stream of deltas, and with `stream_replace_all`, which reads and
/// writes all of a stream in one call.
fn rewriting(criterion: &mut Criterion) {
    let english = english();
    let english = &english.repeat(LONG / english.len() + 1)[..LONG];
    let deltas = deltas(english);
    let names = |keys: Vec<String>| (0..).zip(keys).map(|(number, key)| (key, format!("<P{number}>"))).collect();
    let words = ["automaton", "prefix", "stop", "text"].map(String::from).to_vec();
    let cases: [(&str, Vec<(String, String)>); 3] = [
        ("4 keys that do not begin", names(numbered(4))),
        ("1000 keys that do not begin", names(numbered(1000))),
        ("4 keys of the text", names(words)),
    ];
    for (name, pairs) in cases {
        let mut group = criterion.benchmark_group(format!("rewriting 2 MB, {name}"));
        group.throughput(Throughput::Bytes(english.len() as u64));
        let set = RewriteSet::new(pairs.iter().map(|(key, value)| (key, value))).unwrap();
        let rewritten = set.rewrite(english).into_owned();
        group.bench_function("rewrite", |bencher| {
            bencher.iter(|| assert_eq!(set.rewrite(black_box(english)).len(), rewritten.len()));
        });
        group.bench_function("feed", |bencher| {
            bencher.iter(|| {
                let mut rewriter = Rewriter::new(&set);
                let sent: usize = deltas.iter().map(|delta| black_box(rewriter.feed(black_box(delta))).len()).sum();
                assert_eq!(sent + rewriter.flush().len(), rewritten.len());
            });
        });
        let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let automaton = AhoCorasick::new(&keys).unwrap();
        group.bench_function("stream_replace_all", |bencher| {
            bencher.iter(|| {
                let mut sent = Vec::new();
                automaton.try_stream_replace_all(black_box(english.as_bytes()), &mut sent, &values).unwrap();
                assert_eq!(sent, rewritten.as_bytes());
            });
        });
    }
}

/// Prints how much heap 100,000 stops take in each kind of automaton. Begins with the smallest, because the peak that
/// is reported is the peak of the whole process so far.
fn heap() {
    let stops = scattered(100_000);
    report("nfa", || Driven::new(nfa(&stops), &stops));
    report("stopscan", || StopSet::new(&stops).unwrap());
    report("dfa", || Driven::new(dfa(&stops), &stops));
}

fn report<T>(name: &str, build: impl FnOnce() -> T) {
    let megabytes = |bytes: usize| bytes.div_ceil(1_000_000);
    let (before, peak) = (HEAP.allocated(), HEAP.max_allocated());
    let built = build();
    let kept = megabytes(HEAP.allocated() - before);
    assert!(HEAP.max_allocated() > peak, "{name}: the peak is that of the one before");
    println!("heap, 100000 of 20 letters; {name}; {kept}, {} MB", megabytes(HEAP.max_allocated() - before));
    drop(built);
}

fn main() {
    heap();
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(30)
        .configure_from_args();
    feed(&mut criterion);
    long(&mut criterion);
    compile(&mut criterion);
    rewriting(&mut criterion);
    criterion.final_summary();
}
