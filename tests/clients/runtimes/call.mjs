// A signed success and a refusal, with the client as an ES module imports it.
import { MerchantWallet, OrderNotFoundError } from "merchant-wallet-client";

const env = (name) => process.env[`MERCHANT_WALLET_${name}`];
const wallet = new MerchantWallet(env("URL"), env("APP_KEY"), env("SECRET"));
const { usdtBalance } = await wallet.getMerchantBalance();
const refused = await wallet.queryOrder({ orderId: 1, mcOrderId: "none" }).catch((error) => error);
console.log(`${Number(usdtBalance) > 0} ${refused instanceof OrderNotFoundError} ${refused.code}`);
