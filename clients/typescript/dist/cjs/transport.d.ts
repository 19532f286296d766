/** One HTTP exchange, and when to try again. */
import type { RawAnswer } from "./answers.js";
export interface Connection {
    readonly fetch: typeof fetch;
    /** For a whole attempt: connecting, sending and reading. */
    readonly timeoutMs: number;
    /** Attempts after the first one. */
    readonly retries: number;
    /** Before the second attempt; doubled before each further one. */
    readonly waitMs: number;
}
/** POSTs a JSON body. Rejects if there is no whole answer in time. */
export declare function post(connection: Connection, url: string, body: string, signal?: AbortSignal): Promise<RawAnswer>;
/**
 * Runs `attempt` until there is a definite answer. Throws what it throws, or NoAnswerError if what happened is
 * still unknown after the last attempt.
 */
export declare function repeat<T>(connection: Connection, operation: string, attempt: () => Promise<T>, signal?: AbortSignal): Promise<T>;
/** Wraps what `fetch` throws, so that errors of this package are never taken for a lost connection. */
export declare class LostAnswer extends Error {
}
