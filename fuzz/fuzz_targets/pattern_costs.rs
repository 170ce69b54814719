//! Compiles sets of patterns. The fuzzer makes patterns like those that people write. `fuzz/run` limits the time and
//! memory of each input, so the fuzzer reports a set that costs too much as a failure.

#![no_main]

#[allow(dead_code)] // the tests use the rest of this module
#[path = "../../tests/rust/case/user_patterns.rs"]
mod user_patterns;

libfuzzer_sys::fuzz_target!(|set: user_patterns::UserSet| {
    let _ = set.build();
});
