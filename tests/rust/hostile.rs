//! Stops and streams that users of a server send to hurt it. Memory is counted; what would take quadratic work would
//! not end.

use std::alloc::System;
use std::sync::{Mutex, MutexGuard};

use cap::Cap;
use stopscan::{MAX_SET_BYTES, StopScanner, StopSet, Strays, TokenOptions, TokenScanner, Vocabulary};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// One test at a time: they count what the whole process allocates.
static ALONE: Mutex<()> = Mutex::new(());

const MIB: usize = 1 << 20;
const MILLION: usize = 1_000_000;

/// As many bytes as a test's surroundings may allocate meanwhile.
const SMALL: usize = 4_096;

/// More than the surroundings allocate, and far less than a million tokens would.
const FLAT: usize = 16 * SMALL;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// How many bytes more are allocated than `before`. The test runner's own threads may have freed some of theirs.
fn kept_since(before: usize) -> usize {
    ALLOCATOR.allocated().saturating_sub(before)
}

/// Compiles a set, whose memory at its peak, with the given stops and all that this process allocated before, is
/// within bounds.
fn compile(stops: &[String]) -> StopSet {
    let set = StopSet::new(stops).unwrap();
    assert!(ALLOCATOR.max_allocated() <= 512 * MIB, "{} bytes", ALLOCATOR.max_allocated());
    set
}

/// What is kept of `text`, read character by character and in one piece, and the stop that fired.
fn read(set: &StopSet, text: &str) -> (String, Option<String>) {
    let mut scanner = StopScanner::new(set);
    let mut kept = String::new();
    for letter in text.chars() {
        kept += scanner.feed(letter.encode_utf8(&mut [0; 4])).text;
    }
    kept += scanner.flush().text;
    let fired = scanner.stop_match().map(|found| found.sequence().to_string());
    let (truncated, found) = set.truncate(text);
    assert_eq!((truncated, found.map(|found| found.sequence())), (kept.as_str(), fired.as_deref()));
    (kept, fired)
}

#[test]
fn a_hundred_thousand_stops() {
    let _alone = alone();
    let stops: Vec<String> = (0..100_000).map(|number| format!("<stop number {number:06}>")).collect();
    assert!(stops.iter().all(|stop| stop.len() == 20));
    let set = compile(&stops);
    assert_eq!(set.len(), 100_000);
    for stop in stops.iter().step_by(997) {
        let before = "<stop number 0999999 <stop number 09999";
        assert_eq!(read(&set, &[before, stop, "."].concat()), (before.into(), Some(stop.clone())));
    }
    let text = "<stop number 100000>".repeat(100);
    assert_eq!(read(&set, &text), (text, None));
}

#[test]
fn stops_nested_at_their_beginnings() {
    let _alone = alone();
    let stops: Vec<String> = (1..=3_000).map(|length| "a".repeat(length)).collect();
    let set = compile(&stops);
    assert_eq!(set.len(), 3_000);
    assert_eq!(read(&set, "baaa"), ("b".into(), Some("a".into())));
}

#[test]
fn stops_nested_at_their_ends() {
    let _alone = alone();
    let stops: Vec<String> = (0..3_000).map(|length| "a".repeat(length) + "b").collect();
    let set = compile(&stops);
    let text = "a".repeat(5_000) + "b";
    assert_eq!(read(&set, &text), ("a".repeat(5_000 - 2_999), Some(stops[2_999].clone())));
    assert_eq!(read(&set, &text[..5_000]), (text[..5_000].into(), None));
}

#[test]
fn as_many_stops_as_the_limit_allows() {
    let _alone = alone();
    let letters: Vec<char> = (' '..='~').collect();
    let letter = |number: usize| letters[number % letters.len()];
    // Multiplied by a prime, neighbours share no prefix: the widest tree.
    let stop = |number: usize| (0..20).map(|place| letter((number * 7_919) >> place)).collect::<String>() + "é";
    let stops: Vec<String> = (0..MAX_SET_BYTES / 22).map(stop).collect();
    compile(&stops);
}

#[test]
fn one_stop_as_long_as_the_limit_allows() {
    let _alone = alone();
    let stop = "ab".repeat(MAX_SET_BYTES / 2);
    let set = compile(std::slice::from_ref(&stop));
    let (kept, found) = set.truncate(&stop);
    assert_eq!((kept, found.unwrap().end()), ("", MAX_SET_BYTES));
}

