/// A buffer of so many bytes is never given back.
const SPARE: usize = 64;

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
    /// How many bytes the buffer takes when so many come in for which it has no room.
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

    /// Begins a step: drops the released front when it is half of the buffer. Each byte is moved once for each that was
    /// released, so a long held text costs a delta nothing. What one long delta needed is given back.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.start > 0 && self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
            if self.buffer.capacity() > SPARE {
                self.buffer.shrink_to(SPARE.max(4 * self.buffer.len()));
            }
        }
    }

    /// Appends `delta` and releases all but the last `kept` bytes.
    #[inline]
    pub(crate) fn pass(&mut self, delta: &str, kept: usize) -> Released {
        let before = self.len();
        if before == 0 {
            let of_delta = delta.len() - kept;
            if kept > 0 {
                self.buffer.push_str(&delta[of_delta..]);
            }
            return Released { of_delta, ..Released::default() };
        }
        self.buffer.push_str(delta);
        let from = self.start;
        self.start = self.buffer.len() - kept;
        Released { from, to: self.start, of_delta: (self.start - from).saturating_sub(before) }
    }

    /// Appends `through` and releases all but its last `cut` bytes, which are dropped.
    pub(crate) fn cut(&mut self, through: &str, cut: usize) -> Released {
        let kept = self.len() + through.len() - cut;
        match kept.checked_sub(self.len()) {
            Some(kept_of_through) => self.pass(&through[..kept_of_through], 0),
            None => {
                let from = self.start;
                self.start = self.buffer.len();
                Released { from, to: from + kept, of_delta: 0 }
            }
        }
    }
}
