// @ts-check
// A shop takes a payment, meets a refusal, pays out and receives the callback.
// Run it with MERCHANT_WALLET_URL, _APP_KEY, _SECRET and _CALLBACK_SECRET of a sandbox in the environment.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  BalanceInsufficientError,
  CallbackReceiver,
  FileCallbackStore,
  MerchantWallet,
} from "merchant-wallet-client";

const env = (/** @type {string} */ name) => process.env[`MERCHANT_WALLET_${name}`] ?? "";

// docs:begin connect
const wallet = new MerchantWallet(env("URL"), env("APP_KEY"), env("SECRET"));
// docs:end connect
const run = randomBytes(4).toString("hex"); // your own order ids would come from your database

// docs:begin payment
// Take a payment: look the user up, give a voucher, take the price. Amounts are texts.
const { extUserId, currency, address } = await wallet.getMerchantCustomer({ extUserId: `alice-${run}` });
await wallet.transferFromMerchantToUser({ currency, amount: "50", mcOrderId: `voucher-${run}`, address });
const price = { currency, amount: "40.5", mcOrderId: `cart-${run}` };
const paid = await wallet.transferFromUserToMerchant({ extUserId, ...price });
console.log(`paid ${paid.amount} ${currency}, amountArrival ${paid.amountArrival}`);
// docs:end payment

// docs:begin refusal
// A refusal says which rule was broken. Nothing was moved, and the mcOrderId can be used again.
try {
  await wallet.transferFromUserToMerchant({
    extUserId,
    currency,
    amount: "1000",
    mcOrderId: `cart-${run}-2`,
  });
} catch (error) {
  if (!(error instanceof BalanceInsufficientError)) throw error;
  console.log(`refused with ${error.code}: ${error.msg}`);
}
// docs:end refusal

// docs:begin callback
// Your endpoint for callbacks. It stores each event before it answers `success`, so none is lost or handled twice.
const store = new FileCallbackStore(join(tmpdir(), `callbacks-${run}`));
const receiver = new CallbackReceiver(env("CALLBACK_SECRET"), store);
const server = createServer(
  receiver.handler({
    onNew: (callback) => {
      if (callback.kind !== "order") return;
      console.log(
        `callback ${callback.eventId}: order ${callback.mcOrderId} has txnStatus ${callback.txnStatus}`,
      );
      server.close();
    },
  }),
);
server.listen(Number(env("CALLBACK_PORT")), "127.0.0.1"); // without the variable any free port
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
// docs:end callback

// docs:begin payout
// Pay out to an address on a chain. The callback comes when the payment is final.
const ownUrl = `http://127.0.0.1:${port}/callbacks`;
const order = await wallet.createMerchantWithdrawOrder({
  amount: "12.50",
  chainType: "TRC20",
  mcOrderId: `payout-${run}`,
  address: "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
  notifyUrl: env("NOTIFY_URL") || ownUrl,
});
console.log(`order ${order.orderId} pays out ${order.amountArrival} USDT`);
// docs:end payout

setTimeout(() => {
  console.error(`no callback came: can the service reach ${ownUrl}?`);
  process.exit(1);
}, 60_000).unref();
