//! The named cases of `vectors/`, run by the scanner and by the reference alike.

use std::fs::{self, File};
use std::io::BufReader;

use crate::reference::stops::{Pair, Rules};
use crate::reference::{Match, Op};
use serde::Deserialize;

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
struct Step {
    op: Call,
    text: String,
    out: String,
    held: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Call {
    Feed,
    FeedUnarmed,
    Bypass,
    Flush,
    Reset,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Found {
    sequence: String,
    offset: usize,
    end: usize,
}

impl From<Match> for Found {
    fn from(found: Match) -> Found {
        Found { sequence: found.sequence, offset: found.offset, end: found.end }
    }
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

    /// Runs the steps, every delta cut into pieces of `size` characters.
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
    fn ops(&self, size: usize) -> Vec<Op> {
        match self.op {
            Call::Feed => self.feeds(size, true),
            Call::FeedUnarmed => self.feeds(size, false),
            Call::Bypass => vec![Op::Bypass(self.text.clone())],
            Call::Flush => vec![Op::Flush],
            Call::Reset => vec![Op::Reset],
        }
    }

    fn feeds(&self, size: usize, armed: bool) -> Vec<Op> {
        let letters: Vec<char> = self.text.chars().collect();
        letters.chunks(size).map(|piece| Op::Feed { delta: piece.iter().collect(), armed }).collect()
    }
}

fn vectors() -> Vec<Vector> {
    let folder = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/python/stopscan/testing/vectors")).unwrap();
    let files =
        folder.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "json"));
    let read = |path| serde_json::from_reader::<_, Vec<Vector>>(BufReader::new(File::open(path).unwrap())).unwrap();
    files.flat_map(read).collect()
}

#[test]
fn vectors_hold() {
    let vectors = vectors();
    assert!(!vectors.is_empty());
    for vector in &vectors {
        vector.check(usize::MAX);
    }
}

#[test]
fn vectors_hold_in_pieces() {
    for vector in &vectors() {
        for size in [1, 2, 3, 130] {
            vector.check(size);
        }
    }
}
