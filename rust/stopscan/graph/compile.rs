//! Compiles the `Recipe` of a set into a `Graph`. Refuses sets that are too large or have an invalid region, marker or
//! stop.

use std::collections::HashMap;

use super::{ANSWER, Graph, Lead, Node, Recipe, StateRecipe};
use crate::automaton::{Config, DENSE_LIMIT, Words};
use crate::error::{ErrorKind, MAX_REGIONS, MAX_SET_BYTES, Role, StopSetError};
use crate::patterns::{Compiled, Compiler, PatternList};
use crate::room;

/// `compile` needs at most this much memory: `MEMORY_OF_BYTE` bytes for each byte of the stops and markers,
/// `MEMORY_OF_WORD` bytes for each stop or marker, and the memory for the rows of the automata.
const MEMORY_OF_BYTE: usize = 32;
const MEMORY_OF_WORD: usize = 256;

/// Compiles `recipe` to a graph. `stay` says whether all markers stay in the text, as in a `StopSet`.
pub(crate) fn compile(recipe: &Recipe, stay: bool) -> Result<Graph, StopSetError> {
    let protects = recipe.regions.is_empty() && stay;
    if !protects && !recipe.protect.is_empty() {
        return Err(ErrorKind::RegionsAndPairs.into());
    }
    room::ask(recipe.regions.iter().map(|region| region.markers.len() * MEMORY_OF_WORD).sum())?;
    let plans = if protects { of_pairs(&recipe.protect)? } else { of_regions(&recipe.regions, stay)? };
    match plans.len() {
        0 => return Err(ErrorKind::NoRegions.into()),
        regions if regions > MAX_REGIONS => return Err(ErrorKind::TooManyRegions { regions }.into()),
        _ => {}
    }
    let live = live(recipe.stop_in.as_deref(), &plans, protects)?;
    check_size(recipe, &plans, &live)?;
    // Patterns are compiled before the strings, which may be long, so that an unsupported pattern is refused early.
    let mut roles = Roles::default();
    let patterns = roles.stops(&recipe.patterns, Role::Pattern)?;
    let patterns =
        PatternList::new(patterns, roles.stops(&recipe.visible_patterns, Role::VisiblePattern)?, recipe.max_held);
    let strings = recipe.stop.iter().chain(&recipe.visible).map(String::len).sum();
    let mut compiler = Compiler::new(&patterns, if live.contains(&true) { strings } else { 0 })?;
    let mut roles = Roles::default();
    let hidden = roles.stops(&recipe.stop, Role::Hidden)?;
    let visible = roles.stops(&recipe.visible, Role::Visible)?;
    for marker in plans.iter().flat_map(|plan| &plan.markers) {
        roles.add(marker.text, marker.role)?;
    }
    let config = Config { holds_markers: !stay, prunes: true, dense_limit: DENSE_LIMIT / plans.len() };
    let mut regions: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for (plan, &live) in plans.iter().zip(&live) {
        let words = plan.words(&hidden, &visible, live);
        let Compiled { plain, automaton, pruned, machines } = compiler.region(words, live, config)?;
        if !protects {
            plan.check_reachable(automaton.words(), &pruned)?;
        }
        let region = regions.iter().position(|name| *name == plan.region).unwrap_or(regions.len());
        if region == regions.len() {
            regions.push(plan.region);
        }
        let leads = plan.markers.iter().map(|marker| marker.lead).collect();
        nodes.push(Node { name: plan.name.into(), region: region as u32, live, plain, automaton, machines, leads });
    }
    let dormant =
        if live.contains(&true) { Words::default() } else { Words::new(&hidden.texts, &visible.texts, [].into_iter()) };
    Ok(Graph {
        nodes: nodes.into(),
        regions: regions.into_iter().map(Box::from).collect(),
        indices: [hidden.indices, visible.indices].concat().into(),
        patterns,
        repeat: recipe.repeat,
        dormant,
        protects: protects && plans.len() > 1,
        stay,
    })
}

