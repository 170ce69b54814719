use std::collections::HashSet;

use arbitrary::{Arbitrary, Result, Unstructured};

use super::ops;
use super::words::Words;
use crate::reference::stops::{Pair, Rules};
use crate::reference::{Match, Op};

#[derive(Clone, Debug)]
pub struct Case {
    pub rules: Rules,
    pub ops: Vec<Op>,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Case> {
        let words = Words::arbitrary(u)?;
        let rules = rules(&words, u)?;
        Ok(Case { rules, ops: ops(u, &words, op)? })
    }
}

impl Case {
    /// Panics unless the library does what the reference, a simple program, does at every step.
    pub fn check(self) {
        let deltas = self.ops.iter().filter_map(|op| match op {
            Op::Feed { delta, .. } => Some(delta.as_str()),
            _ => None,
        });
        check_set(&self.rules, deltas.collect());
        let mut pair = Pair::new(&self.rules);
        for op in self.ops {
            let inert = pair.matched().is_some();
            pair.apply(op);
            if inert {
                pair.apply(Op::Reset); // a stop had fired before `op`, so the stream goes on only after a reset
            }
        }
    }
}

/// Panics unless `find` and `truncate` agree with a scanner that is fed the whole text.
fn check_set(rules: &Rules, text: String) {
    let mut pair = Pair::new(rules);
    let kept = pair.apply(Op::Feed { delta: text.clone(), armed: true }) + &pair.apply(Op::Flush);
    let set = rules.set().expect("these rules compile");
    let (truncated, found) =
        set.truncate_with(&text, &rules.options()).expect("they start protected only if a region is protected");
    assert_eq!(truncated, kept, "truncate of {text:?} with {rules:#?}");
    assert_eq!(found.map(Match::from), pair.matched(), "truncate of {text:?} with {rules:#?}");
    assert_eq!(set.find_with(&text, &rules.options()), Ok(found), "find of {text:?} with {rules:#?}");
    if rules.options() == Default::default() {
        assert_eq!(set.truncate(&text), (truncated, found), "truncate of {text:?} with {rules:#?}");
        assert_eq!(set.find(&text), found, "find of {text:?} with {rules:#?}");
    }
}

pub(super) fn rules(words: &Words, u: &mut Unstructured<'_>) -> Result<Rules> {
    let mut rules = Rules { include_stop: u.ratio(1, 8)?, ..Rules::default() };
    let mut taken = HashSet::new();
    for word in &words.words {
        match u.int_in_range(0..=9)? {
            0..=4 => rules.stop.push(word.clone()),
            5 | 6 if !rules.stop.contains(word) => rules.visible.push(word.clone()),
            7 | 8 => {
                let closing = u.choose(&words.words)?;
                if taken.insert(word.clone()) {
                    rules.protect.push((word.clone(), closing.clone()));
                }
            }
            _ => {}
        }
    }
    // The library refuses a string that is both a hidden and a visible stop, or both a stop and a marker.
    rules.stop.retain(|stop| !rules.visible.contains(stop));
    let is_stop = |word: &String| rules.stop.contains(word) || rules.visible.contains(word);
    rules.protect.retain(|(open, close)| !is_stop(open) && !is_stop(close));
    rules.start_protected = !rules.protect.is_empty() && u.ratio(1, 4)?;
    Ok(rules)
}

/// Draws an operation. Most operations use `text`.
fn op(u: &mut Unstructured<'_>, text: String) -> Result<Op> {
    Ok(match u.int_in_range(0..=31)? {
        0 => Op::Flush,
        1 => Op::Bypass(text),
        2 => Op::Reset,
        3..=10 => Op::Feed { delta: text, armed: false },
        _ => Op::Feed { delta: text, armed: true },
    })
}
