"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.NotAnAnswer = void 0;
exports.readAnswer = readAnswer;
const errors_js_1 = require("./errors.js");
const fields_js_1 = require("./fields.js");
const signing_js_1 = require("./signing.js");
const SUCCESS = 200;
/** The body is not an answer of the service. */
class NotAnAnswer extends errors_js_1.WalletError {
}
exports.NotAnAnswer = NotAnAnswer;
/**
 * The fields of `data` of a success whose signature is right. Throws RefusedError for a refusal,
 * UnsafeAnswerError for a success that is not proven, NotAnAnswer for anything else.
 */
function readAnswer(question, answer) {
    const { code, msg, data, dataTexts, isRepeated } = readEnvelope(answer);
    const requestId = answer.requestId ?? null;
    if (code !== SUCCESS) {
        const retryAfterMs = answer.retryAfterMs ?? null;
        const refused = readRefusalData(dataTexts, data);
        throw (0, errors_js_1.makeRefused)({ code, msg, data: refused, requestId, retryAfterMs, httpStatus: answer.status });
    }
    try {
        if (isRepeated)
            throw new fields_js_1.BodyError("a field is named twice");
        const fields = (0, fields_js_1.readFields)(dataTexts, data);
        const { method, secret, operation, nonceStr } = question;
        const wrong = (0, signing_js_1.checkAnswer)(method, secret, operation, nonceStr, fields);
        if (wrong)
            throw new fields_js_1.BodyError(wrong);
        return fields;
    }
    catch (error) {
        if (!(error instanceof fields_js_1.BodyError))
            throw error;
        throw new errors_js_1.UnsafeAnswerError(`the answer is not proven: ${error.message}`, requestId);
    }
}
function readEnvelope({ status, body }) {
    try {
        const { values, texts, isRepeated } = (0, fields_js_1.readObject)(body);
        const { code, msg, data } = values;
        if (typeof code !== "number" || !/^\d{1,9}$/.test(String(texts["code"]))) {
            throw new fields_js_1.BodyError("there is no code");
        }
        if (isRepeated && code !== SUCCESS)
            throw new fields_js_1.BodyError("a field is named twice");
        return { code, msg: typeof msg === "string" ? msg : "", data, dataTexts: texts["data"], isRepeated };
    }
    catch (error) {
        if (!(error instanceof fields_js_1.BodyError))
            throw error;
        throw new NotAnAnswer(`HTTP ${status}, and the body is not an answer of the service: ${error.message}`);
    }
}
function readRefusalData(texts, values) {
    try {
        return (0, fields_js_1.readFields)(texts, values);
    }
    catch {
        return null;
    }
}
