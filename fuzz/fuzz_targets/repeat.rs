//! Compares the detection of loops with a literal reading of its rule, on texts that the fuzzer makes up.

#![no_main]

#[allow(dead_code)] // code of the other targets
#[path = "../../tests/rust/case/mod.rs"]
mod case;
#[allow(dead_code)]
#[path = "../../tests/rust/reference/mod.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|case: case::repeat::Case| {
    case.check();
});
