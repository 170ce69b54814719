/// How many times the text in it a buffer may be large.
const SPARE: usize = 4;

/// Held text: what is released leaves at the front and what is held comes in at the back, so that no delta copies
/// the text that stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    buffer: String,
    /// Where the held text begins; the text before it was released.
    start: usize,
}

impl Held {
    pub(crate) fn as_str(&self) -> &str {
        &self.buffer[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Appends `delta` and releases all but the last `hold` bytes.
    #[inline]
    pub(crate) fn pass<'a>(&'a mut self, delta: &'a str, hold: usize) -> &'a str {
        if self.len() == 0 {
            let (safe, held) = delta.split_at(delta.len() - hold);
            if !held.is_empty() {
                self.hold(held);
            }
            return safe;
        }
        self.hold(delta);
        let start = self.start;
        self.start = self.buffer.len() - hold;
        &self.buffer[start..self.start]
    }

    /// Keeps only the first `len` bytes, if there are more.
    pub(crate) fn truncate(&mut self, len: usize) {
        let len = len.min(self.len());
        self.buffer.truncate(self.start + len);
    }

    pub(crate) fn clear(&mut self) {
        *self = Held::default();
    }

    /// Appends `text`. The released front is dropped when it is half of the buffer: each byte is moved once for each
    /// that was released, so a long held text costs a delta nothing. What one long delta needed is given back.
    fn hold(&mut self, text: &str) {
        if self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.shrink_to(SPARE * (self.buffer.len() + text.len()));
        }
        self.buffer.push_str(text);
    }
}
