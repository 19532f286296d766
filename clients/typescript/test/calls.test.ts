import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";

import {
  BalanceInsufficientError,
  buildStringToSign,
  InternalFaultError,
  MerchantSuspendedError,
  MerchantWallet,
  NoAnswerError,
  type Options,
  signRequest,
  TimestampOutOfToleranceError,
  UnsafeAnswerError,
} from "merchant-wallet-client";

const SECRET = "0123456789abcdef0123456789abcdef";
const OPERATION = "/merchant/transferFromUserToMerchant";
const TRANSFER = { extUserId: "alice", currency: "KFB", amount: "40.50", mcOrderId: "cart-7" };
const DATA =
  '"transactionId":8589934597,"amount":40.5,"amountArrival":40.2975,"rate":0.005,"fee":0.2025,"currency":"KFB","mcOrderId":"cart-7"';

type Sent = Record<string, string>;
type Reply = (response: ServerResponse, sent: Sent) => void;

/** A service that gives these replies, one for each request. The last one is repeated. */
async function serve(context: TestContext, ...replies: Reply[]): Promise<{ url: string; sent: Sent[] }> {
  const sent: Sent[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const fields = JSON.parse(body) as Sent;
      sent.push(fields);
      replies[Math.min(sent.length, replies.length) - 1]?.(response, fields);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sent };
}

const succeed: Reply = (response, sent) => {
  const texts = Object.entries(JSON.parse(`{${DATA}}`) as object).map(([k, v]) => [k, String(v)] as const);
  const nonceStr = sent["nonceStr"] ?? "";
  const signed = new Map<string, string>([...texts, ["code", "200"], ["nonceStr", nonceStr]]);
  const sign = signRequest("HMAC", SECRET, OPERATION, signed);
  response.end(`{"code":200,"msg":"success","data":{${DATA},"sign":"${sign}"}}`);
};

function refuse(code: number, status = 200, headers = {}, data = "null"): Reply {
  const body = `{"code":${code},"msg":"no","data":${data}}`;
  return (response) => response.writeHead(status, { "X-Request-Id": "r-1", ...headers }).end(body);
}

const disconnect: Reply = (response) => response.destroy();
const sayNothing: Reply = () => {};
const unavailable = refuse(50300, 503, { "Retry-After": "0" });

function open(url: string, options: Options = {}): MerchantWallet {
  return new MerchantWallet(url, "mk_test_shop", SECRET, { waitMs: 1, ...options });
}

test("a call sends a signed request and returns texts for amounts", async (context) => {
  const { url, sent } = await serve(context, succeed);
  const transfer = await open(url).transferFromUserToMerchant(TRANSFER);
  assert.deepEqual(transfer, {
    transactionId: 8589934597,
    amount: "40.5",
    amountArrival: "40.2975",
    rate: "0.005",
    fee: "0.2025",
    currency: "KFB",
    mcOrderId: "cart-7",
  });
  const { sign, ...fields } = sent[0] ?? {};
  assert.equal(fields["amount"], "40.50");
  assert.equal(sign, signRequest("HMAC", SECRET, OPERATION, new Map(Object.entries(fields))));
});

test("a repeat has the same order id, a new nonce and a new signature", async (context) => {
  const { url, sent } = await serve(context, unavailable, unavailable, succeed);
  await open(url).transferFromUserToMerchant(TRANSFER);
  assert.deepEqual(new Set(sent.map((each) => each["mcOrderId"])), new Set(["cart-7"]));
  assert.equal(new Set(sent.map((each) => each["nonceStr"])).size, 3);
  assert.equal(new Set(sent.map((each) => each["sign"])).size, 3);
});

test("a lost connection and a page of a proxy are repeated", async (context) => {
  const page: Reply = (response) => response.writeHead(502).end("<html>Bad Gateway</html>");
  const { url, sent } = await serve(context, disconnect, page, succeed);
  await open(url, { retries: 2 }).transferFromUserToMerchant(TRANSFER);
  assert.equal(sent.length, 3);
});

test("without any answer the error says that what happened is unknown", async (context) => {
  const { url } = await serve(context, sayNothing);
  let attempts = 0;
  const counted: typeof fetch = (...words) => {
    attempts += 1;
    return fetch(...words);
  };
  const call = open(url, { timeoutMs: 50, retries: 1, fetch: counted }).transferFromUserToMerchant(TRANSFER);
  await assert.rejects(call, (error: Error) => {
    assert.ok(error instanceof NoAnswerError);
    assert.match(error.message, /same mcOrderId: no answer within 50 ms/);
    return true;
  });
  assert.equal(attempts, 2);
});

