/** When the same request may be sent again. */
export type RetryClass = "no retry" | "never" | "later" | "new timestamp" | "new nonceStr" | "after the sub-user acts" | "after funding" | "after Retry-After" | "same mcOrderId";
/** A code of the interface: the name of its constant, when to send the request again, and its HTTP status. */
export interface Code {
    readonly code: number;
    readonly name: string;
    readonly retry: RetryClass;
    readonly httpStatus: number;
}
/** All codes by their number. For one that is not here, see `findRetry`. */
export declare const CODES: ReadonlyMap<number, Code>;
/**
 * When the same request may be sent again. A code of the future goes by the HTTP status of a fault, then by its
 * first digits. Unless they say that it was refused, the outcome is unknown.
 */
export declare function findRetry(code: number, httpStatus?: number): RetryClass;
