//! Tests of patterns: examples, and random patterns, for which the library is compared with the reference, a simple
//! program.

use arbitrary::{Arbitrary, Unstructured};
use stopscan::{Finish, Options, SegmentSet, Segmenter, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};

use crate::case::patterns::Case;
use crate::random::Random;

/// Compares the library with the reference on random patterns and texts. Each text is cut into deltas in every way. The
/// match and the output must be equal. In one case of 16, the held text is also compared. The environment variable
/// `STOPSCAN_CASES` sets the number of cases.
#[test]
fn random_patterns() {
    let cases = std::env::var("STOPSCAN_CASES").map_or(600, |cases| cases.parse().expect("it is a number"));
    let tried = (0..cases).filter(|&seed| {
        let bytes = Random(seed).bytes(200);
        let case = Case::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are a case");
        case.check(seed % 16 == 0)
    });
    let tried = tried.count();
    assert!(tried > 350, "only {tried} rules compiled");
}

pub fn hidden(patterns: &[&str]) -> StopSet {
    StopSet::builder().patterns(patterns).build().unwrap()
}

#[test]
fn a_match_that_grows_too_long_is_given_up() {
    let set = StopSet::builder().patterns(["<.*>"]).max_held(4).build().unwrap();
    for letter in ["a", "é", "日", "😀"] {
        let mut scanner = StopScanner::new(&set);
        assert_eq!(scanner.feed(&("é<".to_owned() + &letter.repeat(3))).text, "é");
        assert_eq!(scanner.feed("d").text, "<".to_owned() + &letter.repeat(3) + "d");
        assert!(scanner.feed(">").stop_match.is_none());
        assert_eq!(scanner.feed("<ab>").stop_match.unwrap().offset(), 7);
    }
}

#[test]
fn a_string_that_cannot_be_the_first_is_not_held() {
    for (stop, pattern, text, held) in [
        ("<x>", "x", "<", 0),
        ("<x", "x", "<", 1),
        ("<x!>", r"x\b", "<", 0),
        ("<x>", r"x\b", "<", 1),
        ("<é>", "é|x", "<", 0),
        ("xy>", r"\bxy", "ax", 1), // after a letter the pattern cannot match, and "xy>" can fire
    ] {
        let set = StopSet::builder().stop([stop]).patterns([pattern]).build().unwrap();
        let mut scanner = StopScanner::new(&set);
        scanner.feed(text);
        assert_eq!(scanner.held().len(), held, "{set:?}");
    }
}

/// No text is held for a match that can never fire, because another stop always completes inside it.
#[test]
fn a_match_that_cannot_be_the_first_is_not_held() {
    for (pattern, others, stop) in
        [("<bé>", [r"b\b", r"x\b"], "y"), ("<é!>", ["x", "é"], "y"), ("<bé>", ["x", "y"], "é")]
    {
        let set = StopSet::builder().patterns([pattern]).patterns(others).stop([stop]).build().unwrap();
        assert_eq!(StopScanner::new(&set).feed("<").text, "<", "{set:?}");
        assert_eq!(StopScanner::new(&hidden(&[pattern])).feed("<").text, "");
    }
}

/// Many unfinished matches complete at the same character. The match that began first fires. With the second pattern,
/// many matches are in the same state of the automaton, so the library merges them.
#[test]
fn many_matches_at_once() {
    let text = "c".repeat(5) + &"a".repeat(20) + "b";
    for (pattern, offset) in [("a{1,12}b", 13), ("a[ac]{9,}b", 5)] {
        let set = hidden(&[pattern]);
        assert_eq!(set.find(&text).map(|found| (found.offset(), found.end())), Some((offset, 26)), "{pattern}");
        let mut scanner = StopScanner::new(&set);
        let released: usize = text.split_inclusive('a').map(|delta| scanner.feed(delta).text.len()).sum();
        assert_eq!((released, scanner.stop_match().unwrap().offset()), (offset, offset), "{pattern}");
    }
}

#[test]
fn a_run_without_end_is_released_at_the_limit() {
    let mut scanner = StopScanner::new(&hidden(&[r"\n\d+\."]));
    scanner.feed("\n");
    let released: usize = (0..200_000).map(|_| scanner.feed("1").text.len()).sum();
    assert_eq!(released, 200_001);
    assert_eq!(scanner.held(), "");
}

#[test]
fn a_pattern_that_completes_at_the_end() {
    for include_stop in [false, true] {
        let options = Options::default().include_stop(include_stop);
        let mut scanner = StopScanner::with_options(&hidden(&[r"END\b"]), &options).unwrap();
        assert_eq!(scanner.feed("The END").text, if include_stop { "The END" } else { "The " });
        let output = scanner.flush();
        assert_eq!(output.text, "");
        assert_eq!(output.stop_match.unwrap().sequence(), "END");
        assert_eq!(scanner.flush().text, "");
    }
}

