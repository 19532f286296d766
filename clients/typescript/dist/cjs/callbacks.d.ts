import { type Fields } from "./fields.js";
import { type Amount, type TxnStatus } from "./results.js";
import { type SignMethod } from "./signing.js";
interface Common {
    /** The same at every attempt: act on it once. */
    readonly eventId: string;
    readonly appKey: string;
    /** The time of this attempt. */
    readonly timestamp: Date;
    /** The body as it came. */
    readonly body: string;
    /** All fields of the body as texts, also those that this version does not know. */
    readonly fields: Fields;
}
/** A withdrawal order has reached a status. */
export interface OrderCallback extends Common {
    readonly kind: "order";
    readonly orderId: number;
    readonly mcOrderId: string;
    readonly amount: Amount;
    readonly amountArrival: Amount;
    readonly fee: Amount;
    readonly rate: Amount;
    readonly currency: string;
    readonly chainType: string;
    readonly address: string;
    /** The status that this callback reports, even if the order has another one now. */
    readonly txnStatus: TxnStatus;
    readonly txnTime: Date;
    readonly createTime: Date;
    /** The time of this status. */
    readonly finishTime: Date;
    readonly txHash: string | null;
}
/** A deposit was credited. */
export interface DepositCallback extends Common {
    readonly kind: "deposit";
    readonly transactionId: number;
    /** Both null for your own deposit address. */
    readonly userId: number | null;
    readonly extUserId: string | null;
    readonly sendCurrency: string;
    readonly receiveCurrency: string;
    readonly amount: Amount;
    readonly amountArrival: Amount;
    /** Null without an exchange. */
    readonly rate: Amount | null;
    readonly chainType: string;
    readonly address: string;
    readonly txnTime: Date;
    readonly createTime: Date;
    readonly txHash: string;
    readonly logIndex: number;
}
/** A kind of callback that this version does not know. Its fields are in `fields`. */
export interface OtherCallback extends Common {
    readonly kind: "other";
    readonly eventType: string;
}
export type Callback = OrderCallback | DepositCallback | OtherCallback;
/** Headers as node:http, fetch and most frameworks give them. */
export type CallbackHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
export interface VerifyOptions {
    /** The method of the body's `sign`. Default: HMAC. */
    readonly signMethod?: SignMethod;
    /** How far the callback's time may be from the clock, in both directions. Default: 5 minutes. */
    readonly toleranceMs?: number;
    /** The clock. Default: Date.now. */
    readonly now?: () => number;
}
/**
 * The callback in a body, if it is genuine and fresh. Throws BadCallbackError otherwise.
 *
 * `body` are the bytes as they came, before any JSON parser. `secret` is your callback secret, for which the
 * headers are checked, or your secret, for which the body's `sign` is checked. It may be a list while you change
 * one.
 */
export declare function verifyCallback(body: string | Uint8Array, headers: CallbackHeaders, secret: string | readonly string[], options?: VerifyOptions): Callback;
export {};
