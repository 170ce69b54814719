//! Numbers and texts as bytes, the same on every machine; and a fingerprint of them.

/// Writes what a snapshot has.
#[derive(Default)]
pub struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    pub(crate) fn number(&mut self, number: usize) {
        let mut rest = number as u64;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    #[doc(hidden)]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what a `Writer` wrote; `None` is what it never wrote.
pub struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn flag(&mut self) -> Option<bool> {
        let (&flag, rest) = self.0.split_first()?;
        self.0 = rest;
        (flag < 2).then_some(flag == 1)
    }

    pub(crate) fn number(&mut self) -> Option<usize> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let part = u64::from(byte & 0x7F);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return usize::try_from(number).ok();
            }
        }
        None
    }

    /// A number that others of at most one byte each follow: a damaged one must not cost memory.
    pub(crate) fn count(&mut self) -> Option<usize> {
        self.number().filter(|&count| count <= self.0.len())
    }

    #[doc(hidden)]
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// FNV-1a: the same in every process. It tells apart what was mixed up, not what an enemy made.
#[derive(Clone, Copy, Hash)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new() -> Fingerprint {
        Fingerprint(0xCBF2_9CE4_8422_2325)
    }

    fn mix(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    pub(crate) fn number(&mut self, number: usize) {
        self.mix(&(number as u64).to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len());
        self.mix(text.as_bytes());
    }

    pub(crate) fn texts<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) {
        let mut count = 0;
        for text in texts {
            self.text(text);
            count += 1;
        }
        self.number(count);
    }

    pub(crate) fn of(bytes: &[u8]) -> Fingerprint {
        let mut fingerprint = Fingerprint::new();
        fingerprint.mix(bytes);
        fingerprint
    }

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}
