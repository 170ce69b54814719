//! Memory that is asked for before it is needed. If a caller decides how much memory something takes, a lack of it is an
//! error here; the standard library would end the process.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Smaller sizes are not checked: a process that lacks them cannot go on anyway.
const SMALL: usize = 1 << 16;

/// Checks that `bytes` bytes can be had, by allocating and freeing them. For code that cannot report a failed allocation.
pub fn ask(bytes: usize) -> Result<(), TryReserveError> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    let answer = room.try_reserve_exact(bytes);
    black_box(&mut room); // or the compiler would leave it out
    answer
}
