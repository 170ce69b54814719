//! Which patterns are accepted, and which are refused.

use stopscan::{StopScanner, StopSet, StopSetErrorKind};

use crate::patterns::hidden;

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
        ("(?:a|[a&&b])b", "b ab", "ab"),
        ("a[a&&b]?b", "b ab", "ab"),
        ("(?:x[a&&b]|y)z", "xz yz", "yz"),
        (r"(?-R)a.", "a\r", "a\r"),
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
        (r"[^\s\S]", "it can never match"),
        ("a$b", "$ and \\z are supported only at the end of a pattern or branch; (?m)$ is"),
        (r"(?:a\z)?b", "$ and \\z are supported only at the end of a pattern or branch; (?m)$ is"),
        ("(?:a$)+", "$ and \\z are supported only at the end of a pattern or branch; (?m)$ is"),
        ("(?mR)a$", "(?R) is not supported; write \\r?\\n"),
        ("(?R)x", "(?R) is not supported"),
        ("(?iR).x$", "(?R) is not supported"),
        ("(?R:a)b", "(?R) is not supported"),
        ("a[a&&b]{2}", "it can never match"),
        ("(?:[a&&b]|c[a&&b])d", "it can never match"),
        (r"(a)\1", "backreferences are not supported; write the alternatives out"),
        (r"\b{start}a", "look-around is not supported, except ^, $, \\A, \\z, \\b and \\B; use \\b"),
        (r"\p{L}", "\\p{…} is not supported; write the ranges"),
        (r"[a\P{L}]", "\\p{…} is not supported; write the ranges"),
        (r"(?-u:\xff)", "pattern can match invalid UTF-8"),
        ("(?=a)b", "look-around, including look-ahead and look-behind, is not supported; use"),
        ("a.*b", "it can hold text for ever"),
        ("(?s)<.+>", "it can hold text for ever"),
        ("[A-Za-z ]+:", "it can hold text for ever"),
        (r"«\S+»", "it can hold text for ever"),
        ("(a{100}){100}b", "its automaton is too large"),
        ("[ab]*a[ab]{12}c", "its automaton is too large: \"[ab]{12}\" alone"), // it quotes the longest count
        ("x(a{100}){100}b", "its automaton is too large: \"(a{100}){100}\" alone is 10000 characters long"),
        ("[a-z ]{1100}!", "its automaton is too large"), // matches may have begun at too many places
        (r"(?i)[a-\x{10ffff}]x", "its character classes are too large"),
        (&("(".repeat(1_000) + "a" + &")".repeat(1_000)), "nest"),
    ] {
        let error = StopSet::builder().patterns(["ok", pattern]).build().unwrap_err().to_string();
        assert!(error.starts_with(&format!("pattern 1, {pattern:?}: ")), "{pattern}: {error}");
        assert!(error.contains(problem), "{pattern}: {error}");
        let error = StopSet::builder().visible_patterns(["ok", pattern]).build().map(|set| set.len());
        if problem.contains("hold text for ever") {
            assert_eq!(error, Ok(2), "{pattern}: no text is held for a visible pattern");
        } else {
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with(&format!("visible pattern 1, {pattern:?}: ")), "{pattern}: {error}");
        }
    }
    let error = StopSet::builder().patterns(["ok", ""]).build().unwrap_err().to_string();
    assert_eq!(error, "pattern 1 is empty");
    let error = StopSet::builder().patterns(["a.", "b."]).visible_patterns(["x", "b."]).build().unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (StopSetErrorKind::TwoMeanings, r#""b." is both a pattern and a visible pattern"#.into())
    );
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
    assert!(patterns().visible(["a"]).build().is_err()); // words without an "a" still hold text
    assert!(StopSet::builder().patterns([r"<[a-zA-Z ]+\b"]).build().is_ok());
    // The library refuses a pattern that would hold ordinary text without end. But every match of this pattern contains
    // the stop "é", which fires first. So the library holds no text for the pattern, and accepts the set.
    assert!(StopSet::builder().patterns(["<[a-zA-Z ]+é>"]).stop(["é"]).build().is_ok());
}

#[test]
fn what_looks_around_is_taken_anywhere() {
    for (pattern, text, expected) in [
        ("^ab", "abab", Some((0, "ab", false))),
        (r"\Aab", "xab", None),
        ("ab$", "ab ab", Some((3, "ab", true))),
        (r"ab\z|x", "ab x", Some((3, "x", false))),
        ("(?m)ab$", "ab. ab\nab", Some((4, "ab", false))),
        ("(?m)ab$", "ab. ab", Some((4, "ab", true))),
        (r"a\b.b", "aab a-b", Some((4, "a-b", false))),
        (r"a\Bb", "a-b ab", Some((4, "ab", false))),
        (r"ab\B", "ab abc", Some((3, "ab", false))),
        (r"[.!?](\s|$)", "1.5 is it.", Some((9, ".", true))),
        (r"(?i)(^|\n)user:", "User: x", Some((0, "User:", false))),
        (r"(?i)\b(the )?end\b[.!]?", "Trend. The End", Some((7, "The End", true))),
        (r"a(?:\b|\B)", "a", Some((0, "a", false))),
    ] {
        let set = hidden(&[pattern]);
        let found = set.find(text).map(|found| (found.offset(), found.sequence()));
        assert_eq!(found, expected.map(|(offset, sequence, _)| (offset, sequence)), "{pattern}");
        let mut scanner = StopScanner::new(&set);
        scanner.feed(text);
        let at_end = expected.is_some_and(|(_, _, at_end)| at_end);
        assert_eq!(scanner.stop_match().is_some(), expected.is_some() && !at_end, "{pattern}");
    }
}
