// A signed success and a refusal, with the client as CommonJS requires it.
const { MerchantWallet, OrderNotFoundError } = require("merchant-wallet-client");

const env = (name) => process.env[`MERCHANT_WALLET_${name}`];

async function call() {
  const wallet = new MerchantWallet(env("URL"), env("APP_KEY"), env("SECRET"));
  const { usdtBalance } = await wallet.getMerchantBalance();
  const refused = await wallet.queryOrder({ orderId: 1, mcOrderId: "none" }).catch((error) => error);
  return `${Number(usdtBalance) > 0} ${refused instanceof OrderNotFoundError} ${refused.code}`;
}

module.exports = { call };
if (require.main === module) call().then(console.log);
