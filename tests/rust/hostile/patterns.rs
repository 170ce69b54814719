//! Patterns with which a user could overload a server. Their automata and their unfinished matches must stay within
//! bounds.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use arbitrary::{Arbitrary, Unstructured};
use stopscan::{StopScanner, StopSet};

use crate::random::Random;
use crate::user_patterns::UserSet;
use crate::{ALLOCATOR, MIB, MILLION, alone, kept_since};

/// The name of the environment variable that tells a child process how many random sets to compile.
const SEEDS: &str = "STOPSCAN_SEEDS";

/// Patterns like those that users write must compile in little time and memory. In an earlier version, a pattern with a
/// count such as `{16,48}` killed the process: the work was not limited, and a list doubled at each character.
///
/// The sets are compiled in a child process with little memory. The child prints each set before it compiles it: if a
/// set takes too much time or memory, the child ends, and the last printed set is the cause. The environment variable
/// `STOPSCAN_CASES` sets the number of sets.
#[test]
fn sets_of_users_compile_in_bounded_time_and_memory() {
    let _alone = alone();
    let sets = std::env::var("STOPSCAN_CASES").map_or(1_500, |sets| sets.parse().expect("it is a number"));
    let limit = Duration::from_millis(10_000 + 40 * sets); // a debug build on a busy machine takes a tenth of this
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "patterns::compile_sets_of_users", "--ignored", "--nocapture"])
        .env(SEEDS, sets.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::thread::spawn({
        let output = child.stdout.take().unwrap();
        move || std::io::read_to_string(output).unwrap()
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if begun.elapsed() > limit => break None,
            None => sleep(Duration::from_millis(10)),
        }
    };
    child.kill().unwrap();
    let output = output.join().unwrap();
    let last = output.lines().rfind(|line| line.starts_with("UserSet")).unwrap_or("none");
    assert!(status.is_some_and(|status| status.success()), "{status:?}, {:?}, {last}", begun.elapsed());
}

/// The child process of the test above: compiles each set with limited memory.
#[test]
#[ignore = "the test above runs it in a process of its own"]
fn compile_sets_of_users() {
    const NAMED: [(&str, &[&str]); 6] = [
        (r"\w{30}!", &["END"]),
        ("[^:]{20}:", &["User:"]),
        (r"[a-f0-9]{32}\b", &["abc"]),
        (r"(?i)\b(sk|api|key)[-_][a-z0-9]{16,48}\b", &[]),
        ("api[a-z]{16}!", &[]),
        ("(?i)key[a-z]{16}!", &[]),
    ];
    let sets: u64 = std::env::var(SEEDS).map_or(0, |sets| sets.parse().unwrap());
    let drawn = (0..sets).map(|seed| {
        let bytes = Random(seed).bytes(400);
        UserSet::arbitrary(&mut Unstructured::new(&bytes)).unwrap()
    });
    let (mut taken, mut all) = (0, 0);
    for set in NAMED.iter().map(|(pattern, strings)| UserSet::one(pattern, strings)).chain(drawn) {
        println!("{set:?}");
        ALLOCATOR.set_limit(ALLOCATOR.allocated() + 16 * MIB).unwrap(); // with more than 16 MiB the process aborts
        taken += usize::from(set.build().is_ok());
        ALLOCATOR.set_limit(usize::MAX).unwrap();
        all += 1;
    }
    assert!(taken > all / 2, "only {taken} of {all} are taken");
}

