//! The library as a WebAssembly module without imports. `stopscan.mjs` is its JavaScript side.
//!
//! Text goes in and out through one buffer. To pass text, the caller calls `room`, writes UTF-8 at the returned
//! address, and then calls the function that takes the text. A function that "gives" text writes it to the buffer and
//! returns the length in bytes. The function `buffer` returns the address of this text. Each stream is identified by
//! the number that `build` or `copy` returned.

use std::cell::RefCell;

mod state;

thread_local! {
    static STATE: RefCell<state::State> = RefCell::default();
}

/// Exports methods of `State` as functions of the WebAssembly module. The macro is in this file, because it needs the
/// word `unsafe` for `no_mangle`, which the module `state` forbids.
macro_rules! export {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $output:ty)?;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $type),*) $(-> $output)? {
            STATE.with_borrow_mut(|state| state.$name($($argument),*))
        }
    )*};
}

export! {
    /// Makes room for `length` bytes in the buffer, and returns their address. If the module's memory
    /// grows for this, the JavaScript views of it that were made before are empty.
    fn room(length: usize) -> *mut u8;
    /// Cuts the buffer to the `length` bytes that were written.
    fn shorten(length: usize);
    /// Returns the address of the buffer.
    fn buffer() -> *const u8;

    /// Begins a new set: forgets the options that were set before.
    fn begin();
    /// Takes the text in the buffer as one argument of the option that is set next.
    fn push();
    /// Sets an option from the arguments that `push` took. The first is the option's name, the others are its value.
    fn option();
    /// Makes a stream with the options that were set: a segmenter if `segmenter` is true, otherwise a scanner. Returns
    /// the stream's number, or -1 after an error.
    fn build(segmenter: bool) -> i32;
    /// Gives the message of the error.
    fn error() -> usize;
    /// Makes a copy of a stream, and returns its number.
    fn copy(stream: usize) -> usize;
    /// Drops a stream. Its number is used again.
    fn release(stream: usize);

    /// Feeds the text in the buffer to a stream. Returns the number of pieces of text that are safe to emit.
    fn feed(stream: usize, armed: bool) -> usize;
    /// Passes the text in the buffer through a stream without scanning it. Returns the number of pieces of text.
    fn bypass(stream: usize) -> usize;
    /// Ends a stream. Returns the number of pieces of text that are safe to emit.
    fn flush(stream: usize) -> usize;
    /// Goes back to the start of a stream.
    fn reset(stream: usize);

    /// Gives the text of a piece that the last `feed`, `bypass` or `flush` made.
    fn piece_text(index: usize) -> usize;
    /// Gives the region of a piece that the last `feed`, `bypass` or `flush` made.
    fn piece_region(index: usize) -> usize;
    /// Returns the number of the part to which a piece of the last `feed`, `bypass` or `flush` belongs.
    fn piece_part(index: usize) -> u32;

    /// Gives the text that a stream withholds.
    fn held(stream: usize) -> usize;
    /// Gives the text after the stop in the delta that completed the stop.
    fn unused(stream: usize) -> usize;
    /// Gives the name of the current region.
    fn region(stream: usize) -> usize;
    /// Whether a stop has fired. Only then may `sequence`, `pattern`, `offset` and `end` be called.
    fn has_fired(stream: usize) -> bool;
    /// Gives the stop that fired.
    fn sequence(stream: usize) -> usize;
    /// Gives the pattern that matched. Gives an empty text if the stop that fired is a string.
    fn pattern(stream: usize) -> usize;
    /// Returns where the stop begins, in code points.
    fn offset(stream: usize) -> usize;
    /// Returns where the stop ends, in code points.
    fn end(stream: usize) -> usize;

    /// Gives the known formats of model output, one format a line. A line has the format's name, its source and the
    /// names of its states, separated by tabs.
    fn formats() -> usize;
}
