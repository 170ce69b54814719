import assert from "node:assert/strict";
import { test } from "node:test";

import { Segmenter, StopScanner, formats, load } from "./module.mjs";

test("index_counts_UTF-16_and_offset_code_points", () => {
  const scanner = new StopScanner("END");
  scanner.feed("🦀é🦀 E");
  assert.equal(scanner.feed("ND 🦀"), "");
  assert.deepEqual(scanner.match, { sequence: "END", pattern: null, index: 6, offset: 4, end: 7 });
  scanner.feed("🦀");
  assert.equal(scanner.match.index, 6);
});

test("index_of_a_copy_and_after_a_reset", () => {
  const scanner = new StopScanner({ stop: ["END"] });
  scanner.feed("🦀E");
  const copy = scanner.copy();
  copy.feed("ND");
  assert.equal(copy.match.index, 2);
  assert.equal(scanner.match, null);
  scanner.reset();
  scanner.feed("END");
  assert.equal(scanner.match.index, 0);
});

test("no_character_changes_on_the_way", () => {
  for (const text of ["\ufeffa", "\u0000", "a\u0000\u0001b", "\u{10ffff}", "e\u0301", "\r\n", ""]) {
    assert.equal(new StopScanner().feed(text), text);
    assert.deepEqual(new Segmenter({ regions: { answer: {} } }).feed(text).map((it) => it.text).join(""), text);
  }
});

test("a_long_text_grows_the_memory", () => {
  const text = "🦀 and 字, ".repeat(500_000);
  assert.equal(new StopScanner(["END"]).feed(text + "END"), text);
});

test("a_match_that_the_end_confirms", () => {
  const scanner = new StopScanner({ patterns: ["6$"] });
  assert.equal(scanner.feed("🦀 is 6"), "🦀 is ");
  assert.equal(scanner.held, "6");
  assert.equal(scanner.flush(), "");
  assert.deepEqual(scanner.match, { sequence: "6", pattern: "6$", index: 6, offset: 5, end: 6 });
});

test("parts_of_a_format", () => {
  const segmenter = new Segmenter({ format: "qwen3", stop: ["END"], stopIn: ["answer"] });
  const segments = ["<thi", "nk>END?</think>Yes", ". END!"].flatMap((delta) => segmenter.feed(delta));
  assert.deepEqual(segments, [
    { region: "reasoning", text: "END?", part: 1 },
    { region: "answer", text: "Yes", part: 2 },
    { region: "answer", text: ". ", part: 2 },
  ]);
  assert.equal(segmenter.unused, "!");
  assert.ok(formats().some(({ name, source, states }) => name === "harmony" && source && states[0] === "header"));
});

test("bad_options_are_named", () => {
  const error = (options, Stream = StopScanner) => {
    try {
      new Stream(options);
    } catch (error) {
      return error.message;
    }
    return "no error";
  };
  assert.equal(error({ stops: ["a"] }), 'there is no option "stops"');
  assert.match(error({ stop: ["a", ""] }), /1.*empty/);
  assert.equal(error({ stop: 5 }), "a string is expected, not number");
  assert.equal(error({ stop: ["\ud83e"] }), "the text has half of a surrogate pair");
  assert.match(error({ patterns: ["a*"] }), /a\*/);
  assert.equal(error({ maxHeld: -1 }), "maxHeld: a number of characters is expected");
  assert.equal(error({ includeStop: "yes" }), "includeStop: true or false is expected");
  assert.equal(error({ protect: [["a"]] }), "protect: pairs of an opening and a closing marker are expected");
  assert.equal(error({ format: "html" }, Segmenter), 'format: there is no format "html"');
  assert.equal(error({ format: "think", regions: { a: {} } }, Segmenter), "format and regions exclude each other");
  assert.match(error({ protect: [["a", "b"]] }, Segmenter), /^protect: /);
  assert.match(error({ region: "call" }), /call/);
  // The refused options above must not affect the next stream.
  assert.equal(error({ stop: null, patterns: undefined }), "no error");
});

test("a_bad_delta_changes_nothing", () => {
  const scanner = new StopScanner("🦀END");
  scanner.feed("a🦀E");
  assert.throws(() => scanner.feed("🦀".slice(0, 1)), TypeError);
  assert.throws(() => scanner.feed(undefined), TypeError);
  assert.equal(scanner.held, "🦀E");
  scanner.feed("ND");
  assert.equal(scanner.match.index, 1);
});

test("streams_do_not_mix", () => {
  const empty = new StopScanner(["ab"]);
  const scanners = Array.from({ length: 1000 }, () => empty.copy());
  scanners.forEach((scanner, i) => scanner.feed(i % 2 ? "a" : "b"));
  scanners.forEach((scanner, i) => assert.equal(scanner.feed("b"), i % 2 ? "" : "b"));
  assert.equal(scanners.filter((scanner) => scanner.match).length, 500);
});

test("a_second_load_changes_no_stream", async () => {
  const scanner = new StopScanner("END");
  scanner.feed("E");
  await load(new Uint8Array());
  assert.equal(scanner.held, "E");
});
