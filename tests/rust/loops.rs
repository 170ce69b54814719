//! Tests of scanners and segmenters that have loops (text that repeats itself) as a stop. The results are compared with
//! those of a simple program, the reference for loops.

use stopscan::{Options, Repeat, SegmentSet, Segmenter, StopScanner, StopSet};

use crate::reference::repeat::{Rule, first_loop};

const RULE: Rule = Rule { count: 3, max_period: 12, min_length: 32 };

fn repeat() -> Repeat {
    Repeat::new(RULE.count, RULE.max_period, RULE.min_length).unwrap()
}

/// Texts in which a block repeats, sometimes often enough to be a loop. They are the same in every run.
fn texts() -> impl Iterator<Item = String> {
    let mut seed = 1_u64;
    let mut next = move |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    (0..400).map(move |_| {
        let mut text = String::new();
        for _ in 0..next(6) + 1 {
            let length = next(14) + 1;
            let block: String = (0..length).map(|_| ['a', 'b', 'é', '日', '|'][next(5) as usize]).collect();
            text += &block.repeat(next(12) as usize);
        }
        text
    })
}

/// Feeds `text` in deltas of `piece` characters. After each delta, restores the scanner from a snapshot. Returns where
/// the loop ends, its length and its period.
fn scanned(mut scanner: StopScanner, text: &str, piece: usize) -> Option<(usize, usize, usize)> {
    let characters: Vec<char> = text.chars().collect();
    let mut out = String::new();
    for delta in characters.chunks(piece) {
        let delta: String = delta.iter().collect();
        out += scanner.feed(&delta).text;
        // Continue from a snapshot, as another process would.
        let snapshot = scanner.snapshot();
        scanner.reset();
        scanner.restore(&snapshot).unwrap();
    }
    let found = scanner.stop_match().map(|found| {
        assert_eq!(found.sequence().chars().count(), found.end() - found.offset());
        assert!(found.visible() && found.pattern().is_none());
        (found.end(), found.end() - found.offset(), found.period().unwrap())
    });
    if let Some((end, ..)) = found {
        assert_eq!(out, characters[..end].iter().collect::<String>());
    }
    found
}

#[test]
fn a_scanner_finds_the_loop_that_the_rule_finds() {
    let set = StopSet::builder().repeat(repeat()).build().unwrap();
    let mut count = 0;
    for text in texts() {
        let armed: Vec<(char, bool)> = text.chars().map(|character| (character, true)).collect();
        let expected = first_loop(RULE, &armed).map(|found| (found.end, found.length, found.period));
        count += usize::from(expected.is_some());
        for piece in [1, 3, 7, 1_000] {
            assert_eq!(scanned(StopScanner::new(&set), &text, piece), expected, "{text:?} in pieces of {piece}");
        }
        let found = set.find(&text).map(|found| (found.end(), found.end() - found.offset(), found.period().unwrap()));
        assert_eq!(found, expected, "{text:?}");
    }
    assert!(count > 100, "{count} texts loop");
}

#[test]
fn a_string_that_completes_with_the_same_character_wins() {
    let text = "a".repeat(32);
    for (stop, pattern, expected) in [(&text[..], r"\n\n", None), ("b", "a{32}", None), (&text[1..], "b{2}", Some(31))]
    {
        let set = StopSet::builder().stop([stop]).patterns([pattern]).repeat(repeat()).build().unwrap();
        let found = set.find(&text).unwrap();
        assert_eq!((found.period(), found.end()), (None, expected.unwrap_or(32)), "{stop} {pattern}");
    }
    let set = StopSet::builder().stop(["a".repeat(33)]).repeat(repeat()).build().unwrap();
    assert_eq!(set.find(&"a".repeat(40)).unwrap().period(), Some(1));
}

#[test]
fn the_history_begins_anew_at_the_edge_of_a_region() {
    let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).repeat(repeat());
    let set = set.stop(["END"]).stop_in(["b"]).build().unwrap();
    let mut segmenter = Segmenter::new(&set);
    let half = "x".repeat(31);
    assert!(segmenter.feed(&format!("{half}|{half}|{half}")).stop_match().is_none());
    let found = segmenter.feed("x").stop_match().unwrap();
    assert_eq!((found.period(), found.offset(), found.end()), (Some(1), 64, 96));
    assert_eq!(segmenter.region(), "a"); // a loop fires in "a", although other stops fire only in "b"
}

#[test]
fn a_protected_region_is_left_at_its_marker_and_not_at_one_behind_the_loop() {
    let set = StopSet::builder().protect([("<", ">")]).repeat(repeat()).build().unwrap();
    let mut scanner = StopScanner::new(&set);
    let text = format!("<{}", "ab".repeat(20));
    assert!(scanner.feed(&(text + ">")).stop_match.is_some());
    assert_eq!((scanner.region(), scanner.unused()), ("<", "abababab>"));
}

#[test]
fn bypass_flush_and_reset_forget_what_was_repeated() {
    let set = StopSet::builder().repeat(repeat()).build().unwrap();
    let half = "x".repeat(20);
    let forget: [fn(&mut StopScanner); 3] = [
        |scanner| assert_eq!(scanner.bypass("x").text, "x"),
        |scanner| assert_eq!(scanner.flush().text, ""),
        |scanner| scanner.reset(),
    ];
    for forget in forget {
        let mut scanner = StopScanner::new(&set);
        scanner.feed(&half);
        forget(&mut scanner);
        assert!(scanner.feed(&half).stop_match.is_none());
        assert!(scanner.feed(&half).stop_match.is_some());
    }
}

#[test]
fn unarmed_text_counts_and_does_not_fire() {
    let set = StopSet::builder().repeat(repeat()).build().unwrap();
    let mut scanner = StopScanner::new(&set);
    assert!(scanner.feed_unarmed(&"x".repeat(40)).stop_match.is_none());
    assert_eq!(scanner.feed("x").stop_match.unwrap().offset(), 9);
}

#[test]
fn truncate_keeps_the_first_copy() {
    let set = StopSet::builder().repeat(repeat()).build().unwrap();
    let text = format!("So:{}", "日本 ".repeat(20));
    assert_eq!(set.truncate(&text).0, "So:日本 ");
    let all = set.truncate_with(&text, &Options::default().include_stop(true)).unwrap();
    assert_eq!(all.0.chars().count(), all.1.unwrap().end());
    assert_eq!(set.len(), 1);
}
