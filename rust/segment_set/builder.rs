use std::collections::HashMap;
use std::sync::Arc;

use super::{Named, SegmentSet};
use crate::error::{ErrorKind, MAX_REGIONS, MAX_SET_BYTES, Role, StopSetError};
use crate::regions::{Draft, PatternList, Regions};
use crate::roles::Roles;
use crate::words::Words;

/// Collects regions and stops for a [`SegmentSet`].
///
/// ```
/// use stopscan::SegmentSet;
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// assert_eq!(set.region_after(""), "answer");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SegmentSetBuilder {
    regions: Vec<RegionDraft>,
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: PatternList,
    stop_in: Option<Vec<String>>,
}

/// A region as it was given: its markers, and the names of the regions that they lead to.
#[derive(Clone, Debug)]
struct RegionDraft {
    name: String,
    markers: Vec<(String, String)>,
}

impl SegmentSetBuilder {
    /// Adds a region with its markers, each with the name of the region that it leads to. A stream begins in the first
    /// region.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("head", [("\n\n", "body")]).region::<[(&str, &str); 0], _, _>("body", []);
    /// assert_eq!(set.build()?.region_after("Subject: x\n\n"), "body");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn region<I, M, R>(mut self, name: impl Into<String>, markers: I) -> SegmentSetBuilder
    where
        I: IntoIterator<Item = (M, R)>,
        M: AsRef<str>,
        R: AsRef<str>,
    {
        let owned = |(marker, region): (M, R)| (marker.as_ref().to_owned(), region.as_ref().to_owned());
        self.regions.push(RegionDraft { name: name.into(), markers: markers.into_iter().map(owned).collect() });
        self
    }

    /// Adds hidden stops: they are cut from the output.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).stop(["END"]).build()?;
    /// assert!(Segmenter::new(&set).feed("a|END").stop_match().is_some());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop<I>(mut self, stop: I) -> SegmentSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.stop.extend(stop.into_iter().map(|stop| stop.as_ref().to_owned()));
        self
    }

    /// Adds visible stops: they stay in the output.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).visible(["."]).build()?;
    /// assert_eq!(Segmenter::new(&set).feed("a.b").into_iter().next().unwrap().text, "a.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn visible<I>(mut self, visible: I) -> SegmentSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.visible.extend(visible.into_iter().map(|stop| stop.as_ref().to_owned()));
        self
    }

    /// Adds patterns: regular expressions as stops, as in [`StopSetBuilder::patterns`](crate::StopSetBuilder::patterns).
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).patterns([r"\n\d+\."]).build()?;
    /// assert_eq!(Segmenter::new(&set).feed("a|b\n12. c").stop_match().unwrap().sequence(), "\n12.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn patterns<I>(mut self, patterns: I) -> SegmentSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.patterns.extend(patterns);
        self
    }

    /// Gives a match up when it has so many code points and is not complete, as
    /// [`StopSetBuilder::max_held`](crate::StopSetBuilder::max_held) does.
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "a")]).patterns(["<.*>"]).max_held(20);
    /// assert!(set.build().is_ok());
    /// ```
    pub fn max_held(mut self, code_points: usize) -> SegmentSetBuilder {
        self.patterns.max_held = Some(code_points);
        self
    }

    /// Names the regions in which the stops are live; without it, they are in all.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter};
    ///
    /// let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]);
    /// let set = set.stop(["END"]).stop_in(["b"]).build()?;
    /// assert!(Segmenter::new(&set).feed("END").stop_match().is_none());
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop_in<I>(mut self, regions: I) -> SegmentSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let names = regions.into_iter().map(|region| region.as_ref().to_owned());
        self.stop_in.get_or_insert_default().extend(names);
        self
    }

    /// Compiles the set. What is given twice counts once.
    ///
    /// # Errors
    /// When there is no region, or two of one name; when a stop or marker is empty, or a string is both; when a marker
    /// leads to no region or to two; when a marker can never be reached, because another one of its region ends inside
    /// it; when the regions are more than [`MAX_REGIONS`], or all that is live in each of them together is longer than
    /// [`MAX_SET_BYTES`].
    ///
    /// ```
    /// use stopscan::SegmentSet;
    ///
    /// let set = SegmentSet::builder().region("a", [("<think>", "a"), ("<", "a")]);
    /// let error = set.build().unwrap_err().to_string();
    /// assert_eq!(error, r#"marker "<think>" of region "a" can never be reached: "<" ends inside it"#);
    /// ```
    pub fn build(self) -> Result<SegmentSet, StopSetError> {
        let numbers = self.numbers()?;
        let with_stops = self.with_stops(&numbers)?;
        self.check_size(&with_stops)?;
        let mut roles = Roles::default();
        let hidden = roles.stops(&self.stop, Role::Hidden)?;
        let visible = roles.stops(&self.visible, Role::Visible)?;
        let mut regions = Vec::new();
        for (draft, with_stops) in self.regions.iter().zip(with_stops) {
            let (markers, leads) = draft.markers(&numbers, &mut roles)?;
            let words = match with_stops {
                true => Words::new(&hidden.texts, &visible.texts, markers),
                false => Words::new(&[], &[], markers),
            };
            regions.push(Draft { words, leads, with_patterns: with_stops });
        }
        let indices = [hidden.indices, visible.indices].concat();
        let (regions, pruned) = Regions::new(regions, indices, self.patterns.distinct(), true)?;
        for (region, pruned) in pruned.into_iter().enumerate() {
            self.regions[region].check_reachable(regions.words(region as u32), &pruned)?;
        }
        let names = self.regions.into_iter().map(|draft| draft.name).collect();
        Ok(SegmentSet(Arc::new(Named { regions, names })))
    }

    /// The number of each region by its name.
    fn numbers(&self) -> Result<HashMap<&str, u32>, StopSetError> {
        let mut numbers = HashMap::new();
        for (number, draft) in self.regions.iter().enumerate() {
            if numbers.insert(draft.name.as_str(), number as u32).is_some() {
                return Err(ErrorKind::TwoRegions { name: draft.name.clone() }.into());
            }
        }
        match numbers.len() {
            0 => Err(ErrorKind::NoRegions.into()),
            regions if regions > MAX_REGIONS => Err(ErrorKind::TooManyRegions { regions }.into()),
            _ => Ok(numbers),
        }
    }

    /// For each region, whether the stops are live in it.
    fn with_stops(&self, numbers: &HashMap<&str, u32>) -> Result<Vec<bool>, StopSetError> {
        let Some(names) = &self.stop_in else {
            return Ok(vec![true; self.regions.len()]);
        };
        let mut with_stops = vec![false; self.regions.len()];
        for name in names {
            let Some(&number) = numbers.get(name.as_str()) else {
                return Err(ErrorKind::UnknownRegion { name: name.clone(), given_by: "stop_in".into() }.into());
            };
            with_stops[number as usize] = true;
        }
        Ok(with_stops)
    }

    fn check_size(&self, with_stops: &[bool]) -> Result<(), StopSetError> {
        let stops = self.stop.iter().chain(&self.visible).chain(&self.patterns.patterns);
        let stops: usize = stops.map(String::len).sum();
        let markers = self.regions.iter().flat_map(|draft| &draft.markers).map(|(marker, _)| marker.len());
        let live = with_stops.iter().filter(|&&live| live).count();
        let bytes = stops * live.max(1) + markers.sum::<usize>();
        match bytes > MAX_SET_BYTES {
            true => Err(ErrorKind::TooLarge { bytes }.into()),
            false => Ok(()),
        }
    }
}

