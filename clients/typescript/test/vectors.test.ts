import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import * as client from "merchant-wallet-client";
import {
  BadCallbackError,
  buildStringToSign,
  CODES,
  NotAnAnswer,
  readAnswer,
  RefusedError,
  type SignMethod,
  signRequest,
  UnsafeAnswerError,
  verifyCallback,
} from "merchant-wallet-client";

type Field = [name: string, text: string | null, kind: "text" | "number"];

const FOLDER = process.env["MERCHANT_WALLET_VECTORS"] ?? join(process.cwd(), "../../vectors");

function read<T>(name: string, least: number): T[] {
  const cases = JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as T[];
  assert.ok(cases.length >= least);
  return cases;
}

function toFields(list: Field[]): Map<string, string | null> {
  return new Map(list.map(([name, text]) => [name, text]));
}

interface Request {
  name: string;
  path: string;
  method: SignMethod;
  secret: string;
  fields: Field[] | null;
  stringToSign: string;
  sign: string;
  valid: boolean;
}

test("each request is signed as its vector says, and what must not be signed is refused", () => {
  for (const each of read<Request>("requests.json", 300)) {
    if (!each.fields) continue;
    const fields = toFields(each.fields);
    if (!each.valid) {
      assert.throws(() => signRequest(each.method, each.secret, each.path, fields), TypeError, each.name);
      continue;
    }
    assert.equal(buildStringToSign(each.method, each.path, fields), each.stringToSign, each.name);
    assert.equal(signRequest(each.method, each.secret, each.path, fields), each.sign, each.name);
  }
});

interface Answer {
  name: string;
  operation: string;
  method: SignMethod;
  secret: string;
  nonceStr: string;
  httpStatus: number;
  body: string;
  outcome: "success" | "refused" | "unsafe" | "noAnswer";
  code: number;
  msg: string;
  data: Field[] | null;
}

test("each answer has the outcome of its vector", () => {
  for (const each of read<Answer>("answers.json", 600)) {
    const ask = () => readAnswer(each, { status: each.httpStatus, body: each.body });
    if (each.outcome === "success") {
      const data = new Map(ask());
      data.delete("sign");
      assert.deepEqual(
        [...data],
        each.data?.map(([name, text]) => [name, text]),
        each.name,
      );
    } else if (each.outcome === "refused") {
      assert.throws(ask, (error) => {
        assert.ok(error instanceof RefusedError, each.name);
        assert.deepEqual([error.code, error.msg], [each.code, each.msg]);
        assert.deepEqual(error.data, each.data && toFields(each.data));
        return true;
      });
    } else {
      const kind = each.outcome === "unsafe" ? UnsafeAnswerError : NotAnAnswer;
      assert.throws(ask, kind, `${each.name}: ${each.outcome}`);
    }
  }
});

interface CallbackCase {
  name: string;
  method: SignMethod;
  secret: string;
  callbackSecret: string;
  headers: Record<string, string>;
  body: string;
  now_ms: number;
  validBySign: boolean;
  validByWebhook: boolean;
  event: Field[];
}

test("each callback is taken or refused as its vector says, with either secret", () => {
  for (const each of read<CallbackCase>("callbacks.json", 280)) {
    const options = { signMethod: each.method, now: () => each.now_ms };
    const verdicts: [string | string[], boolean][] = [
      [each.secret, each.validBySign],
      [each.callbackSecret, each.validByWebhook],
      [["another secret", each.secret], each.validBySign],
    ];
    for (const [secret, isValid] of verdicts) {
      const verify = () => verifyCallback(Buffer.from(each.body), each.headers, secret, options);
      if (!isValid) {
        assert.throws(verify, BadCallbackError, each.name);
        continue;
      }
      const fields = new Map(verify().fields);
      fields.delete("sign");
      assert.deepEqual(
        [...fields],
        each.event.map(([name, text]) => [name, text]),
        each.name,
      );
    }
  }
});

test("each code has its name, its retry class, its HTTP status and an error class of its own", () => {
  const codes = read<{ code: number; name: string }>("codes.json", 32);
  assert.deepEqual([...CODES.values()], codes);
  for (const { code, name } of codes.slice(1)) {
    const words = name.split("_").map((word) => word[0] + word.slice(1).toLowerCase());
    const given = readRefusal(code);
    assert.equal(given.name, `${words.join("")}Error`);
    assert.equal(given.constructor, (client as Record<string, unknown>)[given.name]);
  }
});

function readRefusal(code: number): RefusedError {
  const question = { method: "HMAC", secret: "s", operation: "getMerchantBalance", nonceStr: "n" } as const;
  try {
    readAnswer(question, { status: 200, body: `{"code":${code},"msg":"no","data":null}` });
  } catch (error) {
    if (error instanceof RefusedError) return error;
  }
  throw new Error("not refused");
}
