// Runs the code of docs/javascript.md, one block after the other.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import * as stopscan from "./module.mjs";

test("the_code_of_the_page_runs", async () => {
  const page = readFileSync(new URL("../../docs/javascript.md", import.meta.url), "utf8");
  const blocks = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, block]) => block);
  assert.ok(blocks.length >= 2);
  const code = blocks.join("").replace(/^(import|await load).*$/gm, "").replaceAll("console.assert", "assert");
  const AsyncFunction = (async () => {}).constructor;
  await new AsyncFunction("assert", ...Object.keys(stopscan), code)(assert, ...Object.values(stopscan));
});
