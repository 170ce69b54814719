//! Tests of token scanners by example: vocabularies, their errors, and cases that the random tests do not draw.

use stopscan::{
    EndReason, Finish, Options, SegmentSet, Segmenter, StopScanner, StopSet, Strays, TokenDecoder, TokenOptions,
    TokenScanner, TokenSegmenter, UnknownToken, Vocabulary, VocabularyBuilder, VocabularyError,
};

fn shared<T: Send + Sync>() {}

#[test]
fn everything_is_send_and_sync() {
    shared::<Vocabulary>();
    shared::<VocabularyBuilder>();
    shared::<VocabularyError>();
    shared::<TokenDecoder>();
    shared::<TokenScanner>();
    shared::<TokenOptions>();
    shared::<UnknownToken>();
}

#[test]
fn a_scanner_is_small() {
    assert!(size_of::<TokenScanner>() <= 320, "{}", size_of::<TokenScanner>());
}

fn decoded(vocabulary: &Vocabulary, ids: &[u32]) -> String {
    let mut decoder = TokenDecoder::new(vocabulary);
    let mut text: String = ids.iter().map(|&id| decoder.feed(id).unwrap().to_string()).collect();
    text += decoder.flush();
    text
}

#[test]
fn a_vocabulary_knows_its_tokens() {
    let vocabulary =
        Vocabulary::builder().text("a").gap().special("<s>").text(b"\xFF").text("").byte(7).build().unwrap();
    assert_eq!((vocabulary.len(), vocabulary.is_empty()), (6, false));
    let bytes: Vec<Option<&[u8]>> = (0..8).map(|id| vocabulary.bytes(id)).collect();
    let (a, s, stray, bell): (&[u8], &[u8], &[u8], &[u8]) = (b"a", b"<s>", b"\xFF", b"\x07");
    assert_eq!(bytes, [Some(a), None, Some(s), Some(stray), Some(b""), Some(bell), None, None]);
    let known: Vec<u32> = (0..8).filter(|&id| vocabulary.contains(id)).collect();
    assert_eq!(known, [0, 2, 3, 4, 5]);
    assert_eq!(format!("{vocabulary:?}"), "Vocabulary { len: 6, strays: Parts, .. }");
    assert!(Vocabulary::builder().build().unwrap().is_empty());
}

#[test]
fn a_token_that_is_no_text_is_named() {
    for strays in [Strays::Runs, Strays::Bytes] {
        let error = Vocabulary::builder().strays(strays).text("a").text(b"\xFF").build().unwrap_err();
        assert_eq!(error.to_string(), "token 1 is not valid UTF-8; only byte tokens may be invalid UTF-8");
    }
}

#[test]
fn an_unknown_id_changes_nothing() {
    let vocabulary = Vocabulary::builder().text("a").gap().text(b"\xC3").text(b"\xA9").build().unwrap();
    let mut scanner =
        TokenScanner::new(&vocabulary, StopScanner::new(&StopSet::new(["é!"]).unwrap()), &TokenOptions::default())
            .unwrap();
    let mut decoder = TokenDecoder::new(&vocabulary);
    assert_eq!((scanner.feed(2), decoder.feed(2)), (Ok(""), Ok("")));
    for id in [1, 4, u32::MAX] {
        assert_eq!((scanner.feed(id), decoder.feed(id)), (Err(UnknownToken(id)), Err(UnknownToken(id))));
        assert_eq!(UnknownToken(id).to_string(), format!("token id {id} is not in the vocabulary"));
    }
    assert_eq!((scanner.feed(3), decoder.feed(3)), (Ok(""), Ok("é")));
    assert_eq!((scanner.held(), scanner.tokens_seen()), ("é", 2));
}

