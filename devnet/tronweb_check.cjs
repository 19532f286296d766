// tronweb's own word on bytes that were made elsewhere. Reads one JSON object a line from standard input
// {kind, raw_data_hex, txid, signature_hex, envelope_hex, secret_hex} and writes one a line of what tronweb,
// which shares no code with the product, makes of each; what it refuses to do is null.
const { TronWeb, Trx, utils } = require("tronweb");
const lines = require("readline").createInterface({ input: process.stdin });
const { Transaction } = globalThis.TronWebProto;

const hexOf = (bytes) => Buffer.from(bytes).toString("hex");

function attempt(act) {
  try {
    return act();
  } catch {
    return null;
  }
}

function check(given) {
  const raw = utils.deserializeTx.deserializeTransaction(given.kind, given.raw_data_hex);
  const written = { visible: false, txID: given.txid, raw_data: raw, raw_data_hex: given.raw_data_hex };
  const signed = { ...written, signature: [given.signature_hex] };
  const message = utils.transaction.txJsonToPb(written);
  const envelope = Transaction.deserializeBinary(Uint8Array.from(Buffer.from(given.envelope_hex, "hex")));
  const signature = attempt(() => utils.crypto.signTransaction(given.secret_hex, { ...written }).signature[0]);
  return {
    value: raw.contract[0].parameter.value,
    expiration: raw.expiration,
    timestamp: raw.timestamp,
    fee_limit: raw.fee_limit ?? 0,
    ref_block_bytes: raw.ref_block_bytes,
    ref_block_hash: raw.ref_block_hash,
    raw_data_hex: utils.transaction.txPbToRawDataHex(message).toLowerCase(),
    txid: utils.transaction.txPbToTxID(message).replace(/^0x/, ""),
    is_whole: utils.transaction.txCheck(signed),
    signer: attempt(() => TronWeb.address.toHex(Trx.ecRecover(signed)).toLowerCase()),
    owner: TronWeb.address.toHex(TronWeb.address.fromPrivateKey(given.secret_hex)).toLowerCase(),
    r_and_s: signature && signature.replace(/^0x/, "").slice(0, 128).toLowerCase(),
    envelope_raw_data_hex: hexOf(envelope.getRawData().serializeBinary()),
    envelope_signatures: envelope.getSignatureList_asU8().map(hexOf),
  };
}

lines.on("line", (line) => console.log(JSON.stringify(check(JSON.parse(line)))));
