//! Counts the tokens of a stream: those with a part in the emitted text, and those of each region, such as reasoning.

use std::collections::VecDeque;

/// The room that an empty queue keeps, in tokens. Any further memory is freed, because a server has many streams, and
/// most have empty queues.
const SPARE: usize = 4;

/// Counts the tokens of one stream: `seen` tokens were read, and the token with the number `kept` is the last with a
/// part in the emitted text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) seen: usize,
    pub(crate) kept: usize,
    /// Two counts of code points since the last moment at which no text was withheld. `read` counts the code points
    /// that were read. `settled` counts how many of these were emitted, or taken out of the text as part of a marker.
    pub(crate) read: usize,
    pub(crate) settled: usize,
    /// The number of the token with the last settled character. If no character is settled yet, the number of the token
    /// with the first character that was read.
    pub(crate) token: usize,
    /// For each token after `token`: the value that `read` had where the token's text begins, and the token's number.
    pub(crate) starts: VecDeque<(usize, usize)>,
    /// The number of tokens of each region. `None` for a `StopSet` that has only one region.
    pub(crate) tally: Option<Box<Tally>>,
}

/// Stored instead of a region for a token that completes a marker: such a token counts in no region.
pub(crate) const NO_REGION: u32 = u32::MAX;

/// The number of tokens of each region. A token belongs to the region of its last character. A token is counted as soon
/// as text of this token or of a later one is emitted, or taken out as part of a marker. A token that a stop cuts off
/// is never counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<usize>,
    /// The tokens up to this number are done: each was counted in its region, or has no region.
    pub(crate) counted: usize,
    /// The number of the last token that was emitted or taken out, at least in part. All tokens up to this one can be
    /// counted.
    pub(crate) settled: usize,
    /// The tokens after `counted`, grouped in runs of tokens of one region. An entry is a run: the number of its last
    /// token, and its region.
    pub(crate) waiting: VecDeque<(usize, u32)>,
}

impl Ledger {
    pub(crate) fn new(tally: Option<Tally>) -> Ledger {
        Ledger { tally: tally.map(Box::new), ..Ledger::default() }
    }

    /// Frees memory that the empty queues do not need. Called before tokens are read.
    pub(crate) fn begin(&mut self) {
        if self.starts.is_empty() {
            self.starts.shrink_to(SPARE);
        }
        if let Some(tally) = &mut self.tally
            && tally.waiting.is_empty()
        {
            tally.waiting.shrink_to(SPARE);
        }
    }

    /// Notes that `code_points` of text were read. `token` is the number of the last token that has a part in this
    /// text.
    pub(crate) fn read(&mut self, code_points: usize, token: usize) {
        if self.read == self.settled {
            (self.read, self.settled, self.token) = (0, 0, token);
        } else if self.starts.back().map_or(self.token, |last| last.1) != token {
            self.starts.push_back((self.read, token));
        }
        self.read += code_points;
    }

    /// Notes that the next `code_points` of the text are emitted now.
    pub(crate) fn emit(&mut self, code_points: usize) {
        if code_points > 0 {
            self.settle(code_points);
            self.kept = self.token;
        }
    }

    /// Notes that the next `code_points` of the text were emitted, or taken out as part of a marker.
    pub(crate) fn settle(&mut self, code_points: usize) {
        self.settled += code_points;
        while let Some(&(_, token)) = self.starts.front().filter(|next| next.0 < self.settled) {
            self.token = token;
            self.starts.pop_front();
        }
        if let Some(tally) = &mut self.tally {
            tally.settle(self.token);
        }
    }

    /// Counts one token, whose last character lies in `region`.
    pub(crate) fn count(&mut self, region: u32) {
        self.seen += 1;
        if let Some(tally) = &mut self.tally {
            tally.add(self.seen, region);
        }
    }

    /// Notes that `token`, a skipped special token, is a marker. So all tokens before it are now counted in their
    /// regions.
    pub(crate) fn mark(&mut self, token: usize) {
        if let Some(tally) = &mut self.tally {
            tally.settle(token);
        }
    }

    /// Counts tokens whose whole text was emitted in one region while no text was withheld.
    #[inline]
    pub(crate) fn skip(&mut self, region: u32, tokens: usize) {
        if tokens > 0 {
            self.seen += tokens;
            self.kept = self.seen;
            if let Some(tally) = &mut self.tally {
                tally.add(self.seen, region);
                tally.settle(self.seen);
            }
        }
    }
}

impl Tally {
    pub(crate) fn new(regions: usize) -> Tally {
        Tally { counts: vec![0; regions], ..Tally::default() }
    }

    /// Adds the tokens after the last added one, up to the number `last`. The last character of each of them lies in
    /// `region`.
    fn add(&mut self, last: usize, region: u32) {
        match self.waiting.back_mut() {
            Some(run) if run.1 == region => run.0 = last,
            _ => self.waiting.push_back((last, region)),
        }
        self.settle(self.settled);
    }

    /// Counts the added tokens up to `token`.
    fn settle(&mut self, token: usize) {
        self.settled = token;
        while let Some(&(last, region)) = self.waiting.front().filter(|_| self.counted < token) {
            let counted = last.min(token);
            if let Some(count) = self.counts.get_mut(region as usize) {
                *count += counted - self.counted;
            }
            self.counted = counted;
            if counted == last {
                self.waiting.pop_front();
            }
        }
    }
}
