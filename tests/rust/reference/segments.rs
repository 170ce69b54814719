//! The reference for segmenters, which is compared with the library.

use stopscan::{
    Emit, Options, SegmentSet, Segmenter, SetBuilder, StopScanner, StopSet, StopSetError, Target, keep, stay,
};

use super::{Match, firing, longest_beginning, longest_end, match_at_end};

/// The stops, markers and options of a segmenter.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The states of regions. A name with a slash, such as `tool/in reasoning`, names another state of the region
    /// `tool`.
    pub regions: Vec<Region>,
    /// The markers that stay in the text, whichever region they lead to.
    pub kept: Vec<String>,
    /// Markers that stay in the text and begin no new part if they lead to the region in which they stand, in whatever
    /// state. If they lead to another region, they are ordinary markers.
    pub staying: Vec<String>,
    pub stop: Vec<String>,
    pub visible: Vec<String>,
    pub stop_in: Option<Vec<String>>,
    /// The region in which the stream begins.
    pub region: String,
    pub include_stop: bool,
}

#[derive(Clone, Debug)]
pub struct Region {
    pub name: String,
    /// Each marker and the region that it leads to.
    pub markers: Vec<(String, String)>,
}

/// A segment: the name of its region, its text, and the number of its part. (`Reference::follow` says which markers
/// begin a new part.)
pub type Segment = (String, String, u32);

impl Rules {
    pub fn set(&self) -> Result<SegmentSet, StopSetError> {
        self.fill(SegmentSet::builder()).build()
    }

    fn fill<E: Emit>(&self, builder: SetBuilder<E>) -> SetBuilder<E> {
        let mut builder = builder.stop(&self.stop).visible(&self.visible);
        for region in &self.regions {
            let target = |(marker, name): &(String, String)| {
                let target = match (self.kept.contains(marker), self.stays(&region.name, marker, name)) {
                    (true, _) => keep(name),
                    (_, true) => stay(name),
                    _ => Target::from(name),
                };
                (marker.clone(), target)
            };
            builder = builder.region(&*region.name, region.markers.iter().map(target));
        }
        match &self.stop_in {
            Some(names) => builder.stop_in(names),
            None => builder,
        }
    }

    /// Whether `marker` stays in the text and begins no new part. It must be in `staying` and not in `kept`, and the
    /// states `from` and `to` must belong to the same region.
    fn stays(&self, from: &str, marker: &str, to: &str) -> bool {
        let chosen = |markers: &[String]| markers.iter().any(|one| one == marker);
        chosen(&self.staying) && !chosen(&self.kept) && region_of(from) == region_of(to)
    }

    pub(super) fn options(&self) -> Options {
        Options::default().region(&self.region).include_stop(self.include_stop)
    }

    /// The library's scanner (not segmenter) with the same regions and markers. In the output of a scanner, markers
    /// stay in the text.
    pub(super) fn scanner(&self) -> StopScanner {
        let set = self.fill(StopSet::builder()).build().expect("these rules compile");
        StopScanner::with_options(&set, &self.options()).expect("there is the region")
    }

    /// The library's segmenter.
    pub fn segmenter(&self) -> Segmenter {
        let set = self.set().expect("these rules compile");
        Segmenter::with_options(&set, &self.options()).expect("there is the region")
    }

    fn markers(&self, region: &str) -> &[(String, String)] {
        &self.regions.iter().find(|other| other.name == region).expect("there is the region").markers
    }
}

pub struct Reference<'a> {
    rules: &'a Rules,
    /// All text that was fed, up to the end of the stop.
    text: String,
    /// No stop or marker may begin before this position. It is the end of the last marker, or the end of the text at
    /// the last flush.
    edge: usize,
    /// How many bytes of `text` were returned, or taken out as a marker.
    sent: usize,
    pub region: &'a str,
    part: u32,
    pub matched: Option<Match>,
    pub(super) unused: String,
    /// The region of each character of the output, and `None` for each character of a marker that was taken out.
    pub labels: Vec<Option<&'a str>>,
    /// Whether a marker ended with the last character.
    pub marker_ended: bool,
}

/// The region of a state: the name before the slash.
pub fn region_of(state: &str) -> &str {
    state.split('/').next().expect("it is not empty")
}

impl<'a> Reference<'a> {
    pub fn new(rules: &'a Rules) -> Reference<'a> {
        let (text, edge, sent, part, matched, unused, labels) = Default::default();
        let marker_ended = false;
        Reference { rules, text, edge, sent, region: &rules.region, part, matched, unused, labels, marker_ended }
    }

    pub(super) fn reset(&mut self) -> Vec<Segment> {
        *self = Reference::new(self.rules);
        Vec::new()
    }

    fn markers(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.rules.markers(self.region).iter().map(|(marker, _)| marker.as_str())
    }

    /// The stops that can fire in the current region.
    fn stops(&self) -> Vec<&'a str> {
        if self.rules.stop_in.as_ref().is_some_and(|names| !names.iter().any(|name| name == region_of(self.region))) {
            return Vec::new();
        }
        let everything = || self.rules.stop.iter().chain(&self.rules.visible);
        let enders: Vec<&str> = everything().map(String::as_str).chain(self.markers()).collect();
        firing(everything(), &enders)
    }

