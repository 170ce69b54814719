//! The spelling of bytes as characters that byte-level vocabularies have since GPT-2.

/// The bytes that stand for themselves as characters.
fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte for which each of the first characters stands. The bytes that are not printable come from U+0100 on, in
/// order.
fn table() -> [Option<u8>; 512] {
    let mut table = [None; 512];
    let mut next = 0x100;
    for byte in 0..=u8::MAX {
        let character = if is_printable(byte) {
            byte as usize
        } else {
            next += 1;
            next - 1
        };
        table[character] = Some(byte);
    }
    table
}

/// Reads spelled tokens.
pub(crate) struct Spelling([Option<u8>; 512]);

impl Spelling {
    pub(crate) fn new() -> Spelling {
        Spelling(table())
    }

    /// The bytes that `token` spells, or its own if a character of it spells none.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let spelled = token.chars().map(|character| *self.0.get(character as usize)?);
        spelled.collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
    }
}
