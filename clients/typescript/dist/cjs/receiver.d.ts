import type { IncomingMessage, ServerResponse } from "node:http";
import { type Callback, type CallbackHeaders, type VerifyOptions } from "./callbacks.js";
/** Where callbacks are kept before they are answered. Your database is the best place. */
export interface CallbackStore {
    /**
     * Stores the callback for good. Returns false if this eventId is there already. In a database it is an insert
     * with a unique key on eventId, in the transaction that also records what is to be done.
     */
    add(callback: Callback): boolean | Promise<boolean>;
}
/** What to answer. */
export interface Reply {
    readonly status: number;
    readonly body: string;
    /** The callback, if it is genuine. */
    readonly callback: Callback | null;
    /** Whether this eventId came for the first time. */
    readonly isNew: boolean;
    /** Why the callback was refused or could not be stored. Log it. */
    readonly error?: unknown;
}
/** What a handler does beside answering. */
export interface HandlerOptions {
    /** Gets each new callback after it was stored and answered. What it misses in a crash is in the store. */
    readonly onNew?: (callback: Callback) => void;
    /** Gets the reason of each refused or lost callback. Default: console.error. */
    readonly onError?: (error: unknown) => void;
}
/** Verifies callbacks, stores each eventId once, and only then says `success`. */
export declare class CallbackReceiver {
    #private;
    constructor(secret: string | readonly string[], store: CallbackStore, options?: VerifyOptions);
    /**
     * The reply to a callback: 200 `success` when it is stored, also if it came before; 400 if it is not genuine;
     * 500 if the store failed, so that the service sends it again.
     */
    receive(body: string | Uint8Array, headers: CallbackHeaders): Promise<Reply>;
    /** A handler for node:http, and for frameworks on it if no middleware has read the body before. */
    handler(options?: HandlerOptions): (request: IncomingMessage, response: ServerResponse) => void;
}
/** Keeps each callback in a file of a folder. Enough for one machine; needs no database. */
export declare class FileCallbackStore implements CallbackStore {
    #private;
    constructor(folder: string);
    /** Writes the body to the disk, then gives it its name, which only one of two writers can. */
    add(callback: Callback): Promise<boolean>;
}
