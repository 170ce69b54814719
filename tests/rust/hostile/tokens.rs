//! Streams and prompts of a million tokens: tokens without text, stray bytes and held text.

use stopscan::{StopScanner, StopSet, Strays, TokenOptions, TokenScanner, Vocabulary};

use crate::{ALLOCATOR, FLAT, MILLION, alone, kept_since};

/// A user may make a model repeat a token without text, or a stray byte, a million times. Memory must not grow, even
/// while text is held.
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
        // The scanner has emitted the first "E", three million U+FFFD for stray bytes, and a million "E"s without the
        // last one, which is held.
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

/// While the text of a million tokens is held, the scanner remembers each of them. This memory must be freed when the
/// text is released.
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
