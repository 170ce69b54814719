//! Patterns: against the reference, and what is refused.

use arbitrary::{Arbitrary, Unstructured};
use stopscan::{Finish, Options, SegmentSet, Segmenter, StopScanner, StopSet, TokenOptions, TokenScanner, Vocabulary};

use crate::case::patterns::Case;
use crate::properties::Random;

/// Small rules and texts, every cut: the match, the output and, for some, the held text.
#[test]
fn random_patterns() {
    let cases = (0..400).map(|seed| {
        let bytes = Random(seed).bytes(200);
        let case = Case::arbitrary(&mut Unstructured::new(&bytes)).expect("any bytes are a case");
        case.check(seed % 4 == 0)
    });
    let tried = cases.filter(|&tried| tried).count();
    assert!(tried > 250, "only {tried} rules compiled");
}

fn hidden(patterns: &[&str]) -> StopSet {
    StopSet::builder().patterns(patterns).build().unwrap()
}

#[test]
fn what_is_taken() {
    for (pattern, text, sequence) in [
        (r"\n(User|Human) ?\d*:", "Hi\nUser 12: x", "\nUser 12:"),
        (r"(?i)\bend of story", "pretend of story. The End Of Story", "End Of Story"),
        (r"(?m)^END\b", "x END\nENDS\nEND.", "END"),
        (r"(?:\bfoo|bar\b)", "xfoo bars foo", "foo"),
        (r"(\b)foo(\b)", "xfoo foox foo", "foo"),
        (r"[^\d\s]x", "1x x ax", "ax"),
        (r"[\w&&[^_]]+!", "_ab!", "ab!"),
        (r"[é[\d]]x", "ax 1x", "1x"),
        (r"x(bar\b)", "xbars xbar", "xbar"),
        (r"(?m)^\bfoo", " foo\nfoo", "foo"),
        ("é|日本", "e日日本", "日本"),
        ("(?s).x", "\nx", "\nx"),
        ("(?i)É", "eéÉ", "é"),
    ] {
        let set = hidden(&[pattern]);
        assert_eq!(set.find(text).map(|found| found.sequence()), Some(sequence), "{pattern}");
    }
}

#[test]
fn what_is_refused() {
    for (pattern, problem) in [
        ("(a", "unclosed group"),
        ("a*", "it can match the empty string"),
        (r"\b", "it can match the empty string"),
        ("", "it can match the empty string"),
        (r"[^\s\S]", "it can never match"),
        ("a$", "$ and \\z need"),
        (r"a\z", "$ and \\z need"),
        ("(?m)a$", "$ and \\z need"),
        ("^a", "^ and \\A are not taken"),
        (r"\Aa", "^ and \\A are not taken"),
        ("a(?m)^b", "(?m)^ is taken at the beginning only"),
        (r"a\bb", "\\b is taken at the beginning and at the end only"),
        (r"(?:a\b)+", "\\b is taken at the beginning and at the end only"),
        (r"\Ba", "of what looks around"),
        (r"\b{start}a", "of what looks around"),
        (r"\p{L}", "Unicode property not found"),
        (r"(?-u:\xff)", "pattern can match invalid UTF-8"),
        ("(?=a)b", "look-around"),
        ("a.*b", "it can hold text for ever"),
        ("(?s)<.+>", "it can hold text for ever"),
        ("[A-Za-z ]+:", "it can hold text for ever"),
        (r"«\S+»", "it can hold text for ever"),
        ("(a{100}){100}b", "its automaton is too large"),
        ("[ab]*a[ab]{11}c", "its automaton is too large"),
        ("[ab]*a[ab]{12}c", "its automaton is too large"), // already without the set's other patterns
        (&("(".repeat(1_000) + "a" + &")".repeat(1_000)), "nest"),
    ] {
        let error = StopSet::builder().patterns(["ok", pattern]).build().unwrap_err().to_string();
        assert!(error.starts_with(&format!("pattern 1, {pattern:?}: ")), "{pattern}: {error}");
        assert!(error.contains(problem), "{pattern}: {error}");
    }
}

#[test]
fn a_refused_pattern_behind_one_that_is_given_twice_is_named_by_its_own_index() {
    for pattern in ["(a", "a.*b", "(a{100}){100}b", "[ab]*a[ab]{12}c"] {
        let error = StopSet::builder().patterns(["ok", "ok", pattern]).build().unwrap_err().to_string();
        assert!(error.starts_with(&format!("pattern 2, {pattern:?}: ")), "{error}");
    }
}

#[test]
fn runs_of_one_kind_are_no_text_without_end() {
    for pattern in [r"\n\d+\.", r"\n[A-Z][a-z]+:", r"\s+END", "-{3,}!", r"<\w+>"] {
        hidden(&[pattern]);
    }
}

#[test]
fn a_stop_in_every_word_ends_what_would_hold_text() {
    let patterns = || StopSet::builder().patterns(["<[a-zA-Z ]+>"]);
    assert!(patterns().build().is_err());
    assert!(patterns().stop([" "]).build().is_ok());
    assert!(patterns().visible(["a"]).build().is_err()); // other words have none
    assert!(StopSet::builder().patterns([r"<[a-zA-Z ]+\b"]).build().is_ok());
    // No match of this can be the first that completes, so none holds text.
    assert!(StopSet::builder().patterns(["<[a-zA-Z ]+é>"]).stop(["é"]).build().is_ok());
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
        ("xy>", r"\bxy", "ax", 1), // behind a letter it can
    ] {
        let set = StopSet::builder().stop([stop]).patterns([pattern]).build().unwrap();
        let mut scanner = StopScanner::new(&set);
        scanner.feed(text);
        assert_eq!(scanner.held().len(), held, "{set:?}");
    }
}

/// What another stop always completes before is not held.
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

/// More than are compared with each other; the second pattern's are soon in one state, and the first of them wins.
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
        let options = Options { include_stop, ..Options::default() };
        let mut scanner = StopScanner::with_options(&hidden(&[r"END\b"]), options).unwrap();
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

#[test]
fn in_unarmed_text_a_match_goes_on() {
    let mut scanner = StopScanner::new(&hidden(&[r"\n\d+"]));
    assert_eq!(scanner.feed_unarmed("a\n1").text, "a");
    assert_eq!(scanner.feed("2").stop_match.unwrap().sequence(), "\n12");
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
