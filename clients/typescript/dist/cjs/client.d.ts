import type { Fields } from "./fields.js";
import * as results from "./results.js";
import { type SignMethod } from "./signing.js";
/** Settings of a client. All have defaults. */
export interface Options {
    /** Default: HMAC. */
    readonly signMethod?: SignMethod;
    /** For one attempt, from connecting to the last byte. Default: 30 seconds. */
    readonly timeoutMs?: number;
    /** Attempts after the first one, each with a new nonce and the same order id. Default: 3. */
    readonly retries?: number;
    /** Before the second attempt if the service names no time; doubled before each further one. Default: 1 second. */
    readonly waitMs?: number;
    /** Another `fetch`, for example one that uses a proxy. */
    readonly fetch?: typeof fetch;
}
/** Settings of one call. */
export interface CallOptions {
    /** Ends the call. Before a definite answer it ends with NoAnswerError. */
    readonly signal?: AbortSignal;
}
/** The fields of an operation. Amounts are decimal texts. */
export type OwnFields = Readonly<Record<string, string | number | null | undefined>>;
export interface TransferFromUserToMerchant {
    readonly extUserId: string;
    readonly currency: string;
    readonly amount: results.Amount;
    readonly mcOrderId: string;
}
export interface TransferFromMerchantToUser {
    readonly currency: string;
    readonly amount: results.Amount;
    readonly mcOrderId: string;
    readonly address: string;
}
export interface CreateMerchantWithdrawOrder {
    readonly amount: results.Amount;
    readonly chainType: string;
    /** Default: USDT. */
    readonly currency?: string;
    readonly mcOrderId: string;
    readonly address: string;
    readonly notifyUrl: string;
}
export interface QueryOrder {
    readonly orderId: number;
    readonly mcOrderId: string;
}
export interface GetMerchantCustomer {
    readonly extUserId: string;
}
export interface ExchangeOrder {
    readonly amount: results.Amount;
    readonly sendCurrency: string;
    readonly receiveCurrency: string;
    /** Without it a repeat would be another exchange, so this client requires it. */
    readonly mcOrderId: string;
    /** Refuse if less than this would arrive. */
    readonly minAmountArrival?: results.Amount;
}
export interface GetWithdrawFee {
    readonly amount: results.Amount;
    /** Default: USDT. */
    readonly currency?: string;
}
/** A client of one merchant. It may be used for any number of calls at once. */
export declare class MerchantWallet {
    #private;
    constructor(baseUrl: string, appKey: string, secret: string, options?: Options);
    /** Takes an amount from a sub-user's wallet. */
    transferFromUserToMerchant(order: TransferFromUserToMerchant, options?: CallOptions): Promise<results.UserToMerchantTransfer>;
    /** Gives an amount to the sub-user that an address belongs to. */
    transferFromMerchantToUser(order: TransferFromMerchantToUser, options?: CallOptions): Promise<results.MerchantToUserTransfer>;
    /** Creates an order that pays USDT to an address on a chain. */
    createMerchantWithdrawOrder(order: CreateMerchantWithdrawOrder, options?: CallOptions): Promise<results.WithdrawOrder>;
    /** Shows a withdrawal order. */
    queryOrder(order: QueryOrder, options?: CallOptions): Promise<results.Order>;
    /** Finds a sub-user. An unknown one is created, unless the operator has switched that off. */
    getMerchantCustomer(user: GetMerchantCustomer, options?: CallOptions): Promise<results.Customer>;
    /** Your balances, without the amounts on hold. */
    getMerchantBalance(options?: CallOptions): Promise<results.Balance>;
    /** Exchanges one of your currencies for the other. */
    exchange(order: ExchangeOrder, options?: CallOptions): Promise<results.Exchange>;
    /** What a withdrawal created now would cost. */
    getWithdrawFee(quote: GetWithdrawFee, options?: CallOptions): Promise<results.WithdrawFee>;
    /**
     * Calls any operation and returns all signed fields of `data` as texts, also those that this version does not
     * know. An operation that moves money must have an order id in `own`. An exchange without one is sent once: a
     * repeat would be another exchange.
     */
    call(operation: string, own: OwnFields, options?: CallOptions): Promise<Fields>;
    /**
     * Calls a control action of a sandbox, for your tests: `wallet.sandbox("deposit", { chainType: "TRC20", amount: "10" })`.
     * Returns as `call` does. A `fund` without mcOrderId and a `deposit` are sent once: a repeat would be another.
     */
    sandbox(action: string, own?: OwnFields, options?: CallOptions): Promise<Fields>;
}
