//! Compiles a set: all errors of what it was given come from here.

use super::nodes::{Plan, of_pairs, of_regions};
use super::roles::{Distinct, Roles};
use super::{Graph, Node, Recipe};
use crate::automaton::{Config, DENSE_LIMIT, Words};
use crate::error::{ErrorKind, MAX_SET_BYTES, Role, StopSetError};
use crate::patterns::{Compiled, Compiler};
use crate::room::{self, NoRoom};

/// How many bytes a marker takes beside its text while it is read.
const MARKER: usize = 256;

/// Compiles a graph whose markers `stay` in the text, or not.
pub(crate) fn compile(given: &Recipe, stay: bool) -> Result<Graph, StopSetError> {
    let protects = given.regions.is_empty() && stay;
    if !protects && !given.protect.is_empty() {
        return Err(ErrorKind::RegionsAndPairs.into());
    }
    room::ask(given.regions.iter().map(|region| region.markers.len() * MARKER).sum())?;
    let plans = if protects { of_pairs(&given.protect)? } else { of_regions(&given.regions)? };
    let live = live(given.stop_in.as_deref(), &plans, protects)?;
    check_size(given, &plans, &live)?;
    // Before the strings: they may be long, and patterns that are refused are to be refused at once.
    let patterns = given.patterns.distinct()?;
    let strings = given.stop.iter().chain(&given.visible).map(String::len).sum();
    let mut compiler = Compiler::new(&patterns, if live.contains(&true) { strings } else { 0 })?;
    let mut roles = Roles::default();
    let hidden = roles.stops(&given.stop, Role::Hidden)?;
    let visible = roles.stops(&given.visible, Role::Visible)?;
    for marker in plans.iter().flat_map(|plan| &plan.markers) {
        roles.add(marker.text, marker.role)?;
    }
    let config = Config { holds_markers: !stay, dense_limit: DENSE_LIMIT / plans.len() };
    let mut regions: Vec<&str> = Vec::new();
    let mut nodes = Vec::new();
    for (plan, &live) in plans.iter().zip(&live) {
        let words = plan.words(&hidden, &visible, live)?;
        let Compiled { plain, automaton, pruned, machine } = compiler.region(words, live, config)?;
        if !protects {
            plan.check_reachable(automaton.words(), &pruned)?;
        }
        let region = regions.iter().position(|name| *name == plan.region).unwrap_or(regions.len());
        if region == regions.len() {
            regions.push(plan.region);
        }
        let name = room::text(plan.name)?.into();
        let leads = plan.markers.iter().map(|marker| marker.lead).collect();
        nodes.push(Node { name, region: region as u32, live, plain, automaton, machine, leads });
    }
    let idle = if live.contains(&true) {
        Words::default()
    } else {
        Words::new(&hidden.texts, &visible.texts, [].into_iter())?
    };
    let mut names = Vec::new();
    for region in regions {
        names.push(room::text(region)?.into());
    }
    Ok(Graph {
        nodes: nodes.into(),
        regions: names.into(),
        indices: hidden.indices_before(visible)?,
        patterns,
        repeat: given.repeat,
        idle,
        protects: protects && plans.len() > 1,
        stay,
    })
}

/// For each node, whether stops are live in its region.
fn live(names: Option<&[String]>, plans: &[Plan<'_>], protects: bool) -> Result<Vec<bool>, StopSetError> {
    let Some(names) = names else {
        return Ok((0..plans.len()).map(|node| node == 0 || !protects).collect());
    };
    for name in names {
        if !plans.iter().any(|plan| plan.region == name) {
            return Err(ErrorKind::UnknownRegion { name: name.clone(), given_by: "stop_in".into() }.into());
        }
    }
    Ok(plans.iter().map(|plan| names.iter().any(|name| plan.region == name)).collect())
}

/// Stops cost memory at each node where they are live.
fn check_size(given: &Recipe, plans: &[Plan<'_>], live: &[bool]) -> Result<(), StopSetError> {
    let stops = given.stop.iter().chain(&given.visible).chain(&given.patterns.patterns);
    let stops: usize = stops.map(String::len).sum();
    let markers = plans.iter().flat_map(|plan| &plan.markers).map(|marker| marker.text.len());
    let live = live.iter().filter(|&&live| live).count();
    let bytes = stops.saturating_mul(live.max(1)).saturating_add(markers.sum::<usize>());
    match bytes > MAX_SET_BYTES {
        true => Err(ErrorKind::TooLarge { bytes }.into()),
        false => Ok(()),
    }
}

impl<'a> Plan<'a> {
    fn words(&self, hidden: &Distinct<'a>, visible: &Distinct<'a>, live: bool) -> Result<Words, NoRoom> {
        let markers = self.markers.iter().map(|marker| marker.text);
        match live {
            true => Words::new(&hidden.texts, &visible.texts, markers),
            false => Words::new(&[], &[], markers),
        }
    }
}