#[test]
fn what_confirms_a_pattern_is_unused() {
    for deltas in [vec!["The END. x"], vec!["The END", ". x"], vec!["The EN", "D. x"]] {
        let mut scanner = StopScanner::new(&hidden(&[r"END\b"]));
        for delta in deltas {
            scanner.feed(delta);
        }
        assert_eq!(scanner.unused(), ". x");
    }
}

#[test]
fn a_match_of_several() {
    let set = StopSet::builder().stop(["END"]).patterns(["x", r"\d+:", "x"]).build().unwrap();
    assert!(set.patterns().eq(["x", r"\d+:"]));
    assert_eq!(set.len(), 3);
    let found = set.find("a 12: END").unwrap();
    assert_eq!((found.sequence(), found.pattern(), found.index()), ("12:", Some(r"\d+:"), 1));
    assert_eq!(set.find("END").unwrap().pattern(), None);
}

#[test]
fn a_string_that_is_all_of_a_match_comes_first() {
    let mut scanner = StopScanner::new(&StopSet::builder().visible(["ab"]).patterns(["ab"]).build().unwrap());
    assert_eq!(scanner.feed("a").text, "a");
    let output = scanner.feed("b");
    assert_eq!((output.text, output.stop_match.unwrap().pattern()), ("b", None));
}

#[test]
fn a_match_may_be_the_beginning_of_a_marker() {
    for stop in ["x", "b"] {
        let set = StopSet::builder().stop([stop]).patterns(["ab"]).protect([("abc", "/")]).build().unwrap();
        assert_eq!(set.find(".abc").map(|found| (found.offset(), found.sequence())), Some((1, "ab")), "{stop}");
    }
}

#[test]
fn a_stop_of_one_letter_of_a_class_leaves_the_others() {
    let set = StopSet::builder().stop(["b"]).patterns(["<[b-d]>"]).build().unwrap();
    assert_eq!(set.find("<d>").map(|found| found.sequence()), Some("<d>"));
    assert_eq!(set.find("<b>").map(|found| found.sequence()), Some("b"));
}

/// In unarmed text, no stop fires, even if a match completes there. A stop that contains this match does not fire
/// either, even if it completes later, in armed text.
#[test]
fn what_completes_in_unarmed_text_ends_what_contains_it() {
    for (stop, pattern, marker, unarmed, armed, expected) in [
        ("a", "(?:c){0,2}aa", "", "ca", "a", Some((2, "a"))),
        ("-", r"\n\d+", "", "a\n1", "2 \n3", Some((5, "\n3"))),
        ("abc", "b", "", "ab", "c abc", Some((5, "b"))),
        ("xabc", "ab", "", "xab", "c xabc", Some((6, "ab"))),
        ("bcd", "b[xy]?c", "", "abc", "d bc", Some((5, "bc"))),
        ("cd", "b[xy]?c", "", "abc", "d bc", Some((2, "cd"))),
        ("<x", "[tT]h", "<think>", "<th", "ink>th</t>th", Some((13, "th"))),
        ("b", "a.{3}!", "", "ab", "cd! axyz!", Some((6, "axyz!"))),
        ("-", r"ab\b", "", "ab", ".", Some((0, "ab"))),
    ] {
        let mut set = StopSet::builder().stop([stop]).patterns([pattern]);
        if !marker.is_empty() {
            set = set.protect([(marker, "</t>")]);
        }
        let mut scanner = StopScanner::new(&set.build().unwrap());
        scanner.feed_unarmed(unarmed);
        scanner.feed(armed);
        scanner.flush();
        assert_eq!(scanner.stop_match().map(|found| (found.offset(), found.sequence())), expected, "{stop} {pattern}");
    }
}

/// A segmenter must hold text that may become a marker, because it takes markers out of the text. It must hold this
/// text even if a pattern completes inside the marker. Here the pattern does not fire, because the text is unarmed.
#[test]
fn a_marker_around_a_match_in_unarmed_text_is_held() {
    let set = SegmentSet::builder().region("a", [("<think>", "b")]).region("b", [("|", "a")]).patterns(["[Tt]h"]);
    let mut segmenter = Segmenter::new(&set.build().unwrap());
    assert_eq!(segmenter.feed_unarmed("x<th").into_iter().map(|segment| segment.text).collect::<String>(), "x");
    let snapshot = segmenter.snapshot();
    segmenter.reset();
    segmenter.restore(&snapshot).unwrap();
    let segments: Vec<_> =
        segmenter.feed_unarmed("ink>y").into_iter().map(|one| (one.region.to_owned(), one.text.to_string())).collect();
    assert_eq!(segments, [("b".to_owned(), "y".to_owned())]);
}

