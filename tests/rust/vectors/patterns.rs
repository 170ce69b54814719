use serde::Deserialize;
use stopscan::{Options, StopScanner, StopSet};

use super::read;
use super::stops::Step;
use crate::reference::stops::apply;

#[derive(Deserialize)]
struct Vector {
    name: String,
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: Vec<String>,
    visible_patterns: Vec<String>,
    protect: Vec<(String, String)>,
    include_stop: bool,
    start_protected: bool,
    steps: Vec<Step>,
    #[serde(rename = "match")]
    matched: Option<Found>,
    unused: String,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Found {
    sequence: String,
    offset: usize,
    end: usize,
    pattern: Option<String>,
}

impl Vector {
    fn scanner(&self) -> StopScanner {
        let literals = StopSet::builder().stop(&self.stop).visible(&self.visible).protect(self.protect.clone());
        let set = literals.patterns(&self.patterns).visible_patterns(&self.visible_patterns);
        let set = set.build().expect("the set of a vector compiles");
        let options = Options::default().include_stop(self.include_stop).start_protected(self.start_protected);
        StopScanner::with_options(&set, &options).expect("a vector with start_protected has a protected region")
    }

    /// Runs the steps of a case. Every delta is cut into pieces of `size` characters.
    fn check(&self, size: usize) {
        let mut scanner = self.scanner();
        for (index, step) in self.steps.iter().enumerate() {
            let context = format!("step {index} of {} in pieces of {size}", self.name);
            let out: String = step.ops(size).into_iter().map(|op| apply(&mut scanner, &op).text).collect();
            assert_eq!(out, step.out, "output of {context}");
            assert_eq!(scanner.held(), step.held, "held after {context}");
        }
        let found = scanner.stop_match().map(|found| Found {
            sequence: found.sequence().to_owned(),
            offset: found.offset(),
            end: found.end(),
            pattern: found.pattern().map(str::to_owned),
        });
        assert_eq!(found, self.matched, "match of {} in pieces of {size}", self.name);
        if size == usize::MAX {
            assert_eq!(scanner.unused(), self.unused, "unused of {}", self.name);
        }
    }
}

#[test]
fn vectors_hold() {
    for vector in read::<Vector>("patterns") {
        for size in [usize::MAX, 1, 2, 3] {
            vector.check(size);
        }
    }
}
