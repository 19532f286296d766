import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";

import {
  BadCallbackError,
  buildStringToSign,
  type Callback,
  CallbackReceiver,
  FileCallbackStore,
  signRequest,
  verifyCallback,
} from "merchant-wallet-client";

const SECRET = "0123456789abcdef0123456789abcdef";

function write(changes: Record<string, string | number | null> = {}, secret = SECRET): string {
  const fields = {
    appKey: "mk_test_shop",
    timestamp: Date.now(),
    nonceStr: "f2579d976934c788",
    eventId: "evt_8589934599_2",
    orderId: 8589934599,
    mcOrderId: "10001",
    amount: "12.5",
    amountArrival: "11.5",
    fee: "1",
    rate: "0.001",
    currency: "USDT",
    chainType: "TRC20",
    address: "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    txnStatus: "2",
    txnTime: 1763712000000,
    createTime: 1763712000000,
    finishTime: 1763712001500,
    txHash: null,
    ...changes,
  };
  const texts = new Map(Object.entries(fields).map(([k, v]) => [k, v === null ? null : String(v)]));
  const text = buildStringToSign("HMAC", "callback", texts);
  const sign = createHmac("sha256", secret).update(text).digest("hex").slice(0, 32);
  return JSON.stringify({ ...fields, sign });
}

async function makeFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "callbacks-"));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

async function serve(context: TestContext, receiver: CallbackReceiver, news: Callback[], errors: unknown[]) {
  const handler = receiver.handler({
    onNew: (each) => news.push(each),
    onError: (each) => errors.push(each),
  });
  const server = createServer(handler);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return async (body: string) => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const response = await fetch(url, { method: "POST", body });
    return [response.status, await response.text()];
  };
}

test("an order's callback has amounts as texts and times as dates", () => {
  const callback = verifyCallback(write(), {}, SECRET);
  assert.equal(callback.kind, "order");
  assert.ok(callback.kind === "order");
  assert.deepEqual([callback.orderId, callback.amount, callback.txHash], [8589934599, "12.5", null]);
  assert.equal(callback.finishTime.toISOString(), "2025-11-21T08:00:01.500Z");
});

test("a callback of a kind of the future is verified, and its fields can be read", () => {
  const callback = verifyCallback(write({ eventType: "refund", extra: "1" }), {}, SECRET);
  assert.ok(callback.kind === "other");
  assert.deepEqual([callback.eventType, callback.fields.get("extra")], ["refund", "1"]);
});

test("a secret that decodes to nothing verifies nothing, and an empty one is refused", () => {
  for (const secret of ["whsec_", "!!!!", "AAAA"]) {
    assert.throws(() => verifyCallback(write(), {}, secret), BadCallbackError);
  }
  assert.throws(() => verifyCallback(write(), {}, ""), TypeError);
  assert.throws(() => verifyCallback(write(), {}, []), TypeError);
});

test("a callback is stored before it is answered, and each eventId once", async (context) => {
  const folder = await makeFolder(context);
  const [news, errors]: [Callback[], unknown[]] = [[], []];
  const send = await serve(
    context,
    new CallbackReceiver(SECRET, new FileCallbackStore(folder)),
    news,
    errors,
  );
  const first = write();
  assert.deepEqual(await send(first), [200, "success"]);
  assert.deepEqual(await send(write({ timestamp: Date.now() + 1000 })), [200, "success"]);
  assert.deepEqual(
    await Promise.all([send(write({ eventId: "evt_1_6" })), send(write({ eventId: "evt_1_6" }))]),
    [
      [200, "success"],
      [200, "success"],
    ],
  );
  assert.deepEqual(await readdir(folder), ["evt_1_6.json", "evt_8589934599_2.json"]);
  assert.equal(await readFile(join(folder, "evt_8589934599_2.json"), "utf8"), first);
  assert.deepEqual(news.map((each) => each.eventId).sort(), ["evt_1_6", "evt_8589934599_2"]);
  assert.deepEqual(errors, []);
});

test("an eventId is never a path", async (context) => {
  const folder = await makeFolder(context);
  const receiver = new CallbackReceiver(SECRET, new FileCallbackStore(join(folder, "in")));
  assert.equal((await receiver.receive(write({ eventId: "../../evil" }), {})).status, 200);
  assert.deepEqual(await readdir(folder), ["in"]);
  assert.match((await readdir(join(folder, "in")))[0] ?? "", /^[0-9a-f]{64}\.json$/);
});

test("what is not genuine gets 400, what cannot be stored gets 500 and comes again", async (context) => {
  const [news, errors]: [Callback[], unknown[]] = [[], []];
  const store = { add: () => Promise.reject(new Error("the disk is full")) };
  const send = await serve(context, new CallbackReceiver([SECRET], store), news, errors);
  assert.equal((await send(write({}, "another secret")))[0], 400);
  assert.equal((await send(write({ timestamp: Date.now() - 301_000 })))[0], 400);
  assert.equal((await send("x".repeat(65 * 1024)))[0], 413);
  assert.deepEqual(await send(write()), [500, "the callback could not be stored"]);
  assert.deepEqual(news, []);
  assert.match(String(errors.at(-1)), /the disk is full/);
});

test("a request cannot be signed as a callback", () => {
  const fields = new Map([["eventId", "evt_1_2"]]);
  assert.throws(() => signRequest("MD5", SECRET, "callback", fields), /belongs to callbacks/);
});
