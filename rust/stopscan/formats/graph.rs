//! The states of a form, made of its parts.

use super::{Format, Pair};
use crate::{SegmentSet, SegmentSetBuilder, Target, keep};

/// Stays in the text, at the beginning of that of the state it leads to.
const KEPT: bool = true;

/// A state of a stream: its region is what stands before the first slash of its name.
///
/// ```
/// use stopscan::Format;
///
/// let states = Format::named("qwen3_coder").unwrap().states();
/// let state = states.iter().find(|state| state.name() == "tool_call/in reasoning").unwrap();
/// let leads: Vec<_> = state.markers().collect();
/// assert_eq!(leads[0], ("</tool_call>", "answer/after reasoning", false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    name: &'static str,
    markers: Vec<(&'static str, &'static str, bool)>,
}

impl State {
    /// Its name.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// assert_eq!(Format::named("harmony").unwrap().states()[0].name(), "header");
    /// ```
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The markers that are live in it, the state that each leads to, and whether the marker stays, as the beginning of
    /// the text there.
    ///
    /// ```
    /// use stopscan::Format;
    ///
    /// let states = Format::named("phi4_mini").unwrap().states();
    /// assert!(states[0].markers().any(|lead| lead == ("functools[", "tool_call", true)));
    /// ```
    pub fn markers(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        self.markers.iter().copied()
    }

    fn new(name: &'static str) -> State {
        State { name, markers: Vec::new() }
    }

    /// Adds markers that lead to `state`, without markers that are empty or there already.
    fn add(&mut self, markers: impl Iterator<Item = &'static str>, state: &'static str, kept: bool) {
        for marker in markers {
            if !marker.is_empty() && self.markers.iter().all(|known| known.0 != marker) {
                self.markers.push((marker, state, kept));
            }
        }
    }
}

impl Format {
    /// Its states; a stream begins in the first.
    ///
    /// A part ends at its closing marker. Models forget it, or write it twice, so: reasoning also ends where another part
    /// opens; a closing marker in the answer is left out, and so is an opening one in its own part.
    /// A call that begins in the reasoning ends it. There the closing marker of the reasoning leads to the answer, so that
    /// reasoning that only quotes a call's marker costs no answer; a call that began in the answer may quote it.
    /// After the reasoning its opening marker is text, unless the form's own parsers open it again.
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
                name,
                markers: markers.iter().map(|&(marker, state)| (marker, state, false)).collect(),
            };
            return self.states.iter().map(owned).collect();
        }
        let after = if self.reopens { "answer" } else { "answer/after reasoning" };
        let call_after = if self.reopens { "tool_call" } else { "tool_call/after reasoning" };
        let mut states = vec![self.answer_state("answer", "tool_call", after)];
        if !self.reasoning.is_empty() {
            states.extend(self.thoughts(after));
        }
        if !self.tool_call.is_empty() {
            states.push(self.call("tool_call", "answer"));
        }
        if !self.reasoning.is_empty() {
            if opening(self.tool_call).any(|marker| !marker.is_empty()) {
                let mut call = self.call("tool_call/in reasoning", after);
                call.add(closing(self.reasoning), after, false);
                states.push(call);
            }
            if !self.reopens {
                states.push(self.answer_state(after, call_after, after));
            }
            if !self.reopens && !self.tool_call.is_empty() {
                states.push(self.call(call_after, after));
            }
        }
        states
    }

    /// A set of these states, for stops to be added.
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
        self.states().into_iter().fold(SegmentSet::builder(), |builder, state| {
            let lead = |(marker, name, kept)| (marker, if kept { keep(name) } else { Target::from(name) });
            builder.region(state.name, state.markers().map(lead))
        })
    }

    /// An answer, whose calls are `call`; the closing marker of the reasoning leads to the state `after` it.
    fn answer_state(&self, name: &'static str, call: &'static str, after: &'static str) -> State {
        let mut state = State::new(name);
        if name != after || self.reopens {
            state.add(opening(self.reasoning), self.opened(), false);
        }
        state.add(opening(self.tool_call), call, false);
        state.add(self.bare.iter().copied(), call, KEPT);
        state.add(opening(self.answer), name, false);
        state.add(closing(self.answer), name, false);
        state.add(closing(self.tool_call), name, false);
        if !self.phrase {
            state.add(closing(self.reasoning), after, false);
        }
        state
    }

    /// Where the opening marker of the reasoning leads.
    fn opened(&self) -> &'static str {
        if self.title.is_empty() { "reasoning" } else { "reasoning/at its title" }
    }

    /// The reasoning; where it may have a title, also before that.
    fn thoughts(&self, after: &'static str) -> Vec<State> {
        let mut thoughts = State::new("reasoning");
        thoughts.add(closing(self.reasoning), after, false);
        thoughts.add(opening(self.reasoning), self.opened(), false);
        thoughts.add(opening(self.tool_call), "tool_call/in reasoning", false);
        thoughts.add(opening(self.answer), after, false);
        if self.title.is_empty() {
            return vec![thoughts];
        }
        let mut titled = State { name: self.opened(), ..thoughts.clone() };
        titled.add([self.title].into_iter(), "reasoning", false);
        // What is no title: its first word is over.
        titled.add([" ", "\n"].into_iter(), "reasoning", KEPT);
        vec![thoughts, titled]
    }

    fn call(&self, name: &'static str, after: &'static str) -> State {
        let mut state = State::new(name);
        state.add(closing(self.tool_call), after, false);
        state
    }
}

fn opening(pairs: &'static [Pair]) -> impl Iterator<Item = &'static str> {
    pairs.iter().map(|pair| pair.0)
}

fn closing(pairs: &'static [Pair]) -> impl Iterator<Item = &'static str> {
    pairs.iter().map(|pair| pair.1)
}
