// Exact stop sequences for streams of text, in a page and in Node. docs/javascript.md says how to use it.
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // without ignoreBOM, U+FEFF at the beginning is lost
const notStrings = ["maxHeld", "includeStop", "startProtected"];
const streams = new FinalizationRegistry((stream) => core.release(stream));
let core;

/** Loads the module from its bytes. Call it before the first stream is made; later calls do nothing. */
export async function load(bytes) {
  core ??= (await WebAssembly.instantiate(bytes)).instance.exports;
}

/** Returns `{ name, source, states }` of the format of each family of models. A stream begins in the first state. */
export function formats() {
  const lines = read(core.formats()).split("\n").map((line) => line.split("\t"));
  return lines.map(([name, source, ...states]) => ({ name, source, states }));
}

function write(text) {
  if (typeof text !== "string") throw new TypeError(`a string is expected, not ${typeof text}`);
  if (!text.isWellFormed()) throw new TypeError("the text has half of a surrogate pair");
  const most = 3 * text.length; // bytes of UTF-8
  const at = core.room(most); // before the view is made: if the memory grows, older views are empty
  core.shorten(encoder.encodeInto(text, new Uint8Array(core.memory.buffer, at, most)).written);
}

function read(length) {
  return decoder.decode(new Uint8Array(core.memory.buffer, core.buffer(), length));
}

function setOption(name, value) {
  if (name === "protect") return value.forEach((pair) => push(name, pair));
  if (name !== "regions") return push(name, notStrings.includes(name) ? String(value) : value);
  for (const [region, markers] of Object.entries(value)) push(name, [region, ...Object.entries(markers).flat()]);
}

function push(name, value) {
  for (const text of [name, value].flat()) {
    write(text);
    core.push();
  }
  core.option();
}

class Stream {
  #number;
  #units = 0; // of UTF-16, read so far

  constructor(segmenter, options) {
    if (options instanceof Stream) {
      this.#number = core.copy(options.#number);
      this.#units = options.#units;
    } else {
      core.begin();
      for (const [name, value] of Object.entries(options ?? {})) if (value != null) setOption(name, value);
      this.#number = core.build(segmenter);
      if (this.#number < 0) throw new RangeError(read(core.error()));
    }
    streams.register(this, this.#number);
  }

  /** Reads a piece of the text, and returns what is now safe to send. In text that is not armed no stop fires. */
  feed(delta, { armed = true } = {}) { return this._output(core.feed(this.#write(delta), armed)); }
  /** Returns the held text and `text`, which is not scanned. */
  bypass(text) { return this._output(core.bypass(this.#write(text))); }
  /** Ends the text, and returns what was held. */
  flush() { return this._output(core.flush(this.#number)); }
  /** Goes back to the start of the stream. */
  reset() { core.reset(this.#number); this.#units = 0; }
  /** Returns an independent copy. It shares the set, so that stops are compiled once for many streams. */
  copy() { return new this.constructor(this); }

  get held() { return read(core.held(this.#number)); }
  get unused() { return read(core.unused(this.#number)); }
  get region() { return read(core.region(this.#number)); }
  /** The stop that fired, or null. `offset` and `end` count code points; `index` counts UTF-16, as strings do. */
  get match() {
    if (!core.has_fired(this.#number)) return null;
    const sequence = read(core.sequence(this.#number)), pattern = read(core.pattern(this.#number)) || null;
    const index = this.#units - this.unused.length - sequence.length;
    return { sequence, pattern, index, offset: core.offset(this.#number), end: core.end(this.#number) };
  }

  #write(text) {
    write(text);
    if (!core.has_fired(this.#number)) this.#units += text.length;
    return this.#number;
  }
}

/** Scans one stream: `feed`, `bypass` and `flush` return text. Takes options, or only the stops. */
export class StopScanner extends Stream {
  constructor(options) { super(false, typeof options === "string" || Array.isArray(options) ? { stop: options } : options); }
  _output() { return read(core.piece_text(0)); }
}

/** Cuts one stream into parts: `feed`, `bypass` and `flush` return a list of `{ region, text, part }`. */
export class Segmenter extends Stream {
  constructor(options) { super(true, options); }
  _output(count) {
    const piece = (_, i) => ({ region: read(core.piece_region(i)), text: read(core.piece_text(i)), part: core.piece_part(i) });
    return Array.from({ length: count }, piece);
  }
}
