//! Compares the library with the reference of the tests, on patterns that the fuzzer makes up.

#![no_main]

#[allow(dead_code)] // code of the other targets
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::patterns::Case| {
    case.check(true);
});
