//! Compares the token layer with the reference of the tests, on vocabularies and streams that the fuzzer makes up.

#![no_main]

#[allow(dead_code)] // code of the other targets
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::tokens::Case| case.check());
