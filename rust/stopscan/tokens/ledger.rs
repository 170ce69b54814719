//! Counts the tokens of a stream: how many have a part in the emitted text, and how many belong to each region, such as
//! the reasoning.

use std::collections::VecDeque;

/// An empty queue keeps memory for this many tokens. Any further memory is freed, because a server has many streams,
/// and their queues are mostly empty.
const SPARE: usize = 4;

/// Counts the tokens of one stream. `seen` counts the tokens that were read. `kept` counts the tokens up to the last
/// one with a part in the emitted text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) seen: usize,
    pub(crate) kept: usize,
    /// The number of code points that were read, and the number of code points that are settled: emitted, or taken out
    /// of the text as part of a marker. If these are equal, no text is withheld, and both counts begin at 0 again.
    pub(crate) read: usize,
    pub(crate) settled: usize,
    /// The position of the token to which the last settled code point belongs. Before any code point is settled, the
    /// position of the token that begins the text.
    pub(crate) token: usize,
    /// For each token after `token`: how many code points were read before its text, and the position of the token.
    pub(crate) starts: VecDeque<(usize, usize)>,
    /// The token count of each region. `None` for a scanner whose set has a single region, because `kept` is then its
    /// count.
    pub(crate) tally: Option<Box<Tally>>,
}

/// Stands for "no region" in `Tally::waiting`. A token that completes a marker counts in no region.
pub(crate) const NO_REGION: u32 = u32::MAX;

/// The token count of each region. A token belongs to the region of its last character. A token is counted as soon as
/// text of this token or of a later one is emitted, or taken out as part of a marker. A token that a stop cuts off is
/// never counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<usize>,
    /// How many tokens, from the first on, were handled: counted in their region, or left out because they have none.
    pub(crate) counted: usize,
    /// The position of the last token whose text was, at least in part, emitted, or taken out as part of a marker. All
    /// tokens up to this one can be counted.
    pub(crate) settled: usize,
    /// The tokens after `counted`, whose text was not emitted yet. An item stands for tokens of one region that follow
    /// each other: the position of the last of them, and their region.
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

    /// Records that a text with this many `code_points` was read. `token` is the position of the last token with a part
    /// in the text.
    pub(crate) fn read(&mut self, code_points: usize, token: usize) {
        if self.read == self.settled {
            (self.read, self.settled, self.token) = (0, 0, token);
        } else if self.starts.back().map_or(self.token, |last| last.1) != token {
            self.starts.push_back((self.read, token));
        }
        self.read += code_points;
    }

    /// Records that the next `code_points` code points of the text were emitted.
    pub(crate) fn emit(&mut self, code_points: usize) {
        if code_points > 0 {
            self.settle(code_points);
            self.kept = self.token;
        }
    }

    /// Records that the next `code_points` code points of the text were emitted, or taken out as part of a marker.
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

    /// Records that `token`, a special token without text, is a marker. No text is withheld at a marker, so all tokens
    /// before it are counted in their regions now.
    pub(crate) fn mark(&mut self, token: usize) {
        if let Some(tally) = &mut self.tally {
            tally.settle(token);
        }
    }

    /// Counts tokens of one region whose text was emitted at once, while no other text was withheld.
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

    /// Adds to `waiting` all tokens up to the position `last` that were not added yet. They all belong to `region`.
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
