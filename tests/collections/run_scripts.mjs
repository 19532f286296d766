// Runs a collection's scripts as Postman and Bruno do, with what those programs give them. Reads cases from
// standard input: {"program", "before", "after", "cases": [{"path", "body", "secret", "nonceStr", "answer"}]}.
// Writes for each case what was sent, or whether the answer was found to be signed.
import { createHmac, randomBytes } from "node:crypto";

const hashes = {
  HmacSHA256: (text, secret) => ({ toString: () => createHmac("sha256", secret).update(text, "utf8").digest("hex") }),
  lib: { WordArray: { random: (bytes) => ({ toString: () => randomBytes(bytes).toString("hex") }) } },
  enc: { Hex: {} },
};
const require = (name) => {
  if (name !== "crypto-js") throw new Error(`no ${name}`);
  return hashes;
};
const expect = (value) => ({ to: { equal: (other) => { if (value !== other) throw new Error(`${value} is not ${other}`); } } });

function runPostman(script, one, sent) {
  const values = new Map(Object.entries({ appKey: "demo", secret: one.secret, nonceStr: one.nonceStr }));
  const variables = { get: (name) => values.get(name), set: (name, value) => values.set(name, value), replaceIn: (text) => text };
  const tests = {};
  const pm = {
    variables,
    collectionVariables: variables,
    request: { url: { getPath: () => `/pay${one.path}` }, body: { raw: one.body, update: (body) => { sent.body = body.raw; } } },
    response: { json: () => JSON.parse(one.answer), text: () => one.answer },
    test: (name, check) => { try { check(); tests[name] = true; } catch { tests[name] = false; } },
    expect,
  };
  new Function("require", "pm", script)(require, pm);
  return tests;
}

function runBruno(script, one, sent) {
  const values = new Map(Object.entries({ appKey: "demo", secret: one.secret, nonceStr: one.nonceStr }));
  const tests = {};
  const bru = { getVar: (name) => values.get(name), getEnvVar: (name) => values.get(name), setVar: (name, value) => values.set(name, value) };
  const req = { getUrl: () => `{{baseUrl}}${one.path}`, getBody: () => one.body, setBody: (body) => { sent.body = JSON.stringify(body); } };
  const res = { getBody: () => JSON.parse(one.answer) };
  const test = (name, check) => { try { check(); tests[name] = true; } catch { tests[name] = false; } };
  new Function("require", "bru", "req", "res", "test", "expect", script)(require, bru, req, res, test, expect);
  return tests;
}

let text = "";
for await (const part of process.stdin) text += part;
const { program, script, cases } = JSON.parse(text);
const run = program === "postman" ? runPostman : runBruno;
const results = cases.map((one) => {
  const sent = {};
  const tests = run(script, one, sent);
  return { sent: sent.body, tests };
});
process.stdout.write(JSON.stringify(results));
