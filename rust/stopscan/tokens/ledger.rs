use crate::tail::Tail;

/// A queue for more tokens than this is given back when it is empty: a server has many, and most hold nothing.
const SPARE: usize = 4;

/// Which tokens the emitted text is of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) seen: usize,
    pub(crate) kept: usize,
    /// How much text was read since nothing was held, and how much of it was emitted or taken out, in code points.
    pub(crate) read: usize,
    pub(crate) settled: usize,
    /// The token whose text goes on there.
    pub(crate) token: usize,
    /// Where in that text the part of each later token begins, and the token's number.
    pub(crate) starts: Tail<(usize, usize)>,
    /// The tokens of each region, where somebody asks for them.
    pub(crate) tally: Option<Box<Tally>>,
}

/// How many tokens have a part in the text of each region. Each counts once, where its text begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<usize>,
    /// The last token that was counted, and the last that has a part in a marker.
    pub(crate) counted: usize,
    pub(crate) marked: usize,
}

impl Ledger {
    pub(crate) fn new(tally: Option<Tally>) -> Ledger {
        Ledger { tally: tally.map(Box::new), ..Ledger::default() }
    }

    /// Begins a step.
    pub(crate) fn begin(&mut self) {
        self.starts.begin(SPARE);
    }

    /// Notes text that was read; `token` is the last that has a part in it.
    pub(crate) fn read(&mut self, code_points: usize, token: usize) {
        if self.read == self.settled {
            (self.read, self.settled, self.token) = (0, 0, token);
        } else if self.starts.last().map_or(self.token, |last| last.1) != token {
            self.starts.push((self.read, token));
        }
        self.read += code_points;
    }

    /// Notes how much is emitted now, in which region.
    pub(crate) fn emit(&mut self, region: u32, code_points: usize) {
        if code_points == 0 {
            return;
        }
        let first = self.token;
        self.kept = self.settle(code_points);
        if let Some(tally) = &mut self.tally {
            tally.count(region, first, self.kept);
        }
    }

    /// Notes a marker that was taken out.
    pub(crate) fn cut(&mut self, code_points: usize) {
        let last = self.settle(code_points);
        self.mark(last);
    }

    /// Notes that a token is a marker, or the end of one.
    pub(crate) fn mark(&mut self, token: usize) {
        if let Some(tally) = &mut self.tally {
            tally.marked = token;
        }
    }

    /// Goes on in the text; returns the last token that has a part in what was passed.
    fn settle(&mut self, code_points: usize) -> usize {
        self.settled += code_points;
        while let Some(&(_, token)) = self.starts.first().filter(|next| next.0 < self.settled) {
            self.token = token;
            self.starts.let_go(1);
        }
        self.token
    }

    /// Notes that the text of so many tokens was emitted at once in a region, while nothing was held.
    #[inline]
    pub(crate) fn pass(&mut self, region: u32, tokens: usize) {
        if tokens > 0 {
            let first = self.seen + 1;
            self.seen += tokens;
            self.kept = self.seen;
            if let Some(tally) = &mut self.tally {
                tally.count(region, first, self.kept);
            }
        }
    }
}

impl Tally {
    pub(crate) fn new(regions: usize) -> Tally {
        Tally { counts: vec![0; regions], ..Tally::default() }
    }

    /// Counts the tokens up to `last`, of which `first` has the first part in this text. Those before it that have no
    /// text of their own count with it.
    fn count(&mut self, region: u32, first: usize, last: usize) {
        let before = self.marked.min(first.saturating_sub(1)).max(self.counted);
        self.counts[region as usize] += last.saturating_sub(before);
        self.counted = last;
    }
}