/// Returns for each node (a region, or a state of a region) whether stops fire at it. They fire in the regions that
/// `names` lists or, if `names` is `None`, in all regions that are not protected.
fn live(names: Option<&[String]>, plans: &[Plan<'_>], protects: bool) -> Result<Vec<bool>, StopSetError> {
    let Some(names) = names else {
        return Ok((0..plans.len()).map(|node| node == 0 || !protects).collect());
    };
    for name in names {
        if !plans.iter().any(|plan| plan.region == name) {
            let mut regions: Vec<String> = plans.iter().map(|plan| plan.region.to_owned()).collect();
            regions.dedup();
            return Err(ErrorKind::UnknownRegion { name: name.clone(), given_by: "stop_in".into(), regions }.into());
        }
    }
    Ok(plans.iter().map(|plan| names.iter().any(|name| plan.region == name)).collect())
}

/// Refuses a set that is too large, or for which there is not enough memory. Later steps need not check this again.
/// Each node at which stops fire has a copy of all stops, so the stops count once for each of these nodes.
fn check_size(recipe: &Recipe, plans: &[Plan<'_>], live: &[bool]) -> Result<(), StopSetError> {
    let strings = || recipe.stop.iter().chain(&recipe.visible);
    let stops = || strings().chain(&recipe.patterns).chain(&recipe.visible_patterns);
    let markers = || plans.iter().flat_map(|plan| &plan.markers);
    let live = live.iter().filter(|&&live| live).count().max(1);
    let bytes = stops().map(String::len).sum::<usize>().saturating_mul(live);
    let bytes = bytes.saturating_add(markers().map(|marker| marker.text.len()).sum());
    if bytes > MAX_SET_BYTES {
        return Err(ErrorKind::TooLarge { what: "stops and markers", bytes }.into());
    }
    let words = stops().count() * live + markers().count();
    let rows = (bytes << 8).min(DENSE_LIMIT) * size_of::<u32>();
    room::ask(bytes * MEMORY_OF_BYTE + words * MEMORY_OF_WORD + rows)?;
    Ok(())
}

/// The region, or state of a region, to which a marker leads. Any string converts into a target; [`keep`] and [`stay`]
/// make targets whose marker is left in the text.
///
/// ```
/// use stopscan::Target;
///
/// assert_eq!(Target::from("answer"), Target::from("answer".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    name: String,
    marker: MarkerText,
}

/// What happens to the text of a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MarkerText {
    /// The marker is taken out of the text, except in a set that leaves all markers in the text.
    Removed,
    /// The marker stays in the text, and begins the part to which it leads.
    Kept,
    /// The marker stays in the text and does not begin a new part.
    Stays,
}

impl Target {
    /// The name of the region, or of the state of a region.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the marker stays in the text and begins the text of the region to which it leads.
    pub fn is_kept(&self) -> bool {
        self.marker == MarkerText::Kept
    }

    /// Whether the marker stays in the text and does not begin a new part.
    pub fn stays(&self) -> bool {
        self.marker == MarkerText::Stays
    }
}

/// Makes a target whose marker stays in the text. The marker begins the text of the region to which it leads.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter, keep};
///
/// let set = SegmentSet::builder().region("answer", [("<call>", keep("call"))]).region("call", [("</call>", "answer")]);
/// let mut segmenter = Segmenter::new(&set.build()?);
/// let segments: Vec<_> = segmenter.feed("Hm <call>x</call>").into_iter().collect();
/// assert_eq!((segments[1].region, &*segments[1].text), ("call", "<call>x"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub fn keep(name: impl Into<String>) -> Target {
    Target { name: name.into(), marker: MarkerText::Kept }
}

