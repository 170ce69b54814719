use std::collections::TryReserveError;
use std::error::Error;
use std::fmt;

/// The most bytes of UTF-8 that the stops and markers of a set may have together. A stop or marker counts once for each
/// region in which it is live (looked for).
///
/// Stops come from the users of a server, so the limit bounds the memory that one request can take.
pub const MAX_SET_BYTES: usize = 8_000_000;

/// The maximum number of regions of a set. A region that has several states counts once for each state. The text
/// outside of protected regions counts as one region.
pub const MAX_REGIONS: usize = 100;

/// The error if a [`StopSet`](crate::StopSet) or [`SegmentSet`](crate::SegmentSet) cannot be compiled, or if a scanner
/// cannot begin in the region that its options name. The message names the string, pattern, region or option at fault,
/// if there is one.
///
/// ```
/// use stopscan::StopSet;
///
/// assert_eq!(StopSet::new(["END", ""]).unwrap_err().to_string(), "stop 1 is empty");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopSetError(ErrorKind);

/// The kind of a [`StopSetError`]. A caller can handle each kind in a different way.
///
/// ```
/// use stopscan::{StopSet, StopSetErrorKind};
///
/// let error = StopSet::new(["END", ""]).unwrap_err();
/// assert_eq!((error.kind(), error.index()), (StopSetErrorKind::Empty, Some(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopSetErrorKind {
    /// A stop or a marker is empty.
    Empty,
    /// A string or pattern has two roles, a marker leads to two regions, or an opening marker has two closing markers.
    TwoMeanings,
    /// A marker can never complete, because another marker of its region completes inside it.
    Unreachable,
    /// A region is missing, has no name, or is given twice; the set has no regions; or it has both regions and
    /// protected pairs.
    Region,
    /// A pattern is not supported, or the patterns are too large.
    Pattern,
    /// An argument of [`Repeat`](crate::Repeat) is out of range.
    Repeat,
    /// The options cannot be used: both `region` and `start_protected` are set, or `start_protected` is set for a set
    /// without protected regions.
    Start,
    /// The set has too many bytes or regions.
    TooLarge,
    /// There is not enough memory for the set.
    NoMemory,
}

impl StopSetError {
    /// The kind of the error.
    ///
    /// ```
    /// use stopscan::{StopSet, StopSetErrorKind};
    ///
    /// let error = StopSet::builder().stop(["a"]).visible(["a"]).build().unwrap_err();
    /// assert_eq!(error.kind(), StopSetErrorKind::TwoMeanings);
    /// ```
    pub fn kind(&self) -> StopSetErrorKind {
        match &self.0 {
            ErrorKind::Empty { .. } | ErrorKind::EmptyMarker { .. } => StopSetErrorKind::Empty,
            ErrorKind::TwoRoles { .. }
            | ErrorKind::TwoClosings { .. }
            | ErrorKind::TwoLeads { .. }
            | ErrorKind::TwoValues { .. } => StopSetErrorKind::TwoMeanings,
            ErrorKind::Unreachable { .. } => StopSetErrorKind::Unreachable,
            ErrorKind::UnknownRegion { .. }
            | ErrorKind::TwoRegions { .. }
            | ErrorKind::NamelessRegion { .. }
            | ErrorKind::NoRegions
            | ErrorKind::StaysElsewhere { .. }
            | ErrorKind::RegionsAndPairs => StopSetErrorKind::Region,
            ErrorKind::NothingProtected | ErrorKind::TwoStarts => StopSetErrorKind::Start,
            ErrorKind::Pattern { .. } | ErrorKind::PatternsTooLarge { .. } => StopSetErrorKind::Pattern,
            ErrorKind::Repeat { .. } => StopSetErrorKind::Repeat,
            ErrorKind::TooLarge { .. } | ErrorKind::TooManyRegions { .. } => StopSetErrorKind::TooLarge,
            ErrorKind::NoMemory => StopSetErrorKind::NoMemory,
        }
    }

