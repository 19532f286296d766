// Drives the page's JavaScript code for callbacks: one question per line of standard input, one answer per line.
import { readFileSync } from "node:fs";
import { isCallback } from "./callback.mjs";

for (const line of readFileSync(0, "utf8").split("\n").slice(0, -1)) {
  const [nowS, ...words] = line.split("\t");
  console.log(isCallback(...words, Number(nowS)));
}