impl RegionDraft {
    /// The markers, each once, and the number of the region that each leads to.
    fn markers<'a>(
        &'a self,
        numbers: &HashMap<&str, u32>,
        roles: &mut Roles<'a>,
    ) -> Result<(Vec<&'a str>, Vec<u32>), StopSetError> {
        let mut leads = HashMap::new();
        let mut distinct = (Vec::new(), Vec::new());
        for (marker, name) in &self.markers {
            let region = || self.name.clone();
            if marker.is_empty() {
                return Err(ErrorKind::EmptyMarker { region: region() }.into());
            }
            roles.add(marker, Role::Marker)?;
            let Some(&lead) = numbers.get(name.as_str()) else {
                let given_by = format!("marker {marker:?} of region {:?}", self.name);
                return Err(ErrorKind::UnknownRegion { name: name.clone(), given_by }.into());
            };
            match leads.insert(marker, lead) {
                None => {
                    distinct.0.push(marker.as_str());
                    distinct.1.push(lead);
                }
                Some(other) if other == lead => {}
                Some(_) => return Err(ErrorKind::TwoLeads { marker: marker.clone(), region: region() }.into()),
            }
        }
        Ok(distinct)
    }

    fn check_reachable(&self, words: &Words, pruned: &[bool]) -> Result<(), StopSetError> {
        let markers = words.stops()..words.len();
        let Some(marker) = markers.clone().find(|&marker| pruned[marker]).map(|marker| words.text(marker)) else {
            return Ok(());
        };
        let ends_inside = |inner: &&str| marker.find(inner).is_some_and(|at| at + inner.len() < marker.len());
        let inner = markers.map(|other| words.text(other)).find(ends_inside).unwrap_or_default();
        let (marker, inner, region) = (marker.into(), inner.into(), self.name.clone());
        Err(ErrorKind::Unreachable { marker, inner, region }.into())
    }
}
