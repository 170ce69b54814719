//! Compares the library's scanner for patterns with the reference.

use stopscan::{Options, StopScanner};

use super::patterns::{Fired, Reference, Rules};

/// Panics unless the library gives the results of the reference (a simple program). Tries each way in `cuts` to cut the
/// text into deltas. No stop may fire in the first `unarmed` characters. Compares the held text only if `held` is true.
pub fn check(rules: &Rules, reference: &Reference<'_>, text: &str, unarmed: usize, cuts: &[Vec<usize>], held: bool) {
    let context = || format!("in {text:?}, {unarmed} unarmed, with {rules:#?}");
    let letters: Vec<char> = text.chars().collect();
    let string = |from: usize, to: usize| letters[from..to].iter().collect::<String>();
    let reading = reference.read(&letters, unarmed);
    // A match may be complete only because the stream ends. It does not fire if its last character is unarmed, because
    // no stop fires in unarmed text.
    let at_end = || reference.at_end(&letters, &reading).filter(|_| unarmed < letters.len());
    let expected = reading.fired.clone().or_else(at_end);
    let kept = match &expected {
        Some(fired) => string(0, if fired.hidden { fired.start } else { fired.end }),
        None => text.into(),
    };
    let place = |fired: &Fired| (fired.start, string(fired.start, fired.end), fired.pattern.clone());
    let set = rules.set().expect("these rules compile");
    let options = Options::default().include_stop(rules.include_stop);
    let least = |end: usize| reference.held(&letters[..end], &reference.read(&letters[..end], unarmed.min(end)));
    let least: Vec<usize> = (0..=letters.len()).map(|end| if held { least(end) } else { 0 }).collect();
    for cut in cuts {
        let mut scanner = StopScanner::with_options(&set, &options).expect("no region is asked for");
        let (mut out, mut at) = (String::new(), 0);
        let mut ends: Vec<usize> = cut.iter().copied().chain([unarmed, letters.len()]).collect();
        ends.sort_unstable();
        for end in ends {
            let delta = string(at, end);
            let output = if end <= unarmed { scanner.feed_unarmed(&delta) } else { scanner.feed(&delta) };
            out += output.text;
            at = end;
            if scanner.stop_match().is_some() {
                continue;
            }
            let seen = string(0, end);
            assert_eq!(format!("{out}{}", scanner.held()), seen, "lost {}", context());
            if held {
                assert_eq!(scanner.held().chars().count(), least[end], "held after {seen:?} {}", context());
            }
            let snapshot = scanner.snapshot();
            scanner.reset();
            scanner.restore(&snapshot).expect("the snapshot is its own");
        }
        let found = |scanner: &StopScanner| {
            let found = scanner.stop_match()?;
            Some((found.offset(), found.sequence().to_owned(), found.pattern().map(str::to_owned)))
        };
        assert_eq!(found(&scanner), reading.fired.as_ref().map(place), "{}", context());
        out += scanner.flush().text;
        assert_eq!(found(&scanner), expected.as_ref().map(place), "at the end {}", context());
        assert_eq!(out, kept, "output {}", context());
    }
    if unarmed == 0 {
        let found = set
            .find(text)
            .map(|found| (found.offset(), found.sequence().to_owned(), found.pattern().map(str::to_owned)));
        assert_eq!(found, expected.as_ref().map(place), "find {}", context());
    }
}
