use std::borrow::Cow;

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

/// What a delta releases. It is a place and not a text, so that nothing stays borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Released {
    /// Where it begins and ends in the buffer; nothing is there if no text was held before.
    from: usize,
    to: usize,
    /// How many bytes of the delta are in it.
    pub(crate) of_delta: usize,
}

impl Released {
    /// The whole delta.
    #[inline(always)]
    pub(crate) fn all_of(delta: &str) -> Released {
        Released { of_delta: delta.len(), ..Released::default() }
    }

    pub(crate) fn is_of_buffer(self) -> bool {
        self.from != self.to
    }
}

impl Held {
    #[cfg(feature = "python")]
    pub(crate) fn of(text: String) -> Held {
        Held { buffer: text, start: 0 }
    }

    /// How many bytes the buffer takes when so many come in for which it has no room.
    #[cfg(feature = "python")]
    pub(crate) fn growth(&self, bytes: usize) -> usize {
        let needed = self.buffer.len() + bytes;
        if needed > self.buffer.capacity() { 2 * needed } else { 0 }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.buffer[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The text that `delta` has just released.
    #[inline(always)]
    pub(crate) fn text<'a>(&'a self, released: Released, delta: &'a str) -> &'a str {
        match released.is_of_buffer() {
            true => &self.buffer[released.from..released.to],
            false => &delta[..released.of_delta],
        }
    }

    /// As `text`, but not borrowed from the buffer.
    pub(crate) fn text_of_its_own<'a>(&self, released: Released, delta: &'a str) -> Cow<'a, str> {
        match released.is_of_buffer() {
            true => self.text(released, delta).to_owned().into(),
            false => delta[..released.of_delta].into(),
        }
    }

    /// Appends `delta` and releases all but the last `kept` bytes.
    #[inline]
    pub(crate) fn pass(&mut self, delta: &str, kept: usize) -> Released {
        let before = self.len();
        if before == 0 {
            let of_delta = delta.len() - kept;
            if kept > 0 {
                self.push(&delta[of_delta..]);
            }
            return Released { of_delta, ..Released::default() };
        }
        self.push(delta);
        let from = self.start;
        self.start = self.buffer.len() - kept;
        Released { from, to: self.start, of_delta: (self.start - from).saturating_sub(before) }
    }

    /// Appends `through` and releases all but its last `cut` bytes, which are dropped.
    pub(crate) fn cut(&mut self, through: &str, cut: usize) -> Released {
        let kept = self.len() + through.len() - cut;
        let kept_of_through = kept.saturating_sub(self.len());
        self.buffer.truncate(self.buffer.len().min(self.start + kept));
        self.pass(&through[..kept_of_through], 0)
    }

    /// Appends `text`. The released front is dropped when it is half of the buffer: each byte is moved once for each
    /// that was released, so a long held text costs a delta nothing. What one long delta needed is given back.
    fn push(&mut self, text: &str) {
        if self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
            self.buffer.shrink_to(SPARE * (self.buffer.len() + text.len()));
        }
        self.buffer.push_str(text);
    }
}