/// Every delta extends the held text by one character: copying it each time would be quadratic.
#[test]
fn a_million_characters_held_one_by_one() {
    let _alone = alone();
    let stop = "a".repeat(MILLION) + "b";
    let set = compile(std::slice::from_ref(&stop));
    let mut scanner = StopScanner::new(&set);
    for _ in 0..MILLION {
        assert_eq!(scanner.feed("a").text, "");
    }
    assert_eq!(scanner.held().len(), MILLION);
    // From here on, each delta releases a character and holds one.
    for _ in 0..MILLION {
        assert_eq!(scanner.feed("a").text, "a");
    }
    assert_eq!(scanner.held().len(), MILLION);
    let mut copy = scanner.clone();
    assert_eq!(copy.feed("c").text.len(), MILLION + 1);
    assert_eq!(copy.held(), "");
    assert_eq!(scanner.feed("b!").text, "");
    let found = scanner.stop_match().unwrap();
    assert_eq!((found.offset(), found.end(), scanner.unused()), (MILLION, 2 * MILLION + 1, "!"));
}

#[test]
fn memory_of_held_text_is_given_back() {
    let _alone = alone();
    let set = StopSet::new(["a".repeat(MILLION) + "b", "END".into()]).unwrap();
    let long = "a".repeat(MILLION);
    set.find(&long); // makes the prefilter
    let mut scanner = StopScanner::new(&set);
    let before = ALLOCATOR.allocated();
    for release in ["flush", "go on", "reset"] {
        scanner.feed(&long);
        assert!(kept_since(before) >= MILLION - SMALL);
        match release {
            "flush" => drop(scanner.flush().text.to_string()),
            "go on" => drop(scanner.feed("c").text.to_string()),
            _ => scanner.reset(),
        }
        assert_eq!(scanner.feed("E").text, "");
        assert_eq!(scanner.held(), "E");
        let kept = kept_since(before);
        assert!(kept <= SMALL, "{kept} bytes after {release}");
        scanner.flush();
    }
}

/// A long delta passes through the buffer when text was held before it.
#[test]
fn memory_of_long_deltas_is_given_back() {
    let _alone = alone();
    let set = StopSet::new(["END"]).unwrap();
    let long = ".".repeat(MILLION) + "E";
    set.find(&long); // makes the prefilter
    let mut scanner = StopScanner::new(&set);
    let before = ALLOCATOR.allocated();
    for _ in 0..3 {
        scanner.feed("E");
        assert_eq!(scanner.feed(&long).text.len(), MILLION + 1);
    }
    assert_eq!(scanner.feed("N").text, "");
    assert_eq!(scanner.held(), "EN");
    let kept = kept_since(before);
    assert!(kept <= SMALL, "{kept} bytes");
}

/// A short held text that was long before, and a delta as long as it: neither makes the buffer keep what was long.
#[test]
fn memory_of_long_deltas_is_given_back_while_text_is_held() {
    let _alone = alone();
    let set = StopSet::new(["a".repeat(SMALL) + "b"]).unwrap();
    let (long, short) = (".".repeat(MILLION), "a".repeat(SMALL / 8));
    let delta = long + &short;
    set.find(&delta); // makes the prefilter
    let mut scanner = StopScanner::new(&set);
    let before = ALLOCATOR.allocated();
    scanner.feed(&short);
    scanner.feed(&delta);
    assert_eq!(scanner.feed(&short).text, "");
    assert_eq!(scanner.held().len(), SMALL / 4);
    let kept = kept_since(before);
    assert!(kept <= 2 * SMALL, "{kept} bytes");
}

/// While some text is always held, what was released does not pile up before it.
#[test]
fn memory_does_not_grow_with_the_stream() {
    let _alone = alone();
    let mut scanner = StopScanner::new(&StopSet::new(["a".repeat(100) + "b"]).unwrap());
    let before = ALLOCATOR.allocated();
    for _ in 0..MILLION {
        scanner.feed("a");
    }
    assert_eq!(scanner.held().len(), 100);
    let kept = kept_since(before);
    assert!(kept <= SMALL, "{kept} bytes");
}

/// Patterns that make a backtracking engine take exponential time, or an automaton exponential memory: each either
/// compiles within bounds, and then a million characters are read, or says that it is too large.
#[test]
fn hostile_patterns() {
    let _alone = alone();
    let alternatives = (0..1_000).map(|number| format!("word{number}")).collect::<Vec<_>>().join("|");
    let patterns: [(&str, bool); 13] = [
        ("(a*)*b", true),
        ("(a|a)*b", true),
        ("(a|aa)+b", true),
        ("a{1,1000}b", true),
        ("(a{1,30}){1,30}b", false),
        (&alternatives, false),
        ("[ab]*a[ab]{9}c", false),
        ("[ab]*a[ab]{100}c", false),
        ("(a{1000}){1000}b", false),
        ("((a{100}){100}){100}b", false),
        ("(((a?){30}){30}){30}b", false),
        (".{1,50}x", true),
        (".{1,900}x", true),
    ];
    for (pattern, compiles) in patterns {
        println!("{pattern:.40}"); // beyond the limit the process aborts
        ALLOCATOR.set_limit(ALLOCATOR.allocated() + 64 * MIB).unwrap();
        let set = StopSet::builder().patterns([pattern]).max_held(2_000).build();
        ALLOCATOR.set_limit(usize::MAX).unwrap();
        assert_eq!(set.is_ok(), compiles, "{pattern:.40}: {:?}", set.err().map(|error| error.to_string()));
        let Ok(set) = set else {
            continue;
        };
        let mut scanner = StopScanner::new(&set);
        let delta = "aaaaaaaaaa";
        let before = ALLOCATOR.allocated();
        let released: usize = (0..MILLION / 100).map(|_| scanner.feed(delta).text.len()).sum();
        assert!(released + scanner.held().len() == MILLION / 10, "{pattern}");
        assert!(ALLOCATOR.allocated() < before + MIB, "{pattern}: {} bytes", kept_since(before));
    }
}

