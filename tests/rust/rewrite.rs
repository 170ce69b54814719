//! Tests of rewriters. Their outputs and held texts are compared with those of a brute-force search.

use arbitrary::{Arbitrary, Unstructured};
use stopscan::{RewriteSet, Rewriter, Snapshot, SnapshotError, StopSetErrorKind};

use crate::case::rewrite::{Case, Step};
use crate::random::Random;
use crate::reference::rewrite::rewritten;

fn random_rewriter(seed: u64) -> (usize, bool) {
    let case = Case::arbitrary(&mut Unstructured::new(&Random(seed).bytes(600))).unwrap();
    (case.steps.len(), case.check())
}

#[test]
fn random_rewriters_equal_brute_force() {
    let replaced = (0..8_000).filter(|&seed| random_rewriter(seed).1).count();
    assert!(replaced > 2_000, "{replaced}");
}

/// Run it with `cargo test --release ten_million -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn ten_million_steps_of_rewriters() {
    let (mut steps, mut replaced, mut seed) = (0, 0, 1 << 40);
    while steps < 10_000_000 {
        let (more, changed) = random_rewriter(seed);
        (steps, replaced, seed) = (steps + more, replaced + usize::from(changed), seed + 1);
    }
    println!("{} streams, {replaced} with a replacement", seed - (1 << 40));
}

/// Reads all texts of up to 6 characters, cut into deltas in all ways, with keys that overlap themselves and contain
/// each other.
#[test]
fn all_chunkings_of_small_texts() {
    let sets: [&[&str]; 4] = [&["aab", "ab", "abab"], &["a", "aa", "aaab"], &["abaab", "ba"], &["éa", "aé", "aéa"]];
    for keys in sets {
        let pairs: Vec<_> = keys.iter().enumerate().map(|(i, key)| (key.to_string(), i.to_string())).collect();
        let letters: Vec<char> = if keys[0].contains('é') { vec!['a', 'é'] } else { vec!['a', 'b'] };
        for length in 0..=6 {
            for number in 0..1 << length {
                let text: Vec<char> = (0..length).map(|bit| letters[number >> bit & 1]).collect();
                for cuts in 0..1 << length {
                    let mut deltas = vec![String::new()];
                    for (at, &letter) in text.iter().enumerate() {
                        if cuts >> at & 1 == 1 {
                            deltas.push(String::new());
                        }
                        deltas.last_mut().unwrap().push(letter);
                    }
                    Case { pairs: pairs.clone(), steps: deltas.into_iter().map(Step::Feed).collect() }.check();
                }
            }
        }
    }
}

#[test]
fn the_reference_replaces_the_longest_key_that_begins_first() {
    let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect::<Vec<_>>();
    let names = pairs(&[("Ada", "1"), ("Adam", "2"), ("Ada Lovelace", "3")]);
    assert_eq!(rewritten(&names, "Ada Lovelace, Adam, Ada L", true).0, "3, 2, 1 L");
    assert_eq!(rewritten(&names, "x Ada Lo", false), ("x ".into(), "Ada Lo".into()));
    assert_eq!(rewritten(&pairs(&[("a", "b"), ("b", "a")]), "ab", true).0, "ba");
}

#[test]
fn wrong_keys_are_refused() {
    let error = |pairs: &[(&str, &str)]| RewriteSet::new(pairs.iter().copied()).unwrap_err();
    let empty = error(&[("a", "b"), ("", "c")]);
    assert_eq!((empty.kind(), empty.index()), (StopSetErrorKind::Empty, Some(1)));
    assert_eq!(empty.to_string(), "key 1 is empty");
    assert_eq!(error(&[("a", "b"), ("a", "c")]).kind(), StopSetErrorKind::TwoMeanings);
    assert_eq!(RewriteSet::new([("a", "b"), ("a", "b")]).unwrap().len(), 1);
    let large = "x".repeat(8_000_001);
    assert_eq!(error(&[("a", &large)]).kind(), StopSetErrorKind::TooLarge);
}

#[test]
fn snapshots_of_other_sets_are_refused() {
    let set = |key: &str, value: &str| RewriteSet::new([(key, value)]).unwrap();
    let mut rewriter = Rewriter::new(&set("<P1>", "Ada"));
    rewriter.feed("Dear <P");
    let snapshot = rewriter.snapshot();
    assert!(snapshot.as_bytes().len() < 20, "a snapshot has no text");
    for other in [set("<P1>", "Adam"), set("<P2>", "Ada"), set("<", "Ada"), RewriteSet::new::<&str, &str>([]).unwrap()]
    {
        let mut other = Rewriter::new(&other);
        other.feed("x");
        assert_eq!(other.restore(&snapshot), Err(SnapshotError::OtherSet));
        assert_eq!(other.held(), "");
    }
    let stops = stopscan::StopScanner::new(&stopscan::StopSet::new(["<P1>"]).unwrap()).snapshot();
    assert!(rewriter.restore(&stops).is_err());
    assert_eq!(rewriter.held(), "<P");
    let elsewhere = Snapshot::from_bytes(snapshot.as_bytes()).unwrap();
    let mut other = Rewriter::new(&set("<P1>", "Ada"));
    other.restore(&elsewhere).unwrap();
    assert_eq!(other.feed("1>"), "Ada");
}
