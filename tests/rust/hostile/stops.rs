//! Many stops, long stops, and long text that is held because a stop may have begun.

use stopscan::{MAX_SET_BYTES, StopScanner, StopSet};

use crate::{ALLOCATOR, MIB, MILLION, SMALL, alone, kept_since};

/// Compiles a set of `stops`, and checks that the process has never used more than 512 MiB. (This includes the memory
/// of `stops` and of earlier tests.)
fn compile(stops: &[String]) -> StopSet {
    let set = StopSet::new(stops).unwrap();
    assert!(ALLOCATOR.max_allocated() <= 512 * MIB, "{} bytes", ALLOCATOR.max_allocated());
    set
}

/// Feeds `text` to a scanner, character by character, and returns the output and the stop that fired. Also checks that
/// `truncate`, which gets the whole text, returns the same.
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
    // If stops had long common prefixes, they would share states, and the automaton would be smaller. To prevent
    // this, 95 successive stops begin with 95 different characters. There are 95 letters, and the prime 7,919 has no
    // common factor with 95. So `number * 7_919 % 95` has 95 different values for 95 successive numbers.
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

/// Every delta makes the held text one character longer. If each delta copied the held text, the time would be
/// quadratic.
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
    set.find(&long); // builds the prefilter, which stays in memory
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

/// A long delta that comes while text is held is copied into the scanner's buffer. The buffer must not stay that large.
#[test]
fn memory_of_long_deltas_is_given_back() {
    let _alone = alone();
    let set = StopSet::new(["END"]).unwrap();
    let long = ".".repeat(MILLION) + "E";
    set.find(&long); // builds the prefilter, which stays in memory
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

/// The scanner must free the memory of a long delta even if there is always some held text: before this delta and after
/// it.
#[test]
fn memory_of_long_deltas_is_given_back_while_text_is_held() {
    let _alone = alone();
    let set = StopSet::new(["a".repeat(SMALL) + "b"]).unwrap();
    let (long, short) = (".".repeat(MILLION), "a".repeat(SMALL / 8));
    let delta = long + &short;
    set.find(&delta); // builds the prefilter, which stays in memory
    let mut scanner = StopScanner::new(&set);
    let before = ALLOCATOR.allocated();
    scanner.feed(&short);
    scanner.feed(&delta);
    assert_eq!(scanner.feed(&short).text, "");
    assert_eq!(scanner.held().len(), SMALL / 4);
    let kept = kept_since(before);
    assert!(kept <= 2 * SMALL, "{kept} bytes");
}

/// In this stream, some text is held after every delta. The text that was released must not pile up in the scanner's
/// buffer.
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
