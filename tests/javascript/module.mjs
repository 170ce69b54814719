// Loads the WebAssembly module for the tests, from the place where `bash ci/wasm` builds it.
import { readFileSync } from "node:fs";

import { load } from "../../rust/wasm/stopscan.mjs";

const built = "../../target/wasm/wasm32-unknown-unknown/release/stopscan_wasm.wasm";
await load(readFileSync(new URL(built, import.meta.url)));

export * from "../../rust/wasm/stopscan.mjs";
