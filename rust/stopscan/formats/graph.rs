//! Makes the states of a format from its pairs of markers.

use super::{Format, Pair};
use crate::{SegmentSet, SegmentSetBuilder, Target, keep, stay};

/// A state of a stream in a format: its name and its markers. The name of its region is the part of the state's name
/// before the first slash.
///
/// ```
/// use stopscan::Format;
///
/// let states = Format::named("qwen3_coder").unwrap().states();
/// let state = states.iter().find(|state| state.name() == "tool_call/in reasoning").unwrap();
/// let leads: Vec<_> = state.markers().collect();
/// assert_eq!(leads[0], ("</tool_call>", "answer/after reasoning".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    name: String,
    markers: Vec<(&'static str, Target)>,
}

impl State {
    /// The name of the state.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert_eq!(Format::named("harmony").unwrap().states()[0].name(), "header");
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The markers that count in the state, each with the state to which it leads.
    ///
    /// ```
    /// use stopscan::{Format, keep};
    ///
    /// let states = Format::named("phi4_mini").unwrap().states();
    /// assert!(states[0].markers().any(|lead| lead == ("functools[", keep("tool_call/bare"))));
    /// ```
    pub fn markers(&self) -> impl Iterator<Item = (&'static str, Target)> {
        self.markers.iter().cloned()
    }

    fn new(name: impl Into<String>) -> State {
        State { name: name.into(), markers: Vec::new() }
    }

    /// Adds markers that lead to `target`. Leaves out markers that are empty or were added before.
    fn add(&mut self, markers: impl IntoIterator<Item = &'static str>, target: impl Into<Target>) {
        let target = target.into();
        for marker in markers {
            if !marker.is_empty() && self.markers.iter().all(|known| known.0 != marker) {
                self.markers.push((marker, target.clone()));
            }
        }
    }
}

impl Format {
    /// The states of the format. A stream begins in the first of them.
    ///
    /// A part ends at its closing marker. But some models forget that marker, or write it twice. Therefore, reasoning
    /// also ends where another part opens, and a closing marker in the answer is left out of the text. Repeated opening
    /// markers are also left out: those of the reasoning in the reasoning, and those of the answer in the answer.
    ///
    /// A call that begins in the reasoning ends the reasoning. In such a call the closing marker of the reasoning leads
    /// to the answer: if the reasoning only quoted the marker of a call, the answer is not lost. In a call that began
    /// in the answer, the closing marker of the reasoning is text. In the body of a call (`<function=…>` to
    /// `</function>`) all markers but the body's own closing marker are text. After the reasoning has ended, the
    /// opening marker of the reasoning is text, unless the format's own parsers open the reasoning again.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// let states = Format::named("think").unwrap().states();
    /// let names: Vec<_> = states.iter().map(|state| state.name()).collect();
    /// assert_eq!(names, ["answer", "reasoning", "answer/after reasoning"]);
    /// ```
    pub fn states(&self) -> Vec<State> {
        if !self.states.is_empty() {
            let owned = |&(name, markers): &(&'static str, super::Markers)| State {
                name: name.into(),
                markers: markers.iter().map(|&(marker, state)| (marker, state.into())).collect(),
            };
            return self.states.iter().map(owned).collect();
        }
        let after = if self.reopens { "answer" } else { "answer/after reasoning" };
        let mut states = vec![self.answer_state("answer", &CALLS, after)];
        if !self.reasoning.is_empty() {
            states.extend(self.thoughts(after));
        }
        states.extend(self.calls(&CALLS, "answer"));
        if !self.reasoning.is_empty() {
            if self.marks_calls() {
                states.extend(self.calls(&CALLS_IN_REASONING, after));
            }
            if !self.reopens {
                states.push(self.answer_state(after, &CALLS_AFTER_REASONING, after));
                states.extend(self.calls(&CALLS_AFTER_REASONING, after));
            }
        }
        states
    }

    /// Returns a builder of a set with the states of the format. Stops can be added to it.
    ///
    /// ```
    /// use stopscan::{Format, Segmenter};
    ///
    /// let format = Format::named("qwen3_coder").unwrap();
    /// let set = format.segments().stop(["END"]).stop_in(["answer"]).build()?;
    /// let mut segmenter = Segmenter::new(&set);
    /// let segments = segmenter.feed("<think>END?</think>Yes. <function=f>");
    /// let segments: Vec<_> = segments.into_iter().map(|segment| (segment.region, segment.text.to_string())).collect();
    /// let expected = [("reasoning", "END?"), ("answer", "Yes. "), ("tool_call", "<function=f>")];
    /// assert_eq!(segments, expected.map(|(region, text)| (region, text.to_string())));
    /// # Ok::<(), stopscan::StopSetError>(())
    /// ```
    pub fn segments(&self) -> SegmentSetBuilder {
        self.states()
            .into_iter()
            .fold(SegmentSet::builder(), |builder, state| builder.region(state.name, state.markers))
    }

    /// Makes a state of the answer with this `name`. The opening markers of calls lead from it to the states in
    /// `calls`. The closing marker of the reasoning leads to the state `after`. Exception: if that marker is a
    /// `phrase`, an answer may contain it, so it is ordinary text.
    fn answer_state(&self, name: &'static str, calls: &Calls, after: &'static str) -> State {
        let mut state = State::new(name);
        if name != after || self.reopens {
            state.add(opening(self.reasoning), self.opened());
        }
        state.add(opening(self.tool_call), calls.marked);
        if let Some(bare) = self.bare_calls(calls) {
            state.add(self.bare.iter().copied(), keep(self.body_of(bare)));
        }
        state.add(opening(self.answer), name);
        state.add(closing(self.answer), name);
        state.add(closing(self.tool_call), name);
        if !self.phrase {
            state.add(closing(self.reasoning), after);
        }
        state
    }

