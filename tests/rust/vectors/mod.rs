//! Runs the cases in `tests/vectors/` with the library. Cases without patterns are also run with the references, simple
//! programs that must give the same results.

mod patterns;
mod rewrite;
mod segments;
mod stops;

use std::fs::{self, File};
use std::io::BufReader;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::reference::{Match, Op};

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

/// Returns the calls for one step of a case. If the step feeds text, there is a call for each delta of `size`
/// characters.
fn pieces(op: Call, text: &str, size: usize) -> Vec<Op> {
    let feed = |armed| {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(size).map(|piece| Op::Feed { delta: piece.iter().collect(), armed }).collect()
    };
    match op {
        Call::Feed => feed(true),
        Call::FeedUnarmed => feed(false),
        Call::Bypass => panic!("not in pieces"),
        Call::Flush => vec![Op::Flush],
        Call::Reset => vec![Op::Reset],
    }
}

/// Reads the cases in all JSON files of a folder of the vectors.
fn read<T: DeserializeOwned>(folder: &str) -> Vec<T> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/");
    let files = fs::read_dir(format!("{root}{folder}")).unwrap();
    let paths = files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "json"));
    let cases = |path| serde_json::from_reader::<_, Vec<T>>(BufReader::new(File::open(path).unwrap())).unwrap();
    let all: Vec<T> = paths.flat_map(cases).collect();
    assert!(!all.is_empty(), "no vectors in {root}{folder}");
    all
}
