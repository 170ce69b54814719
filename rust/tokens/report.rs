//! What a stream of tokens says of itself.

use super::finish::Finish;
use super::stream::TokenStream;
use crate::stream::{Emit, Segmented, StopMatch};

impl<E: Emit, D> TokenStream<E, D> {
    /// What was safe after the last step.
    pub(crate) fn safe(&self) -> E::Tokens<'_> {
        E::tokens(&self.decoded.stream, &self.decoded.out)
    }

    /// Why the stream is over, as soon as it is.
    ///
    /// ```
    /// use stopscan::{Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("END").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.finish(), Some(Finish::StopSequence));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(&self) -> Option<Finish> {
        self.decoded.finish
    }

    /// The stop that fired. Its offset counts all the text, markers included.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The EN").text("D").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!(scanner.stop_match().unwrap().offset(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.decoded.stream.stop_match()
    }

    /// The text that is withheld because it may still turn into a hidden stop, or into a marker that does not stay.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The EN").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.held(), "EN");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> &str {
        self.decoded.stream.held()
    }

    /// The name of the region that is open.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().special("<think>").build()?;
    /// let scanner = StopScanner::new(&StopSet::builder().protect([("<think>", "</think>")]).build()?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.region(), "<think>");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn region(&self) -> &str {
        self.decoded.stream.region()
    }

    /// How many tokens were fed, for usage.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("a").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed(0)?;
    /// assert_eq!(scanner.tokens_seen(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_seen(&self) -> usize {
        self.decoded.ledger.seen
    }

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("The E").text("ND").build()?;
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default())?;
    /// scanner.feed_many(&[0, 1])?;
    /// assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (2, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_kept(&self) -> usize {
        self.decoded.ledger.kept
    }
}

impl TokenStream<Segmented> {
    /// How many tokens the emitted text of each region has, for a usage report. A token with
    /// text of several regions counts in the first of these regions. Markers, and tokens that were cut with a stop, count
    /// in no region.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed_many(&[0, 1, 2])?;
    /// assert!(segmenter.tokens_in().eq([("reasoning", 1), ("answer", 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_in(&self) -> impl Iterator<Item = (&str, usize)> {
        let counts = self.decoded.ledger.tally.iter().flat_map(|tally| tally.counts.iter().copied());
        self.decoded.stream.graph().regions().zip(counts)
    }
}