/// Makes a target whose marker stays in the text and does not begin a new part. The target must be a state of the same
/// region. In a [`StopSet`](crate::StopSet) all markers stay in the text, so `stay(name)` means the same as `name`.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter, Target, stay};
///
/// let inside = [("</call>", Target::from("answer")), ("'", stay("call/quoted"))];
/// let set = SegmentSet::builder().region("answer", [("<call>", "call")]).region("call", inside);
/// let mut segmenter = Segmenter::new(&set.region("call/quoted", [("'", stay("call"))]).build()?);
/// let segments: Vec<_> = segmenter.feed("<call>'</call>'</call>Yes").into_iter().collect();
/// assert_eq!((segments[0].region, segments[0].text, segments[1].text), ("call", "'</call>'", "Yes"));
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub fn stay(name: impl Into<String>) -> Target {
    Target { name: name.into(), marker: MarkerText::Stays }
}

impl<T: AsRef<str>> From<T> for Target {
    fn from(name: T) -> Target {
        Target { name: name.as_ref().to_owned(), marker: MarkerText::Removed }
    }
}

/// A node before it is compiled: its name, the name of its region, and its distinct markers.
struct Plan<'a> {
    name: &'a str,
    region: &'a str,
    markers: Vec<Marker<'a>>,
}

struct Marker<'a> {
    text: &'a str,
    role: Role,
    lead: Lead,
}

impl<'a> Plan<'a> {
    fn new(name: &'a str, region: &'a str) -> Plan<'a> {
        Plan { name, region, markers: Vec::new() }
    }

    fn push(&mut self, text: &'a str, role: Role, node: usize, marker: MarkerText) {
        self.markers.push(Marker { text, role, lead: Lead { node: node as u32, marker } });
    }

    fn words(&self, hidden: &Distinct<'a>, visible: &Distinct<'a>, live: bool) -> Words {
        let markers = self.markers.iter().map(|marker| marker.text);
        match live {
            true => Words::new(&hidden.texts, &visible.texts, markers),
            false => Words::new(&[], &[], markers),
        }
    }

    /// Refuses a marker that contains a shorter marker before its end, such as `<a>b`, which contains `<a>`. The
    /// shorter marker always completes first, so the longer one would never lead to its region.
    fn check_reachable(&self, words: &Words, pruned: &[bool]) -> Result<(), StopSetError> {
        let markers = words.stops()..words.len();
        let Some(marker) = markers.clone().find(|&marker| pruned[marker]).map(|marker| words.text(marker)) else {
            return Ok(());
        };
        let ends_inside = |inner: &&str| marker.find(inner).is_some_and(|at| at + inner.len() < marker.len());
        let inner = markers.map(|other| words.text(other)).find(ends_inside).unwrap_or_default();
        let (marker, inner, region) = (marker.into(), inner.into(), self.name.to_owned());
        Err(ErrorKind::Unreachable { marker, inner, region }.into())
    }
}

/// Makes a node for each region, and for each state of a region, that the user gave. `stay` says whether all markers
/// stay in the text.
fn of_regions(regions: &[StateRecipe], stay: bool) -> Result<Vec<Plan<'_>>, StopSetError> {
    let mut numbers = HashMap::new();
    for (number, StateRecipe { name, .. }) in regions.iter().enumerate() {
        if region_of(name).is_empty() {
            return Err(ErrorKind::NamelessRegion { name: name.clone() }.into());
        }
        if numbers.insert(name.as_str(), number).is_some() {
            return Err(ErrorKind::TwoRegions { name: name.clone() }.into());
        }
    }
    regions.iter().map(|state| state.plan(&numbers, stay)).collect()
}

