//! Examples of Hugging Face's `tokenizer.json`. Python's tests compare whole tokenizers with their `decode`.

use serde_json::{Value, json};
use stopscan::{TokenDecoder, Vocabulary, VocabularyError};

/// A `tokenizer.json` with a few tokens and the given decoder.
fn file(decoder: Value) -> String {
    let vocab = json!({"<unk>": 0, "▁a": 1, "b": 2, "<0x20>": 3, "<0xE4>": 4, "<0xBD>": 5, "<0xA0>": 6, "▁": 9});
    let added = json!([
        {"id": 10, "content": "</s>", "special": true, "normalized": false},
        {"id": 11, "content": "<think>", "special": false},
        {"id": 12, "content": " é▁x"},
    ]);
    json!({"version": "1.0", "truncation": null, "added_tokens": added, "decoder": decoder,
           "model": {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": [["▁a", "b"]]}})
    .to_string()
}

fn sequence(decoders: Value) -> Value {
    json!({"type": "Sequence", "decoders": decoders})
}

fn llama() -> Value {
    sequence(json!([
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]))
}

fn decoded(json: &str, ids: &[u32]) -> String {
    let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
    let mut decoder = TokenDecoder::new(&vocabulary);
    let text: String = ids.iter().map(|&id| decoder.feed(id).unwrap().to_string()).collect();
    text + decoder.flush()
}

#[test]
fn a_vocabulary_with_byte_fallback() {
    let json = file(llama());
    assert_eq!(decoded(&json, &[1, 2, 4, 5, 6, 10, 11, 12, 1]), "ab你<think> é x a");
    assert_eq!(decoded(&json, &[3, 1]), " a");
    assert_eq!(decoded(&json, &[3, 4]), "\u{FFFD}\u{FFFD}");
    let vocabulary = Vocabulary::from_tokenizer_json(&json).unwrap();
    assert_eq!((vocabulary.len(), vocabulary.contains(7), vocabulary.contains(9)), (13, false, true));
}

#[test]
fn a_byte_level_vocabulary() {
    let json = file(json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}));
    assert_eq!(decoded(&json, &[1, 2, 3, 10]), "▁ab<0x20>");
}

#[test]
fn a_unigram_model_has_its_tokens_in_order() {
    let json = json!({"decoder": {"type": "Fuse"}, "model": {"type": "Unigram", "unk_id": 0, "vocab":
        [["<unk>", 0.0], ["a", -1.5], ["a", -2e300], ["b", 3]]}});
    assert_eq!(decoded(&json.to_string(), &[3, 2, 1, 0]), "baa<unk>");
}

/// Files from before 2024 have `add_prefix_space` instead of `prepend_scheme`.
#[test]
fn metaspace_says_in_two_ways_whether_it_drops_the_first_space() {
    for (decoder, text) in [
        (json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}), "a é x"),
        (json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}), "a é x"),
        (json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true}), " a é x"),
        (json!({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}), "a é x"),
        (json!({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false}), " a é x"),
    ] {
        assert_eq!(decoded(&file(decoder.clone()), &[1, 12]), text, "{decoder}");
    }
    let drops = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    assert_eq!(decoded(&file(drops), &[12, 12]), " éx é x");
}

#[test]
fn a_decoder_that_makes_text_otherwise_is_named() {
    let replace = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
    let strip = |start: u32, stop: u32| json!({"type": "Strip", "content": " ", "start": start, "stop": stop});
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true});
    for (decoder, name) in [
        (Value::Null, "the file has no decoder, so tokens would be joined with spaces"),
        (json!({"type": "WordPiece", "prefix": "##", "cleanup": true}), "WordPiece"),
        (json!({"type": "CTC", "pad_token": "<pad>"}), "CTC"),
        (sequence(json!([{"type": "ByteFallback"}, replace])), "Replace"),
        (sequence(json!([{"type": "ByteLevel"}, replace])), "ByteLevel"),
        (sequence(json!([replace, {"type": "Fuse"}, strip(2, 0)])), "Strip"),
        (sequence(json!([replace, {"type": "Fuse"}, strip(1, 1)])), "Strip"),
        (sequence(json!([replace, strip(1, 0)])), "Strip"),
        (sequence(json!([metaspace, {"type": "Fuse"}, strip(1, 0)])), "Strip"),
        (json!({"type": "Replace", "pattern": {"Regex": "▁"}, "content": " "}), "Replace of a regular expression"),
        (json!({"type": "Replace", "pattern": {"String": ""}, "content": " "}), "Replace of a regular expression"),
    ] {
        let error = Vocabulary::from_tokenizer_json(&file(decoder.clone())).unwrap_err();
        assert_eq!(error, VocabularyError::NotNative(name.into()), "{decoder}");
        assert!(error.to_string().ends_with(&format!(": {name}")), "{error}");
    }
}

