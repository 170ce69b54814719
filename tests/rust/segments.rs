//! Tests of segmenters by example: the accessors of a set, errors, and cases that the random tests do not draw.

use stopscan::{MAX_REGIONS, MAX_SET_BYTES, Options, SegmentSet, SegmentSetBuilder, Segmenter, Segments, keep};

const NONE: [(&str, &str); 0] = [];

fn shared<T: Send + Sync>() {}

#[test]
fn everything_is_send_and_sync() {
    shared::<SegmentSet>();
    shared::<SegmentSetBuilder>();
    shared::<Segmenter>();
    shared::<Segments<'static>>();
}

fn thinking() -> SegmentSetBuilder {
    SegmentSet::builder()
        .region("answer", [("<think>", "reasoning"), ("<tool>", "tool")])
        .region("reasoning", [("</think>", "answer")])
        .region("tool", [("</tool>", "answer")])
}

#[test]
fn a_set_says_what_it_was_given() {
    let set = thinking().region("end", [("|", "end"), ("|", "end")]).build().unwrap();
    assert!(set.regions().eq(["answer", "reasoning", "tool", "end"]));
    assert_eq!(
        format!("{set:?}"),
        r#"SegmentSet { stop: [], visible: [], patterns: [], visible_patterns: [], regions: ["answer", "reasoning", "tool", "end"] }"#
    );
}

#[test]
fn the_region_after_a_prefix() {
    let set = thinking().stop(["END"]).build().unwrap();
    for (prefix, region) in [
        ("", "answer"),
        ("<thin", "answer"),
        ("<think>", "reasoning"),
        ("END<think>a</think>END<tool>", "tool"),
        ("<think><tool></think>", "answer"),
        ("é<tool>é</tool>é<think>", "reasoning"),
    ] {
        assert_eq!(set.region_after(prefix), region, "{prefix:?}");
    }
}

#[test]
fn a_segmenter_gives_its_set_back() {
    let set = thinking().build().unwrap();
    let segmenter = Segmenter::with_options(&set, &Options::default().region("tool")).unwrap();
    drop(set);
    assert!(segmenter.segments().regions().eq(["answer", "reasoning", "tool"]));
}

#[test]
fn text_on_both_sides_of_markers_is_put_together_by_region() {
    let set = SegmentSet::builder().region("a", [("|", "a"), (">", "b")]).region("b", [("<", "a"), ("|", "b")]);
    let set = set.build().unwrap();
    let mut segmenter = Segmenter::new(&set);
    for (delta, expected) in [
        ("x|y", vec![("a", "xy")]),
        ("plain", vec![("a", "plain")]),
        ("1|2>3|4<5||6>", vec![("a", "12"), ("b", "34"), ("a", "56")]),
        ("|||", vec![]),
        ("<>", vec![]),
        ("7<8|9", vec![("b", "7"), ("a", "89")]),
    ] {
        let segments: Vec<_> =
            segmenter.feed(delta).into_iter().map(|segment| (segment.region, segment.text)).collect();
        assert_eq!(segments, expected, "{delta:?}");
    }
}

#[test]
fn each_call_is_a_part_and_a_marker_that_leads_back_begins_none() {
    let set = SegmentSet::builder()
        .region("answer", [("<call>", "call"), ("|", "answer")])
        .region("call", [("</call>", "answer"), ("&", "call/next")])
        .region("call/next", [("f(", keep("call/next"))]);
    let text = "a|b<call>1</call><call>2&3f(4)f(5)";
    let expected = [
        ("answer", "ab", 0),
        ("call", "1", 1),
        ("call", "2", 3),
        ("call", "3", 4),
        ("call", "f(4)", 5),
        ("call", "f(5)", 6),
    ];
    let mut segmenter = Segmenter::new(&set.build().unwrap());
    let segments: Vec<_> = segmenter.feed(text).into_iter().map(|part| (part.region, part.text, part.part)).collect();
    assert_eq!(segments, expected);
    segmenter.reset();
    assert_eq!(segmenter.feed("x").into_iter().next().unwrap().part, 0);
}

