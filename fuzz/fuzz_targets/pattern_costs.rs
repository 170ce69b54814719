//! Compiles sets of patterns, which the fuzzer builds in the style of patterns that people write. `fuzz/run` limits the
//! time and memory of each input, so a set that costs too much is reported as a failure.

#![no_main]

#[allow(dead_code)] // the tests use the rest of this module
#[path = "../../tests/rust/case/user_patterns.rs"]
mod user_patterns;

libfuzzer_sys::fuzz_target!(|set: user_patterns::UserSet| {
    let _ = set.build();
});