#[test]
fn what_is_no_such_file_is_an_error_that_says_where() {
    let huge = file(llama()).replace("\"id\":12", "\"id\":4294967295");
    let negative = file(llama()).replace("\"id\":12", "\"id\":-1");
    for (json, says) in [
        ("", "EOF"),
        ("{}", "missing field `model`"),
        (r#"{"model": {}}"#, "missing field `vocab`"),
        (r#"{"model": {"vocab": "a"}}"#, "expected a vocabulary"),
        (r#"{"model": {"vocab": {"a": "b"}}}"#, "invalid type: string"),
        (r#"{"model": {"vocab": [["a"]]}}"#, "invalid length 1"),
        (&huge, "the id 4294967295 of \" é▁x\" is not below 16777216"),
        (&negative, "invalid value: integer `-1`"),
    ] {
        let error = Vocabulary::from_tokenizer_json(json).unwrap_err();
        assert!(matches!(error, VocabularyError::NoTokenizer(_)), "{error:?}");
        assert!(error.to_string().starts_with("not a tokenizer.json: ") && error.to_string().contains(says), "{error}");
    }
}

/// A file with decoders nested 100,000 deep, which could overflow the stack, is refused with an error.
#[test]
fn decoders_in_decoders_are_an_error() {
    let nested = "{\"type\": \"Sequence\", \"decoders\": [".repeat(100_000);
    let json = format!("{{\"decoder\": {nested}");
    assert!(matches!(Vocabulary::from_tokenizer_json(&json), Err(VocabularyError::NoTokenizer(_))));
}

#[test]
fn a_token_that_is_a_byte_only_at_the_start_is_not_native() {
    let metaspace = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
    let decoder = sequence(json!([metaspace, {"type": "ByteFallback"}, {"type": "Fuse"}]));
    let with = |token: &str| {
        let vocab = json!({"a": 0, token: 1});
        Vocabulary::from_tokenizer_json(&json!({"decoder": decoder, "model": {"vocab": vocab}}).to_string())
    };
    assert!(with("▁<0x41").is_ok());
    assert!(matches!(with("▁<0x41>"), Err(VocabularyError::NotNative(_))));
}

#[test]
fn bytes_of_a_fused_text_are_not_native() {
    let byte_level = json!({"type": "ByteLevel"});
    for (decoders, native) in
        [(json!([byte_level, {"type": "Fuse"}]), true), (json!([{"type": "Fuse"}, byte_level]), false)]
    {
        assert_eq!(Vocabulary::from_tokenizer_json(&file(sequence(decoders))).is_ok(), native);
    }
}

#[test]
fn added_tokens_to_which_the_library_gives_other_ids_are_refused() {
    for (ids, taken) in [([0, 2, 3], true), ([0, 3, 2], false), ([0, 5, 6], false), ([1, 2, 3], false)] {
        let added: Vec<Value> =
            ["a", "<x>", "<y>"].iter().zip(ids).map(|(text, id)| json!({"id": id, "content": text})).collect();
        let model = json!({"vocab": {"a": 0, "b": 1}});
        let json = json!({"added_tokens": added, "decoder": {"type": "Fuse"}, "model": model}).to_string();
        assert_eq!(Vocabulary::from_tokenizer_json(&json).is_ok(), taken, "{ids:?}");
    }
}

#[test]
fn a_piece_that_a_unigram_model_has_twice_counts_twice_for_the_ids_of_added_tokens() {
    let json = |id: u32| {
        json!({"added_tokens": [{"id": 2, "content": "a"}, {"id": id, "content": "<x>"}], "decoder": {"type": "Fuse"},
               "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["a", -2], ["b", -3]]}})
        .to_string()
    };
    assert_eq!(decoded(&json(4), &[4, 1, 3, 2]), "<x>aba");
    assert!(Vocabulary::from_tokenizer_json(&json(3)).is_err());
}
