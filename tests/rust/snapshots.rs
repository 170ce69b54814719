//! Tests of damaged snapshots, and of snapshots that are restored with a different set. (The tests of the module
//! `reference` restore snapshots that are not damaged, with the same set.)

use stopscan::{Options, Repeat, Snapshot, SnapshotError, StopScanner, StopSet, StopSetBuilder};

fn patterns(patterns: &[&str]) -> StopSet {
    StopSet::builder().patterns(patterns).build().unwrap()
}

fn protecting(count: usize) -> StopSetBuilder {
    let pairs = [("<a>", "</a>"), ("<b>", "</b>")];
    StopSet::builder().stop(["END"]).protect(pairs[..count].iter().copied())
}

fn fed(set: &StopSet, options: Options, text: &str) -> StopScanner {
    let mut scanner = StopScanner::with_options(set, &options).unwrap();
    scanner.feed(text);
    scanner
}

#[test]
fn a_set_refuses_what_it_cannot_have_read() {
    let strings = |stops: &[&str]| StopSet::new(stops).unwrap();
    let one = || protecting(1).build().unwrap();
    for (case, set, text, other) in [
        ("a region", protecting(2).build().unwrap(), "<b>", one()),
        ("a region", one(), "<a>", strings(&["END"])),
        ("held text", strings(&["END"]), "E", strings(&["STOP"])),
        ("a stop", strings(&["END"]), "END", strings(&["EN"])),
        ("a stop", patterns(&["x", r"\d:"]), "1:", patterns(&["x"])),
        ("matches", patterns(&["abc"]), "ab", strings(&["abc"])),
        ("matches", strings(&["x"]), "ab", patterns(&["abc"])),
        ("a match", patterns(&["abc"]), "ab", patterns(&["aBc"])),
        ("a match", patterns(&["abc"]), "ab", patterns(&["bc"])),
    ] {
        for include_stop in [false, true] {
            let options = Options::default().include_stop(include_stop);
            let snapshot = fed(&set, options.clone(), text).snapshot();
            assert!(restored(&other, &options, &snapshot).is_err(), "{case} of {set:?} in {other:?}");
            assert!(restored(&set, &options, &snapshot).is_ok(), "{case} of {set:?}");
            let others = Options::default().include_stop(!include_stop);
            assert!(restored(&set, &others, &snapshot).is_err(), "{case} of {set:?} with other options");
        }
    }
    let options = Options::default().start_protected(true);
    let protected = fed(&one(), options, "</a>");
    assert!(restored(&strings(&["END"]), &Options::default(), &protected.snapshot()).is_err());
}

#[test]
fn a_pattern_that_fired_is_restored() {
    let set = patterns(&["x", r"\d:"]);
    let scanner = fed(&set, Options::default(), "é 1: more");
    let copy = restored(&set, &Options::default(), &scanner.snapshot()).unwrap();
    assert_eq!((copy.stop_match(), copy.unused()), (scanner.stop_match(), " more"));
    assert_eq!(copy.stop_match().unwrap().pattern(), Some(r"\d:"));
    assert_eq!(copy.snapshot(), scanner.snapshot());
}

/// A scanner's snapshot in version 4 of the format. The library still writes these bytes, and restores them.
#[test]
fn a_snapshot_of_version_4_goes_on() {
    let set = StopSet::builder().stop(["END", "\n\nHuman:"]).protect([("<think>", "</think>")]).build().unwrap();
    let scanner = fed(&set, Options::default(), "<think>END</think>é\n\nHu");
    let bytes = scanner.snapshot().as_bytes().to_owned();
    assert_eq!(bytes, VERSION_4, "{bytes:?}");
    let mut other = restored(&set, &Options::default(), &Snapshot::from_bytes(&VERSION_4).unwrap()).unwrap();
    assert_eq!(other.held(), "\n\nHu");
    assert_eq!(other.feed("man: Hi").stop_match.unwrap().offset(), 19);
    assert_eq!(other.unused(), " Hi");
}

const VERSION_4: [u8; 22] = [4, 66, 104, 185, 43, 39, 222, 120, 219, 0, 0, 0, 23, 24, 0, 0, 1, 4, 45, 52, 222, 18];

#[test]
fn damaged_bytes_are_refused_and_never_panic() {
    let set = StopSet::builder().stop(["END"]).patterns([r"\d+:"]).repeat(Repeat::default()).build().unwrap();
    for text in ["", "é 12", "x END more", "7: more", &"-".repeat(300)] {
        let bytes = fed(&set, Options::default(), text).snapshot().as_bytes().to_owned();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Snapshot::from_bytes(&damaged).is_err(), "byte {at} of {bytes:?}");
            assert!(Snapshot::from_bytes(&bytes[..at]).is_err(), "{at} of {bytes:?}");
        }
    }
}

#[test]
fn a_snapshot_is_small() {
    let long = "s".repeat(100_000);
    let set = StopSet::builder().visible([&*long]).stop(["END"]).build().unwrap();
    let scanner = fed(&set, Options::default(), &long[1..]);
    assert!(scanner.snapshot().as_bytes().len() <= 256);
}

/// Somebody can change a snapshot on purpose and write correct check bytes at its end. So the bytes before the check
/// bytes must be checked, too.
#[test]
fn a_forged_snapshot_that_ends_within_a_character_is_refused() {
    let set = StopSet::new(["éé"]).unwrap();
    let bytes = fed(&set, Options::default(), "é").snapshot().as_bytes().to_owned();
    let place = bytes.len() - 4 - 1; // this byte says how many bytes of the stop were read
    assert_eq!(bytes[place], 2);
    for length in 0..=255 {
        let mut forged = bytes.clone();
        forged[place] = length;
        let restored = forge(&forged).and_then(|snapshot| restored(&set, &Options::default(), &snapshot));
        assert_eq!(restored.is_ok(), [0, 2].contains(&length), "{length}");
    }
}

#[test]
fn a_forged_snapshot_with_more_than_a_state_is_damaged() {
    let set = StopSet::new(["END"]).unwrap();
    let mut bytes = fed(&set, Options::default(), "EN").snapshot().as_bytes().to_owned();
    bytes.insert(bytes.len() - 4, 0);
    let error = forge(&bytes).and_then(|snapshot| restored(&set, &Options::default(), &snapshot)).unwrap_err();
    assert_eq!((error.to_string(), error), ("the snapshot is damaged".into(), SnapshotError::Damaged));
}

fn restored(set: &StopSet, options: &Options, snapshot: &Snapshot) -> Result<StopScanner, SnapshotError> {
    let mut scanner = StopScanner::with_options(set, options).unwrap();
    scanner.restore(snapshot)?;
    Ok(scanner)
}

/// Replaces the check bytes at the end of `bytes` by correct ones, and reads the snapshot.
fn forge(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    let mut bytes = bytes.to_owned();
    let end = bytes.len() - 4;
    let mut check = 0xCBF2_9CE4_8422_2325_u64; // FNV-1a, the hash in the check bytes
    for &byte in &bytes[..end] {
        check = (check ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    bytes[end..].copy_from_slice(&check.to_le_bytes()[..4]);
    Snapshot::from_bytes(&bytes)
}
