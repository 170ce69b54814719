//! Compares the detection of texts that repeat themselves with a literal reading of its rule, on texts of the fuzzer.

#![no_main]

#[allow(dead_code)] // each target uses only a part of this module
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::repeat::Case| {
    case.check();
});
