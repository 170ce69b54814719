use std::collections::VecDeque;

/// A queue for more tokens than this is given back when it is empty: a server has many, and most hold nothing.
const SPARE: usize = 4;

/// Which tokens the emitted text is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) seen: usize,
    pub(crate) kept: usize,
    /// How much text was read and emitted since nothing was held, in code points.
    pub(crate) read: usize,
    pub(crate) emitted: usize,
    /// Where in that text the part of each token begins that is not kept yet, and the token's number.
    pub(crate) starts: VecDeque<(usize, usize)>,
}

impl Ledger {
    /// Notes text that was read, and how much is emitted now; `token` is the last that has a part in it.
    pub(crate) fn read(&mut self, code_points: usize, token: usize, emitted: usize) {
        if self.read == self.emitted && code_points == emitted {
            self.kept = token; // nothing was held, and nothing is
            return;
        }
        if self.starts.back().is_none_or(|&(_, last)| last != token) {
            self.starts.push_back((self.read, token));
        }
        self.read += code_points;
        self.emit(emitted);
    }

    /// Notes how much is emitted now.
    pub(crate) fn emit(&mut self, code_points: usize) {
        self.emitted += code_points;
        while let Some(&(start, token)) = self.starts.front()
            && start < self.emitted
        {
            self.kept = token;
            self.starts.pop_front();
        }
        if self.emitted == self.read {
            (self.read, self.emitted) = (0, 0);
            if self.starts.capacity() > SPARE {
                self.starts = VecDeque::new();
            }
        }
    }

    /// Notes that the text of so many tokens was emitted at once, while nothing was held.
    #[inline]
    pub(crate) fn pass(&mut self, tokens: usize) {
        if tokens > 0 {
            self.seen += tokens;
            self.kept = self.seen;
        }
    }
}
