//! The formats of known models: which markers begin and end each region. Python's tests compare the formats with vLLM's
//! parsers.

use std::collections::HashSet;

use stopscan::{Format, Segmenter};

fn segments(form: &str, text: &str) -> Vec<(String, String)> {
    let set = Format::named(form).unwrap().segments().build().unwrap();
    let mut segmenter = Segmenter::new(&set);
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |region: &str, text: &str| match all.last_mut() {
        Some(last) if last.0 == region => last.1.push_str(text),
        _ => all.push((region.into(), text.into())),
    };
    for character in text.chars() {
        segmenter.feed(character.encode_utf8(&mut [0; 4])).into_iter().for_each(|part| add(part.region, part.text));
    }
    segmenter.flush().into_iter().for_each(|part| add(part.region, part.text));
    all
}

#[test]
fn every_form_compiles_and_has_a_name_of_its_own() {
    let names: HashSet<&str> = Format::all().map(Format::name).collect();
    assert_eq!(names.len(), Format::all().count());
    for format in Format::all() {
        assert!(format.segments().build().is_ok(), "{format:?}");
        let states = format.states();
        assert!(["answer", "header"].contains(&states[0].name()), "{format:?}");
    }
}

#[test]
fn a_call_in_the_reasoning_ends_it_and_one_in_the_answer_may_quote_its_marker() {
    let text = "<think>a<tool_call>b</think>c<think>d<tool_call>e</think>f</tool_call>g";
    let expected =
        [("reasoning", "a"), ("tool_call", "b"), ("answer", "c<think>d"), ("tool_call", "e</think>f"), ("answer", "g")];
    assert_eq!(segments("qwen3", text), expected.map(|(region, text)| (region.into(), text.into())));
}

#[test]
fn a_channel_may_have_a_title() {
    for text in ["<|channel>thought\nA thought\nB<channel|>C", "<|channel>A thought\nB<channel|>C"] {
        let expected = [("reasoning", "A thought\nB"), ("answer", "C")];
        assert_eq!(segments("gemma4", text), expected.map(|(region, text)| (region.into(), text.into())));
    }
}
