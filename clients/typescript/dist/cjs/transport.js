"use strict";
/** One HTTP exchange, and when to try again. */
Object.defineProperty(exports, "__esModule", { value: true });
exports.LostAnswer = void 0;
exports.post = post;
exports.repeat = repeat;
const promises_1 = require("node:timers/promises");
const answers_js_1 = require("./answers.js");
const errors_js_1 = require("./errors.js");
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_WAIT_MS = 60_000;
/** Lower codes come before the service looks for a known mcOrderId, so they say nothing of an earlier attempt. */
const FIRST_CODE_OF_AN_ORDER = 40302;
/** Operations that move no money: without an answer nothing is unknown. */
const READS = new Set([
    "queryOrder",
    "getMerchantCustomer",
    "getMerchantBalance",
    "getWithdrawFee",
]);
/** POSTs a JSON body. Rejects if there is no whole answer in time. */
async function post(connection, url, body, signal) {
    const stop = new AbortController();
    const end = () => stop.abort(signal?.reason);
    const late = () => stop.abort(new Error(`no answer within ${connection.timeoutMs} ms`));
    const timer = setTimeout(late, connection.timeoutMs);
    signal?.addEventListener("abort", end);
    try {
        signal?.throwIfAborted();
        const response = await connection.fetch(url, {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body,
            redirect: "manual",
            signal: stop.signal,
        });
        return {
            status: response.status,
            body: await readBody(response),
            requestId: response.headers.get("x-request-id"),
            retryAfterMs: readRetryAfter(response.headers.get("retry-after")),
        };
    }
    finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
    }
}
/**
 * Runs `attempt` until there is a definite answer. Throws what it throws, or NoAnswerError if what happened is
 * still unknown after the last attempt.
 */
async function repeat(connection, operation, attempt, signal) {
    let isUnknown = false;
    let hadNewTimestamp = false;
    for (let retry = 0;; retry += 1) {
        try {
            return await attempt();
        }
        catch (error) {
            const waitMs = judge(error, Math.min(connection.waitMs * 2 ** retry, MAX_WAIT_MS), hadNewTimestamp);
            // Nonces are random: a used one says that something on the way sent this very request before.
            isUnknown ||= leavesUnknown(error) || (error instanceof errors_js_1.RefusedError && error.retry === "new nonceStr");
            hadNewTimestamp ||= error instanceof errors_js_1.RefusedError && error.retry === "new timestamp";
            if (waitMs === null || retry >= connection.retries || signal?.aborted) {
                throw end(operation, error, isUnknown);
            }
            await (0, promises_1.setTimeout)(waitMs, undefined, signal ? { signal } : {}).catch(() => {
                throw end(operation, error, isUnknown);
            });
        }
    }
}
/** How long to wait before the next attempt, or null if there must be none. */
function judge(error, usualMs, hadNewTimestamp) {
    if (error instanceof errors_js_1.RefusedError && error.retry === "new timestamp")
        return hadNewTimestamp ? null : 0;
    if (error instanceof errors_js_1.RefusedError && error.retry === "new nonceStr")
        return 0;
    if (!leavesUnknown(error))
        return null;
    const told = error instanceof errors_js_1.RefusedError ? error.retryAfterMs : null;
    if (told !== null)
        return Math.min(told, MAX_WAIT_MS);
    return usualMs * (1 + Math.random() / 4);
}
/** Whether the request may have been carried out in spite of this error. */
function leavesUnknown(error) {
    if (error instanceof errors_js_1.RefusedError) {
        return error.retry === "same mcOrderId" || error.retry === "after Retry-After";
    }
    return error instanceof answers_js_1.NotAnAnswer || error instanceof LostAnswer;
}
function end(operation, error, isUnknown) {
    if (!isUnknown)
        return error;
    if (!leavesUnknown(error)) {
        const isAboutOrder = error instanceof errors_js_1.RefusedError && error.code >= FIRST_CODE_OF_AN_ORDER;
        if (isAboutOrder || !(error instanceof errors_js_1.RefusedError))
            return error;
    }
    const cause = error instanceof LostAnswer ? error.cause : error;
    const why = cause instanceof Error ? cause.message : String(cause);
    const advice = READS.has(operation)
        ? "no definite answer; it moves no money, so call it again later"
        : "what happened is unknown, ask again with the same mcOrderId";
    return new errors_js_1.NoAnswerError(`${advice}: ${why}`, { cause });
}
/** Wraps what `fetch` throws, so that errors of this package are never taken for a lost connection. */
class LostAnswer extends Error {
}
exports.LostAnswer = LostAnswer;
async function readBody(response) {
    const chunks = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES)
            throw new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`);
        chunks.push(chunk);
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(chunks));
}
function readRetryAfter(header) {
    return header !== null && /^\d{1,9}$/.test(header) ? Number(header) * 1000 : null;
}
