//! Runs the library's segmenter and the simple reference side by side.

use std::slice;

use stopscan::{Segmenter, Segments, StopScanner};

use super::segments::{Reference, Rules, Segment, region_of};
use super::{Match, Op};

/// The library's segmenter and its reference (a simple program that does the same), side by side: all results must be
/// equal.
pub struct Pair<'a> {
    rules: &'a Rules,
    segmenter: Segmenter,
    scanner: StopScanner,
    reference: Reference<'a>,
    done: Vec<Op>,
}

impl<'a> Pair<'a> {
    pub fn new(rules: &'a Rules) -> Pair<'a> {
        Pair {
            rules,
            segmenter: rules.segmenter(),
            scanner: rules.scanner(),
            reference: Reference::new(rules),
            done: Vec::new(),
        }
    }

    /// Applies `op` to the segmenter and to the reference, and returns the segments. Panics if they differ.
    pub fn apply(&mut self, op: Op) -> Vec<Segment> {
        let expected = match &op {
            Op::Feed { delta, armed } => self.reference.feed(delta, *armed),
            Op::Bypass(_) => panic!("a segmenter has no bypass"),
            Op::Flush => self.reference.flush(),
            Op::Reset => self.reference.reset(),
        };
        // The same call on a copy, and on a segmenter restored from a snapshot, must give the same result. It must not
        // change the original.
        let copy = apply(&mut self.segmenter.clone(), &op);
        let snapshot = self.segmenter.snapshot();
        let mut resumed = self.segmenter.clone();
        resumed.reset();
        resumed.restore(&snapshot).expect("the snapshot is its own");
        let elsewhere = apply(&mut resumed, &op);
        let out = apply(&mut self.segmenter, &op);
        let expected = (expected, self.matched());
        let context = || format!("after {:#?}\nof {:#?}", [&self.done[..], slice::from_ref(&op)].concat(), self.rules);
        assert_eq!(out, expected, "output {}", context());
        assert_eq!(copy, expected, "output of a copy {}", context());
        assert_eq!(elsewhere, expected, "output elsewhere {}", context());
        assert_eq!(self.segmenter.held(), self.held(), "held text {}", context());
        assert_eq!(self.segmenter.region(), region_of(self.reference.region), "region {}", context());
        match &op {
            Op::Feed { delta, armed: true } => drop(self.scanner.feed(delta)),
            Op::Feed { delta, armed: false } => drop(self.scanner.feed_unarmed(delta)),
            Op::Flush => drop(self.scanner.flush()),
            _ => self.scanner.reset(),
        }
        assert_eq!(self.scanner.region(), self.segmenter.region(), "region of a scanner {}", context());
        assert_eq!(self.scanner.stop_match(), self.segmenter.stop_match(), "match of a scanner {}", context());
        assert_eq!(self.segmenter.unused(), self.reference.unused, "unused text {}", context());
        assert_eq!(self.segmenter.stop_match().map(Match::from), self.matched(), "match {}", context());
        self.done.push(op);
        expected.0
    }

    pub fn held(&self) -> &'a str {
        self.reference.held()
    }

    pub fn region(&self) -> &'a str {
        self.reference.region
    }

    pub fn matched(&self) -> Option<Match> {
        self.reference.matched.clone()
    }

    pub fn unused(&self) -> &str {
        &self.reference.unused
    }
}

fn apply(segmenter: &mut Segmenter, op: &Op) -> (Vec<Segment>, Option<Match>) {
    let given = |segments: Segments<'_>| {
        let matched = segments.stop_match().map(Match::from);
        let segments = segments.into_iter().map(|segment| (segment.region.into(), segment.text.into(), segment.part));
        (segments.collect(), matched)
    };
    match op {
        Op::Feed { delta, armed: true } => given(segmenter.feed(delta)),
        Op::Feed { delta, armed: false } => given(segmenter.feed_unarmed(delta)),
        Op::Bypass(_) => panic!("a segmenter has no bypass"),
        Op::Flush => given(segmenter.flush()),
        Op::Reset => {
            segmenter.reset();
            Default::default()
        }
    }
}
