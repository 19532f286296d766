import { makeRefused, UnsafeAnswerError, WalletError } from "./errors.js";
import { BodyError, type Fields, readFields, readObject } from "./fields.js";
import { checkAnswer, type SignMethod } from "./signing.js";

const SUCCESS = 200;

/** The request that is answered. */
export interface Question {
  readonly method: SignMethod;
  readonly secret: string;
  readonly operation: string;
  readonly nonceStr: string;
}

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly body: string;
  readonly requestId?: string | null;
  readonly retryAfterMs?: number | null;
}

/** The body is not an answer of the service. */
export class NotAnAnswer extends WalletError {}

/**
 * The fields of `data` of a success whose signature is right. Throws RefusedError for a refusal,
 * UnsafeAnswerError for a success that is not proven, NotAnAnswer for anything else.
 */
export function readAnswer(question: Question, answer: RawAnswer): Fields {
  const { code, msg, data, dataTexts, isRepeated } = readEnvelope(answer);
  const requestId = answer.requestId ?? null;
  if (code !== SUCCESS) {
    const retryAfterMs = answer.retryAfterMs ?? null;
    const refused = readRefusalData(dataTexts, data);
    throw makeRefused({ code, msg, data: refused, requestId, retryAfterMs, httpStatus: answer.status });
  }
  try {
    if (isRepeated) throw new BodyError("a field is named twice");
    const fields = readFields(dataTexts, data);
    const { method, secret, operation, nonceStr } = question;
    const wrong = checkAnswer(method, secret, operation, nonceStr, fields);
    if (wrong) throw new BodyError(wrong);
    return fields;
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    throw new UnsafeAnswerError(`the answer is not proven: ${error.message}`, requestId);
  }
}

interface Envelope {
  readonly code: number;
  readonly msg: string;
  readonly data: unknown;
  readonly dataTexts: unknown;
  readonly isRepeated: boolean;
}

function readEnvelope({ status, body }: RawAnswer): Envelope {
  try {
    const { values, texts, isRepeated } = readObject(body);
    const { code, msg, data } = values;
    if (typeof code !== "number" || !/^\d{1,9}$/.test(String(texts["code"]))) {
      throw new BodyError("there is no code");
    }
    if (isRepeated && code !== SUCCESS) throw new BodyError("a field is named twice");
    return { code, msg: typeof msg === "string" ? msg : "", data, dataTexts: texts["data"], isRepeated };
  } catch (error) {
    if (!(error instanceof BodyError)) throw error;
    throw new NotAnAnswer(`HTTP ${status}, and the body is not an answer of the service: ${error.message}`);
  }
}

function readRefusalData(texts: unknown, values: unknown): Fields | null {
  try {
    return readFields(texts, values);
  } catch {
    return null;
  }
}
