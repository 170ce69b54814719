use std::collections::HashSet;

use arbitrary::{Arbitrary, Result, Unstructured};

use super::ops;
use super::words::Words;
use crate::reference::Op;
use crate::reference::segment_pair::Pair;
use crate::reference::segments::{Region, Rules, region_of};

const NAMES: [&str; 4] = ["answer", "reasoning", "answer/again", "tool/in reasoning"];

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

pub fn rules(words: &Words, u: &mut Unstructured<'_>) -> Result<Rules> {
    let names = &NAMES[..u.int_in_range(1..=NAMES.len())?];
    let mut regions = Vec::new();
    for name in names {
        regions.push(Region { name: (*name).into(), markers: Vec::new() });
    }
    let mut rules = Rules { region: (*u.choose(names)?).into(), include_stop: u.ratio(1, 8)?, ..Rules::default() };
    for word in &words.words {
        match u.int_in_range(0..=9)? {
            0 | 1 => rules.stop.push(word.clone()),
            2 if !rules.stop.contains(word) => rules.visible.push(word.clone()),
            _ => {
                for region in &mut regions {
                    if u.ratio(1, 2)? {
                        region.markers.push((word.clone(), (*u.choose(names)?).into()));
                    }
                }
            }
        }
    }
    // Remove the rules that the library refuses. A string may be only one of hidden stop, visible stop and marker. In a
    // region, a marker may lead to only one state. No marker may end inside another marker, because the longer marker
    // could then never complete.
    rules.stop.retain(|stop| !rules.visible.contains(stop));
    for region in &mut regions {
        let mut taken = HashSet::new();
        region.markers.retain(|(marker, _)| taken.insert(marker.clone()));
        region.markers.retain(|(marker, _)| !rules.stop.contains(marker) && !rules.visible.contains(marker));
        let ends_inside =
            |marker: &str, inner: &str| marker.find(inner).is_some_and(|at| at + inner.len() < marker.len());
        region.markers.retain(|(marker, _)| !taken.iter().any(|inner| ends_inside(marker, inner)));
    }
    rules.regions = regions;
    if u.ratio(1, 2)? {
        let live = names.iter().filter(|_| u.ratio(1, 2).unwrap_or_default()).map(|name| region_of(name).into());
        rules.stop_in = Some(live.collect());
    }
    rules.kept = words.words.iter().filter(|_| u.ratio(1, 4).unwrap_or_default()).cloned().collect();
    rules.staying = words.words.iter().filter(|_| u.ratio(1, 3).unwrap_or_default()).cloned().collect();
    Ok(rules)
}

/// Draws an operation. Most operations use `text`.
fn op(u: &mut Unstructured<'_>, text: String) -> Result<Op> {
    Ok(match u.int_in_range(0..=31)? {
        0 => Op::Flush,
        1 => Op::Reset,
        2..=9 => Op::Feed { delta: text, armed: false },
        _ => Op::Feed { delta: text, armed: true },
    })
}
