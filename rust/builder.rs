use std::collections::HashMap;
use std::error::Error;
use std::fmt;

use crate::set::StopSet;

/// The most text that a set compiles: all its stops and markers together, in bytes of UTF-8.
///
/// Stops come from the users of a server, so this bounds the memory that one request can take.
pub const MAX_SET_BYTES: usize = 8_000_000;

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
pub struct StopSetBuilder<'a> {
    stop: Vec<&'a str>,
    visible: Vec<&'a str>,
    protect: Vec<(&'a str, &'a str)>,
}

impl<'a> StopSetBuilder<'a> {
    /// Adds hidden stops: they are cut from the output.
    pub fn stop(mut self, stop: impl IntoIterator<Item = &'a str>) -> StopSetBuilder<'a> {
        self.stop.extend(stop);
        self
    }

    /// Adds visible stops: they stay in the output.
    pub fn visible(mut self, visible: impl IntoIterator<Item = &'a str>) -> StopSetBuilder<'a> {
        self.visible.extend(visible);
        self
    }

    /// Adds protected regions by their opening and closing markers: no stop fires inside.
    pub fn protect(mut self, protect: impl IntoIterator<Item = (&'a str, &'a str)>) -> StopSetBuilder<'a> {
        self.protect.extend(protect);
        self
    }

    /// Compiles the set. A repeated stop or region counts once.
    ///
    /// # Errors
    /// When a stop or marker is empty; when a string is a hidden and a visible stop, a stop and a marker, or an opening
    /// marker with two closing ones; when all of them together are longer than [`MAX_SET_BYTES`].
    pub fn build(mut self) -> Result<StopSet, StopSetError> {
        self.check_size()?;
        let mut roles = HashMap::new();
        keep_distinct(&mut self.stop, Role::Hidden, &mut roles)?;
        keep_distinct(&mut self.visible, Role::Visible, &mut roles)?;
        self.keep_distinct_regions(&mut roles)?;
        Ok(StopSet::compile(&self.stop, &self.visible, &self.protect))
    }

    fn check_size(&self) -> Result<(), StopSetError> {
        let markers = self.protect.iter().flat_map(|&(open, close)| [open, close]);
        let texts = self.stop.iter().chain(&self.visible).copied().chain(markers);
        let bytes = texts.map(str::len).sum();
        match bytes > MAX_SET_BYTES {
            true => Err(ErrorKind::TooLarge { bytes }.into()),
            false => Ok(()),
        }
    }

    fn keep_distinct_regions(&mut self, roles: &mut HashMap<&'a str, Role>) -> Result<(), StopSetError> {
        let mut closings: HashMap<&str, &str> = HashMap::new();
        let mut distinct = Vec::new();
        for (index, &(open, close)) in self.protect.iter().enumerate() {
            add_role(open, Role::Opening, index, roles)?;
            add_role(close, Role::Closing, index, roles)?;
            match closings.insert(open, close) {
                None => distinct.push((open, close)),
                Some(other) if other == close => {}
                Some(_) => return Err(ErrorKind::TwoClosings { open: open.into() }.into()),
            }
        }
        self.protect = distinct;
        Ok(())
    }
}

fn keep_distinct<'a>(
    stops: &mut Vec<&'a str>,
    role: Role,
    roles: &mut HashMap<&'a str, Role>,
) -> Result<(), StopSetError> {
    let mut distinct = Vec::with_capacity(stops.len());
    for (index, &stop) in stops.iter().enumerate() {
        if add_role(stop, role, index, roles)? {
            distinct.push(stop);
        }
    }
    *stops = distinct;
    Ok(())
}

/// Notes what `text` is; returns whether it is new. A marker may both open and close.
fn add_role<'a>(
    text: &'a str,
    role: Role,
    index: usize,
    roles: &mut HashMap<&'a str, Role>,
) -> Result<bool, StopSetError> {
    if text.is_empty() {
        return Err(ErrorKind::Empty { role, index }.into());
    }
    match roles.insert(text, role) {
        None => Ok(true),
        Some(other) if other == role || (other.is_marker() && role.is_marker()) => Ok(false),
        Some(other) => Err(ErrorKind::TwoRoles { text: text.into(), roles: [other, role] }.into()),
    }
}

/// What a string of the set is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Hidden,
    Visible,
    Opening,
    Closing,
}

impl Role {
    fn is_marker(self) -> bool {
        matches!(self, Role::Opening | Role::Closing)
    }

    fn article(self) -> &'static str {
        if self == Role::Opening { "an" } else { "a" }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Hidden => "stop",
            Role::Visible => "visible stop",
            Role::Opening => "opening marker",
            Role::Closing => "closing marker",
        })
    }
}

/// Why a [`StopSet`] cannot be compiled; its text names the culprit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopSetError(ErrorKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorKind {
    Empty { role: Role, index: usize },
    TwoRoles { text: String, roles: [Role; 2] },
    TwoClosings { open: String },
    TooLarge { bytes: usize },
}

impl From<ErrorKind> for StopSetError {
    fn from(kind: ErrorKind) -> StopSetError {
        StopSetError(kind)
    }
}

impl fmt::Display for StopSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Empty { role, index } => write!(f, "{role} {index} is empty"),
            ErrorKind::TwoRoles { text, roles: [one, other] } => {
                write!(f, "{text:?} is both {} {one} and {} {other}", one.article(), other.article())
            }
            ErrorKind::TwoClosings { open } => write!(f, "opening marker {open:?} has two closing markers"),
            ErrorKind::TooLarge { bytes } => {
                write!(f, "the stops have {bytes} bytes of UTF-8, and the limit is {MAX_SET_BYTES}")
            }
        }
    }
}

impl Error for StopSetError {}
