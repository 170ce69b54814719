//! The markers that today's models write around their reasoning, answers and tool calls, as data. The tables of formats
//! are in `parts.rs` and `headers.rs`.

use std::fmt;

mod graph;
mod headers;
mod parts;

pub use graph::State;

/// Markers, each with the state to which it leads.
type Markers = &'static [(&'static str, &'static str)];

/// The opening and the closing marker of a part of the model's text, such as the reasoning. An empty string means that
/// there is no such marker.
type Pair = (&'static str, &'static str);

/// The format of a family of models: the markers of the reasoning, the answer and the tool calls.
///
/// People read the text of the regions `answer` and `reasoning`. The calls are in the region `tool_call`. The text of
/// any other region, such as a header, is not for a reader.
///
/// ```
/// use stopscan::Format;
///
/// let format = Format::named("qwen3").unwrap();
/// assert!(format.source().starts_with("Qwen3, QwQ"));
/// let states = format.states();
/// assert_eq!(states[0].name(), "answer"); // where a stream begins
/// assert!(states[0].markers().any(|(marker, state)| (marker, state.name()) == ("<think>", "reasoning")));
/// ```
#[derive(Clone, Copy)]
pub struct Format {
    name: &'static str,
    source: &'static str,
    /// All states of a format whose parts begin with headers. Empty for any other format: its states are made from the
    /// fields that follow.
    states: &'static [(&'static str, Markers)],
    reasoning: &'static [Pair],
    tool_call: &'static [Pair],
    answer: &'static [Pair],
    /// Markers that begin a call in the answer and stay in the text of the call.
    bare: &'static [&'static str],
    /// The closing marker of the body of a call. A body begins with a marker of `bare`, and may quote any marker except
    /// the closing marker of the body. Empty if the format has no bodies. A call then ends at its first closing marker,
    /// even if an argument quotes this marker, as in the format's own parsers.
    body: &'static str,
    /// A title, such as `thought`, that may follow the opening marker of the reasoning. The title is left out of the
    /// text, as the marker is.
    title: &'static str,
    /// Whether the opening marker of the reasoning opens the reasoning again after it has ended. A text may then have
    /// several parts of reasoning.
    reopens: bool,
    /// Whether the closing marker of the reasoning is a phrase that an answer may also contain.
    phrase: bool,
    /// Whether each call has an opening marker but no closing marker. A call then ends at the marker of the next call.
    unclosed: bool,
}

impl Format {
    /// Returns the format of this name.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert_eq!(Format::named("harmony").map(|format| format.name()), Some("harmony"));
    /// assert!(Format::named("html").is_none());
    /// ```
    pub fn named(name: &str) -> Option<&'static Format> {
        Format::all().find(|format| format.name == name)
    }

    /// Returns all formats.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert!(Format::all().all(|format| Format::named(format.name()).is_some()));
    /// ```
    pub fn all() -> impl Iterator<Item = &'static Format> {
        parts::PARTS.iter().chain(headers::HEADERS)
    }

    /// The name of the format. For most formats, this is also the name of a parser of vLLM.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert!(Format::all().any(|format| format.name() == "mistral"));
    /// ```
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The models that write the format, and the places where it is documented.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert_eq!(Format::named("muse").unwrap().source(), "Muse: vLLM's muse_glimmer");
    /// ```
    pub fn source(&self) -> &'static str {
        self.source
    }

    const fn graph(name: &'static str, source: &'static str, states: &'static [(&'static str, Markers)]) -> Format {
        let (reasoning, tool_call, answer, bare): (&[Pair], &[Pair], &[Pair], &[&str]) = (&[], &[], &[], &[]);
        let (body, title, reopens, phrase, unclosed) = ("", "", false, false, false);
        Format { name, source, states, reasoning, tool_call, answer, bare, body, title, reopens, phrase, unclosed }
    }

    const fn parts(name: &'static str, source: &'static str) -> Format {
        Format::graph(name, source, &[])
    }

    const fn reasoning(mut self, pairs: &'static [Pair]) -> Format {
        self.reasoning = pairs;
        self
    }

    const fn tool_call(mut self, pairs: &'static [Pair]) -> Format {
        self.tool_call = pairs;
        self
    }

    const fn answer(mut self, pairs: &'static [Pair]) -> Format {
        self.answer = pairs;
        self
    }

    const fn bare(mut self, openings: &'static [&'static str]) -> Format {
        self.bare = openings;
        self
    }

    /// Sets the markers that begin a call without a marker before it. Such a marker is the beginning of the call's
    /// body. The body ends with `closing`, and may quote all other markers.
    const fn bodies(mut self, openings: &'static [&'static str], closing: &'static str) -> Format {
        self.body = closing;
        self.bare(openings)
    }

    const fn titled(mut self, title: &'static str) -> Format {
        self.title = title;
        self
    }

    const fn reopens(mut self) -> Format {
        self.reopens = true;
        self
    }

    const fn unclosed_calls(mut self) -> Format {
        self.unclosed = true;
        self
    }

    const fn closed_by_a_phrase(mut self) -> Format {
        self.phrase = true;
        self
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).field("source", &self.source).finish_non_exhaustive()
    }
}
