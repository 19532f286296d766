const hashes = require("crypto-js");

function readTexts(raw) {
  return JSON.parse(raw.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (part) => (part[0] === '"' ? part : `"${part}"`)));
}

function sign(secret, path, fields) {
  const names = Object.keys(fields)
    .filter((name) => name !== "sign" && fields[name] !== null && fields[name] !== "")
    .sort();
  const text = [path, ...names.map((name) => `${name}=${fields[name]}`)].join("\n");
  return hashes.HmacSHA256(text, secret).toString(hashes.enc.Hex).slice(0, 32);
}

// Without this check one value could be signed as two fields, and the other way round.
function isPlain(answer, raw) {
  const named = raw.match(/"(?:[^"\\]|\\.)*"(?:\s*:)?/g).filter((part) => part.endsWith(":")).length;
  const isOnce = named === Object.keys(answer).length + Object.keys(answer.data).length;
  return isOnce && Object.entries(answer.data).every(([name, value]) => /^[A-Za-z0-9_]{1,64}$/.test(name)
    && (value === null || (typeof value === "string" && !/[\u0000-\u001f\u007f-\u009f]/.test(value))));
}

function isSigned(secret, path, nonceStr, raw) {
  const answer = readTexts(raw);
  const length = ["/merchant/createMerchantWithdrawOrder", "/merchant/exchange"].includes(path) ? 20 : 32;
  const expected = sign(secret, path, { ...answer.data, code: answer.code, nonceStr });
  return isPlain(answer, raw) && expected.slice(0, length) === answer.data.sign;
}

function makeNonce() {
  return hashes.lib.WordArray.random(16).toString(hashes.enc.Hex);
}

function makeOrderId() {
  return `try-${Date.now()}`;
}
