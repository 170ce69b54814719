use super::native::Native;
use super::options::TokenOptions;
use super::stream::Finish;
use crate::segmenter::{Segmenter, Segments};
use crate::stop_match::StopMatch;
use crate::vocabulary::{UnknownToken, Vocabulary};

/// Cuts one stream of token ids into segments: [`feed`](TokenSegmenter::feed) returns the text that is safe to emit with
/// its region, [`finish`](TokenSegmenter::finish) says why the stream ended.
///
/// It is to a [`Segmenter`] what a [`TokenScanner`](crate::TokenScanner) is to a
/// [`StopScanner`](crate::StopScanner). A marker that is one special token leads to its region although it is skipped; one that is spelled by several
/// tokens, some of them special, is found only if these are not.
///
/// ```
/// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
///
/// let set = SegmentSet::builder()
///     .region("answer", [("<think>", "reasoning")])
///     .region("reasoning", [("</think>", "answer")])
///     .build()?;
/// let vocabulary = Vocabulary::builder().special("<think>").text("5?").text("</").text("think>").text("6").build()?;
/// let mut segmenter = TokenSegmenter::new(&vocabulary, Segmenter::new(&set), &TokenOptions::default())?;
/// let mut answer = String::new();
/// for id in [0, 1, 1, 2, 3, 4] {
///     for segment in segmenter.feed(id)? {
///         if segment.region == "answer" {
///             answer += &segment.text;
///         }
///     }
/// }
/// assert_eq!(answer, "6");
/// assert!(segmenter.tokens_in().eq([("answer", 1), ("reasoning", 2)]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TokenSegmenter(Native<Segmenter>);

impl TokenSegmenter {
    /// A segmenter at the start of a stream, whose text `segmenter` cuts.
    ///
    /// # Errors
    /// When an id of the prompt is no token's. One that ends the stream need be none.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let options = TokenOptions { prompt_token_ids: vec![9], ..TokenOptions::default() };
    /// assert!(TokenSegmenter::new(&vocabulary, segmenter, &options).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        vocabulary: &Vocabulary,
        segmenter: Segmenter,
        options: &TokenOptions,
    ) -> Result<TokenSegmenter, UnknownToken> {
        Native::new(vocabulary, segmenter, options).map(TokenSegmenter)
    }

    /// The segments that are safe to emit now that `id` was read. Once the stream is over there are none, and nothing
    /// changes.
    ///
    /// # Errors
    /// When no token has this id; the stream is then as before. An id that ends the stream need be no token's.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// assert_eq!(segmenter.feed(0)?.into_iter().next().unwrap().region, "reasoning");
    /// assert!(segmenter.feed(1)?.into_iter().next().is_none());
    /// let segment = segmenter.feed(2)?.into_iter().next().unwrap();
    /// assert_eq!((segment.region, &*segment.text), ("answer", "6"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn feed(&mut self, id: u32) -> Result<Segments<'_>, UnknownToken> {
        if self.0.pass(id) {
            let mut segments = Segments::new(None);
            segments.push(self.region(), self.0.text(id).into());
            return Ok(segments);
        }
        self.0.feed(id)?;
        Ok(self.out())
    }

    /// The segments of the rest, when the stream ends for another reason: half a character as U+FFFD, and what is held.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(1)?;
    /// assert_eq!(segmenter.close().into_iter().next().unwrap().text, "</");
    /// assert_eq!(segmenter.finish(), Some(stopscan::Finish::Closed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn close(&mut self) -> Segments<'_> {
        self.0.close();
        self.out()
    }

    /// Goes back to the start of the stream, after the prompt.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(1)?;
    /// segmenter.reset();
    /// assert_eq!((segmenter.held(), segmenter.tokens_seen()), ("", 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The region that is open.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(1)?;
    /// segmenter.feed(2)?;
    /// assert_eq!(segmenter.region(), "answer");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn region(&self) -> &str {
        self.0.stream.reader.region()
    }

    /// Why the stream is over, as soon as it is.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(3)?;
    /// assert_eq!(segmenter.finish(), Some(stopscan::Finish::StopSequence));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(&self) -> Option<Finish> {
        self.0.stream.finish
    }

    /// The stop that fired. Its offset counts all the text, markers included.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// for id in [1, 2, 3] {
    ///     segmenter.feed(id)?;
    /// }
    /// assert_eq!(segmenter.stop_match().unwrap().offset(), 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stop_match(&self) -> Option<StopMatch<'_>> {
        self.0.stream.reader.stop_match()
    }

    /// The text that is withheld because it may still turn into a marker or a hidden stop.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(1)?;
    /// assert_eq!(segmenter.held(), "</");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn held(&self) -> &str {
        self.0.stream.reader.held()
    }

    /// How many tokens were fed, for usage.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// segmenter.feed(1)?;
    /// assert_eq!(segmenter.tokens_seen(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_seen(&self) -> usize {
        self.0.stream.ledger.seen
    }

    /// How many tokens there are up to the last that has a part in the emitted text: where to cut ids and logprobs.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// for id in [0, 1, 2, 3] {
    ///     segmenter.feed(id)?;
    /// }
    /// assert_eq!((segmenter.tokens_seen(), segmenter.tokens_kept()), (4, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_kept(&self) -> usize {
        self.0.stream.ledger.kept
    }

    /// How many tokens the emitted text of each region has, for a usage report. One that has a part in several counts in
    /// the first; markers, and what was cut with a stop, count in none.
    ///
    /// ```
    /// use stopscan::{SegmentSet, Segmenter, TokenOptions, TokenSegmenter, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().text("5?").text("</").text("think>6").text("END").build()?;
    /// let set = SegmentSet::builder().region("reasoning", [("</think>", "answer")]).region("answer", [("|", "answer")]);
    /// let segmenter = Segmenter::new(&set.stop(["END"]).build()?);
    /// let mut segmenter = TokenSegmenter::new(&vocabulary, segmenter, &TokenOptions::default())?;
    /// for id in [0, 1, 2, 3] {
    ///     segmenter.feed(id)?;
    /// }
    /// assert!(segmenter.tokens_in().eq([("reasoning", 1), ("answer", 1)]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tokens_in(&self) -> impl Iterator<Item = (&str, usize)> {
        let counts = self.0.stream.ledger.tally.iter().flat_map(|tally| tally.counts.iter().copied());
        self.0.stream.reader.segments().regions().zip(counts)
    }

    fn out(&self) -> Segments<'_> {
        let reader = &self.0.stream.reader;
        let mut segments = Segments::new(reader.stop_match());
        for (region, text) in self.0.stream.out() {
            segments.push(reader.segments().name(*region), text.as_str().into());
        }
        segments
    }
}
