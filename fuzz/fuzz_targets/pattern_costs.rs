//! Compiles sets that the fuzzer draws from patterns as people write them. libFuzzer's own limits of time and memory find
//! the set that costs too much: `fuzz/run` sets them.

#![no_main]

#[allow(dead_code)] // of the tests
#[path = "../../tests/rust/case/user_patterns.rs"]
mod user_patterns;

libfuzzer_sys::fuzz_target!(|set: user_patterns::UserSet| {
    let _ = set.build();
});
