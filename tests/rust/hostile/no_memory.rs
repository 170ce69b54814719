//! If there is too little memory to compile a set, `build` returns an error, and the process goes on.

use stopscan::{SegmentSet, SetBuilder, StopScanner, StopSet, StopSetErrorKind, Text};

use crate::{ALLOCATOR, MIB, MILLION, SMALL, alone, kept_since};

/// The most bytes that may be allocated unchecked while a set without patterns is compiled. A failed unchecked
/// allocation aborts the process.
const UNASKED: usize = 1 << 16;
/// The same limit for a set with patterns.
const UNASKED_OF_PATTERNS: usize = MIB;

/// Builds a set again and again, at first with too little memory and each time with a little more, until it is enough.
/// As long as it is not, `build` must return the error for a lack of memory.
fn fails_in_turn(name: &str, unasked: usize, builder: impl Fn() -> SetBuilder<Text>) {
    let mut failed = 0;
    let mut room = unasked;
    loop {
        let builder = builder();
        println!("{name} with {room} bytes"); // if an unchecked allocation fails, the process aborts
        ALLOCATOR.set_limit(ALLOCATOR.allocated() + room).unwrap();
        let set = builder.build();
        ALLOCATOR.set_limit(usize::MAX).unwrap();
        match set {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), StopSetErrorKind::NoMemory, "{name}: {error}"),
        }
        failed += 1;
        room += room / 16;
    }
    assert!(failed > 0, "{name}");
}

#[test]
fn a_set_without_memory() {
    let _alone = alone();
    let long = "ab".repeat(MIB / 2);
    let many: Vec<String> = (0..30_000).map(|number| format!("<stop number {number:06}>")).collect();
    let nested: Vec<String> = (1..=1_000).map(|length| "a".repeat(length)).collect();
    fails_in_turn("one long stop", UNASKED, || StopSet::builder().stop([&long]));
    fails_in_turn("many stops", UNASKED, || StopSet::builder().stop(&many));
    fails_in_turn("many visible stops", UNASKED, || StopSet::builder().visible(&many));
    fails_in_turn("nested stops", UNASKED, || StopSet::builder().stop(&nested));
    fails_in_turn("many words as patterns", UNASKED_OF_PATTERNS, || StopSet::builder().patterns(&many));
    fails_in_turn("a long stop beside a pattern", UNASKED_OF_PATTERNS, || {
        StopSet::builder().stop([&long]).patterns(["<[^>]{1,200}>"])
    });
    fails_in_turn("a long marker", UNASKED, || StopSet::builder().stop(["b"]).protect([(&long, "c")]));
    fails_in_turn("many stops in two regions", UNASKED, || {
        StopSet::builder().stop(&many).region("a", [("|", "b")]).region("b", [("|", "a")])
    });
    fails_in_turn("a large pattern", UNASKED_OF_PATTERNS, || StopSet::builder().patterns(["[a-z ]{900}!"]));
}

#[test]
fn a_set_of_segments_without_memory() {
    let _alone = alone();
    let stops: Vec<String> = (0..10_000).map(|number| format!("<stop number {number:06}>")).collect();
    let builder = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]).stop(&stops);
    ALLOCATOR.set_limit(ALLOCATOR.allocated() + UNASKED).unwrap();
    let set = builder.build();
    ALLOCATOR.set_limit(usize::MAX).unwrap();
    assert_eq!(set.unwrap_err().kind(), StopSetErrorKind::NoMemory);
}

#[test]
fn a_copy_of_a_stream_took_the_released_text_of_a_long_delta() {
    let _alone = alone();
    let set = StopSet::new(["END"]).unwrap();
    let mut scanner = StopScanner::new(&set);
    scanner.feed("The E");
    scanner.feed(&"a ".repeat(MILLION));
    let before = ALLOCATOR.allocated();
    let copy = scanner.clone();
    assert!(kept_since(before) < SMALL);
    drop(copy);
}