test("after 50000 to the end what happened is unknown, and the refusal is the cause", async (context) => {
  const { url, sent } = await serve(context, refuse(50000, 500, { "Retry-After": "0" }));
  await assert.rejects(open(url).transferFromUserToMerchant(TRANSFER), (error: Error) => {
    assert.ok(error instanceof NoAnswerError);
    assert.ok(error.cause instanceof InternalFaultError);
    return true;
  });
  assert.equal(sent.length, 4);
});

test("after a read without an answer nothing is unknown", async (context) => {
  const reads: ((wallet: MerchantWallet) => Promise<unknown>)[] = [
    (wallet) => wallet.getMerchantBalance(),
    (wallet) => wallet.getMerchantCustomer({ extUserId: "alice" }),
    (wallet) => wallet.getWithdrawFee({ amount: "5" }),
    (wallet) => wallet.queryOrder({ orderId: 1, mcOrderId: "order-1" }),
    (wallet) => wallet.call("getMerchantBalance", {}),
  ];
  for (const trouble of [disconnect, unavailable, refuse(42900, 429, { "Retry-After": "0" })]) {
    const { url } = await serve(context, trouble);
    for (const read of reads) {
      await assert.rejects(read(open(url, { retries: 1 })), (error: Error) => {
        assert.ok(error instanceof NoAnswerError);
        assert.match(error.message, /it moves no money, so call it again later/);
        assert.doesNotMatch(error.message, /unknown|mcOrderId/);
        return true;
      });
    }
  }
});

test("a control action has a path of its own, and one that would happen again is sent once", async (context) => {
  const { url, sent } = await serve(context, disconnect);
  const paths: string[] = [];
  const noted: typeof fetch = (to, options) => {
    paths.push(new URL(String(to)).pathname);
    return fetch(to, options);
  };
  const wallet = open(url, { retries: 1, fetch: noted });
  await assert.rejects(wallet.sandbox("fund", { currency: "USDT", amount: "10" }), NoAnswerError);
  await assert.rejects(wallet.sandbox("deposit", { chainType: "TRC20", amount: "10" }), NoAnswerError);
  const once = { currency: "USDT", amount: "10", mcOrderId: "tap-1" };
  await assert.rejects(wallet.sandbox("fund", once), NoAnswerError);
  assert.deepEqual(paths, ["/sandbox/fund", "/sandbox/deposit", "/sandbox/fund", "/sandbox/fund"]);
  const { sign, ...fields } = sent[0] ?? {};
  assert.equal(sign, signRequest("HMAC", SECRET, "/sandbox/fund", new Map(Object.entries(fields))));
});

test("an exchange without an order id is never sent twice", async (context) => {
  const { url, sent } = await serve(context, disconnect, unavailable);
  const own = { amount: "10", sendCurrency: "USDT", receiveCurrency: "KFB" };
  await assert.rejects(open(url).call("exchange", own), NoAnswerError);
  assert.equal(sent.length, 1);
  await assert.rejects(open(url).call("/merchant/exchange", { ...own, mcOrderId: "" }), NoAnswerError);
  assert.equal(sent.length, 2);
  await assert.rejects(
    open(url, { retries: 1 }).call("exchange", { ...own, mcOrderId: "fx-1" }),
    NoAnswerError,
  );
  assert.equal(sent.length, 4);
});

test("a business refusal is an error of its code at once", async (context) => {
  const { url, sent } = await serve(context, refuse(42200));
  await assert.rejects(open(url).transferFromUserToMerchant(TRANSFER), (error: Error) => {
    assert.ok(error instanceof BalanceInsufficientError);
    assert.deepEqual([error.code, error.retry, error.requestId], [42200, "after funding", "r-1"]);
    return true;
  });
  assert.equal(sent.length, 1);
});

test("after an unknown outcome a refusal of the order is believed, a refusal before it is not", async (context) => {
  const first = await serve(context, unavailable, refuse(42200));
  await assert.rejects(open(first.url).transferFromUserToMerchant(TRANSFER), BalanceInsufficientError);
  const second = await serve(context, unavailable, refuse(40300));
  await assert.rejects(open(second.url).transferFromUserToMerchant(TRANSFER), (error: Error) => {
    assert.ok(error instanceof NoAnswerError);
    assert.ok(error.cause instanceof MerchantSuspendedError);
    return true;
  });
});

test("a used nonce is repeated at once, a wrong time once", async (context) => {
  const late = refuse(40102, 200, {}, '{"serverTime":1763712008000,"skewMs":-600000}');
  const first = await serve(context, refuse(40103), late, succeed);
  await open(first.url).transferFromUserToMerchant(TRANSFER);
  assert.equal(first.sent.length, 3);
  const second = await serve(context, late);
  await assert.rejects(open(second.url).transferFromUserToMerchant(TRANSFER), (error: Error) => {
    assert.ok(error instanceof TimestampOutOfToleranceError);
    assert.match(error.message, /differs by -600000 ms/);
    return true;
  });
  assert.equal(second.sent.length, 2);
});

