/**
 * Results of the operations. Amounts and rates are decimal texts, exactly as the service wrote them: read them
 * with a decimal library, never with Number. Ids are below 2^53. Times are Dates.
 */
import { WalletError } from "./errors.js";
import type { Fields } from "./fields.js";
/** A decimal such as "12.5". */
export type Amount = string;
/** The statuses of an order. Later versions of the service may add some. */
export declare const TxnStatus: {
    readonly Accepted: "0";
    readonly BeingPaid: "1";
    readonly Paid: "2";
    readonly Failed: "3";
    readonly Cancelled: "4";
    readonly Expired: "5";
    readonly Refunded: "6";
};
export type TxnStatus = (typeof TxnStatus)[keyof typeof TxnStatus] | (string & {});
export interface UserToMerchantTransfer {
    readonly transactionId: number;
    readonly amount: Amount;
    readonly amountArrival: Amount;
    readonly rate: Amount;
    readonly fee: Amount;
    readonly currency: string;
    readonly mcOrderId: string;
}
export interface MerchantToUserTransfer {
    readonly transactionId: number;
    readonly amount: Amount;
    readonly currency: string;
    readonly mcOrderId: string;
}
export interface WithdrawOrder {
    readonly orderId: number;
    readonly mcOrderId: string;
    readonly amount: Amount;
    readonly amountArrival: Amount;
    readonly currency: string;
    readonly chainType: string;
    readonly address: string;
    readonly txnStatus: TxnStatus;
}
export interface Order {
    readonly orderId: number;
    readonly mcOrderId: string;
    readonly currency: string;
    readonly amount: Amount;
    readonly rate: Amount;
    readonly fee: Amount;
    readonly amountArrival: Amount;
    readonly txnTime: Date;
    readonly txnStatus: TxnStatus;
    readonly createTime: Date;
    /** When the first callback was delivered. */
    readonly notifyTime: Date | null;
    readonly extUserId: string | null;
    readonly chainType: string;
}
export interface Customer {
    readonly userId: number;
    readonly extUserId: string;
    readonly username: string;
    readonly currency: string;
    readonly balance: Amount;
    /** Opens the wallet page for 15 minutes, for anyone who has it: do not store it and do not log it. */
    readonly url: string;
    readonly address: string;
    readonly tronAddress: string;
}
export interface Balance {
    readonly merchantId: number;
    readonly usdtBalance: Amount;
    readonly kfbBalance: Amount;
}
export interface Exchange {
    readonly sendCurrency: string;
    readonly receiveCurrency: string;
    readonly amount: Amount;
    readonly amountArrival: Amount;
    readonly rate: Amount;
    readonly transactionId: number;
}
export interface WithdrawFee {
    readonly amount: Amount;
    readonly amountArrival: Amount;
    readonly fee: Amount;
    readonly rate: Amount;
}
/** Reads typed values. It throws an error of the given class for a field that is absent or of another form. */
export declare class FieldReader {
    #private;
    constructor(fields: Fields, makeError: (message: string) => WalletError);
    text(name: string): string;
    optionalText(name: string): string | null;
    id(name: string): number;
    optionalId(name: string): number | null;
    time(name: string): Date;
    optionalTime(name: string): Date | null;
}
export declare function readUserToMerchantTransfer(data: FieldReader): UserToMerchantTransfer;
export declare function readMerchantToUserTransfer(data: FieldReader): MerchantToUserTransfer;
export declare function readWithdrawOrder(data: FieldReader): WithdrawOrder;
export declare function readOrder(data: FieldReader): Order;
export declare function readCustomer(data: FieldReader): Customer;
export declare function readBalance(data: FieldReader): Balance;
export declare function readExchange(data: FieldReader): Exchange;
export declare function readWithdrawFee(data: FieldReader): WithdrawFee;
