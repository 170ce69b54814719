//! Times the compilation of sets of patterns. A user could send these sets to a server, so none of them may be slow.
//! `cargo bench -p stopscan-benches --bench pattern_costs` takes a minute. With `-- 5000` it tries 5,000 random sets.
//!
//! A set must be accepted within 5 ms or refused within 3 ms. Some sets have the shapes that were slowest so far, in
//! many sizes. Others are random, or like those of users. Each is compiled a few times, and the fastest time counts.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};

mod processor_time;
#[path = "../tests/rust/random.rs"]
mod random;
#[allow(dead_code)] // only the tests use the rest of the file
#[path = "../tests/rust/case/user_patterns.rs"]
mod user_patterns;

use processor_time::now;
use random::Random;
use user_patterns::UserSet;

const SHAPES: [&str; 4] =
    [r"\n(User{}|Human) ?\d*:", r"(?i)\n(User{}|Human) ?\d*:", r"\n?{}\d+\.\d+:", r"\n?7{}\d+\.\d+:"];
const SIZES: [usize; 10] = [100, 150, 200, 240, 280, 320, 340, 500, 1_000, 2_000];
const LARGE: [&str; 8] = [
    r"[ab]*a[ab]{9}c",
    r"(foo|fob|bar){200}x",
    r"([a-z]{1,9} ){1,60}q",
    r"[^>]{1,900}<",
    r"\d{1,400}\w{1,400}!",
    r"[\x{100}-\x{10ffff}]{1,800}[^a-z]{1,800}x",
    r"[a-z ]{1100}!",
    r"(?:[a-z]{1,30} ){20}!",
];
/// Parts of patterns that are slow to parse.
const PARSED: [&str; 15] = [
    "a.",
    "(?i)k",
    "[ac]",
    r"[\w&&[^_]]",
    "(?i)[^a]",
    "(?:a|b)",
    "[Ā-ʯ]",
    "(?i)[Ā-ʯ]",
    "^",
    r"\S",
    "(a)",
    "a{3}",
    "[[:alpha:]]",
    "(?i)[[:^alpha:]k]",
    "[^a]?",
];
const ATOMS: [&str; 14] = [
    r"\d+",
    r"\s*",
    r"\w{1,5}",
    "ab",
    "x?",
    "[a-z]+",
    "[^>]{1,9}",
    r"\b",
    "(a|bc)*",
    "Z",
    ":",
    "(?i)end",
    r"\.",
    "(foo|fob|bar)+",
];

/// All sets to compile, with their names.
fn sets(random_sets: u64) -> Vec<(String, UserSet)> {
    let set = |patterns| UserSet { patterns, regions: 1, ..UserSet::default() };
    let numbered =
        |shape: &'static str, size: usize| (0..size).map(move |number| shape.replace("{}", &number.to_string()));
    let mut sets = Vec::new();
    for shape in SHAPES {
        for size in SIZES {
            sets.push((format!("{size} of {shape}"), set(numbered(shape, size).collect())));
        }
    }
    let written_out = ["(?i)".to_owned() + &"word ".repeat(200), "(a|bc)*".repeat(60) + "d", "a".repeat(30_000)];
    let alternatives = (0..300).map(|number| format!("w{number}x")).collect::<Vec<_>>().join("|");
    let items = (0..8_000).filter_map(|number| char::from_u32(0x100 + 2 * number)).collect::<String>();
    let large = LARGE.iter().map(|&large| large.to_owned()).chain(written_out);
    for large in large.chain([alternatives, format!("[{items}]{{1,3}}!"), format!("(?i)[{items}]!")]) {
        for size in [0, 1, 10, 50, 100, 150] {
            let patterns = [large.clone()].into_iter().chain(numbered(SHAPES[0], size)).collect();
            sets.push((format!("{size} other patterns and {:.30}", large), set(patterns)));
        }
    }
    for part in PARSED {
        for bytes in [500, 1_000, 2_000, 4_000, 8_100] {
            let pattern = part.repeat(bytes / part.len()) + "!";
            sets.push((format!("{bytes} bytes of {part}"), set(vec![pattern])));
        }
    }
    for seed in 0..random_sets {
        let mut random = Random(seed);
        let count = [1, 3, 10, 40, 100, 300, 600][random.below(7)];
        let mut patterns = Vec::new();
        for number in 0..count {
            let atoms: String = (0..1 + random.below(6)).map(|_| ATOMS[random.below(ATOMS.len())]).collect();
            patterns.push(format!("{atoms}{}{number}", [':', '!', ';', 'Q'][random.below(4)]));
        }
        sets.push((format!("random {seed}"), set(patterns)));
    }
    for seed in 0..2 * random_sets {
        let bytes = Random(seed).bytes(400);
        let set = UserSet::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are a set");
        sets.push((format!("user {seed}"), set));
    }
    sets
}

/// Compiles a set `times` times. Returns the fastest time, and the error if the set is refused.
fn cost(set: &UserSet, times: usize) -> (Duration, Option<String>) {
    let measure = |_| {
        let begun = now();
        let built = set.build();
        (now() - begun, built.err().map(|error| error.to_string()))
    };
    (0..times).map(measure).min_by_key(|(time, _)| *time).expect("it is compiled")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let random_sets = arguments.first().map_or(1_500, |count| count.parse().expect("it is a number"));
    let mut costs = Vec::new();
    for (name, set) in sets(random_sets) {
        let (mut time, problem) = cost(&set, 2);
        if time > Duration::from_micros(1_500) {
            time = time.min(cost(&set, 12).0);
        }
        costs.push((time, name, problem, set));
    }
    costs.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    for (word, limit, taken) in [("taken", 5_000, true), ("refused", 3_000, false)] {
        let of_kind: Vec<_> = costs.iter().filter(|(_, _, problem, _)| problem.is_none() == taken).collect();
        let slow = of_kind.iter().filter(|(time, ..)| time.as_micros() > limit).count();
        let median = of_kind.get(of_kind.len() / 2).map(|(time, ..)| *time);
        println!("{} {word}, median {median:?}, {slow} above {limit} us", of_kind.len());
        for (time, name, problem, set) in of_kind.into_iter().take(12) {
            let patterns: String =
                format!("{:?} {:?} {}", set.patterns, set.strings, set.regions).chars().take(110).collect();
            println!(
                "{time:>10.1?} {name}: {patterns} {}",
                problem.as_deref().map_or("", |text| &text[text.len().saturating_sub(70)..])
            );
        }
    }
}
