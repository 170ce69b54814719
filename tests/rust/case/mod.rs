//! Random cases, drawn from bytes: stops, options and the calls of one stream. In each case, the library must do what
//! the reference, a simple program, does.
//!
//! The fuzzer and the property tests draw the same cases from the same bytes.

pub mod patterns;
pub mod repeat;
pub mod rewrite;
pub mod segments;
pub mod stops;
pub mod tokens;
mod words;

use arbitrary::{Result, Unstructured};

use crate::reference::Op;
use words::Words;

/// The most operations (calls of the library) in a case. Longer cases test nothing new.
const MOST_OPS: usize = 60;

/// Draws operations, each with a text full of `words`. Moves up to 8 characters from the end of a text to the text of
/// the next operation, so that stops are split between operations.
fn ops<'a>(
    u: &mut Unstructured<'a>,
    words: &Words,
    op: impl Fn(&mut Unstructured<'a>, String) -> Result<Op>,
) -> Result<Vec<Op>> {
    let mut ops = Vec::new();
    let mut rest = String::new();
    while !u.is_empty() && ops.len() < MOST_OPS {
        let text = rest + &words.text(u)?;
        let cut = u.int_in_range(0..=text.chars().count().min(8))?;
        let end = text.char_indices().rev().take(cut).last().map_or(text.len(), |(at, _)| at);
        rest = text[end..].into();
        ops.push(op(u, text[..end].into())?);
    }
    Ok(ops)
}
