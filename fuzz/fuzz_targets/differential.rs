//! The library against the reference of the tests, on the streams that the fuzzer thinks of.

#![no_main]

#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::Case| case.check());
