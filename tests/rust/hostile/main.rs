//! Stops and streams with which a user could overload a server. The tests count the allocated memory. They do not
//! measure time, but a test would not end if the work grew with the square of the input.

mod no_memory;
mod patterns;
#[path = "../random.rs"]
#[allow(dead_code)] // other tests use the rest of the module
mod random;
mod stops;
mod tokens;
#[path = "../case/user_patterns.rs"]
mod user_patterns;

use std::alloc::System;
use std::sync::{Mutex, MutexGuard};

use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Each test holds this lock, so that only one test runs at a time: the tests count the memory of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
const MILLION: usize = 1_000_000;

/// The most bytes that the test runner may allocate during a test.
const SMALL: usize = 4_096;

/// The most bytes by which memory may grow where a stream must not need more memory. The test runner itself allocates
/// less, and a stream that kept a million tokens would need far more.
const FLAT: usize = 16 * SMALL;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// By how many bytes the allocated memory has grown since it was `before`. 0 if it has shrunk, because the test runner
/// has freed memory.
fn kept_since(before: usize) -> usize {
    ALLOCATOR.allocated().saturating_sub(before)
}
