//! The library against the reference of the tests, on the patterns that the fuzzer thinks of.

#![no_main]

#[allow(dead_code)] // of the other target
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::patterns::Case| {
    case.check(true);
});
