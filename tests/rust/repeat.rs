//! Tests of the search for loops (text that repeats itself). The library is compared with the reference, a simple
//! program, and both are tested with examples.

use arbitrary::{Arbitrary, Unstructured};
use stopscan::{Loops, Repeat};

use crate::case::repeat::{Case, Delta};
use crate::random::Random;
use crate::reference::repeat::{Found, Rule, first_loop};

const DEFAULT: Rule = Rule { count: 4, max_period: 1024, min_length: 256 };

fn armed(text: &str) -> Vec<(char, bool)> {
    text.chars().map(|character| (character, true)).collect()
}

fn whole(rule: Rule, text: &str) -> Case {
    Case { rule, deltas: vec![Delta { text: text.into(), armed: true, moves: false }] }
}

/// Words without a loop, because all numbers are different.
fn numbers(count: usize) -> String {
    (0..count).map(|number| format!("{number} ")).collect()
}

#[test]
fn the_reference_finds_the_loops_of_the_rule() {
    let fifty = numbers(40)[..50].repeat(6);
    let found = |end, length, period| Some(Found { end, length, period });
    assert_eq!(first_loop(DEFAULT, &armed(&fifty)), found(256, 256, 50)); // the oldest copy is incomplete
    assert_eq!(first_loop(DEFAULT, &armed(&fifty[..255])), None);
    assert_eq!(first_loop(DEFAULT, &armed(&"é".repeat(300))), found(256, 256, 1));
    assert_eq!(first_loop(DEFAULT, &armed(&format!("x{}", "ab".repeat(200)))), found(257, 256, 2));

    let rule = Rule { count: 3, max_period: 20, min_length: 32 };
    let twenty = numbers(20)[..20].to_string();
    assert_eq!(first_loop(rule, &armed(&twenty.repeat(3))), found(60, 60, 20));
    assert_eq!(first_loop(Rule { max_period: 19, ..rule }, &armed(&twenty.repeat(3))), None);
    assert_eq!(first_loop(Rule { count: 4, ..rule }, &armed(&twenty.repeat(3))), None);
    let mut late = armed(&"-".repeat(40));
    late[..35].iter_mut().for_each(|(_, armed)| *armed = false);
    assert_eq!(first_loop(rule, &late), found(36, 32, 1));
    late.push(('x', true));
    late[..40].iter_mut().for_each(|(_, armed)| *armed = false);
    assert_eq!(first_loop(rule, &late), None);
}

#[test]
fn random_loops() {
    let (mut fired, streams) = (0, 20_000);
    for seed in 0..streams {
        fired += random_loop(seed) as u64;
    }
    assert!(streams / 5 < fired && fired < streams * 4 / 5, "{fired} of {streams}");
}

/// Run it with `cargo test --release a_million -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn a_million_random_loops() {
    let fired = (0..1_000_000).filter(|seed| random_loop(seed + (1 << 40))).count();
    println!("{fired} fired");
}

fn random_loop(seed: u64) -> bool {
    let bytes = Random(seed).bytes(100 + seed as usize % 1_500);
    Case::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are a case").check()
}

/// Random texts with loops. The library searches for long periods less often than for short ones, so there are both.
/// The texts are so long that the library has to drop old text.
#[test]
fn random_loops_of_long_periods() {
    for seed in 0..300 {
        let mut random = Random(seed);
        let bytes = random.bytes(40_000); // without bytes, each delta is one character, and the state is saved after it
        let mut u = Unstructured::new(&bytes);
        let rule = Rule {
            count: 3 + random.below(8),
            max_period: [256, 1000, 1024, 1030][random.below(4)],
            min_length: [32, 64, 256, 300][random.below(4)],
        };
        let longest = [20, 300, 1200][random.below(3)];
        Case::drawn(&mut u, rule, longest, 8_000).expect("any bytes are a case").check();
    }
}

