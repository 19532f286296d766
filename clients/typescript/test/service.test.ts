/**
 * Against a real service. Its sandbox and an account come from the environment; without one they are skipped.
 * The variables of the quick start are not read: these tests move money and expect particular fees.
 */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import {
  BalanceInsufficientError,
  type Callback,
  CallbackReceiver,
  FieldInvalidError,
  FileCallbackStore,
  MerchantWallet,
  OrderIdConflictError,
  OrderNotFoundError,
  SignatureMismatchError,
  SubuserNotFoundError,
  TxnStatus,
} from "merchant-wallet-client";

const env = (name: string) => process.env[`MERCHANT_WALLET_TEST_${name}`] ?? "";
const skip = env("URL") ? false : "MERCHANT_WALLET_TEST_URL names no service";
const ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC";

function open(secret = env("SECRET")): MerchantWallet {
  return new MerchantWallet(env("URL"), env("APP_KEY"), secret);
}

const draw = (word: string) => `${word}-${randomUUID().slice(0, 8)}`;

test("all operations but withdrawals: a day of a shop", { skip }, async () => {
  const wallet = open();
  const before = await wallet.getMerchantBalance();
  const exchange = await wallet.exchange({
    amount: "100.00",
    sendCurrency: "USDT",
    receiveCurrency: "KFB",
    mcOrderId: draw("fx"),
  });
  assert.deepEqual([exchange.amount, exchange.amountArrival, exchange.rate], ["100", "710", "7.1"]);
  const alice = await wallet.getMerchantCustomer({ extUserId: draw("ålice😀") });
  assert.deepEqual([alice.balance, alice.currency, alice.address.length], ["0", "KFB", 42]);
  const order = { currency: "KFB", amount: "60", mcOrderId: draw("topup"), address: alice.address };
  const topUp = await wallet.transferFromMerchantToUser(order);
  assert.equal(topUp.amount, "60");
  const debit = { extUserId: alice.extUserId, currency: "KFB", amount: "40.500001", mcOrderId: draw("cart") };
  const paid = await wallet.transferFromUserToMerchant(debit);
  assert.deepEqual([paid.amount, paid.fee, paid.amountArrival], ["40.500001", "0.405", "40.095001"]);
  assert.deepEqual(await wallet.transferFromUserToMerchant(debit), paid, "a repeat has the first outcome");
  const left = await wallet.getMerchantCustomer({ extUserId: alice.extUserId });
  assert.equal(left.balance, "19.499999");
  const given = { currency: "KFB", amount: "1.5", extUserId: alice.extUserId };
  assert.equal((await wallet.sandbox("fund", given)).get("balance"), "20.999999");
  const after = await wallet.getMerchantBalance();
  assert.equal(after.merchantId, before.merchantId);
  assert.notEqual(after.kfbBalance, before.kfbBalance);
});

test("each refusal is an error of its code", { skip }, async () => {
  const wallet = open();
  const { extUserId, address } = await wallet.getMerchantCustomer({ extUserId: draw("bob") });
  const debit = { extUserId, currency: "KFB", amount: "1", mcOrderId: draw("cart") };
  await assert.rejects(wallet.transferFromUserToMerchant(debit), BalanceInsufficientError);
  const nobody = { ...debit, extUserId: draw("nobody") };
  await assert.rejects(wallet.transferFromUserToMerchant(nobody), SubuserNotFoundError);
  await assert.rejects(wallet.queryOrder({ orderId: 1, mcOrderId: "1" }), OrderNotFoundError);
  await assert.rejects(wallet.getWithdrawFee({ amount: "1e2" }), FieldInvalidError);
  await assert.rejects(open("another secret").getMerchantBalance(), (error: Error) => {
    assert.ok(error instanceof SignatureMismatchError);
    assert.match(error.data?.get("stringToSign") ?? "", /^\/merchant\/getMerchantBalance\nappKey=/);
    assert.match(error.requestId ?? "", /./);
    return true;
  });
  const usdt = { amount: "1.00", sendCurrency: "USDT", receiveCurrency: "KFB", mcOrderId: draw("fx") };
  await wallet.exchange(usdt);
  const give = { currency: "KFB", amount: "2", mcOrderId: draw("topup"), address };
  await wallet.transferFromMerchantToUser(give);
  await assert.rejects(wallet.transferFromMerchantToUser({ ...give, amount: "3" }), OrderIdConflictError);
});

test("a withdrawal is paid, and its callback is stored before it is answered", { skip }, async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "callbacks-"));
  const receiver = new CallbackReceiver(env("CALLBACK_SECRET"), new FileCallbackStore(folder));
  let tell: (callback: Callback) => void;
  const told = new Promise<Callback>((resolve) => (tell = resolve));
  const server = createServer(receiver.handler({ onNew: (callback) => tell(callback) }));
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  context.after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true });
  });
  const wallet = open();
  const fee = await wallet.getWithdrawFee({ amount: "12.50" });
  assert.deepEqual([fee.amount, fee.fee, fee.amountArrival, fee.rate], ["12.5", "1", "11.5", "0.005"]);
  const order = await wallet.createMerchantWithdrawOrder({
    amount: "12.50",
    chainType: "TRC20",
    mcOrderId: draw("payout"),
    address: ADDRESS,
    notifyUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
  });
  assert.equal(order.amountArrival, "11.5");
  const callback = await told;
  assert.ok(callback.kind === "order");
  assert.deepEqual([callback.orderId, callback.txnStatus], [order.orderId, TxnStatus.Paid]);
  const query = await wallet.queryOrder({ orderId: order.orderId, mcOrderId: order.mcOrderId });
  assert.equal(query.txnStatus, TxnStatus.Paid);
  assert.equal(query.createTime.getTime(), callback.createTime.getTime());
});
