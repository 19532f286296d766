// Calls the service with the clients in TypeScript. The requests are signed with the page's JavaScript code.
import { randomBytes } from "node:crypto";
import main from "./build/main.js";
import { sign } from "./wallet.mjs";

const { MERCHANT_WALLET_URL: url, MERCHANT_WALLET_APP_KEY: appKey, MERCHANT_WALLET_SECRET: secret } = process.env;

function make(timestamp) {
  const fields = { appKey, timestamp, nonceStr: randomBytes(16).toString("hex"), extUserId: "alice" };
  return { ...fields, sign: sign(secret, "/merchant/getMerchantCustomer", fields) };
}

const calls = { "typescript-fetch": main.callGenerated(url), "openapi-typescript": main.callTyped(url) };
for (const [name, call] of Object.entries(calls)) {
  const request = make(Date.now());
  for (const each of [request, request, make(1)]) console.log(`${name} ${await call(each)}`);
}
