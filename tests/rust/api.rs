//! Tests of the public types, apart from finding stops: threads, sizes, accessors, limits and errors.

use std::error::Error;

use stopscan::{MAX_REGIONS, MAX_SET_BYTES, Options, StopMatch, StopScanner, StopSet, StopSetBuilder, StopSetError};

fn shared<T: Send + Sync>() {}

#[test]
fn everything_is_send_and_sync() {
    shared::<StopSet>();
    shared::<StopSetBuilder>();
    shared::<StopScanner>();
    shared::<StopMatch<'static>>();
    shared::<StopSetError>();
}

#[test]
fn one_set_serves_many_threads() {
    let set = StopSet::new(["END"]).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let set = &set;
            scope.spawn(move || {
                // The first search in a long text builds the prefilter of the set (a vector search). Here all threads
                // do so at the same time.
                let text = ".".repeat(1_000 + thread) + "END";
                assert_eq!(set.find(&text).unwrap().offset(), 1_000 + thread);
                assert_eq!(StopScanner::new(set).feed(&text).text.len(), 1_000 + thread);
            });
        }
    });
}

#[test]
fn a_scanner_is_small() {
    assert!(size_of::<StopScanner>() <= 256);
}

#[test]
fn output_is_the_delta_when_nothing_is_held() {
    let mut scanner = StopScanner::new(&StopSet::new(["END", "é!"]).unwrap());
    for delta in ["Lorem", "", "E.", "é", "日本", "ipsum dolor sit amet, consectetur adipiscing elit", &".".repeat(200)]
    {
        scanner.reset();
        let out = scanner.feed(delta);
        let held = delta.len() - out.text.len();
        assert!(std::ptr::eq(out.text.as_ptr(), delta.as_ptr()), "{delta:?}");
        assert_eq!(held, if delta == "é" { 2 } else { 0 }, "{delta:?}");
    }
    let text = "bypassed";
    scanner.reset();
    assert!(std::ptr::eq(scanner.bypass(text).text, text));
}

#[test]
fn a_set_says_what_it_was_given() {
    let set = StopSet::builder()
        .stop(["b", "a", "b"])
        .stop(["aa"])
        .visible(["v", "v"])
        .protect([("<", ">"), ("|", "|"), ("<", ">"), ("[", ">")])
        .build()
        .unwrap();
    assert_eq!(set.stop().collect::<Vec<_>>(), ["b", "a", "aa"]);
    assert_eq!(set.visible().collect::<Vec<_>>(), ["v"]);
    assert_eq!(set.protect().collect::<Vec<_>>(), [("<", ">"), ("|", "|"), ("[", ">")]);
    assert_eq!((set.len(), set.is_empty()), (4, false));
    assert_eq!(
        format!("{set:?}"),
        r#"StopSet { stop: ["b", "a", "aa"], visible: ["v"], patterns: [], visible_patterns: [], regions: ["answer", "<", "|", "["] }"#
    );
}

#[test]
fn a_set_says_where_its_stops_fire() {
    let regions = || StopSet::builder().stop(["x"]).region("a", [("|", "b/1")]).region("b/1", [("|", "b/2")]);
    let set = regions().region("b/2", [("|", "c")]).region("c", [("|", "a")]);
    assert!(set.clone().build().unwrap().stop_in().eq(["a", "b", "c"]));
    assert!(set.clone().stop_in(["c", "b"]).build().unwrap().stop_in().eq(["b", "c"]));
    assert!(set.stop_in([""; 0]).build().unwrap().stop_in().eq([""; 0]));
    let protecting = StopSet::builder().stop(["x"]).protect([("<", ">"), ("(", ")")]).build().unwrap();
    assert!(protecting.stop_in().eq(["answer"]));
}

#[test]
fn a_set_without_stops_passes_everything() {
    let nothing: [&str; 0] = [];
    for set in [StopSet::new(nothing).unwrap(), StopSet::builder().protect([("<", ">")]).build().unwrap()] {
        assert_eq!((set.len(), set.is_empty()), (0, true));
        for text in ["", "a<b>c", &"<.>".repeat(100)] {
            assert_eq!(set.truncate(text), (text, None));
            assert_eq!(StopScanner::new(&set).feed(text).text, text);
        }
    }
}

#[test]
fn a_scanner_gives_its_set_back() {
    let set = StopSet::new(["a"]).unwrap();
    let scanner = StopScanner::new(&set);
    drop(set);
    assert_eq!(scanner.stops().stop().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_scanner_starts_protected_only_where_a_region_is() {
    let options = Options::default().start_protected(true);
    let error = StopScanner::with_options(&StopSet::new(["a"]).unwrap(), &options).unwrap_err();
    assert_eq!(error.to_string(), "start_protected: the set has no protected region");
}

#[test]
fn errors_name_the_culprit() {
    let errors = [
        (StopSet::builder().stop(["a", ""]), "stop 1 is empty"),
        (StopSet::builder().visible([""]), "visible stop 0 is empty"),
        (StopSet::builder().protect([("<", ">"), ("", ">")]), "opening marker 1 is empty"),
        (StopSet::builder().protect([("<", "")]), "closing marker 0 is empty"),
        (StopSet::builder().stop(["é\n"]).visible(["a", "é\n"]), r#""é\n" is both a stop and a visible stop"#),
        (StopSet::builder().stop(["<"]).protect([("<", ">")]), r#""<" is both a stop and an opening marker"#),
        (StopSet::builder().visible([">"]).protect([("<", ">")]), r#"">" is both a visible stop and a closing marker"#),
        (
            StopSet::builder().protect([("<", ">"), ("|", "|"), ("<", "|")]),
            r#"opening marker "<" has two closing markers"#,
        ),
    ];
    for (builder, message) in errors {
        let error: Box<dyn Error> = builder.build().unwrap_err().into();
        assert_eq!(error.to_string(), message);
    }
    assert_eq!(StopSet::new([""]).unwrap_err(), StopSet::builder().stop([""]).build().unwrap_err());
}

#[test]
fn a_set_may_be_as_large_as_the_limit_and_no_larger() {
    let stop = "s".repeat(MAX_SET_BYTES - 3);
    let just = StopSet::builder().stop([&*stop]).visible(["v"]).protect([("<", ">")]).build().unwrap();
    assert_eq!(just.len(), 2);
    let error = StopSet::builder().stop([&*stop]).visible(["v"]).protect([("<", "//")]).build().unwrap_err();
    assert_eq!(error.to_string(), "the stops and markers have 8000001 bytes of UTF-8, and the limit is 8000000");
}

#[test]
fn a_set_may_protect_as_many_regions_as_the_limit_and_no_more() {
    // The text outside the protected regions is one more region.
    let set = |count: usize| StopSet::builder().protect((0..count).map(|number| (format!("<{number}>"), "/"))).build();
    assert_eq!(set(MAX_REGIONS - 1).unwrap().protect().count(), 99);
    assert_eq!(set(MAX_REGIONS).unwrap_err().to_string(), "there are 101 regions, and the limit is 100");
    assert_eq!(set(MAX_REGIONS + 1).unwrap_err().to_string(), "there are 102 regions, and the limit is 100");
}
