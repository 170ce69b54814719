use super::{Emit, Output, Stream, Text};
use crate::set::StopSet;
use crate::text::Released;

/// Scans one stream of text: deltas in, safe text out.
///
/// ```
/// use stopscan::{StopScanner, StopSet};
///
/// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
/// assert_eq!(scanner.feed("The E").text, "The ");
/// assert_eq!(scanner.held(), "E");
/// let output = scanner.feed("ND.");
/// assert_eq!(output.stop_match.unwrap().offset(), 4);
/// assert_eq!(scanner.unused(), ".");
/// # Ok::<(), stopscan::StopSetError>(())
/// ```
pub type StopScanner = Stream<Text>;

impl Stream<Text> {
    /// The held text and `text`, which is not scanned. The partial match is forgotten; an open region stays open. After
    /// a match it is nothing.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let mut scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// scanner.feed("The EN");
    /// assert_eq!(scanner.bypass("D, which is no stop").text, "END, which is no stop");
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn bypass<'a>(&'a mut self, text: &'a str) -> Output<'a> {
        self.begin();
        let released = if self.has_fired() { Released::default() } else { self.pass_over(text) };
        Text::released(self, text, released)
    }

    /// The stops that it scans for.
    ///
    /// ```
    /// use stopscan::{StopScanner, StopSet};
    ///
    /// let scanner = StopScanner::new(&StopSet::new(["END"])?);
    /// assert_eq!(scanner.stops().len(), 1);
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn stops(&self) -> &StopSet {
        &self.set
    }
}
