"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.verifyCallback = verifyCallback;
const errors_js_1 = require("./errors.js");
const fields_js_1 = require("./fields.js");
const results_js_1 = require("./results.js");
const signing_js_1 = require("./signing.js");
const TOLERANCE_MS = 300_000;
/**
 * The callback in a body, if it is genuine and fresh. Throws BadCallbackError otherwise.
 *
 * `body` are the bytes as they came, before any JSON parser. `secret` is your callback secret, for which the
 * headers are checked, or your secret, for which the body's `sign` is checked. It may be a list while you change
 * one.
 */
function verifyCallback(body, headers, secret, options = {}) {
    const secrets = typeof secret === "string" ? [secret] : secret;
    if (!secrets.length || secrets.includes(""))
        throw new TypeError("secret must not be empty");
    try {
        return check(body, headers, secrets, options);
    }
    catch (error) {
        if (error instanceof fields_js_1.BodyError)
            throw new errors_js_1.BadCallbackError(`this is no callback: ${error.message}`);
        throw error;
    }
}
function check(body, headers, secrets, options) {
    const { signMethod = "HMAC", toleranceMs = TOLERANCE_MS, now = Date.now } = options;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const text = decode(bytes);
    const fields = readBody(text);
    const atMs = findWebhookTime(bytes, headers, secrets, fields) ?? findSignTime(secrets, fields, signMethod);
    if (atMs === null)
        throw new fields_js_1.BodyError("neither its sign nor its webhook-signature is right");
    if (!(Math.abs(now() - atMs) <= toleranceMs)) {
        throw new fields_js_1.BodyError("its time is too far from the clock: it was sent again by somebody, or the clock is wrong");
    }
    return makeCallback(text, fields);
}
function decode(bytes) {
    try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    }
    catch {
        throw new fields_js_1.BodyError("the body is not UTF-8");
    }
}
function readBody(text) {
    const { values, texts, isRepeated } = (0, fields_js_1.readObject)(text);
    if (isRepeated)
        throw new fields_js_1.BodyError("a field is named twice");
    const fields = (0, fields_js_1.readFields)(texts, values);
    const unclear = (0, fields_js_1.findUnclear)(fields, "HMAC");
    if (unclear)
        throw new fields_js_1.BodyError(unclear);
    if (typeof values["eventId"] !== "string" || !values["eventId"])
        throw new fields_js_1.BodyError("there is no eventId");
    return fields;
}
/** The time that the headers of Standard Webhooks prove, or null. */
function findWebhookTime(body, headers, secrets, fields) {
    const id = readHeader(headers, "webhook-id");
    const timestamp = readHeader(headers, "webhook-timestamp");
    const given = readHeader(headers, "webhook-signature").split(" ");
    const isRight = (secret) => {
        const expected = (0, signing_js_1.signWebhook)(secret, id, timestamp, body);
        return expected !== null && given.some((each) => (0, signing_js_1.equals)(expected, each));
    };
    if (id !== fields.get("eventId") || !secrets.some(isRight))
        return null;
    return /^\d{1,13}$/.test(timestamp) ? Number(timestamp) * 1000 : NaN;
}
/** The time that the body's `sign` proves, or null. */
function findSignTime(secrets, fields, method) {
    if ((0, fields_js_1.findUnclear)(fields, method))
        return null;
    const isRight = (secret) => (0, signing_js_1.equals)((0, signing_js_1.sign)(method, secret, signing_js_1.CALLBACK_PATH, fields), fields.get("sign"));
    if (!secrets.some(isRight))
        return null;
    const timestamp = fields.get("timestamp") ?? "";
    return /^\d{1,16}$/.test(timestamp) ? Number(timestamp) : NaN;
}
function readHeader(headers, name) {
    if (headers instanceof Headers)
        return headers.get(name) ?? "";
    for (const [key, value] of Object.entries(headers)) {
        if (key.toLowerCase() === name)
            return typeof value === "string" ? value : (value?.join(" ") ?? "");
    }
    return "";
}
function makeCallback(body, fields) {
    const data = new results_js_1.FieldReader(fields, (message) => new errors_js_1.BadCallbackError(`this is no callback: ${message}`));
    const common = {
        eventId: data.text("eventId"),
        appKey: data.text("appKey"),
        timestamp: data.time("timestamp"),
        body,
        fields,
    };
    const eventType = data.optionalText("eventType");
    if (eventType === null)
        return { kind: "order", ...common, ...readOrder(data) };
    if (eventType === "deposit")
        return { kind: "deposit", ...common, ...readDeposit(data) };
    return { kind: "other", ...common, eventType };
}
function readOrder(data) {
    return {
        orderId: data.id("orderId"),
        mcOrderId: data.text("mcOrderId"),
        amount: data.text("amount"),
        amountArrival: data.text("amountArrival"),
        fee: data.text("fee"),
        rate: data.text("rate"),
        currency: data.text("currency"),
        chainType: data.text("chainType"),
        address: data.text("address"),
        txnStatus: data.text("txnStatus"),
        txnTime: data.time("txnTime"),
        createTime: data.time("createTime"),
        finishTime: data.time("finishTime"),
        txHash: data.optionalText("txHash"),
    };
}
function readDeposit(data) {
    return {
        transactionId: data.id("transactionId"),
        userId: data.optionalId("userId"),
        extUserId: data.optionalText("extUserId"),
        sendCurrency: data.text("sendCurrency"),
        receiveCurrency: data.text("receiveCurrency"),
        amount: data.text("amount"),
        amountArrival: data.text("amountArrival"),
        rate: data.optionalText("rate"),
        chainType: data.text("chainType"),
        address: data.text("address"),
        txnTime: data.time("txnTime"),
        createTime: data.time("createTime"),
        txHash: data.text("txHash"),
        logIndex: data.id("logIndex"),
    };
}
