//! Which tokens of a stream have a part in the text that was emitted, and in which regions they count.

use std::collections::VecDeque;

/// A queue with room for more tokens than this is freed when it is empty: a server has many streams, and most hold
/// nothing.
const SPARE: usize = 4;

/// The tokens of a stream: how many were fed, and which of them have a part in the text that was emitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) seen: usize,
    pub(crate) kept: usize,
    /// In code points, since nothing was held: how much text was read, and how much of it was emitted or taken out.
    pub(crate) read: usize,
    pub(crate) settled: usize,
    /// The token of the character at `settled`.
    pub(crate) token: usize,
    /// For each later token, where its text begins in that text, and its number.
    pub(crate) starts: VecDeque<(usize, usize)>,
    /// The tokens of each region, in sets with regions.
    pub(crate) tally: Option<Box<Tally>>,
}

/// The region of a token with which a marker ends: it counts in no region.
pub(crate) const NO_REGION: u32 = u32::MAX;

/// How many tokens each region has. A token counts in the region where its last character lies, once some of its text,
/// or a marker behind it, has gone out. Tokens that a stop cuts never count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<usize>,
    /// The last token that was counted.
    pub(crate) counted: usize,
    /// The last token some of whose text has gone out.
    pub(crate) settled: usize,
    /// The tokens behind `counted`, as runs: the last token of each run, and the region of the run.
    pub(crate) waiting: VecDeque<(usize, u32)>,
}

impl Ledger {
    pub(crate) fn new(tally: Option<Tally>) -> Ledger {
        Ledger { tally: tally.map(Box::new), ..Ledger::default() }
    }

    /// Begins a step.
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

    /// Notes text that was read. `token` is the last token that has a part in it.
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

    /// Notes that the next `code_points` of the text were emitted, or taken out.
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

    /// Notes that a token without text is a marker, so that the tokens before it have all gone out.
    pub(crate) fn mark(&mut self, token: usize) {
        if let Some(tally) = &mut self.tally {
            tally.settle(token);
        }
    }

    /// Counts tokens whose text was emitted at once in a region, while nothing was held.
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

    /// Adds the tokens up to `last`. Their last characters lie in `region`.
    fn add(&mut self, last: usize, region: u32) {
        match self.waiting.back_mut() {
            Some(run) if run.1 == region => run.0 = last,
            _ => self.waiting.push_back((last, region)),
        }
        self.settle(self.settled);
    }

    /// Counts the tokens up to `token`, as far as they were added.
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
