//! Times how long it takes to read a character in the worst cases: many matches have begun, and none has ended.
//! `cargo bench -p stopscan-benches --bench pattern_reading` takes two minutes.
//!
//! A character must take at most 1 us. Each text is read as a whole and in deltas of one character, both as armed text
//! (stops may fire) and as unarmed text (no stop fires).

use stopscan::{StopScanner, StopSet};

mod processor_time;

use processor_time::now;

/// Each pattern is a beginning, a body and an end, joined. A length of `LENGTHS` replaces the `N` in the body.
const BEGINNINGS: [&str; 4] = ["", r"\b", "(?m)^", "<"];
const BODIES: [&str; 12] = [
    r"\w{N}",
    "[a-z]{N}",
    "[a-z ]{N}",
    r"\w{1,N}",
    "[^>]{1,N}",
    "[^!]{N}",
    r"(?:\w|\w\w){N}",
    r"(?:[a-z]{1,30} ){20}",
    r"(?:a|bc){N}",
    "[^a]{N}",
    r"\S{N}\w{1,9}",
    r"(?:\w{1,30}\b ?){20}",
];
const ENDS: [&str; 8] = ["", "!", r"\b", r"\B!", "(?m)$", "$", r"\b[^a]", r"(?:\b|\B|(?m)$)"];
const LENGTHS: [usize; 3] = [300, 480, 999];

const TEXTS: [&str; 8] = ["a", "<", "ab", "abcdefghijklmnopqrstuvwxyz ", "a ", "é", "日", "abc\n"];
/// The texts are repeated up to this many characters.
const CHARACTERS: usize = 6_000;
/// The texts are first read once. Then the `SLOWEST` slowest of them are read again, `ROUNDS` times.
const ROUNDS: usize = 20;
const SLOWEST: usize = 300;

/// A pattern, a text, and how the text is read.
struct Reading {
    pattern: String,
    max_held: usize,
    text: &'static str,
    /// The number of characters in a delta.
    size: usize,
    armed: bool,
}

fn readings() -> Vec<Reading> {
    let mut readings = Vec::new();
    for (beginning, body) in BEGINNINGS.iter().flat_map(|beginning| BODIES.map(|body| (beginning, body))) {
        for (end, length) in ENDS.iter().flat_map(|end| LENGTHS.map(|length| (end, length))) {
            let pattern = format!("{beginning}{}{end}", body.replace('N', &length.to_string()));
            // A match that is longer than `max_held` is given up. If `max_held` is one less than the length of a match,
            // every match is given up just before its end.
            for max_held in [2_000, length - 1] {
                for text in TEXTS {
                    for (size, armed) in [(CHARACTERS, true), (1, true), (CHARACTERS, false), (1, false)] {
                        readings.push(Reading { pattern: pattern.clone(), max_held, text, size, armed });
                    }
                }
            }
        }
    }
    readings
}

/// Returns the nanoseconds for each character, or `None` if the pattern is refused or the stop ends the text.
fn cost(reading: &Reading) -> Option<f64> {
    let set = StopSet::builder().patterns([&reading.pattern]).max_held(reading.max_held).build().ok()?;
    let characters: Vec<char> = reading.text.chars().cycle().take(CHARACTERS).collect();
    let deltas: Vec<String> = characters.chunks(reading.size).map(|delta| delta.iter().collect()).collect();
    let mut scanner = StopScanner::new(&set);
    let begun = now();
    for delta in &deltas {
        let output = if reading.armed { scanner.feed(delta) } else { scanner.feed_unarmed(delta) };
        if output.stop_match.is_some() {
            return None;
        }
    }
    Some((now() - begun).as_nanos() as f64 / CHARACTERS as f64)
}

fn main() {
    let measured = readings().into_iter().filter_map(|reading| Some((cost(&reading)?, reading)));
    let mut costs: Vec<(f64, Reading)> = measured.collect();
    let slowest_first = |one: &(f64, Reading), other: &(f64, Reading)| other.0.total_cmp(&one.0);
    // Other work on the machine makes some times longer, so the shortest of several times counts.
    for _ in 0..ROUNDS {
        costs.sort_by(slowest_first);
        for (least, reading) in costs.iter_mut().take(SLOWEST) {
            *least = least.min(cost(reading).unwrap_or(*least));
        }
    }
    costs.sort_by(slowest_first);
    let slow = costs.iter().filter(|(least, _)| *least > 1_000.0).count();
    println!("{} texts, {slow} above 1 us a character", costs.len());
    for (least, Reading { pattern, max_held, text, size, armed }) in costs.iter().take(25) {
        let unarmed = if *armed { "" } else { ", unarmed" };
        println!("{least:>7.0} ns {pattern} on {text:?}, deltas of {size}{unarmed}, max_held {max_held}");
    }
}
