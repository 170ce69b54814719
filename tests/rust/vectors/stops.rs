use serde::Deserialize;

use super::{Call, Found, pieces, read};
use crate::reference::Op;
use crate::reference::stops::{Pair, Rules};

#[derive(Deserialize)]
struct Vector {
    name: String,
    stop: Vec<String>,
    visible: Vec<String>,
    protect: Vec<(String, String)>,
    include_stop: bool,
    start_protected: bool,
    steps: Vec<Step>,
    #[serde(rename = "match")]
    matched: Option<Found>,
    unused: String,
}

#[derive(Deserialize)]
pub struct Step {
    op: Call,
    text: String,
    pub out: String,
    pub held: String,
}

impl Vector {
    fn rules(&self) -> Rules {
        Rules {
            stop: self.stop.clone(),
            visible: self.visible.clone(),
            protect: self.protect.clone(),
            include_stop: self.include_stop,
            start_protected: self.start_protected,
        }
    }

    /// Runs the steps of a case. Every delta is cut into pieces of `size` characters.
    fn check(&self, size: usize) {
        let rules = self.rules();
        let mut pair = Pair::new(&rules);
        for (index, step) in self.steps.iter().enumerate() {
            let context = format!("step {index} of {} in pieces of {size}", self.name);
            let out: String = step.ops(size).into_iter().map(|op| pair.apply(op)).collect();
            assert_eq!(out, step.out, "output of {context}");
            assert_eq!(pair.held(), step.held, "held after {context}");
        }
        assert_eq!(pair.matched().map(Found::from), self.matched, "match of {} in pieces of {size}", self.name);
        if size == usize::MAX {
            assert_eq!(pair.unused(), self.unused, "unused of {}", self.name);
        }
    }
}

impl Step {
    pub fn ops(&self, size: usize) -> Vec<Op> {
        match self.op {
            Call::Bypass => vec![Op::Bypass(self.text.clone())],
            _ => pieces(self.op, &self.text, size),
        }
    }
}

#[test]
fn vectors_hold() {
    let vectors: Vec<Vector> = read("");
    assert!(!vectors.is_empty());
    for vector in &vectors {
        vector.check(usize::MAX);
    }
}

#[test]
fn vectors_hold_in_pieces() {
    for vector in read::<Vector>("") {
        for size in [1, 2, 3, 130] {
            vector.check(size);
        }
    }
}
