//! Compares the library with the reference, a simple program, on random streams. The streams are the same in every run.

use std::fs;

use arbitrary::{Arbitrary, Unstructured};

use crate::case::{segments, stops, tokens};
use crate::random::Random;
use crate::reference::stops::{Pair, Rules};
use crate::reference::{Match, Op};

fn check_bytes(bytes: &[u8]) {
    stops::Case::arbitrary(&mut Unstructured::new(bytes)).expect("any bytes are a case").check();
    segments::Case::arbitrary(&mut Unstructured::new(bytes)).expect("any bytes are a case").check();
    tokens::Case::arbitrary(&mut Unstructured::new(bytes)).expect("any bytes are a case").check();
}

fn check(rules: &Rules, deltas: &[&str]) {
    stops::Case { rules: rules.clone(), ops: deltas.iter().map(|delta| feed(delta)).collect() }.check();
}

fn feed(delta: &str) -> Op {
    Op::Feed { delta: delta.into(), armed: true }
}

fn hidden(stops: &[&str]) -> Rules {
    Rules { stop: stops.iter().map(|stop| stop.to_string()).collect(), ..Rules::default() }
}

#[test]
fn random_streams() {
    for seed in 0..4_000 {
        check_bytes(&Random(seed).bytes(20 + seed as usize % 400));
    }
}

/// Runs the inputs in `fuzz/regressions`: inputs with which the fuzzer once found a defect, and inputs for code that
/// random bytes rarely reach.
#[test]
fn fuzz_regressions() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/regressions");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{folder} has no files");
    for file in files {
        println!("{}", file.display()); // shown when the check fails
        check_bytes(&fs::read(file).unwrap());
    }
}

/// However a text is cut into deltas, the output, the match and the held text must be the same as for the whole text in
/// one delta.
#[test]
fn every_chunking_gives_one_answer() {
    let rules = Rules {
        stop: vec!["ab".into(), "babé".into(), "éé".into()],
        visible: vec!["bé".into()],
        protect: vec![("aé".into(), "ba".into())],
        ..Rules::default()
    };
    let read = |chunks: &[String]| {
        let mut scanner = rules.scanner();
        let out: String = chunks.iter().map(|chunk| scanner.feed(chunk).text.to_string()).collect();
        let held = scanner.held().to_string();
        let matched = scanner.stop_match().map(Match::from);
        (out, held, matched)
    };
    for seed in 0..300 {
        let random = &mut Random(seed);
        let letters: Vec<char> = (0..9).map(|_| ['a', 'b', 'é'][random.below(3)]).collect();
        let whole = read(&[letters.iter().collect()]);
        for cuts in 0..1_usize << (letters.len() - 1) {
            let mut chunks = vec![String::new()];
            for (index, &letter) in letters.iter().enumerate() {
                chunks.last_mut().unwrap().push(letter);
                if cuts >> index & 1 == 1 {
                    chunks.push(String::new());
                }
            }
            assert_eq!(read(&chunks), whole, "{chunks:?}");
        }
    }
}

/// If no stop has begun, the library reads a delta in one of several ways, depending on its length. Each way must find
/// a stop, wherever in the delta the stop begins or completes, and must count all code points.
#[test]
fn deltas_of_every_length() {
    let rules = hidden(&["x", "yz"]);
    for filler in [".", "é", "日"] {
        for length in 0..=40 {
            let plain = filler.repeat(length);
            check(&rules, &[&plain, "é", "x"]);
            for at in 0..length {
                for piece in ["x", "y", "yz", "é"] {
                    let delta = filler.repeat(at) + piece + &filler.repeat(length - at - 1);
                    check(&rules, &[&delta, "é", "x"]);
                }
            }
        }
    }
}

/// In long deltas, the library uses a vector search for the first bytes of each stop. A stop must also be found if the
/// end of a delta splits these bytes.
#[test]
fn stops_anywhere_in_long_deltas() {
    let long_stop = "0123456789".repeat(3);
    for stops in [vec!["ab"], vec!["abcdefghijkl"], vec!["é日", "zz"], vec!["q", &long_stop], vec!["aab", "aaab"]] {
        let rules = hidden(&stops);
        let stop = stops[stops.len() - 1];
        for length in [126, 127, 128, 129, 200, 700] {
            for cut in stop.char_indices().map(|(cut, _)| cut) {
                let (begun, rest) = stop.split_at(cut);
                for (before, after) in [(0, length), (length / 2, length / 2), (length, 0), (length, length)] {
                    let first = ".".repeat(before) + begun;
                    let second = rest.to_string() + &".".repeat(after);
                    check(&rules, &[&first, &second]);
                    check(&rules, &[&(first + &second)]);
                }
            }
        }
    }
}

/// In these texts, stops begin so often that the library gives up its vector search for long deltas (the prefilter).
/// The rest of the text must still be read.
#[test]
fn long_deltas_full_of_beginnings() {
    let rules = hidden(&["abcabd", "bca!"]);
    for tail in ["", "abd", "abcab", "a!", "bc"] {
        for repeated in ["ab", "abc", "abca", "bc.", "ab................................................."] {
            let delta = repeated.repeat(60) + tail;
            check(&rules, &[&delta, "!", "bca!"]);
        }
    }
}

/// The library's vector search for long deltas (the prefilter) works only with a few stops. With as many stops as here,
/// the library does not use it.
#[test]
fn long_deltas_and_many_stops() {
    let stops: Vec<String> = (0..500).map(|number| format!("<{number:03}>")).collect();
    let rules = Rules { stop: stops, ..Rules::default() };
    let text = "Lorem <12 ipsum <499 ".repeat(20);
    for last in ["<000>", "<499>", "<500>", "<49"] {
        check(&rules, &[&(text.clone() + last), "9>"]);
    }
}

/// Tests a set that is so large that only the first states of its automaton have a dense row of transitions. The other
/// states have sparse edges.
#[test]
fn large_sets() {
    let random = &mut Random(1);
    let mut letters = |count: usize| -> String { (0..count).map(|_| ['a', 'b', 'é'][random.below(3)]).collect() };
    // This stop has many different bytes. A dense row has a column for each byte that occurs in a stop, so the rows are
    // wide here, and only a few rows fit into their memory limit.
    let wide: String = (' '..='~').chain('À'..='ÿ').chain('\u{2000}'..='\u{203F}').collect();
    let mut rules = Rules { visible: vec![wide.clone()], ..Rules::default() };
    rules.stop = (0..1_200).map(|index| letters(10 + index % 4)).collect();
    rules.protect = vec![(letters(9), letters(3))];
    let mut pair = Pair::new(&rules);
    let mut fired = 0;
    for round in 0..600 {
        let stop = rules.stop[(round * 7) % rules.stop.len()].chars();
        let delta = match round % 4 {
            0 => stop.take(9).collect(),
            1 => stop.skip(1).collect(),
            2 => letters(12),
            _ => wide.chars().skip(round % 5).take(round % 90).collect::<String>() + "ab",
        };
        pair.apply(feed(&delta));
        if pair.matched().is_some() {
            fired += 1;
            pair.apply(Op::Reset);
        }
    }
    assert!(fired > 20, "only {fired} stops fired");
}
