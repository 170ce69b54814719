//! Snapshots where another set restores them. That a set restores its own is part of every comparison with the reference.

use stopscan::{Options, StopScanner, StopSet, StopSetBuilder};

fn patterns(patterns: &[&str]) -> StopSet {
    StopSet::builder().patterns(patterns).build().unwrap()
}

fn protecting(count: usize) -> StopSetBuilder {
    let pairs = [("<a>", "</a>"), ("<b>", "</b>")];
    StopSet::builder().stop(["END"]).protect(pairs[..count].iter().copied())
}

fn fed(set: &StopSet, options: Options, text: &str) -> StopScanner {
    let mut scanner = StopScanner::with_options(set, options).unwrap();
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
            let scanner = fed(&set, Options { include_stop, ..Options::default() }, text);
            assert!(StopScanner::restore(&other, &scanner.snapshot()).is_none(), "{case} of {set:?} in {other:?}");
            assert!(StopScanner::restore(&set, &scanner.snapshot()).is_some(), "{case} of {set:?}");
        }
    }
    let options = Options { start_protected: true, ..Options::default() };
    let protected = fed(&one(), options, "</a>");
    assert!(StopScanner::restore(&strings(&["END"]), &protected.snapshot()).is_none());
}

#[test]
fn a_set_goes_on_with_what_it_could_have_read() {
    let larger = patterns(&["abc", "abd", r"\d:"]);
    for include_stop in [false, true] {
        let options = Options { include_stop, ..Options::default() };
        let scanner = fed(&patterns(&["abc"]), options, "é ab");
        let mut other = StopScanner::restore(&larger, &scanner.snapshot()).unwrap();
        assert_eq!((other.held(), scanner.held()), if include_stop { ("", "") } else { ("ab", "ab") });
        let found = other.feed("d").stop_match.unwrap();
        assert_eq!((found.sequence(), found.offset(), found.byte_offset()), ("abd", 2, 3));
    }
}

#[test]
fn a_pattern_that_fired_is_restored() {
    let set = patterns(&["x", r"\d:"]);
    let scanner = fed(&set, Options::default(), "é 1: more");
    let copy = StopScanner::restore(&set, &scanner.snapshot()).unwrap();
    assert_eq!((copy.stop_match(), copy.unused()), (scanner.stop_match(), " more"));
    assert_eq!(copy.stop_match().unwrap().pattern(), Some(r"\d:"));
    assert_eq!(copy.snapshot(), scanner.snapshot());
}