    /// The state to which the opening marker of the reasoning leads.
    fn opened(&self) -> &'static str {
        if self.title.is_empty() { "reasoning" } else { "reasoning/at its title" }
    }

    /// Makes the state of the reasoning. If the reasoning may have a title, also makes the state before the title.
    fn thoughts(&self, after: &'static str) -> Vec<State> {
        let mut thoughts = State::new("reasoning");
        thoughts.add(closing(self.reasoning), after);
        thoughts.add(opening(self.reasoning), self.opened());
        thoughts.add(opening(self.tool_call), "tool_call/in reasoning");
        thoughts.add(opening(self.answer), after);
        if self.title.is_empty() {
            return vec![thoughts];
        }
        let mut titled = State { name: self.opened().into(), ..thoughts.clone() };
        titled.add([self.title], "reasoning");
        // If a space or a line break comes before the title is complete, the text is ordinary reasoning.
        titled.add([" ", "\n"], keep("reasoning"));
        vec![thoughts, titled]
    }

    /// Makes the states of tool calls. A call ends at a closing marker of calls.
    ///
    /// - In some formats calls have no closing marker (`unclosed`). A call then ends at the opening marker of the next
    ///   call.
    /// - A bare call is a call whose opening marker stays in its text. It also ends where the next bare call begins.
    /// - If a bare call's opening marker comes inside another kind of call, it begins the body (the arguments) of that
    ///   call. If the format has no bodies, the marker is ordinary text there.
    fn calls(&self, calls: &Calls, after: &'static str) -> Vec<State> {
        let call = |name| {
            let mut call = State::new(name);
            call.add(closing(self.tool_call), after);
            if calls.in_reasoning {
                call.add(closing(self.reasoning), after);
            }
            call
        };
        let mut states = Vec::new();
        if self.marks_calls() {
            states.push(call(calls.marked));
        }
        if self.unclosed {
            states.push(call(calls.next));
            states[0].add(opening(self.tool_call), calls.next);
            states[1].add(opening(self.tool_call), calls.marked);
        }
        if self.marks_calls() && !self.body.is_empty() {
            states[0].add(self.bare.iter().copied(), stay(self.body_of(calls.marked)));
            states.push(self.body(calls.marked));
        }
        if let Some(name) = self.bare_calls(calls) {
            let mut bare = call(name);
            bare.add(self.bare.iter().copied(), keep(self.body_of(name)));
            states.push(bare);
            if !self.body.is_empty() {
                states.push(self.body(name));
            }
        }
        states
    }

    /// Makes the state for the body of a call: the part with the arguments. In this state only the closing marker of
    /// the body counts, because the arguments may quote any other marker.
    fn body(&self, call: &str) -> State {
        let mut body = State::new(self.body_of(call));
        body.add([self.body], stay(call));
        body
    }

    /// Takes the name of a state of calls, such as `tool_call`, and returns the name of the state for the body of these
    /// calls: `tool_call/body`. If the format has no bodies, returns `call` unchanged.
    fn body_of(&self, call: &str) -> String {
        match call.split_once('/') {
            _ if self.body.is_empty() => call.into(),
            Some((region, state)) => format!("{region}/body {state}"),
            None => format!("{call}/body"),
        }
    }

    /// Whether calls have an opening marker that is taken out of the text.
    fn marks_calls(&self) -> bool {
        opening(self.tool_call).any(|marker| !marker.is_empty())
    }

    /// The state of bare calls: calls whose opening marker stays in their text. `None` if the format has no bare calls,
    /// or if `calls` has no state for them.
    fn bare_calls(&self, calls: &Calls) -> Option<&'static str> {
        let name = if self.marks_calls() { calls.bare } else { Some(calls.marked) };
        name.filter(|_| !self.bare.is_empty())
    }
}

/// The names of the states of one group of tool calls: of those that begin in the state `answer`, in the reasoning, or
/// in the state `answer/after reasoning`. All calls of a group lead back to the same state of the answer.
///
/// A marker that is taken out begins a new part only if it leads to a different state. So if calls have no closing
/// marker (`unclosed`), the states `marked` and `next` alternate from call to call, and each call is a separate part.
struct Calls {
    /// The state of a call whose opening marker is taken out of the text. If the format has no such marker, the state
    /// of a bare call.
    marked: &'static str,
    /// If calls have no closing marker: the state of a call that directly follows a call in the state `marked`.
    next: &'static str,
    /// The state of a bare call, which begins with a marker that stays in its text. `None` if this group has no bare
    /// calls.
    bare: Option<&'static str>,
    /// Whether the calls begin inside the reasoning. If so, the closing marker of the reasoning also ends a call.
    in_reasoning: bool,
}

const CALLS: Calls =
    Calls { marked: "tool_call", next: "tool_call/next", bare: Some("tool_call/bare"), in_reasoning: false };

const CALLS_IN_REASONING: Calls =
    Calls { marked: "tool_call/in reasoning", next: "tool_call/next in reasoning", bare: None, in_reasoning: true };

const CALLS_AFTER_REASONING: Calls = Calls {
    marked: "tool_call/after reasoning",
    next: "tool_call/next after reasoning",
    bare: Some("tool_call/bare after reasoning"),
    in_reasoning: false,
};

fn opening(pairs: &'static [Pair]) -> impl Iterator<Item = &'static str> {
    pairs.iter().map(|pair| pair.0)
}

fn closing(pairs: &'static [Pair]) -> impl Iterator<Item = &'static str> {
    pairs.iter().map(|pair| pair.1)
}
