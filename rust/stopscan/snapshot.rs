//! The state of a stream as bytes. Another stream, for example in another process, can continue from these bytes.
//!
//! The bytes are: a version, an eight-byte fingerprint of the set and the options, the state, and a four-byte checksum.

use std::error::Error;
use std::fmt;

/// The version of the format. The format may change freely until the first release.
const VERSION: u8 = 4;

const HEAD: usize = 9;
const CHECK: usize = 4;

/// The state of a stream. A stream in another process, on another machine or in another language can continue from it.
/// A snapshot contains neither the set nor the vocabulary.
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
    /// The snapshot has a version that this library cannot read.
    UnknownVersion(u8),
    /// The bytes are not those of a snapshot, because some of them were cut or changed.
    Damaged,
    /// The snapshot was made with another set or other options.
    OtherSet,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::UnknownVersion(version) => {
                write!(f, "the snapshot has version {version}, which this version of stopscan cannot read")
            }
            SnapshotError::Damaged => write!(f, "the snapshot is damaged"),
            SnapshotError::OtherSet => write!(f, "the snapshot was made with another set or other options"),
        }
    }
}

impl Error for SnapshotError {}

impl Snapshot {
    /// Returns the bytes of the snapshot.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the snapshot that has these bytes.
    ///
    /// # Errors
    /// If the bytes have an unknown version, or are damaged.
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

    /// Makes a snapshot of the state that `write` writes. `fingerprint` identifies the set and the options of the
    /// stream.
    pub(crate) fn new(fingerprint: Fingerprint, write: impl FnOnce(&mut Writer)) -> Snapshot {
        let mut writer = Writer(vec![VERSION]);
        writer.0.extend_from_slice(&fingerprint.to_bytes());
        write(&mut writer);
        let check = Fingerprint::of(&writer.0).to_bytes();
        writer.0.extend_from_slice(&check[..CHECK]);
        Snapshot(writer.0)
    }

    /// Checks the version and the checksum. Returns the fingerprint, and a reader of the state.
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

    /// Returns the value that `decode` reads from the bytes of the state. `decode` also returns a fingerprint: that of
    /// the set and the options of the stream that reads. Returns an error if `decode` returns `None` or does not read
    /// all bytes, or if the snapshot has another fingerprint.
    pub(crate) fn decode<T>(
        &self,
        decode: impl FnOnce(&mut Reader<'_>) -> Option<(T, Fingerprint)>,
    ) -> Result<T, SnapshotError> {
        let (fingerprint, mut reader) = self.parts()?;
        match decode(&mut reader) {
            // The checksum is correct, so the bytes are as they were written. If they still cannot be read, the stream
            // that wrote them had another set.
            None => Err(SnapshotError::OtherSet),
            Some((_, other)) if other.to_bytes() != fingerprint => Err(SnapshotError::OtherSet),
            Some((state, _)) if reader.0.is_empty() => Ok(state),
            Some(_) => Err(SnapshotError::Damaged),
        }
    }
}

/// Writes the numbers, flags and bytes of a snapshot.
#[derive(Default)]
pub struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    pub(crate) fn number(&mut self, number: usize) {
        let mut rest = number as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    #[doc(hidden)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what a `Writer` wrote. The methods of a `Reader` return `None` for bytes that no `Writer` writes.
pub struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn flag(&mut self) -> Option<bool> {
        let (&flag, rest) = self.0.split_first()?;
        self.0 = rest;
        (flag < 2).then_some(flag == 1)
    }

    pub(crate) fn number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return usize::try_from(number).ok();
            }
        }
        None
    }

    /// Reads how many items follow. Each item has at least one byte. If the count is greater than the number of bytes
    /// left, returns `None`, so that no caller allocates memory for items that do not exist.
    pub(crate) fn count(&mut self) -> Option<usize> {
        self.number().filter(|&count| count <= self.0.len())
    }

    #[doc(hidden)]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// An FNV-1a hash, which is the same in every process. It detects mistakes, not forgeries.
#[derive(Clone, Copy, Hash, PartialEq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn of(bytes: &[u8]) -> Fingerprint {
        Fingerprint(0xCBF2_9CE4_8422_2325).with(bytes)
    }

    fn with(self, bytes: &[u8]) -> Fingerprint {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        Fingerprint(bytes.iter().fold(self.0, mix))
    }

    pub(crate) fn number(&mut self, number: usize) {
        *self = self.with(&(number as u64).to_le_bytes());
    }

    fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}
