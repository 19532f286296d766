// Drives the page's JavaScript code: one question per line of standard input, one answer per line.
import { readFileSync } from "node:fs";
import { sign, verify } from "./wallet.mjs";

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [what, path, secret, ...rest] = line.split("\t");
  const pairs = () => rest.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
  console.log(what === "sign" ? sign(secret, path, Object.fromEntries(pairs())) : verify(secret, path, ...rest));
}
