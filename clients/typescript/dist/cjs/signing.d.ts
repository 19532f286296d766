import { type Fields } from "./fields.js";
/** HMAC, or the weak legacy method MD5, which the operator may have set for an old client. */
export type SignMethod = "HMAC" | "MD5";
export declare const CALLBACK_PATH = "callback";
/** The text that is signed; for MD5 without `&key=` and the secret. */
export declare function buildStringToSign(method: SignMethod, path: string, fields: Fields): string;
/**
 * The 32 characters of `sign`. Throws TypeError for fields that the service refuses to take as signed, such as
 * a value with a line feed.
 */
export declare function signRequest(method: SignMethod, secret: string, path: string, fields: Fields): string;
/** `sign` without any check of the fields. */
export declare function sign(method: SignMethod, secret: string, path: string, fields: Fields): string;
/** The path of an operation. A path stays as it is. */
export declare function pathOf(operation: string): string;
/** What is wrong with the signature of an answer with code 200, or null. */
export declare function checkAnswer(method: SignMethod, secret: string, operation: string, nonceStr: string, data: Fields): string | null;
/** The `webhook-signature` of Standard Webhooks, or null if the secret is no callback secret. */
export declare function signWebhook(secret: string, id: string, timestamp: string, body: Uint8Array): string | null;
/** Compares in a time that does not depend on where the texts differ. */
export declare function equals(expected: string, given: string | null | undefined): boolean;