/// An unfinished match that is longer than `max_held` is given up. A match that began later, and is still short enough,
/// must not be given up. An earlier version gave up both.
#[test]
fn a_later_beginning_goes_on_when_an_earlier_one_is_too_long() {
    for (pattern, max_held, text, expected) in [
        ("<[^>]+>", 10, "a < b or <tool> c", Some((9, "<tool>"))),
        ("<tool:.+>", 40, "<tool:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa <tool:b>", Some((41, "<tool:b>"))),
        ("<[^>]+>", 3, "<<<ab>", Some((2, "<ab>"))),
        ("<[^>]+>", 2, "<<<ab>", None),
        (r"<[^>]+>\b", 3, "<a>b", Some((0, "<a>"))),
        (r"<[^>]+>\b", 2, "<a>b", None),
        ("a", 0, "ba", Some((1, "a"))),
        ("ab", 0, "ab", None),
    ] {
        let set = StopSet::builder().patterns([pattern]).max_held(max_held).build().unwrap();
        let found = set.find(text).map(|found| (found.offset(), found.sequence()));
        assert_eq!(found, expected, "{pattern} {max_held}");
        let mut scanner = StopScanner::new(&set);
        for delta in text.split_inclusive(|_| true) {
            scanner.feed(delta);
            assert!(scanner.held().chars().count() <= max_held);
        }
        assert_eq!(scanner.stop_match().map(|found| found.offset()), expected.map(|(offset, _)| offset), "{pattern}");
    }
}

#[test]
fn what_stands_before_is_remembered() {
    let mut scanner = StopScanner::new(&hidden(&[r"(?m)^END", r"\bstop"]));
    for delta in ["x", "END", " non", "stop", "\n"] {
        assert!(scanner.feed(delta).stop_match.is_none(), "{delta}");
    }
    for before in ["_", "x", "9", "Z"] {
        assert!(hidden(&[r"\bstop"]).find(&(before.to_owned() + "stop")).is_none(), "{before}");
    }
    let mut flushed = scanner.clone();
    flushed.flush();
    assert!(flushed.feed("END").stop_match.is_some());
    scanner.bypass("x");
    assert!(scanner.feed("END").stop_match.is_none());
    assert!(scanner.feed(".stop").stop_match.is_some());
}

#[test]
fn what_stands_before_a_skipped_marker_is_remembered() {
    let builder = Vocabulary::builder().special("<think>").special("</think>").text("x").text(".").text("END");
    let vocabulary = builder.build().unwrap();
    let set = StopSet::builder().patterns([r"\bEND"]).protect([("<think>", "</think>")]).build().unwrap();
    for (ids, finish) in [([0, 2, 1, 4], None), ([0, 3, 1, 4], Some(Finish::StopSequence))] {
        let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&set), &TokenOptions::default()).unwrap();
        for id in ids {
            scanner.feed(id).unwrap();
        }
        assert_eq!(scanner.finish(), finish, "{ids:?}");
    }
}

#[test]
fn no_match_begins_in_a_marker() {
    let set = SegmentSet::builder().region("a", [("<x", "a")]).patterns(["xy"]).build().unwrap();
    for deltas in [vec!["<xy"], vec!["<x", "y"], vec!["<", "x", "y"]] {
        let mut segmenter = Segmenter::new(&set);
        for delta in deltas {
            segmenter.feed(delta);
        }
        assert!(segmenter.stop_match().is_none());
        assert!(segmenter.feed("xy").stop_match().is_some());
    }
}

#[test]
fn patterns_among_regions() {
    let set = StopSet::builder().patterns([r"E[NM]D"]).protect([("<think>", "</think>")]).build().unwrap();
    let found = set.find("<think>END</think>EM<think>D</think>.EMD").unwrap();
    assert_eq!(found.offset(), 37);

    let set = SegmentSet::builder()
        .region("answer", [("<think>", "reasoning")])
        .region("reasoning", [("</think>", "answer")])
        .patterns([r"E[NM]D\b", r"<t\w+k>!"])
        .stop_in(["answer"])
        .build()
        .unwrap();
    let mut segmenter = Segmenter::new(&set);
    let mut text = String::new();
    for delta in ["<th", "ink>EMD", "</think", ">one E", "M", "D and"] {
        for segment in segmenter.feed(delta) {
            text += &format!("{}:{} ", segment.region, segment.text);
        }
    }
    assert_eq!(text, "reasoning:EMD answer:one  ");
    assert_eq!((segmenter.stop_match().unwrap().sequence(), segmenter.unused()), ("EMD", " and"));
}
