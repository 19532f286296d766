// tronweb as a client of the double: what any wallet does, by code that has nothing to do with the product.
// Arguments: the node's URL, the token, the payer's secret in hex, the recipient. Whenever blocks are needed it
// writes {"mine": n} and waits for a line on standard input; at last it writes {"done": what it saw}.
const { TronWeb } = require("tronweb");
const [url, token, secret, recipient] = process.argv.slice(2);
const lines = require("readline").createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function mine(count) {
  console.log(JSON.stringify({ mine: count }));
  await lines.next();
}

const textOf = (hex) => Buffer.from(hex ?? "", "hex").toString();

async function main() {
  const client = new TronWeb({ fullHost: url, privateKey: secret });
  const me = client.defaultAddress.base58;
  const seen = { me };
  seen.head = (await client.trx.getCurrentBlock()).block_header.raw_data.number;
  seen.solid = (await client.trx.getConfirmedCurrentBlock()).block_header.raw_data.number;
  seen.sun = await client.trx.getBalance(me);

  const contract = await client.contract().at(token);
  seen.decimals = Number(await contract.decimals().call());
  seen.before = String(await contract.balanceOf(recipient).call());

  // triggerSmartContract has the node build the bytes, and refuses them if they are not what was asked for.
  const words = [{ type: "address", value: recipient }, { type: "uint256", value: 777 }];
  const asked = { feeLimit: 50_000_000 };
  const { transaction } = await client.transactionBuilder.triggerSmartContract(
    token, "transfer(address,uint256)", asked, words, me);
  const signed = await client.trx.sign(transaction);
  const sent = await client.trx.sendRawTransaction(signed);
  seen.sent = sent.result === true && sent.txid === signed.txID;
  const again = await client.trx.sendRawTransaction(signed);
  seen.again = [again.code, textOf(again.message)];

  seen.unmined = Object.keys(await client.trx.getUnconfirmedTransactionInfo(signed.txID)).length;
  await mine(1);
  const info = await client.trx.getUnconfirmedTransactionInfo(signed.txID);
  seen.outcome = [info.receipt.result, info.contractResult[0], info.log.length];
  seen.early = Object.keys(await client.trx.getTransactionInfo(signed.txID)).length;
  await mine(20);
  seen.late = (await client.trx.getTransactionInfo(signed.txID)).id === signed.txID;
  seen.held = (await client.trx.getTransaction(signed.txID)).raw_data_hex === signed.raw_data_hex;
  seen.after = String(await contract.balanceOf(recipient).call());

  // A transfer of TRX is built by tronweb itself, on a block that it asks the node for.
  const coins = await client.trx.sign(await client.transactionBuilder.sendTrx(recipient, 1_000_000, me));
  seen.coins = (await client.trx.sendRawTransaction(coins)).result === true;
  await mine(1);
  seen.received = await client.trx.getBalance(recipient);

  const forged = { ...signed, signature: [signed.signature[0].replace(/^../, "00")] };
  const refused = await client.trx.sendRawTransaction(forged);
  seen.forged = refused.code;
  console.log(JSON.stringify({ done: seen }));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