#[test]
fn every_byte_has_a_spelling() {
    // The letters with which GPT-2's vocabularies spell the bytes, made as in GPT-2's own `bytes_to_unicode`.
    let printable = |byte: u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = 0x100..;
    let letters: Vec<char> = (0..=0xFF)
        .map(|byte| char::from_u32(if printable(byte) { byte } else { others.next().unwrap() }).unwrap())
        .collect();
    let spell = |bytes: &[u8]| -> String { bytes.iter().map(|&byte| letters[byte as usize]).collect() };
    for byte in 0..=u8::MAX {
        let vocabulary = Vocabulary::builder().spelled(&spell(&[byte])).build().unwrap();
        assert_eq!(vocabulary.bytes(0), Some(&[byte][..]));
    }
    let text = " naïve 🚀\n";
    let vocabulary = Vocabulary::builder().spelled(&spell(text.as_bytes())).spelled("two words").spelled("Ġ你").build();
    let vocabulary = vocabulary.unwrap();
    assert_eq!(decoded(&vocabulary, &[0]), text);
    assert_eq!(decoded(&vocabulary, &[1, 2]), "two wordsĠ你"); // " " and "你" spell no bytes, so the tokens are text
}

#[test]
fn the_first_token_may_be_another() {
    let builder =
        || Vocabulary::builder().strays(Strays::Runs).strip_first_space(true).special("<s>").text(" a").text("b ");
    let vocabulary = builder().byte(b' ').text(" c").at_start("?").byte(b' ').at_start("").build().unwrap();
    for (ids, text) in [
        (vec![1, 1], "a a"),
        (vec![0, 0, 1, 1], "a a"),
        (vec![2, 1], "b  a"),
        (vec![3, 1], "  a"),
        (vec![4, 4], "? c"),
        (vec![5, 5, 1], "  a"),
    ] {
        assert_eq!(decoded(&vocabulary, &ids), text, "{ids:?}");
    }
    let options = TokenOptions::default().prompt_token_ids(vec![0, 2]);
    let stops = StopSet::new([""; 0]).unwrap();
    let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options).unwrap();
    assert_eq!(scanner.feed(1), Ok(" a"));
}

#[test]
fn plain_text_is_borrowed_from_the_vocabulary() {
    let vocabulary = Vocabulary::builder().text("plain").text("E").build().unwrap();
    let stops = StopSet::new(["END"]).unwrap();
    let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &TokenOptions::default()).unwrap();
    let own = vocabulary.bytes(0).unwrap().as_ptr();
    assert!(std::ptr::eq(scanner.feed(0).unwrap().as_ptr(), own));
    assert_eq!(scanner.feed(1), Ok(""));
    assert_eq!(scanner.feed(0), Ok("Eplain"));
    assert!(std::ptr::eq(scanner.feed(0).unwrap().as_ptr(), own));
    assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (4, 4));
}

#[test]
fn a_scanner_with_options_keeps_them() {
    let vocabulary = Vocabulary::builder().special("<think>").special("</think>").text("END").build().unwrap();
    let stops = StopSet::builder().stop(["END"]).protect([("<think>", "</think>")]).build().unwrap();
    let options = Options::default().include_stop(true).start_protected(true);
    let scanner = StopScanner::with_options(&stops, &options).unwrap();
    let mut scanner = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default()).unwrap();
    for _ in 0..2 {
        let out: Vec<String> = [2, 1, 0, 2, 1, 2, 2].map(|id| scanner.feed(id).unwrap().to_string()).into();
        assert_eq!(out, ["END", "", "", "END", "", "END", ""]);
        assert_eq!((scanner.finish(), scanner.tokens_seen()), (Some(Finish::StopSequence), 6));
        scanner.reset();
    }
}

#[test]
fn close_counts_stops_only_behind_min_tokens() {
    // At the end of the stream, the half character of the second token becomes U+FFFD, which completes the stop. This
    // U+FFFD belongs to the second token, so the stop fires only if `min_tokens` is less than 2.
    let vocabulary = Vocabulary::builder().text("a").text(b"\xC3").build().unwrap();
    let stops = StopSet::new(["a\u{FFFD}"]).unwrap();
    for (min_tokens, text, finish) in [
        (0, "", Finish::StopSequence),
        (1, "", Finish::StopSequence),
        (2, "a\u{FFFD}", Finish::Ended(EndReason::Unknown)),
        (3, "a\u{FFFD}", Finish::Ended(EndReason::Unknown)),
    ] {
        let options = TokenOptions::default().min_tokens(min_tokens);
        let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options).unwrap();
        let out = [0, 1].map(|id| scanner.feed(id).unwrap().to_string()).concat() + scanner.flush(EndReason::Unknown);
        assert_eq!((out.as_str(), scanner.finish()), (text, Some(finish)), "{min_tokens}");
    }
}

