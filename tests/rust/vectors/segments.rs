use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Call, Found, pieces, read};
use crate::reference::segment_pair::Pair;
use crate::reference::segments::{Region, Rules, Segment};

#[derive(Deserialize)]
struct Vector {
    name: String,
    markers: Map<String, Value>,
    stop: Vec<String>,
    visible: Vec<String>,
    stop_in: Option<Vec<String>>,
    region: Option<String>,
    include_stop: bool,
    steps: Vec<Step>,
    #[serde(rename = "match")]
    matched: Option<Found>,
    unused: String,
}

#[derive(Deserialize)]
struct Step {
    op: Call,
    text: String,
    /// The expected segments: region and text. Neighbouring segments of one region are joined.
    out: Vec<(String, String)>,
    held: String,
    region: String,
}

impl Vector {
    fn rules(&self) -> Rules {
        let lead = |(marker, lead): (&String, &Value)| (marker.clone(), lead.as_str().expect("a region").to_owned());
        let markers = |value: &Value| value.as_object().expect("markers").iter().map(lead).collect();
        let region = |(name, value): (&String, &Value)| Region { name: name.clone(), markers: markers(value) };
        let regions: Vec<Region> = self.markers.iter().map(region).collect();
        Rules {
            staying: Vec::new(),
            kept: Vec::new(),
            region: self.region.clone().unwrap_or_else(|| regions[0].name.clone()),
            regions,
            stop: self.stop.clone(),
            visible: self.visible.clone(),
            stop_in: self.stop_in.clone(),
            include_stop: self.include_stop,
        }
    }

    /// Runs the steps of a case. Every delta is cut into pieces of `size` characters.
    fn check(&self, size: usize) {
        let rules = self.rules();
        let mut pair = Pair::new(&rules);
        for (index, step) in self.steps.iter().enumerate() {
            let context = format!("step {index} of {} in pieces of {size}", self.name);
            let out = pieces(step.op, &step.text, size).into_iter().flat_map(|op| pair.apply(op));
            assert_eq!(joined(out), step.out, "output of {context}");
            assert_eq!(pair.held(), step.held, "held after {context}");
            assert_eq!(pair.region(), step.region, "region after {context}");
        }
        assert_eq!(pair.matched().map(Found::from), self.matched, "match of {} in pieces of {size}", self.name);
        if size == usize::MAX {
            assert_eq!(pair.unused(), self.unused, "unused of {}", self.name);
        }
    }
}

fn joined(segments: impl Iterator<Item = Segment>) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (region, text, _) in segments {
        match joined.last_mut() {
            Some(last) if last.0 == region => last.1 += &text,
            _ => joined.push((region, text)),
        }
    }
    joined
}

#[test]
fn vectors_hold() {
    for vector in read::<Vector>("segments") {
        vector.check(usize::MAX);
    }
}

#[test]
fn vectors_hold_in_pieces() {
    for vector in read::<Vector>("segments") {
        for size in [1, 2, 3, 130] {
            vector.check(size);
        }
    }
}
