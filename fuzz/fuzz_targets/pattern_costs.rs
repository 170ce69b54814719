//! Compiles stop sets of patterns such as people write, which the fuzzer puts together. `fuzz/run` limits the time and
//! memory of each input, so that a set that costs too much fails.

#![no_main]

#[allow(dead_code)] // the tests use the rest of this module
#[path = "../../tests/rust/case/user_patterns.rs"]
mod user_patterns;

libfuzzer_sys::fuzz_target!(|set: user_patterns::UserSet| {
    let _ = set.build();
});