    fn is_hidden(&self, stop: &str) -> bool {
        !self.rules.include_stop && self.rules.stop.iter().any(|hidden| hidden == stop)
    }

    pub fn held(&self) -> &'a str {
        if self.matched.is_some() {
            return "";
        }
        let hidden = self.stops().into_iter().filter(|stop| self.is_hidden(stop));
        longest_beginning(&self.text[self.edge..], hidden.chain(self.markers()))
    }

    pub fn feed(&mut self, delta: &str, armed: bool) -> Vec<Segment> {
        let mut segments = Vec::new();
        if self.matched.is_some() {
            return segments;
        }
        for (index, character) in delta.char_indices() {
            self.text.push(character);
            self.complete(armed, &mut segments);
            if self.matched.is_some() {
                self.unused = delta[index + character.len_utf8()..].into();
                return segments;
            }
        }
        self.send(self.held().len(), &mut segments);
        segments
    }

    /// Feeds a marker of the current region that came as one token. Unlike in `feed`, no stop fires inside the marker.
    pub fn feed_marker(&mut self, marker: &str, armed: bool) -> Vec<Segment> {
        let mut segments = Vec::new();
        if self.matched.is_none() {
            self.text.push_str(marker);
            self.complete(armed, &mut segments);
        }
        if self.matched.is_none() {
            self.send(self.held().len(), &mut segments);
        }
        segments
    }

    pub fn flush(&mut self) -> Vec<Segment> {
        let mut segments = Vec::new();
        if self.matched.is_none() {
            self.edge = self.text.len();
            self.send(0, &mut segments);
        }
        segments
    }

    /// Whether the current region has this marker, and no stop has fired yet.
    pub fn leads(&self, marker: &str) -> bool {
        self.matched.is_none() && self.markers().any(|other| other == marker)
    }

    /// Whether a special token is a stop that can fire in the current region.
    pub fn fires(&self, special: &str) -> bool {
        let here =
            self.rules.stop_in.as_ref().is_none_or(|names| names.iter().any(|name| name == region_of(self.region)));
        let mut stops = self.rules.stop.iter().chain(&self.rules.visible);
        self.matched.is_none() && here && stops.any(|stop| stop == special)
    }

    /// Reads a special token whose text is left out of the stream's text. The token may still be a stop or a marker.
    pub fn pass_special(&mut self, special: &str) -> Vec<Segment> {
        if !self.fires(special) {
            return self.pass_marker(special);
        }
        let segments = self.flush();
        let text = self.text.clone() + special;
        self.matched = Some(match_at_end(&text, special, &self.rules.stop, &self.rules.visible));
        segments
    }

    fn pass_marker(&mut self, marker: &str) -> Vec<Segment> {
        if !self.leads(marker) {
            return Vec::new();
        }
        let segments = self.flush();
        self.follow(marker);
        segments
    }

    /// Enters the state to which `marker` leads. Begins a new part if this is another state, or if the marker is in
    /// `kept`. But if `Rules::stays` is true for the marker, no new part begins.
    fn follow(&mut self, marker: &str) {
        let leads = self.rules.markers(self.region).iter().find(|(other, _)| other == marker);
        let region = &leads.expect("it is one of them").1;
        let begins = region != self.region || self.rules.kept.iter().any(|kept| kept == marker);
        self.part += u32::from(begins && !self.rules.stays(self.region, marker, region));
        self.region = region;
    }

    fn complete(&mut self, armed: bool, segments: &mut Vec<Segment>) {
        let seen = &self.text[self.edge..];
        let stop = if armed { longest_end(seen, self.stops()) } else { "" };
        let marker = longest_end(seen, self.markers());
        self.marker_ended = !marker.is_empty() && stop.len() <= marker.len();
        if stop.len() > marker.len() {
            self.matched = Some(match_at_end(&self.text, stop, &self.rules.stop, &self.rules.visible));
            self.send(if self.is_hidden(stop) { stop.len() } else { 0 }, segments);
        } else if !marker.is_empty() {
            self.send(marker.len(), segments);
            let left = self.region;
            self.follow(marker);
            self.edge = self.text.len();
            if self.rules.stays(left, marker, self.region) || self.rules.kept.iter().any(|kept| kept == marker) {
                self.send(0, segments);
            } else {
                self.labels.extend(marker.chars().map(|_| None));
                self.sent = self.text.len();
            }
        }
    }

    /// Adds to `segments` the text that was not returned yet, except its last `withheld` bytes.
    fn send(&mut self, withheld: usize, segments: &mut Vec<Segment>) {
        let until = self.text.len() - withheld;
        let text = &self.text[self.sent..until];
        let region = region_of(self.region);
        self.labels.extend(text.chars().map(|_| Some(region)));
        match segments.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.2 == self.part => last.1.push_str(text),
            _ => segments.push((region.into(), text.into(), self.part)),
        }
        self.sent = until;
    }
}
