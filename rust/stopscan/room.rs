//! Checks that there is enough memory before it is needed. If an allocation fails in the standard library, the process
//! ends. If a caller asks for too much, this check returns an error instead.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Fewer bytes than this are not checked. A process that cannot allocate even these cannot continue anyway.
const SMALL: usize = 1 << 16;

/// Checks that `bytes` bytes can be allocated: allocates them, and frees them again. Call it before code that cannot
/// report a failed allocation.
pub fn ask(bytes: usize) -> Result<(), TryReserveError> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    let answer = room.try_reserve_exact(bytes);
    black_box(&mut room); // keeps the compiler from removing the allocation
    answer
}
