//! The state of a stream as bytes, to go on with elsewhere.
//!
//! A version, eight bytes that tell the set and the options, the state, and four bytes that tell damage.

use std::error::Error;
use std::fmt;

mod bytes;

pub(crate) use bytes::Fingerprint;
pub use bytes::{Reader, Writer};

/// The version of what is written. Until the first release it may change freely.
const VERSION: u8 = 2;

const HEAD: usize = 9;
const CHECK: usize = 4;

/// The state of a stream, to go on with elsewhere: in another process, on another machine, in another language. It has
/// neither the set nor the vocabulary.
///
/// ```
/// use stopscan::{Snapshot, StopScanner, StopSet};
///
/// let set = StopSet::new(["END"])?;
/// let mut scanner = StopScanner::new(&set);
/// scanner.feed("The EN");
/// let bytes = scanner.snapshot().as_bytes().to_owned();
///
/// let snapshot = Snapshot::from_bytes(&bytes)?;
/// let mut elsewhere = StopScanner::new(&StopSet::new(["END"])?);
/// elsewhere.restore(&snapshot)?;
/// assert_eq!(elsewhere.feed("D").stop_match.unwrap().offset(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Snapshot(Vec<u8>);

/// Why a snapshot is refused.
///
/// ```
/// use stopscan::{Snapshot, SnapshotError};
///
/// assert_eq!(Snapshot::from_bytes(b"no snapshot"), Err(SnapshotError::UnknownVersion(b'n')));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It is of a version that this one does not know.
    UnknownVersion(u8),
    /// It is not what was written.
    Damaged,
    /// It is of another set, or of other options.
    OtherSet,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::UnknownVersion(version) => {
                write!(f, "the snapshot is of version {version}, which is unknown")
            }
            SnapshotError::Damaged => write!(f, "the snapshot is damaged"),
            SnapshotError::OtherSet => write!(f, "the snapshot is of another set or of other options"),
        }
    }
}

impl Error for SnapshotError {}

impl Snapshot {
    /// Its bytes.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert!(scanner.snapshot().as_bytes().len() < 32);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The snapshot that has these bytes.
    ///
    /// # Errors
    /// When they are of an unknown version, or damaged.
    ///
    /// ```
    /// use stopscan::{Snapshot, SnapshotError, StopScanner, StopSet};
    ///
    /// let mut bytes = StopScanner::new(&StopSet::new(["END"])?).snapshot().as_bytes().to_owned();
    /// bytes.pop();
    /// assert_eq!(Snapshot::from_bytes(&bytes), Err(SnapshotError::Damaged));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
        let snapshot = Snapshot(bytes.to_owned());
        snapshot.parts()?;
        Ok(snapshot)
    }

    /// What `write` writes, as the state of a stream whose set and options have this fingerprint.
    pub(crate) fn new(fingerprint: Fingerprint, write: impl FnOnce(&mut Writer)) -> Snapshot {
        let mut writer = Writer(vec![VERSION]);
        writer.0.extend_from_slice(&fingerprint.to_bytes());
        write(&mut writer);
        let check = Fingerprint::of(&writer.0).to_bytes();
        writer.0.extend_from_slice(&check[..CHECK]);
        Snapshot(writer.0)
    }

    /// The fingerprint, and the state.
    fn parts(&self) -> Result<(&[u8], Reader<'_>), SnapshotError> {
        match self.0.first() {
            Some(&VERSION) => {}
            Some(&version) => return Err(SnapshotError::UnknownVersion(version)),
            None => return Err(SnapshotError::Damaged),
        }
        let end = self.0.len().checked_sub(CHECK).filter(|&end| end >= HEAD).ok_or(SnapshotError::Damaged)?;
        let (state, check) = self.0.split_at(end);
        match Fingerprint::of(state).to_bytes().starts_with(check) {
            true => Ok((&state[1..HEAD], Reader(&state[HEAD..]))),
            false => Err(SnapshotError::Damaged),
        }
    }

    /// What `read` makes of the state; all of it is read. `read` also says of what set and options it is.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> Option<(T, Fingerprint)>,
    ) -> Result<T, SnapshotError> {
        let (fingerprint, mut reader) = self.parts()?;
        match read(&mut reader) {
            // Bytes of another set say nothing in the terms of this one.
            None => Err(SnapshotError::OtherSet),
            Some((_, other)) if other.to_bytes() != fingerprint => Err(SnapshotError::OtherSet),
            Some((state, _)) if reader.0.is_empty() => Ok(state),
            Some(_) => Err(SnapshotError::Damaged),
        }
    }
}
