import { WalletError } from "./errors.js";
import { type Fields } from "./fields.js";
import { type SignMethod } from "./signing.js";
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
export declare class NotAnAnswer extends WalletError {
}
/**
 * The fields of `data` of a success whose signature is right. Throws RefusedError for a refusal,
 * UnsafeAnswerError for a success that is not proven, NotAnAnswer for anything else.
 */
export declare function readAnswer(question: Question, answer: RawAnswer): Fields;
