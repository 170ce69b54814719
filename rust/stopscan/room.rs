//! Room in memory, asked for before it is needed: where a caller decides how much something takes, and there is none,
//! that is an error. The standard library would end the process.

use std::collections::TryReserveError;
use std::hint::black_box;

/// Whoever needs less does not ask: a process without so many bytes is at its end.
const SMALL: usize = 1 << 16;

/// Asks for so many bytes and gives the bytes back: for code that has no way to learn that there is no room.
pub(crate) fn ask(bytes: usize) -> Result<(), TryReserveError> {
    if bytes < SMALL {
        return Ok(());
    }
    let mut room: Vec<u8> = Vec::new();
    let answer = room.try_reserve_exact(bytes);
    black_box(&mut room); // or the compiler would leave it out
    answer
}

/// A copy of `text`.
pub(crate) fn text(text: &str) -> Result<String, TryReserveError> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len())?;
    copy.push_str(text);
    Ok(copy)
}

/// An empty list with room for so many items.
pub(crate) fn list<T>(items: usize) -> Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(items)?;
    Ok(list)
}

/// What an iterator gives, whose length is known.
pub(crate) fn collect<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>, TryReserveError> {
    let mut all = list(items.len())?;
    all.extend(items);
    Ok(all)
}
