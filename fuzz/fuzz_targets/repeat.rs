//! The detection of loops against the rule as it is written, on the texts that the fuzzer thinks of.

#![no_main]

#[allow(dead_code)] // of the other targets
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::repeat::Case| {
    case.check();
});
