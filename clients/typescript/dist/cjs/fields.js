"use strict";
/**
 * Fields of requests, answers and callbacks: flat names with their texts.
 *
 * JSON.parse decides what is JSON. But it makes floating-point numbers, and a signature needs the text of a
 * number as it came. So the text is parsed a second time, with each number made a string.
 */
Object.defineProperty(exports, "__esModule", { value: true });
exports.BodyError = void 0;
exports.readObject = readObject;
exports.readFields = readFields;
exports.findUnclear = findUnclear;
/** A body that is not what the interface sends. The message says why. */
class BodyError extends Error {
}
exports.BodyError = BodyError;
// A JSON string with the colon that follows if it is a name, or a number. It is used on valid JSON only.
const TOKEN = /("[^"\\]*(?:\\[^][^"\\]*)*")(\s*:)?|-?\d[\d.eE+-]*/g;
const NAME = /^[A-Za-z0-9_]{1,64}$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const HIDDEN = /&(?:appKey|eventId|nonceStr|timestamp)=/;
/** Reads a JSON object. Throws BodyError if it is none. */
function readObject(text) {
    let values;
    try {
        values = JSON.parse(text);
    }
    catch {
        throw new BodyError("the body is not JSON");
    }
    if (!isObject(values))
        throw new BodyError("the body is not a JSON object");
    let names = 0;
    const quoted = text.replace(TOKEN, (token, string, colon) => {
        if (colon !== undefined)
            names += 1;
        return string === undefined ? `"${token}"` : token;
    });
    const texts = JSON.parse(quoted);
    return { values, texts, isRepeated: names !== countNames(values) };
}
/** The fields of a flat object: texts, numbers and nulls. Throws BodyError for anything else. */
function readFields(texts, values) {
    if (!isObject(values) || !isObject(texts))
        throw new BodyError("there is no object of fields");
    const fields = new Map();
    for (const name of Object.keys(values)) {
        const [value, text] = [values[name], texts[name]];
        if (value !== null && typeof value !== "string" && typeof value !== "number") {
            throw new BodyError(`${name} is neither a text nor a number`);
        }
        fields.set(name, value === null ? null : String(text));
    }
    return fields;
}
/**
 * Why a signature over these fields would leave open what was signed, or null if it does not. A value with a
 * line feed may look like two fields, and with MD5 also a value with `&`.
 */
function findUnclear(fields, method) {
    for (const [name, text] of fields) {
        if (!NAME.test(name))
            return `${JSON.stringify(name)}: a name must be 1 to 64 of A-Z, a-z, 0-9 and _`;
        if (text === null)
            continue;
        if (CONTROL.test(text))
            return `${name} must not contain control characters`;
        if (/\p{Surrogate}/u.test(text))
            return `${name} contains half of a surrogate pair`;
        const hidden = method === "MD5" ? HIDDEN.exec(text) : null;
        if (hidden)
            return `${name} must not contain ${hidden[0]} with the method MD5`;
    }
    return null;
}
function countNames(value) {
    let names = 0;
    for (const open = [value]; open.length;) {
        const each = open.pop();
        if (typeof each !== "object" || each === null)
            continue;
        if (!Array.isArray(each))
            names += Object.keys(each).length;
        for (const inner of Object.values(each))
            open.push(inner);
    }
    return names;
}
function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}
