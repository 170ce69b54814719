//! How today's models mark the parts of an answer, as data.

use std::fmt;

mod graph;
mod headers;
mod parts;

pub use graph::State;

/// Markers, each with the state that it leads to.
type Markers = &'static [(&'static str, &'static str)];

/// The opening and the closing marker of a part. An empty string means that there is no such marker.
type Pair = (&'static str, &'static str);

/// How a family of models marks the parts of an answer: reasoning, answer and tool calls.
///
/// The text that people read is that of the regions `answer` and `reasoning`, the calls are in `tool_call`; text of any
/// other region, such as a header, is not for a reader.
///
/// ```
/// use stopscan::Format;
///
/// let format = Format::named("qwen3").unwrap();
/// assert!(format.source().starts_with("Qwen3, QwQ"));
/// let states = format.states();
/// assert_eq!(states[0].name(), "answer"); // where a stream begins
/// assert!(states[0].markers().any(|(marker, state, _)| (marker, state) == ("<think>", "reasoning")));
/// ```
#[derive(Clone, Copy)]
pub struct Format {
    name: &'static str,
    source: &'static str,
    /// Where a form has headers, all of its states; otherwise they are made of the parts.
    states: &'static [(&'static str, Markers)],
    reasoning: &'static [Pair],
    tool_call: &'static [Pair],
    answer: &'static [Pair],
    /// What begins a call in the answer and belongs to it.
    bare: &'static [&'static str],
    /// What may follow the opening marker of the reasoning, and is left out with it.
    title: &'static str,
    /// Whether the opening marker opens the reasoning again after it has ended.
    reopens: bool,
    /// Whether the closing marker of the reasoning is a phrase, which an answer may have, too.
    phrase: bool,
    /// Whether each call has an opening marker of its own, and no closing one: the marker ends the call before.
    unclosed: bool,
}

impl Format {
    /// The form of this name.
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

    /// All forms.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert!(Format::all().all(|format| Format::named(format.name()).is_some()));
    /// ```
    pub fn all() -> impl Iterator<Item = &'static Format> {
        parts::PARTS.iter().chain(headers::HEADERS)
    }

    /// Its name, which is that of vLLM's parser where there is one.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert!(Format::all().any(|format| format.name() == "mistral"));
    /// ```
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Which models write the form, and where it is documented.
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
        let (title, reopens, phrase, unclosed) = ("", false, false, false);
        Format { name, source, states, reasoning, tool_call, answer, bare, title, reopens, phrase, unclosed }
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
