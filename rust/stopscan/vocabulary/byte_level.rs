//! GPT-2's spelling of bytes, which byte-level vocabularies use: each byte is written as one printable character.

/// Turns spelled tokens into bytes. The index into the table is a code point, and the item is the byte that it spells,
/// or `None` if it spells no byte.
pub(crate) struct Spelling([Option<u8>; 512]);

impl Spelling {
    /// Fills the table. Printable bytes stand for themselves. The characters from U+0100 on spell the other bytes, in
    /// the order of the bytes.
    pub(crate) fn new() -> Spelling {
        let mut table = [None; 512];
        let mut next = 0x100;
        for byte in 0..=u8::MAX {
            if matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) {
                table[byte as usize] = Some(byte);
            } else {
                table[next] = Some(byte);
                next += 1;
            }
        }
        Spelling(table)
    }

    /// Returns the bytes that `token` spells, or the bytes of `token` itself if one of its characters spells no byte.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let spelled = token.chars().map(|character| *self.0.get(character as usize)?);
        spelled.collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
    }
}
