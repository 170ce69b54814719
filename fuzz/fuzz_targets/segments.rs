//! Compares the library with the tests' simple reference implementation, on markers and texts that the fuzzer makes.

#![no_main]

#[allow(dead_code)] // each target uses only a part of this module
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::segments::Case| case.check());