test("a used nonce, or a new code of a fault, leaves what happened unknown", async (context) => {
  const scripts = [
    [refuse(40103)],
    [refuse(40103), refuse(40300)],
    [refuse(40999, 503, { "Retry-After": "0" })],
    [refuse(40999, 429, { "Retry-After": "0" })],
  ];
  for (const replies of scripts) {
    const { url } = await serve(context, ...replies);
    await assert.rejects(open(url, { retries: 1 }).transferFromUserToMerchant(TRANSFER), NoAnswerError);
  }
  const passing = await serve(context, refuse(40999, 503, { "Retry-After": "0" }), succeed);
  await open(passing.url).transferFromUserToMerchant(TRANSFER);
  const refused = await serve(context, refuse(40999));
  await assert.rejects(open(refused.url).transferFromUserToMerchant(TRANSFER), /40999 no/);
});

test("the first digits of a new code say what it is", async (context) => {
  const { url } = await serve(context, refuse(42299));
  await assert.rejects(open(url).getMerchantBalance(), { retry: "later" });
  for (const code of [40099, 40199, 40399, 40499, 40999]) {
    const never = await serve(context, refuse(code));
    await assert.rejects(open(never.url).getMerchantBalance(), { retry: "never" });
  }
  for (const code of [42999, 50099, 59999, 49999, 60000, 418]) {
    const unknown = await serve(context, refuse(code, 200, { "Retry-After": "0" }));
    await assert.rejects(open(unknown.url).getMerchantBalance(), NoAnswerError, String(code));
  }
});

test("a success that is not proven ends the call", async (context) => {
  const forged: Reply = (response) =>
    response.end(`{"code":200,"msg":"success","data":{${DATA},"sign":"00"}}`);
  const { url, sent } = await serve(context, forged);
  await assert.rejects(open(url).transferFromUserToMerchant(TRANSFER), UnsafeAnswerError);
  assert.equal(sent.length, 1);
});

test("with MD5 the true answer for another order is not believed", async (context) => {
  const texts = Object.entries(JSON.parse(`{${DATA}}`) as object).map(([k, v]) => [k, String(v)] as const);
  const sign = signRequest("MD5", SECRET, OPERATION, new Map(texts));
  const { url } = await serve(context, (response) =>
    response.end(`{"code":200,"msg":"success","data":{${DATA},"sign":"${sign}"}}`),
  );
  const wallet = open(url, { signMethod: "MD5" });
  await wallet.transferFromUserToMerchant(TRANSFER);
  const other = wallet.transferFromUserToMerchant({ ...TRANSFER, mcOrderId: "cart-8" });
  await assert.rejects(other, UnsafeAnswerError);
});

test("a call can be ended from outside, and is not repeated then", async (context) => {
  const stop = new AbortController();
  const { url, sent } = await serve(context, () => stop.abort());
  const call = open(url).transferFromUserToMerchant(TRANSFER, { signal: stop.signal });
  await assert.rejects(call, NoAnswerError);
  assert.equal(sent.length, 1);
});

test("a redirect is not followed, and an endless answer is given up", async (context) => {
  const away: Reply = (response) => response.writeHead(302, { Location: "http://127.0.0.1:1/" }).end();
  const endless: Reply = (response) => response.end("x".repeat(1024 * 1024 + 1));
  const { url } = await serve(context, away, endless);
  const call = open(url, { retries: 1 }).transferFromUserToMerchant(TRANSFER);
  await assert.rejects(call, /longer than 1048576 bytes/);
});

test("floats, objects and hidden lines are refused before anything is sent", async (context) => {
  const { url, sent } = await serve(context, succeed);
  const wallet = open(url);
  const wrong = [
    { amount: 40.5 },
    { amount: 40 },
    { rate: 0.1 },
    { x: true },
    { x: {} },
    { x: "a\nb=1" },
    { eventId: "e" },
  ];
  for (const own of wrong) {
    await assert.rejects(wallet.call("exchange", own as never), TypeError, JSON.stringify(own));
  }
  const exchange = { amount: "1.00", sendCurrency: "KFB", receiveCurrency: "USDT" };
  await assert.rejects(wallet.exchange(exchange as never), /mcOrderId is required/);
  assert.throws(() => open("wallet.example"), TypeError);
  assert.throws(() => new MerchantWallet(url, "mk_test_shop", ""), TypeError);
  assert.equal(sent.length, 0);
});

test("no message shows the secret", () => {
  assert.doesNotMatch(
    JSON.stringify(open("https://wallet.example")) + String(open("https://w.example")),
    /0123456789abcdef/,
  );
  assert.equal(buildStringToSign("MD5", "", new Map([["a", "1"]])), "a=1");
});
