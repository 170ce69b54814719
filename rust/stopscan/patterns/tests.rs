//! Tests how much of its budget compiling spends, with random sets that are like those that people write.

use arbitrary::{Arbitrary, Unstructured};

use super::compile::{PatternList, Source, source};
use super::work::{MAX_HOLD_WORK, MAX_WORK, Work};
use crate::automaton::{Automaton, Config, Words};
use crate::graph::Distinct;

#[path = "../../../tests/rust/random.rs"]
#[allow(dead_code)] // other tests use the rest
mod random;
#[path = "../../../tests/rust/case/user_patterns.rs"]
#[allow(dead_code)] // other tests use the rest
mod user_patterns;

/// Makes a random set from each of the first `seeds` seeds. Returns the sets that compile, each with the units of work
/// that its automaton costs.
fn compiled(seeds: u64) -> Vec<(user_patterns::UserSet, PatternList, Source, usize)> {
    let compile = |seed| {
        let bytes = random::Random(seed).bytes(400);
        let set = user_patterns::UserSet::arbitrary(&mut Unstructured::new(&bytes)).ok()?;
        let distinct = |texts| Distinct { indices: (0..).zip(&texts).map(|(index, _)| index).collect(), texts };
        let mut texts: Vec<&str> = Vec::new();
        for pattern in &set.patterns {
            if !texts.contains(&&**pattern) {
                texts.push(pattern);
            }
        }
        // In a third of the sets, some of the patterns are visible.
        let visible = texts.split_off(if seed % 3 == 0 { texts.len() / 2 } else { texts.len() });
        let list = PatternList::new(distinct(texts), distinct(visible), set.max_held.or(Some(1_000)));
        let mut work = Work::new(MAX_WORK);
        let source = source(&list, &mut work).ok()?;
        Some((set, list, source, MAX_WORK - work.left()))
    };
    (0..seeds).filter_map(compile).collect()
}

/// If the budget has one unit less than a set spends, the set must be refused: this shows that every unit counts. Also,
/// most sets must spend far less than the limit: if compiling becomes more expensive, this test fails before sets of
/// users are refused.
#[test]
fn an_automaton_is_refused_with_one_unit_less_than_it_spends() {
    let mut all = Vec::new();
    for (set, list, _, spent) in compiled(400) {
        assert!(source(&list, &mut Work::new(spent)).is_ok(), "{set:?}");
        assert!(source(&list, &mut Work::new(spent - 1)).is_err(), "{set:?}");
        all.push(spent);
    }
    all.sort_unstable();
    assert!(all.len() > 250, "only {} are taken", all.len());
    println!("{:?}", (all[all.len() / 2], all[all.len() * 9 / 10]));
    assert!(all[all.len() / 2] < 60_000 && all[all.len() * 9 / 10] < 300_000);
}

#[test]
fn a_least_hold_is_left_out_with_one_unit_less_than_it_spends() {
    let mut all = Vec::new();
    for (set, list, source, _) in compiled(300) {
        let words = Words::new(&set.strings, &[], [].into_iter());
        let config = Config { holds_markers: true, prunes: true, dense_limit: 1 << 16 };
        let (strings, _) = Automaton::new(words, &[], config);
        let mut work = Work::new(MAX_HOLD_WORK);
        if source.least_hold(&strings, &list, &mut work).is_ok() {
            let spent = MAX_HOLD_WORK - work.left();
            assert!(source.least_hold(&strings, &list, &mut Work::new(spent)).is_ok(), "{set:?}");
            assert!(source.least_hold(&strings, &list, &mut Work::new(spent - 1)).is_err(), "{set:?}");
            all.push(spent);
        }
    }
    all.sort_unstable();
    println!("{:?}", (all.len(), all[all.len() / 2], all[all.len() * 9 / 10]));
    assert!(all.len() > 100, "only {} are small enough", all.len());
}
