//! Stops and streams that users of a server send to hurt it. Memory is counted; what would take quadratic work would
//! not end.

mod no_memory;
mod patterns;
#[path = "../random.rs"]
#[allow(dead_code)] // of the other tests
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

/// One test at a time: they count what the whole process allocates.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
const MILLION: usize = 1_000_000;

/// As many bytes as a test's surroundings may allocate meanwhile.
const SMALL: usize = 4_096;

/// More than the surroundings allocate, and far less than a million tokens would.
const FLAT: usize = 16 * SMALL;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How many bytes more are allocated than `before`. The test runner's own threads may have freed some of theirs.
fn kept_since(before: usize) -> usize {
    ALLOCATOR.allocated().saturating_sub(before)
}
