//! Checks that there is enough memory before it is needed. If an allocation fails in the standard library, the process
//! ends. That must not happen if a caller chose the size: the caller gets an error instead.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Sizes below this many bytes are not checked: a process that cannot allocate even these cannot continue anyway.
const SMALL: usize = 1 << 16;

/// Checks that `bytes` bytes can be allocated, by allocating and freeing them. Call it before code that cannot report a
/// failed allocation.
pub fn ask(bytes: usize) -> Result<(), TryReserveError> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    let answer = room.try_reserve_exact(bytes);
    black_box(&mut room); // keeps the compiler from removing the allocation
    answer
}