/// Patterns for which a backtracking engine would need exponential time, or an automaton exponential memory. Each must
/// either be refused as too large, or compile with little memory and then read 100,000 characters with little memory.
#[test]
fn hostile_patterns() {
    let _alone = alone();
    let alternatives = (0..1_000).map(|number| format!("word{number}")).collect::<Vec<_>>().join("|");
    let patterns: [(&str, bool); 13] = [
        ("(a*)*b", true),
        ("(a|a)*b", true),
        ("(a|aa)+b", true),
        ("a{1,1000}b", true),
        ("(a{1,30}){1,30}b", false),
        (&alternatives, false),
        ("[ab]*a[ab]{9}c", false),
        ("[ab]*a[ab]{100}c", false),
        ("(a{1000}){1000}b", false),
        ("((a{100}){100}){100}b", false),
        ("(((a?){30}){30}){30}b", false),
        (".{1,50}x", true),
        (".{1,900}x", true),
    ];
    for (pattern, compiles) in patterns {
        println!("{pattern:.40}"); // shown if the process aborts for lack of memory
        ALLOCATOR.set_limit(ALLOCATOR.allocated() + 64 * MIB).unwrap();
        let set = StopSet::builder().patterns([pattern]).max_held(2_000).build();
        ALLOCATOR.set_limit(usize::MAX).unwrap();
        assert_eq!(set.is_ok(), compiles, "{pattern:.40}: {:?}", set.err().map(|error| error.to_string()));
        let Ok(set) = set else {
            continue;
        };
        let mut scanner = StopScanner::new(&set);
        let delta = "aaaaaaaaaa";
        let before = ALLOCATOR.allocated();
        let released: usize = (0..MILLION / 100).map(|_| scanner.feed(delta).text.len()).sum();
        assert!(released + scanner.held().len() == MILLION / 10, "{pattern}");
        assert!(ALLOCATOR.allocated() < before + MIB, "{pattern}: {} bytes", kept_since(before));
    }
}

/// If many patterns together are too large, `build` must fail soon, with an error that names no single pattern. An
/// earlier version compiled each pattern alone to find one that is too large, which took minutes.
#[test]
fn patterns_that_are_too_large_together() {
    let _alone = alone();
    let ideograph = |number: u32| char::from_u32(0x4e00 + number).unwrap();
    let large = |number: u32| {
        let (a, b) = (ideograph(2 * number), ideograph(2 * number + 1));
        format!("[{a}{b}]*{a}[{a}{b}]{{8}}!")
    };
    let error = StopSet::builder().patterns((0..10_000).map(large)).build().unwrap_err();
    assert!(error.to_string().starts_with("the 10000 patterns together are too large; "));
}

/// In this text, a match may begin at every character, and stays unfinished until it is longer than `max_held` (65,536
/// characters). Matches in the same state must be merged. Otherwise time and memory would explode.
#[test]
fn a_million_beginnings_of_a_match() {
    let _alone = alone();
    let set = StopSet::builder().patterns([r"\s+END"]).build().unwrap();
    let mut scanner = StopScanner::new(&set);
    let released: usize = (0..MILLION / 10).map(|_| scanner.feed("          ").text.len()).sum();
    assert_eq!(released + scanner.held().len(), MILLION);
    assert_eq!(scanner.feed("END").stop_match.unwrap().end(), MILLION + 3);
}

/// In these texts, a match begins at every character. With some patterns all these matches are in different states of
/// the automaton, with others many are in the same state. In all cases, the time for a character must not grow with the
/// amount of held text.
#[test]
fn texts_in_which_many_matches_have_begun() {
    let _alone = alone();
    let letters = "abcdefghijklmnopqrstuvwxyz ".repeat(MILLION / 5 / 27);
    for (pattern, text) in [
        ("[a-z ]{900}!", &*letters),
        (r"(?:[a-z]{1,30} ){20}!", &*letters),
        (r"\n?\d+\.\d+:", &*"1".repeat(MILLION)),
        (r"\n?\d+\b:?!", &*"1".repeat(MILLION)),
        ("<[^>]{1,200}>", &*"<".repeat(MILLION / 2)),
    ] {
        let set = StopSet::builder().patterns([pattern]).max_held(65_536).build().unwrap();
        let (mut one_by_one, mut unarmed) = (StopScanner::new(&set), StopScanner::new(&set));
        for letter in text.as_bytes().chunks(1) {
            let letter = str::from_utf8(letter).unwrap();
            one_by_one.feed(letter);
            unarmed.feed_unarmed(letter);
        }
        assert_eq!(one_by_one.held(), unarmed.held(), "{pattern}");
        assert_eq!(set.find(text), None, "{pattern}");
    }
}
