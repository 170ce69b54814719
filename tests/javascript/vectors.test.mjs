// Runs the cases in tests/vectors/ with the WebAssembly module, which `bash ci/wasm` builds.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { Segmenter, StopScanner } from "./module.mjs";

const root = new URL("../vectors/", import.meta.url);

function vectors(folder) {
  const files = readdirSync(new URL(folder, root)).filter((name) => name.endsWith(".json"));
  const cases = files.flatMap((name) => JSON.parse(readFileSync(new URL(folder + name, root), "utf8")));
  assert.ok(cases.length > 10);
  return cases;
}

function options(vector) {
  return {
    stop: vector.stop,
    visible: vector.visible,
    patterns: vector.patterns,
    visiblePatterns: vector.visible_patterns,
    protect: vector.protect,
    regions: vector.markers,
    stopIn: vector.stop_in,
    includeStop: vector.include_stop,
    startProtected: vector.start_protected,
    region: vector.region,
  };
}

/** Does a step of a case, and returns its outputs. Cuts the text of a feed into deltas of `size` characters. */
function step(stream, { op, text }, size) {
  if (op === "flush") return [stream.flush()];
  if (op === "bypass") return [stream.bypass(text)];
  if (op === "reset") return stream.reset(), [];
  const characters = [...text];
  const deltas = [];
  for (let at = 0; at < characters.length; at += size) deltas.push(characters.slice(at, at + size).join(""));
  return deltas.map((delta) => stream.feed(delta, { armed: op === "feed" }));
}

/** Joins neighbouring segments of one region, as in the vectors. */
function joined(segments) {
  const all = [];
  for (const { region, text } of segments) {
    if (all.at(-1)?.[0] === region) all.at(-1)[1] += text;
    else all.push([region, text]);
  }
  return all;
}

for (const [folder, Stream] of [["./", StopScanner], ["patterns/", StopScanner], ["segments/", Segmenter]]) {
  for (const size of [Infinity, 1, 2, 3]) {
    test(`vectors hold: ${folder} in pieces of ${size}`, () => {
      for (const vector of vectors(folder)) {
        const stream = new Stream(options(vector));
        let text = ""; // since the last reset
        for (const it of vector.steps) {
          text = it.op === "reset" ? "" : text + it.text;
          const output = step(stream, it, size);
          assert.deepEqual(Stream === Segmenter ? joined(output.flat()) : output.join(""), it.out, vector.name);
          assert.equal(stream.held, it.held, vector.name);
          if (it.region) assert.equal(stream.region, it.region, vector.name);
        }
        const match = stream.match;
        const expected = vector.match && { pattern: null, ...vector.match };
        assert.deepEqual(match && { sequence: match.sequence, offset: match.offset, end: match.end, pattern: match.pattern }, expected, vector.name);
        if (size === Infinity) assert.equal(stream.unused, vector.unused, vector.name);
        if (match) assert.equal(text.slice(match.index, match.index + match.sequence.length), match.sequence, vector.name);
      }
    });
  }
}
