//! Compiles sets that the fuzzer draws from patterns as people write them. `fuzz/run` sets libFuzzer's limits of time
//! and memory, which find a set that costs too much.

#![no_main]

#[allow(dead_code)] // code that only the tests use
#[path = "../../tests/rust/case/user_patterns.rs"]
mod user_patterns;

libfuzzer_sys::fuzz_target!(|set: user_patterns::UserSet| {
    let _ = set.build();
});