#[test]
fn errors_name_the_culprit() {
    let one = || SegmentSet::builder().region("a", [("|", "a")]);
    let errors = [
        (SegmentSet::builder(), "the set needs at least one region"),
        (one().region("a", NONE), r#"there are two regions "a""#),
        (one().stop(["x", ""]), "stop 1 is empty"),
        (one().visible([""]), "visible stop 0 is empty"),
        (one().region("b", [("", "a")]), r#"a marker of region "b" is empty"#),
        (one().stop(["x"]).visible(["x"]), r#""x" is both a stop and a visible stop"#),
        (one().stop(["|"]), r#""|" is both a stop and a marker"#),
        (one().region("b", [("|", "c")]), r#"marker "|" of region "b": there is no region "c"; there are a, b"#),
        (one().stop_in(["a", "c"]), r#"stop_in: there is no region "c"; there are a"#),
        (one().region("b", [("|", "a"), ("|", "a"), ("|", "b")]), r#"marker "|" of region "b" leads to two regions"#),
        (
            one().region("b", [("<think>", "a"), ("thin", "b")]),
            r#"marker "<think>" of region "b" is never found: marker "thin" completes inside it"#,
        ),
        (
            one().region("b", [("==", "a"), ("-=-", "b"), ("-=", "b")]),
            r#"marker "-=-" of region "b" is never found: marker "-=" completes inside it"#,
        ),
        (one().patterns(["a", "("]), r#"pattern 1, "(": unclosed group"#),
    ];
    for (builder, message) in errors {
        assert_eq!(builder.build().unwrap_err().to_string(), message);
    }
    let set = one().build().unwrap();
    let error = Segmenter::with_options(&set, &Options::default().region("b")).unwrap_err();
    assert_eq!(error.to_string(), r#"region: there is no region "b"; there are a"#);
}

/// The limit on the bytes of a set counts a stop once for each region in which it can fire.
#[test]
fn a_set_may_be_as_large_as_the_limit_and_no_larger() {
    let stop = "s".repeat(MAX_SET_BYTES / 2 - 3);
    let set = |stops: &str, names: &[&str]| {
        let set = SegmentSet::builder().region("a", [("|", "b")]).region("b", [("|", "a")]);
        set.stop([&stop]).visible([stops]).patterns(["p"]).stop_in(names).build()
    };
    assert!(set("v", &["a", "b"]).is_ok());
    let error = set("vv", &["a", "b"]).unwrap_err();
    assert_eq!(error.to_string(), "the stops and markers have 8000002 bytes of UTF-8, and the limit is 8000000");
    assert!(set("vv", &["b"]).is_ok());
    let nowhere = set(&"v".repeat(MAX_SET_BYTES / 2 + 1), &[]).unwrap_err();
    assert_eq!(nowhere.to_string(), "the stops and markers have 8000001 bytes of UTF-8, and the limit is 8000000");
}

#[test]
fn a_set_may_have_as_many_regions_as_the_limit_and_no_more() {
    let regions = |count: usize| {
        (0..count).fold(SegmentSet::builder(), |set, number| set.region(number.to_string(), [("|", "0")])).build()
    };
    assert_eq!(regions(MAX_REGIONS).unwrap().regions().count(), MAX_REGIONS);
    assert_eq!(regions(MAX_REGIONS + 1).unwrap_err().to_string(), "there are 101 regions, and the limit is 100");
}

#[test]
fn max_held_is_of_each_match() {
    let set = SegmentSet::builder().region("a", [("|", "a")]).patterns(["<.*>"]).max_held(3).build().unwrap();
    let mut segmenter = Segmenter::new(&set);
    segmenter.feed("<ab");
    assert_eq!(segmenter.held(), "<ab");
    segmenter.feed("c");
    assert_eq!(segmenter.held(), "");
}
