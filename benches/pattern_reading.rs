//! The time to read a character, with patterns that keep the most matches open and texts that keep them open.
//! `cargo bench -p stopscan-benches --bench pattern_reading` takes three minutes.
//!
//! A character must take at most 1 us. Each text is read at once and in deltas of one character, armed and unarmed.

use stopscan::{StopScanner, StopSet};

mod processor_time;

use processor_time::now;

/// Each pattern is one of these in this order, with a length in place of `N`.
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

fn patterns() -> Vec<(String, usize)> {
    let mut patterns = Vec::new();
    for beginning in BEGINNINGS {
        for body in BODIES {
            for end in ENDS {
                for length in LENGTHS {
                    let pattern = format!("{beginning}{}{end}", body.replace('N', &length.to_string()));
                    // With less than its length, each match is given up at its last character.
                    patterns.extend([2_000, length - 1].map(|max_held| (pattern.clone(), max_held)));
                }
            }
        }
    }
    patterns
}

/// Returns the nanoseconds for each character, or `None` if a stop ends the text.
fn cost(set: &StopSet, deltas: &[String], armed: bool) -> Option<f64> {
    let mut scanner = StopScanner::new(set);
    let begun = now();
    for delta in deltas {
        let output = if armed { scanner.feed(delta) } else { scanner.feed_unarmed(delta) };
        if output.stop_match.is_some() {
            return None;
        }
    }
    Some((now() - begun).as_nanos() as f64 / CHARACTERS as f64)
}

fn main() {
    let mut costs = Vec::new();
    let mut refused = 0;
    for (pattern, max_held) in patterns() {
        let Ok(set) = StopSet::builder().patterns([&pattern]).max_held(max_held).build() else {
            refused += 1;
            continue;
        };
        for text in TEXTS {
            let characters: Vec<char> = text.chars().cycle().take(CHARACTERS).collect();
            for (size, armed) in [(CHARACTERS, true), (1, true), (CHARACTERS, false), (1, false)] {
                let deltas: Vec<String> = characters.chunks(size).map(|delta| delta.iter().collect()).collect();
                let Some(mut least) = cost(&set, &deltas, armed) else { continue };
                if least > 400.0 {
                    least = (0..4).filter_map(|_| cost(&set, &deltas, armed)).fold(least, f64::min);
                }
                let way = format!("deltas of {size}{}", if armed { "" } else { ", unarmed" });
                costs.push((least, format!("{pattern} on {text:?}, {way}, max_held {max_held}")));
            }
        }
    }
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let slow = costs.iter().filter(|(least, _)| *least > 1_000.0).count();
    println!("{} texts read, {refused} sets refused, {slow} above 1 us a character", costs.len());
    for (least, name) in costs.iter().take(25) {
        println!("{least:>7.0} ns {name}");
    }
}
