import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { findUnclear } from "./fields.js";
export const CALLBACK_PATH = "callback";
const SHORT_SIGNS = new Set(["createMerchantWithdrawOrder", "exchange"]);
const SHORT_LENGTH = 20;
const LONG_LENGTH = 32;
const LEAST_KEY_BYTES = 16;
/** Fields of requests and callbacks. MD5 can't tell those from an answer otherwise. */
const NEVER_IN_ANSWERS = ["appKey", "eventId", "nonceStr", "timestamp"];
/** The text that is signed; for MD5 without `&key=` and the secret. */
export function buildStringToSign(method, path, fields) {
    // Names are ASCII, so the order of UTF-16 units is the order of bytes.
    const names = [...fields.keys()].filter((name) => name !== "sign" && fields.get(name)).sort();
    const pairs = names.map((name) => `${name}=${fields.get(name)}`);
    return method === "MD5" ? pairs.join("&") : [path, ...pairs].join("\n");
}
/**
 * The 32 characters of `sign`. Throws TypeError for fields that the service refuses to take as signed, such as
 * a value with a line feed.
 */
export function signRequest(method, secret, path, fields) {
    const unclear = fields.get("eventId") ? "eventId belongs to callbacks" : findUnclear(fields, method);
    if (unclear)
        throw new TypeError(unclear);
    return sign(method, secret, path, fields);
}
/** `sign` without any check of the fields. */
export function sign(method, secret, path, fields) {
    const text = buildStringToSign(method, path, fields);
    if (method === "MD5") {
        return createHash("md5").update(`${text}&key=${secret}`, "utf8").digest("hex").toUpperCase();
    }
    return createHmac("sha256", secret).update(text, "utf8").digest("hex").slice(0, LONG_LENGTH);
}
/** The path of an operation. A path stays as it is. */
export function pathOf(operation) {
    return operation.startsWith("/") ? operation : `/merchant/${operation}`;
}
/** What is wrong with the signature of an answer with code 200, or null. */
export function checkAnswer(method, secret, operation, nonceStr, data) {
    const unclear = findUnclear(data, method);
    if (unclear)
        return unclear;
    const foreign = method === "MD5" ? NEVER_IN_ANSWERS.find((name) => data.has(name)) : undefined;
    if (foreign)
        return `${foreign} belongs to requests and callbacks`;
    const signed = new Map(data);
    if (method === "HMAC")
        signed.set("code", "200").set("nonceStr", nonceStr);
    const length = SHORT_SIGNS.has(operation) ? SHORT_LENGTH : LONG_LENGTH;
    const expected = sign(method, secret, pathOf(operation), signed).slice(0, length);
    return equals(expected, data.get("sign")) ? null : "sign is not the signature of this answer";
}
/** The `webhook-signature` of Standard Webhooks, or null if the secret is no callback secret. */
export function signWebhook(secret, id, timestamp, body) {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    // An empty key would let anybody sign.
    if (key.length < LEAST_KEY_BYTES)
        return null;
    return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`;
}
/** Compares in a time that does not depend on where the texts differ. */
export function equals(expected, given) {
    const [mine, theirs] = [Buffer.from(expected), Buffer.from(given ?? "")];
    return mine.length === theirs.length && timingSafeEqual(mine, theirs);
}