/// Makes the node of ordinary text, and a node for the text between each pair of opening and closing markers.
fn of_pairs(pairs: &[(String, String)]) -> Result<Vec<Plan<'_>>, StopSetError> {
    let mut plans = vec![Plan::new(ANSWER, ANSWER)];
    let mut closings: HashMap<&str, &str> = HashMap::new();
    for (index, (open, close)) in pairs.iter().enumerate() {
        for (marker, role) in [(open, Role::Opening), (close, Role::Closing)] {
            if marker.is_empty() {
                return Err(ErrorKind::Empty { role, index }.into());
            }
        }
        match closings.insert(open, close) {
            None => {}
            Some(other) if other == close => continue,
            Some(_) => return Err(ErrorKind::TwoClosings { open: open.clone() }.into()),
        }
        let node = plans.len();
        plans[0].push(open, Role::Opening, node, MarkerText::Removed);
        plans.push(Plan::new(open, open));
        plans[node].push(close, Role::Closing, 0, MarkerText::Removed);
    }
    Ok(plans)
}

impl StateRecipe {
    fn plan(&self, numbers: &HashMap<&str, usize>, stay: bool) -> Result<Plan<'_>, StopSetError> {
        let mut plan = Plan::new(&self.name, region_of(&self.name));
        let mut leads = HashMap::new();
        for (marker, target) in &self.markers {
            let region = || self.name.clone();
            if marker.is_empty() {
                return Err(ErrorKind::EmptyMarker { region: region() }.into());
            }
            let Some(&node) = numbers.get(target.name.as_str()) else {
                let given_by = format!("marker {marker:?} of region {:?}", self.name);
                let mut regions: Vec<String> = numbers.keys().map(|&name| name.to_owned()).collect();
                regions.sort_unstable();
                return Err(ErrorKind::UnknownRegion { name: target.name.clone(), given_by, regions }.into());
            };
            if target.stays() && !stay && region_of(&target.name) != plan.region {
                let (marker, target) = (marker.clone(), target.name.clone());
                return Err(ErrorKind::StaysElsewhere { marker, region: region(), target }.into());
            }
            let text = if target.stays() && stay { MarkerText::Removed } else { target.marker };
            match leads.insert(marker, target) {
                None => plan.push(marker, Role::Marker, node, text),
                Some(other) if other == target => {}
                Some(_) => return Err(ErrorKind::TwoLeads { marker: marker.clone(), region: region() }.into()),
            }
        }
        Ok(plan)
    }
}

/// Returns the name of the region of a state: the name of the state up to the first slash.
fn region_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(region, _)| region)
}

#[derive(Default)]
struct Roles<'a>(HashMap<&'a str, Role>);

/// Stops or patterns without duplicates, and the index of each in the list that the user gave.
pub(crate) struct Distinct<'a> {
    pub(crate) texts: Vec<&'a str>,
    pub(crate) indices: Vec<u32>,
}

impl<'a> Roles<'a> {
    /// Returns the distinct stops or patterns of the list `stops`. Refuses an empty text. Also refuses a text that was
    /// given before in another role, such as a visible stop that is also a hidden stop.
    fn stops(&mut self, stops: &'a [String], role: Role) -> Result<Distinct<'a>, StopSetError> {
        let mut distinct =
            Distinct { texts: Vec::with_capacity(stops.len()), indices: Vec::with_capacity(stops.len()) };
        for (index, stop) in stops.iter().enumerate() {
            if stop.is_empty() {
                return Err(ErrorKind::Empty { role, index }.into());
            }
            if self.add(stop, role)? {
                distinct.texts.push(stop);
                distinct.indices.push(index as u32);
            }
        }
        Ok(distinct)
    }

    /// Records the role of `text`, such as hidden stop or marker. Returns whether the text is new. Returns an error if
    /// the text already has another role. Only a marker may have two roles: opening and closing.
    fn add(&mut self, text: &'a str, role: Role) -> Result<bool, StopSetError> {
        match self.0.insert(text, role) {
            None => Ok(true),
            Some(other) if other.fits(role) => Ok(false),
            Some(other) => Err(ErrorKind::TwoRoles { text: text.into(), roles: [other, role] }.into()),
        }
    }
}