/// To say which of many patterns is the first too many, not every one of them is compiled: that took minutes.
#[test]
fn patterns_that_are_too_large_together() {
    let _alone = alone();
    let ideograph = |number: u32| char::from_u32(0x4e00 + number).unwrap();
    let large = |number: u32| {
        let (a, b) = (ideograph(2 * number), ideograph(2 * number + 1));
        format!("[{a}{b}]*{a}[{a}{b}]{{8}}!")
    };
    let error = StopSet::builder().patterns((0..10_000).map(large)).build().unwrap_err();
    assert_eq!(error.to_string(), "the 10000 patterns together need too large an automaton");
}

/// Every character begins a match that goes on for long: those that are in one state are one.
#[test]
fn a_million_beginnings_of_a_match() {
    let _alone = alone();
    let set = StopSet::builder().patterns([r"\s+END"]).build().unwrap();
    let mut scanner = StopScanner::new(&set);
    let released: usize = (0..MILLION / 10).map(|_| scanner.feed("          ").text.len()).sum();
    assert_eq!(released + scanner.held().len(), MILLION);
    assert_eq!(scanner.feed("END").stop_match.unwrap().end(), MILLION + 3);
}

/// What a model can be made to repeat, between text that is held and after it: nothing piles up.
#[test]
fn a_million_tokens_that_are_no_text() {
    let _alone = alone();
    let stops = StopSet::new(["END", "\u{FFFD}!"]).unwrap();
    for strays in [Strays::Parts, Strays::Runs, Strays::Bytes] {
        let vocabulary =
            Vocabulary::builder().strays(strays).text("E").special("<pad>").byte(0xFF).byte(0x80).byte(0xF0);
        let vocabulary = vocabulary.build().unwrap();
        let scanner = StopScanner::new(&stops);
        let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default()).unwrap();
        assert_eq!(scanner.feed(0), Ok(""));
        let before = ALLOCATOR.allocated();
        let mut read = 0;
        for id in [1, 2, 3, 4, 0, 1] {
            for _ in 0..MILLION {
                read += scanner.feed(id).unwrap().chars().count();
            }
            let kept = kept_since(before);
            assert!(kept <= FLAT, "{kept} bytes after token {id} with {strays:?}");
        }
        assert_eq!(scanner.held(), "E");
        // Of the bytes that begin a character the first is held as "\u{FFFD}", and the last may still go on.
        assert_eq!(read, 4 * MILLION, "{strays:?}");
        assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (6 * MILLION + 1, 5 * MILLION));
    }
}

#[test]
fn a_prompt_of_a_million_tokens() {
    let _alone = alone();
    let stops = StopSet::new(["END"]).unwrap();
    for (id, text) in [(0, " a"), (1, "a"), (2, " a"), (3, " a")] {
        let vocabulary = Vocabulary::builder().strays(Strays::Runs).strip_first_space(true);
        let vocabulary = vocabulary.text(" a").special("<pad>").byte(0xFF).byte(0xF0).build().unwrap();
        let before = ALLOCATOR.allocated();
        let options = TokenOptions::default().prompt_token_ids(vec![id; MILLION]);
        let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options).unwrap();
        drop(options);
        assert_eq!(scanner.feed(0).unwrap(), text);
        let kept = kept_since(before);
        assert!(kept <= FLAT, "{kept} bytes after token {id}");
    }
}

/// A million tokens that are held, and given back.
#[test]
fn memory_of_held_tokens_is_given_back() {
    let _alone = alone();
    let vocabulary = Vocabulary::builder().text("a").text("c").build().unwrap();
    let stops = StopSet::new(["a".repeat(MILLION) + "b"]).unwrap();
    let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &TokenOptions::default()).unwrap();
    let before = ALLOCATOR.allocated();
    for _ in 0..MILLION {
        assert_eq!(scanner.feed(0), Ok(""));
    }
    assert_eq!(scanner.tokens_kept(), 0);
    assert_eq!(scanner.feed(1).unwrap().len(), MILLION + 1);
    assert_eq!(scanner.tokens_kept(), MILLION + 1);
    assert_eq!(scanner.feed(1), Ok("c"));
    assert_eq!(scanner.feed(0), Ok(""));
    let kept = kept_since(before);
    assert!(kept <= FLAT, "{kept} bytes");
}
