/**
 * Fields of requests, answers and callbacks: flat names with their texts.
 *
 * JSON.parse decides what is JSON. But it makes floating-point numbers, and a signature needs the text of a
 * number as it came. So the text is parsed a second time, with each number made a string.
 */
/** Names with their texts. A number is its text as it came, `null` is null. */
export type Fields = ReadonlyMap<string, string | null>;
/** A body that is not what the interface sends. The message says why. */
export declare class BodyError extends Error {
}
/** A JSON object: its members as JSON.parse gives them, and the same with the text of each number. */
export interface JsonObject {
    readonly values: Readonly<Record<string, unknown>>;
    readonly texts: Readonly<Record<string, unknown>>;
    /** Whether any object in it names a field twice. Programs differ in which one they read. */
    readonly isRepeated: boolean;
}
/** Reads a JSON object. Throws BodyError if it is none. */
export declare function readObject(text: string): JsonObject;
/** The fields of a flat object: texts, numbers and nulls. Throws BodyError for anything else. */
export declare function readFields(texts: unknown, values: unknown): Fields;
/**
 * Why a signature over these fields would leave open what was signed, or null if it does not. A value with a
 * line feed may look like two fields, and with MD5 also a value with `&`.
 */
export declare function findUnclear(fields: Fields, method: "HMAC" | "MD5"): string | null;