#[test]
fn every_period_fires_behind_any_text() {
    let rule = Rule { count: 3, max_period: 500, min_length: 100 };
    for period in (1..=60).chain((61..=510).step_by(7)) {
        let block = &numbers(300)[200..200 + period];
        for before in ["", "x", &numbers(60), &"日本語".repeat(5)] {
            whole(rule, &format!("{before}{}", block.repeat(4 + 120 / period))).check();
        }
    }
}

#[test]
fn a_limit_that_is_too_small_or_too_large_is_refused_by_name() {
    let problem = |count, max_period, min_length| Repeat::new(count, max_period, min_length).unwrap_err().to_string();
    assert_eq!(problem(2, 1024, 256), "repeat: count must be at least 3, not 2");
    assert_eq!(problem(4, 0, 256), "repeat: max_period must be at least 1, not 0");
    assert_eq!(problem(4, 65_537, 256), "repeat: max_period must be at most 65536, not 65537");
    assert_eq!(problem(4, 1024, 31), "repeat: min_length must be at least 32, not 31");
    let largest = Repeat::new(usize::MAX, 65_536, usize::MAX).unwrap();
    assert_eq!(Loops::new(&largest).feed(&"loop ".repeat(100_000), true), None);
}

#[test]
fn what_is_forgotten_and_what_fired_repeats_nothing() {
    let repeat = Repeat::new(3, 10, 32).unwrap();
    let mut loops = Loops::new(&repeat);
    assert_eq!(loops.feed(&"-".repeat(31), true), None);
    loops.forget();
    for _ in 0..2 {
        assert_eq!(loops.feed(&"-".repeat(31), true), None);
        let found = loops.feed("--", true).unwrap();
        assert_eq!((found.end, found.length, found.period, found.sequence), (1, 32, 1, "-".repeat(32)));
    }
}

/// A search needs only the newest text: about three times the longest period, and a little more. The library drops
/// older text when it keeps a quarter more than a search needs. The test counts bytes, and a character that is not
/// ASCII may take up to four of them.
#[test]
fn what_a_stream_keeps_is_bounded() {
    for (character, bytes) in [("a", 1), ("日", 4), ("🤦", 4)] {
        let mut loops = Loops::new(&Repeat::default());
        let mut most = 0;
        for number in 0..20_000 {
            loops.feed(&format!("{number}{}", character.repeat(20)), true);
            most = most.max(loops.to_bytes().len());
        }
        assert!(most < 4 * (bytes * 1024 + 300), "{most} bytes of {character}");
    }
}

/// `Loops::from_bytes` may refuse or accept damaged bytes. But it must not panic, and a stream that goes on from them
/// must not panic either.
#[test]
fn damaged_bytes_never_panic() {
    let (repeat, mut refused) = (Repeat::new(4, 100, 64).unwrap(), 0);
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let mut loops = Loops::new(&repeat);
        let block = numbers(40)[..1 + random.below(90)].replace('7', "日");
        let text = numbers(random.below(300)) + &block.repeat(3);
        loops.feed(&text, false);
        let mut bytes = loops.to_bytes();
        assert!(Loops::from_bytes(&repeat, &bytes).is_some());
        for _ in 0..1 + random.below(3) {
            let among = [64, 9_999][random.below(2)].min(bytes.len());
            let at = random.below(among);
            bytes[at] = random.bytes(1)[0];
        }
        let cut = [0, 0, 1, random.below(bytes.len())][random.below(4)];
        bytes.truncate(bytes.len() - cut);
        let Some(mut damaged) = Loops::from_bytes(&repeat, &bytes) else {
            refused += 1;
            continue;
        };
        assert_eq!(damaged.to_bytes(), bytes);
        damaged.feed(&block.repeat(3), true);
        damaged.feed(&numbers(300), true);
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn the_worst_texts() {
    for (_, text) in crate::worst_texts::NAMED {
        let text = text(6_000);
        for rule in [DEFAULT, Rule { count: 3, max_period: 300, min_length: 32 }] {
            whole(rule, &text).check();
            let rule = Rule { count: 100_000, ..rule };
            whole(rule, &text).check();
        }
    }
}
