//! Stops and streams that users could send to overload a server. The tests count the allocated memory. They measure no
//! time, but if the work grew with the square of the input, a test would not end.

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

/// If memory must not grow during a test, it may grow by this much: more than the test runner itself allocates, and far
/// less than a million tokens need.
const FLAT: usize = 16 * SMALL;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// By how many bytes the allocated memory has grown since it was `before`. 0 if it has shrunk, because the test runner
/// has freed memory.
fn kept_since(before: usize) -> usize {
    ALLOCATOR.allocated().saturating_sub(before)
}
