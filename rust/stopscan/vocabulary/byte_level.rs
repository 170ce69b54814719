//! GPT-2's spelling of bytes, which byte-level vocabularies use: each byte is written as one printable character.

/// For each code point, the byte that this character spells, or `None` if the character spells no byte.
pub(crate) struct Spelling([Option<u8>; 512]);

impl Spelling {
    /// A printable byte is spelled by the character with the same value. All remaining bytes are spelled, in ascending
    /// order, by the characters from U+0100 on.
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

    /// Returns the bytes that the characters of `token` spell. If a character spells no byte, returns the UTF-8 of
    /// `token`.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let spelled = token.chars().map(|character| *self.0.get(character as usize)?);
        spelled.collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
    }
}
