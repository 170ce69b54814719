use std::collections::BTreeMap;

use serde::Deserialize;
use stopscan::{RewriteSet, Rewriter};

use super::{Call, pieces, read};
use crate::reference::Op;

#[derive(Deserialize)]
struct Case {
    name: String,
    replacements: BTreeMap<String, String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: Call,
    text: String,
    out: String,
    held: String,
}

#[test]
fn rewrite_vectors() {
    for Case { name, replacements, steps } in read::<Case>("rewrite") {
        for size in [1, 2, 3, usize::MAX] {
            let mut rewriter = Rewriter::new(&RewriteSet::new(&replacements).unwrap());
            for step in &steps {
                let mut out = String::new();
                for op in pieces(step.op, &step.text, size) {
                    match op {
                        Op::Feed { delta, .. } => out += rewriter.feed(&delta),
                        Op::Flush => out += rewriter.flush(),
                        Op::Reset => rewriter.reset(),
                        Op::Bypass(_) => panic!("rewriters have no bypass"),
                    }
                }
                assert_eq!((out.as_str(), rewriter.held()), (step.out.as_str(), step.held.as_str()), "{name}");
            }
        }
    }
}
