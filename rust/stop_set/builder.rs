use std::collections::HashMap;
use std::sync::Arc;

use super::{ORDINARY, StopSet};
use crate::error::{ErrorKind, MAX_REGIONS, MAX_SET_BYTES, Role, StopSetError};
use crate::regions::{Draft, PatternList, Regions};
use crate::roles::Roles;
use crate::words::Words;

/// Collects stops and protected regions for a [`StopSet`].
///
/// ```
/// use stopscan::StopSet;
///
/// let set = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build()?;
/// assert_eq!(set.truncate("<think>END</think>1END2").0, "<think>END</think>1");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopSetBuilder {
    stop: Vec<String>,
    visible: Vec<String>,
    patterns: PatternList,
    protect: Vec<(String, String)>,
}

impl StopSetBuilder {
    /// Adds hidden stops: they are cut from the output.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let of_a_request: Vec<String> = vec!["END".into()];
    /// let set = StopSet::builder().stop(&of_a_request).stop(["\n\n"]).build()?;
    /// assert_eq!(set.len(), 2);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stop<I>(mut self, stop: I) -> StopSetBuilder
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
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().visible(["."]).build()?;
    /// assert_eq!(set.truncate("One. Two.").0, "One.");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn visible<I>(mut self, visible: I) -> StopSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.visible.extend(visible.into_iter().map(|stop| stop.as_ref().to_owned()));
        self
    }

    /// Adds patterns: regular expressions as stops, in the syntax of the regex crate with ASCII `\d`, `\s`, `\w` and
    /// `\b`. The match that completes first wins, and is cut from the output.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().patterns([r"\n(User|Human) ?\d*:"]).build()?;
    /// let (kept, found) = set.truncate("Hi!\nUser 2: hello");
    /// assert_eq!((kept, found.unwrap().sequence()), ("Hi!", "\nUser 2:"));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn patterns<I>(mut self, patterns: I) -> StopSetBuilder
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.patterns.extend(patterns);
        self
    }

    /// Gives a match up when it has so many code points and is not complete: the text that was held for it is released.
    /// A pattern that could hold ordinary text for ever needs this; without it, the limit is 65,536.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert!(StopSet::builder().patterns(["<.*>"]).build().is_err());
    /// assert!(StopSet::builder().patterns(["<.*>"]).max_held(20).build().is_ok());
    /// ```
    pub fn max_held(mut self, code_points: usize) -> StopSetBuilder {
        self.patterns.max_held = Some(code_points);
        self
    }

    /// Adds protected regions by their opening and closing markers: no stop fires inside.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let set = StopSet::builder().stop(["b"]).protect([("(", ")")]).build()?;
    /// assert_eq!(set.truncate("a(b)b").0, "a(b)");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn protect<I, O, C>(mut self, protect: I) -> StopSetBuilder
    where
        I: IntoIterator<Item = (O, C)>,
        O: AsRef<str>,
        C: AsRef<str>,
    {
        let owned = |(open, close): (O, C)| (open.as_ref().to_owned(), close.as_ref().to_owned());
        self.protect.extend(protect.into_iter().map(owned));
        self
    }

    /// Compiles the set. A repeated stop or region counts once.
    ///
    /// # Errors
    /// When a stop or marker is empty; when a string is a hidden and a visible stop, a stop and a marker, or an opening
    /// marker with two closing ones; when a pattern cannot be scanned for (it can match the empty string, looks further
    /// around than `\b` at either end and `(?m)^` at the beginning, needs too large an automaton, or can hold ordinary
    /// text for ever); when all of them together are longer than [`MAX_SET_BYTES`], or the regions more than
    /// [`MAX_REGIONS`].
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// let error = StopSet::builder().stop(["a"]).visible(["a"]).build().unwrap_err();
    /// assert_eq!(error.to_string(), r#""a" is both a stop and a visible stop"#);
    /// ```
    pub fn build(self) -> Result<StopSet, StopSetError> {
        self.check_size()?;
        let mut roles = Roles::default();
        let hidden = roles.stops(&self.stop, Role::Hidden)?;
        let visible = roles.stops(&self.visible, Role::Visible)?;
        let protect = self.distinct_regions(&mut roles)?;
        if protect.len() >= MAX_REGIONS {
            return Err(ErrorKind::TooManyRegions { regions: protect.len() + 1 }.into());
        }
        let words = Words::new(&hidden.texts, &visible.texts, protect.iter().map(|pair| pair.0));
        let mut drafts = vec![Draft { words, leads: (1..=protect.len() as u32).collect(), with_patterns: true }];
        drafts.extend(protect.into_iter().map(|(_, close)| {
            let words = Words::new(&[], &[], [close]);
            Draft { words, leads: vec![ORDINARY], with_patterns: false }
        }));
        let indices = [hidden.indices, visible.indices].concat();
        let (regions, _) = Regions::new(drafts, indices, self.patterns.distinct(), false)?;
        Ok(StopSet(Arc::new(regions)))
    }

    fn check_size(&self) -> Result<(), StopSetError> {
        let markers = self.protect.iter().flat_map(|(open, close)| [open, close]);
        let stops = self.stop.iter().chain(&self.visible).chain(&self.patterns.patterns);
        let bytes = stops.chain(markers).map(String::len).sum();
        match bytes > MAX_SET_BYTES {
            true => Err(ErrorKind::TooLarge { bytes }.into()),
            false => Ok(()),
        }
    }

    fn distinct_regions<'a>(&'a self, roles: &mut Roles<'a>) -> Result<Vec<(&'a str, &'a str)>, StopSetError> {
        let mut closings: HashMap<&str, &str> = HashMap::new();
        let mut distinct = Vec::new();
        for (index, (open, close)) in self.protect.iter().enumerate() {
            for (marker, role) in [(open, Role::Opening), (close, Role::Closing)] {
                if marker.is_empty() {
                    return Err(ErrorKind::Empty { role, index }.into());
                }
                roles.add(marker, role)?;
            }
            match closings.insert(open, close) {
                None => distinct.push((open.as_str(), close.as_str())),
                Some(other) if other == close => {}
                Some(_) => return Err(ErrorKind::TwoClosings { open: open.clone() }.into()),
            }
        }
        Ok(distinct)
    }
}