    /// The index of the empty stop, of the pair with an empty marker, or of the refused pattern, in the list that the
    /// user gave. `None` for any other error.
    ///
    /// ```
    /// use stopscan::StopSet;
    ///
    /// assert_eq!(StopSet::builder().patterns(["a", "("]).build().unwrap_err().index(), Some(1));
    /// ```
    pub fn index(&self) -> Option<usize> {
        match &self.0 {
            ErrorKind::Empty { index, .. } | ErrorKind::Pattern { index, .. } => Some(*index),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    Empty { role: Role, index: usize },
    EmptyMarker { region: String },
    TwoRoles { text: String, roles: [Role; 2] },
    TwoClosings { open: String },
    TwoLeads { marker: String, region: String },
    TwoValues { key: String },
    Unreachable { marker: String, inner: String, region: String },
    UnknownRegion { name: String, given_by: String, regions: Vec<String> },
    TwoRegions { name: String },
    NamelessRegion { name: String },
    NoRegions,
    StaysElsewhere { marker: String, region: String, target: String },
    NothingProtected,
    TwoStarts,
    RegionsAndPairs,
    Pattern { role: Role, index: usize, pattern: String, problem: String },
    PatternsTooLarge { patterns: usize },
    Repeat { name: &'static str, value: usize, bound: &'static str, limit: usize },
    TooLarge { what: &'static str, bytes: usize },
    TooManyRegions { regions: usize },
    NoMemory,
}

impl From<ErrorKind> for StopSetError {
    fn from(kind: ErrorKind) -> StopSetError {
        StopSetError(kind)
    }
}

impl From<TryReserveError> for StopSetError {
    fn from(_: TryReserveError) -> StopSetError {
        ErrorKind::NoMemory.into()
    }
}

impl fmt::Display for StopSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ErrorKind::Empty { role, index } => write!(f, "{} {index} is empty", role.name()),
            ErrorKind::EmptyMarker { region } => write!(f, "a marker of region {region:?} is empty"),
            ErrorKind::TwoRoles { text, roles: [one, other] } => {
                write!(f, "{text:?} is both {} and {}", one.with_article(), other.with_article())
            }
            ErrorKind::TwoClosings { open } => write!(f, "opening marker {open:?} has two closing markers"),
            ErrorKind::TwoLeads { marker, region } => {
                write!(f, "marker {marker:?} of region {region:?} leads to two regions")
            }
            ErrorKind::TwoValues { key } => write!(f, "key {key:?} has two replacements"),
            ErrorKind::Unreachable { marker, inner, region } => {
                write!(f, "marker {marker:?} of region {region:?} is never found: marker {inner:?} completes inside it")
            }
            ErrorKind::UnknownRegion { name, given_by, regions } => {
                write!(f, "{given_by}: there is no region {name:?}; there are {}", regions.join(", "))
            }
            ErrorKind::NamelessRegion { name } => write!(f, "region {name:?} has an empty name before its first slash"),
            ErrorKind::TwoRegions { name } => write!(f, "there are two regions {name:?}"),
            ErrorKind::StaysElsewhere { marker, region, target } => {
                write!(f, "marker {marker:?} of region {region:?} stays in its part, so it cannot lead to {target:?}")
            }
            ErrorKind::NoRegions => write!(f, "the set needs at least one region"),
            ErrorKind::Pattern { role, index, pattern, problem } => {
                write!(f, "{} {index}, {pattern:?}: {problem}", role.name())
            }
            ErrorKind::PatternsTooLarge { patterns } => {
                write!(f, "the {patterns} patterns together are too large; about 200 short ones fit. ")?;
                write!(f, "A pattern without special characters is a stop, and does not count")
            }
            ErrorKind::Repeat { name, value, bound, limit } => {
                write!(f, "repeat: {name} must be {bound} {limit}, not {value}")
            }
            ErrorKind::NothingProtected => write!(f, "start_protected: the set has no protected region"),
            ErrorKind::TwoStarts => write!(f, "give region or start_protected, not both"),
            ErrorKind::RegionsAndPairs => write!(f, "give regions or protect, not both"),
            ErrorKind::TooLarge { what, bytes } => {
                write!(f, "the {what} have {bytes} bytes of UTF-8, and the limit is {MAX_SET_BYTES}")
            }
            ErrorKind::TooManyRegions { regions } => {
                write!(f, "there are {regions} regions, and the limit is {MAX_REGIONS}")
            }
            ErrorKind::NoMemory => write!(f, "not enough memory for the set"),
        }
    }
}

impl Error for StopSetError {}

/// The role of a string in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Hidden,
    Visible,
    Pattern,
    VisiblePattern,
    Opening,
    Closing,
    Marker,
    Key,
}

impl Role {
    /// Whether a string may have both roles.
    pub(crate) fn fits(self, other: Role) -> bool {
        let is_edge = |role| matches!(role, Role::Opening | Role::Closing);
        self == other || (is_edge(self) && is_edge(other))
    }

    /// The name of the role with its article, such as `a visible stop`.
    fn with_article(self) -> &'static str {
        match self {
            Role::Hidden => "a stop",
            Role::Visible => "a visible stop",
            Role::Pattern => "a pattern",
            Role::VisiblePattern => "a visible pattern",
            Role::Opening => "an opening marker",
            Role::Closing => "a closing marker",
            Role::Marker => "a marker",
            Role::Key => "a key",
        }
    }

    fn name(self) -> &'static str {
        self.with_article().split_once(' ').map_or("", |(_, name)| name)
    }
}
