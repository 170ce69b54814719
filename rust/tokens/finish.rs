/// Why a stream of tokens is over.
///
/// ```
/// use stopscan::{EndReason, Finish, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().text("a").special("</s>").build()?;
/// let options = TokenOptions::default().eos_token_ids([1]);
/// let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["END"])?), &options)?;
/// scanner.feed(1)?;
/// assert_eq!(scanner.finish(), Some(Finish::Ended(EndReason::Eos)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Finish {
    /// A stop string completed; it is the stream's `stop_match`.
    StopSequence,
    /// This token is one of those that stop.
    StopToken(u32),
    /// It ended for another reason.
    Ended(EndReason),
}

/// What ends a stream without a stop, as `stopscan.finish` names it.
///
/// ```
/// use stopscan::EndReason;
///
/// assert_eq!(EndReason::ToolCalls.name(), "tool_calls");
/// assert_eq!(EndReason::from_name("tool_calls"), Some(EndReason::ToolCalls));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The model ended the text.
    Eos,
    /// As many tokens were read as are wanted.
    Length,
    /// The model calls tools.
    ToolCalls,
    /// A filter removed the rest.
    ContentFilter,
    /// The model refused.
    Refusal,
    /// The turn is to go on later.
    Pause,
    /// The stream was given up. Nothing is confirmed by its end.
    Abort,
    /// The model repeats itself.
    Repetition,
    /// Nobody documented why.
    Unknown,
}

impl EndReason {
    const NAMES: [(EndReason, &'static str); 9] = [
        (EndReason::Eos, "eos"),
        (EndReason::Length, "length"),
        (EndReason::ToolCalls, "tool_calls"),
        (EndReason::ContentFilter, "content_filter"),
        (EndReason::Refusal, "refusal"),
        (EndReason::Pause, "pause"),
        (EndReason::Abort, "abort"),
        (EndReason::Repetition, "repetition"),
        (EndReason::Unknown, "unknown"),
    ];

    /// Its name.
    ///
    /// ```
    /// assert_eq!(stopscan::EndReason::Eos.name(), "eos");
    /// ```
    pub fn name(self) -> &'static str {
        EndReason::NAMES[self as usize].1
    }

    /// The reason of this name, if there is one.
    ///
    /// ```
    /// assert_eq!(stopscan::EndReason::from_name("stop"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<EndReason> {
        EndReason::NAMES.iter().find(|known| known.1 == name).map(|known| known.0)
    }

    pub(super) fn from_number(number: usize) -> Option<EndReason> {
        EndReason::NAMES.get(number).map(|known| known.0)
    }
}
