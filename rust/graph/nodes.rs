//! What the nodes of a set are, from the regions or the protected pairs that it was given.

use std::collections::HashMap;

use super::{ANSWER, Draft, Lead};
use crate::automaton::Words;
use crate::error::{ErrorKind, MAX_REGIONS, Role, StopSetError};

/// Where a marker leads: the name of a region or of a state of one. Strings are targets; [`keep`] makes one whose marker
/// is kept.
///
/// ```
/// use stopscan::Target;
///
/// assert_eq!(Target::from("answer"), Target::from("answer".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    name: String,
    kept: bool,
}

/// A target whose marker is kept: the marker is the beginning of the text of the region that it leads to.
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
    Target { name: name.into(), kept: true }
}

impl<T: AsRef<str>> From<T> for Target {
    fn from(name: T) -> Target {
        Target { name: name.as_ref().to_owned(), kept: false }
    }
}

/// A node before it is compiled: its name and that of its region, and its markers, each once.
pub(super) struct Plan<'a> {
    pub(super) name: &'a str,
    pub(super) region: &'a str,
    pub(super) markers: Vec<Marker<'a>>,
}

pub(super) struct Marker<'a> {
    pub(super) text: &'a str,
    pub(super) role: Role,
    pub(super) lead: Lead,
}

impl<'a> Plan<'a> {
    fn new(name: &'a str, region: &'a str) -> Plan<'a> {
        Plan { name, region, markers: Vec::new() }
    }

    fn push(&mut self, text: &'a str, role: Role, node: usize, kept: bool) {
        self.markers.push(Marker { text, role, lead: Lead { node: node as u32, kept } });
    }
}

/// The nodes of regions that were given.
pub(super) fn of_regions(regions: &[Draft]) -> Result<Vec<Plan<'_>>, StopSetError> {
    let mut numbers = HashMap::new();
    for (number, Draft { name, .. }) in regions.iter().enumerate() {
        if numbers.insert(name.as_str(), number).is_some() {
            return Err(ErrorKind::TwoRegions { name: name.clone() }.into());
        }
    }
    check_count(regions.len())?;
    regions.iter().map(|draft| draft.plan(&numbers)).collect()
}

/// The nodes of ordinary text and of protected pairs.
pub(super) fn of_pairs(pairs: &[(String, String)]) -> Result<Vec<Plan<'_>>, StopSetError> {
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
        plans[0].push(open, Role::Opening, node, false);
        plans.push(Plan::new(open, open));
        plans[node].push(close, Role::Closing, 0, false);
    }
    check_count(plans.len())?;
    Ok(plans)
}

fn check_count(regions: usize) -> Result<(), StopSetError> {
    match regions {
        0 => Err(ErrorKind::NoRegions.into()),
        regions if regions > MAX_REGIONS => Err(ErrorKind::TooManyRegions { regions }.into()),
        _ => Ok(()),
    }
}

impl Draft {
    fn plan(&self, numbers: &HashMap<&str, usize>) -> Result<Plan<'_>, StopSetError> {
        let mut plan = Plan::new(&self.name, region_of(&self.name));
        let mut leads = HashMap::new();
        for (marker, target) in &self.markers {
            let region = || self.name.clone();
            if marker.is_empty() {
                return Err(ErrorKind::EmptyMarker { region: region() }.into());
            }
            let Some(&node) = numbers.get(target.name.as_str()) else {
                let given_by = format!("marker {marker:?} of region {:?}", self.name);
                return Err(ErrorKind::UnknownRegion { name: target.name.clone(), given_by }.into());
            };
            match leads.insert(marker, target) {
                None => plan.push(marker, Role::Marker, node, target.kept),
                Some(other) if other == target => {}
                Some(_) => return Err(ErrorKind::TwoLeads { marker: marker.clone(), region: region() }.into()),
            }
        }
        Ok(plan)
    }
}

/// The region of a state: what stands before the first slash.
fn region_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(region, _)| region)
}

impl Plan<'_> {
    /// Finds a marker that never completes: those who gave it named the region that it leads to.
    pub(super) fn check_reachable(&self, words: &Words, pruned: &[bool]) -> Result<(), StopSetError> {
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
