//! The compiler of patterns counts its work in units, and gives up at a limit. These tests check that each unit counts.
//! The sets are random, but like those that people write.

use arbitrary::{Arbitrary, Unstructured};
use stopscan::PatternCosts;

use crate::random::Random;
use user_patterns::UserSet;

#[path = "case/user_patterns.rs"]
#[allow(dead_code)] // other tests use the rest
mod user_patterns;

/// Makes a random set from each of the first `seeds` seeds, and calls `test` with the patterns of the set.
fn for_each_set(seeds: u64, mut test: impl FnMut(&PatternCosts)) {
    for seed in 0..seeds {
        let bytes = Random(seed).bytes(400);
        let Ok(set) = UserSet::arbitrary(&mut Unstructured::new(&bytes)) else { continue };
        let mut patterns: Vec<&str> = Vec::new();
        for pattern in &set.patterns {
            if !patterns.contains(&&**pattern) {
                patterns.push(pattern);
            }
        }
        // In a third of the sets, some of the patterns are visible.
        let visible = patterns.split_off(if seed % 3 == 0 { patterns.len() / 2 } else { patterns.len() });
        let max_held = set.max_held.unwrap_or(1_000);
        test(&PatternCosts { patterns: &patterns, visible_patterns: &visible, strings: &set.strings, max_held });
    }
}

/// Returns the median and the ninth decile.
fn shares(mut spent: Vec<usize>) -> (usize, usize) {
    spent.sort_unstable();
    (spent[spent.len() / 2], spent[spent.len() * 9 / 10])
}

/// If the limit is one unit of work less than compiling a set takes, the set must be refused: this shows that every
/// unit counts. Also, most sets must need far less than the library's own limit: if compiling becomes more expensive,
/// this test fails before sets of users are refused.
#[test]
fn an_automaton_is_refused_with_one_unit_less_than_it_spends() {
    let mut all = Vec::new();
    for_each_set(400, |set| {
        if let Some(spent) = set.automaton(None) {
            assert_eq!(set.automaton(Some(spent)), Some(spent), "{:?}", set.patterns);
            assert_eq!(set.automaton(Some(spent - 1)), None, "{:?}", set.patterns);
            all.push(spent);
        }
    });
    assert!(all.len() > 250, "only {} are taken", all.len());
    let (median, decile) = shares(all);
    println!("{median} {decile}");
    assert!(median < 60_000 && decile < 300_000);
}

#[test]
fn a_least_hold_is_left_out_with_one_unit_less_than_it_spends() {
    let mut all = Vec::new();
    for_each_set(300, |set| {
        if let Some(spent) = set.least_hold(None) {
            assert_eq!(set.least_hold(Some(spent)), Some(spent), "{:?}", set.patterns);
            assert_eq!(set.least_hold(Some(spent - 1)), None, "{:?}", set.patterns);
            all.push(spent);
        }
    });
    assert!(all.len() > 100, "only {} are small enough", all.len());
    println!("{:?}", shares(all));
}
