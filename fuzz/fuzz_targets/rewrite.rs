//! Compares `Rewriter`, which replaces keys in a stream, with the tests' simple implementation, on random keys and
//! texts.

#![no_main]

#[allow(dead_code)] // each target uses only a part of this module
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::rewrite::Case| {
    case.check();
});
