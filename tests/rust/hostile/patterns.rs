//! Patterns.

use stopscan::{StopScanner, StopSet};

use crate::{ALLOCATOR, MIB, MILLION, alone, kept_since};

/// Patterns that make a backtracking engine take exponential time, or an automaton exponential memory: each either
/// compiles within bounds, and then a million characters are read, or says that it is too large.
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
        println!("{pattern:.40}"); // beyond the limit the process aborts
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

/// To say which of many patterns is the first too many, not every one of them is compiled: that took minutes.
#[test]
fn patterns_that_are_too_large_together() {
    let _alone = alone();
    let ideograph = |number: u32| char::from_u32(0x4e00 + number).unwrap();
    let large = |number: u32| {
        let (a, b) = (ideograph(2 * number), ideograph(2 * number + 1));
        format!("[{a}{b}]*{a}[{a}{b}]{{8}}!")
    };
    let error = StopSet::builder().patterns((0..10_000).map(large)).build().unwrap_err();
    assert!(error.to_string().starts_with("the 10000 patterns together need too large an automaton; "));
}

/// Every character begins a match that goes on for long: those that are in one state are one.
#[test]
fn a_million_beginnings_of_a_match() {
    let _alone = alone();
    let set = StopSet::builder().patterns([r"\s+END"]).build().unwrap();
    let mut scanner = StopScanner::new(&set);
    let released: usize = (0..MILLION / 10).map(|_| scanner.feed("          ").text.len()).sum();
    assert_eq!(released + scanner.held().len(), MILLION);
    assert_eq!(scanner.feed("END").stop_match.unwrap().end(), MILLION + 3);
}

/// Every character begins a match, in a state of its own or after a long run of others: no character may cost as much as
/// was held before it.
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
