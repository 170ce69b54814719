/// The stop that fired, and where: `text[offset..end] == sequence`, counted in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopMatch<'a> {
    pub(crate) sequence: &'a str,
    pub(crate) offset: usize,
    pub(crate) end: usize,
}

impl<'a> StopMatch<'a> {
    /// The stop, as the user gave it.
    pub fn sequence(&self) -> &'a str {
        self.sequence
    }

    /// Where the stop begins in the text of the stream, in code points.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Where the stop ends in the text of the stream, in code points.
    pub fn end(&self) -> usize {
        self.end
    }
}

/// How many code points the UTF-8 of `text` has: its bytes that continue none.
pub(crate) fn code_points(text: &[u8]) -> usize {
    text.iter().filter(|&byte| byte & 0xC0 != 0x80).count()
}