#[test]
fn an_end_beyond_the_vocabulary_is_counted() {
    let vocabulary = Vocabulary::builder().text("a").build().unwrap();
    let options = TokenOptions::default().stop_token_ids([9]).eos_token_ids([7]);
    for (id, finish) in [(9, Finish::StopToken(9)), (7, Finish::Ended(EndReason::Eos))] {
        let stops = StopSet::new(["END"]).unwrap();
        let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options).unwrap();
        assert_eq!(scanner.feed(0), Ok("a"));
        assert_eq!(scanner.feed(8), Err(UnknownToken(8)));
        assert_eq!(scanner.feed(id), Ok(""));
        assert_eq!(scanner.finish(), Some(finish));
        assert_eq!((scanner.tokens_seen(), scanner.tokens_kept()), (2, 1));
    }
}

/// The library first compares only the lowest six bits of an id with those of the ids that end the stream. The id 67
/// and the stop token 3 have the same lowest bits, but the id 67 must not end the stream.
#[test]
fn an_id_with_the_lowest_bits_of_an_end_is_none() {
    let vocabulary = (0..200).fold(Vocabulary::builder(), |builder, _| builder.text("a")).build().unwrap();
    let options = TokenOptions::default().stop_token_ids([3, 130]).eos_token_ids([70]);
    for (id, finish) in (0..200).map(|id| match id {
        3 | 130 => (id, Some(Finish::StopToken(id))),
        70 => (id, Some(Finish::Ended(EndReason::Eos))),
        _ => (id, None),
    }) {
        for stop in ["END", "ab"] {
            let stops = StopSet::new([stop]).unwrap(); // with "ab", the text of each token is held
            let mut scanner = TokenScanner::new(&vocabulary, StopScanner::new(&stops), &options).unwrap();
            scanner.feed(id).unwrap();
            assert_eq!(scanner.finish(), finish, "{id}");
        }
    }
}

#[test]
fn a_byte_token_that_is_a_whole_character_was_lost() {
    let vocabulary = Vocabulary::builder().byte(b'a').text("b").text(b"\xE4").byte(b' ').build().unwrap();
    assert_eq!(decoded(&vocabulary, &[0, 1, 2, 0, 3]), "ab\u{FFFD}a ");
    let stops = StopSet::new(["x"]).unwrap();
    let scanner = || TokenScanner::new(&vocabulary, StopScanner::new(&stops), &TokenOptions::default()).unwrap();
    assert_eq!(scanner().feed_many(&[0, 1, 2, 0]).unwrap(), "ab\u{FFFD}a");
}

#[test]
fn more_tokens_without_an_end_than_there_may_be_are_refused() {
    let vocabulary = Vocabulary::builder().text("a").build().unwrap();
    let scanner = StopScanner::new(&StopSet::new(["x"]).unwrap());
    let error = TokenScanner::new(&vocabulary, scanner, &TokenOptions::default().min_tokens(3).max_tokens(2));
    assert_eq!(error.unwrap_err().to_string(), "min_tokens 3 is greater than max_tokens 2");
}

/// The first bytes of the last token complete a character and with it a marker. The rest of the token has a stop, so
/// the token counts in the region of the stop.
#[test]
fn a_token_with_a_marker_and_then_a_stop_counts_in_the_region_of_the_stop() {
    let set = SegmentSet::builder().region("reasoning", [("èê", "answer")]).region("answer", [("|", "reasoning")]);
    let set = set.stop(["ê"]).stop_in(["answer"]).build().unwrap();
    for last in ["ê", "êê", "êêê"] {
        let vocabulary = Vocabulary::builder().text(b"\xC3\xA8\xC3").text(&format!("ê{last}").as_bytes()[1..]);
        let vocabulary = vocabulary.build().unwrap();
        let mut segmenter = TokenSegmenter::new(&vocabulary, Segmenter::new(&set), &TokenOptions::default()).unwrap();
        segmenter.feed_many(&[0, 1]).unwrap();
        assert_eq!(segmenter.stop_match().map(|found| found.offset()), Some(2));
        assert!(segmenter.tokens_in().eq([("reasoning", 1), ("answer", 1)]), "{last}");
    }
}
