/**
 * Results of the operations. Amounts and rates are decimal texts, exactly as the service wrote them: read them
 * with a decimal library, never with Number. Ids are below 2^53. Times are Dates.
 */

import { WalletError } from "./errors.js";
import type { Fields } from "./fields.js";

/** A decimal such as "12.5". */
export type Amount = string;

/** The statuses of an order. Later versions of the service may add some. */
export const TxnStatus = {
  Accepted: "0",
  BeingPaid: "1",
  Paid: "2",
  Failed: "3",
  Cancelled: "4",
  Expired: "5",
  Refunded: "6",
} as const;
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
export class FieldReader {
  readonly #fields: Fields;
  readonly #makeError: (message: string) => WalletError;

  constructor(fields: Fields, makeError: (message: string) => WalletError) {
    this.#fields = fields;
    this.#makeError = makeError;
  }

  text(name: string): string {
    const text = this.#fields.get(name);
    if (text === null || text === undefined) throw this.#makeError(`there is no ${name}`);
    return text;
  }

  optionalText(name: string): string | null {
    return this.#fields.get(name) ?? null;
  }

  id(name: string): number {
    const id = Number(this.text(name));
    if (!Number.isSafeInteger(id)) throw this.#makeError(`${name} is no id below 2^53`);
    return id;
  }

  optionalId(name: string): number | null {
    return this.optionalText(name) === null ? null : this.id(name);
  }

  time(name: string): Date {
    return new Date(this.id(name));
  }

  optionalTime(name: string): Date | null {
    return this.optionalText(name) === null ? null : this.time(name);
  }
}

export function readUserToMerchantTransfer(data: FieldReader): UserToMerchantTransfer {
  return {
    transactionId: data.id("transactionId"),
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    rate: data.text("rate"),
    fee: data.text("fee"),
    currency: data.text("currency"),
    mcOrderId: data.text("mcOrderId"),
  };
}

export function readMerchantToUserTransfer(data: FieldReader): MerchantToUserTransfer {
  return {
    transactionId: data.id("transactionId"),
    amount: data.text("amount"),
    currency: data.text("currency"),
    mcOrderId: data.text("mcOrderId"),
  };
}

export function readWithdrawOrder(data: FieldReader): WithdrawOrder {
  return {
    orderId: data.id("orderId"),
    mcOrderId: data.text("mcOrderId"),
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    currency: data.text("currency"),
    chainType: data.text("chainType"),
    address: data.text("address"),
    txnStatus: data.text("txnStatus"),
  };
}

export function readOrder(data: FieldReader): Order {
  return {
    orderId: data.id("orderId"),
    mcOrderId: data.text("mcOrderId"),
    currency: data.text("currency"),
    amount: data.text("amount"),
    rate: data.text("rate"),
    fee: data.text("fee"),
    amountArrival: data.text("amountArrival"),
    txnTime: data.time("txnTime"),
    txnStatus: data.text("txnStatus"),
    createTime: data.time("createTime"),
    notifyTime: data.optionalTime("notifyTime"),
    extUserId: data.optionalText("extUserId"),
    chainType: data.text("chainType"),
  };
}

export function readCustomer(data: FieldReader): Customer {
  return {
    userId: data.id("userId"),
    extUserId: data.text("extUserId"),
    username: data.text("username"),
    currency: data.text("currency"),
    balance: data.text("balance"),
    url: data.text("url"),
    address: data.text("address"),
    tronAddress: data.text("tronAddress"),
  };
}

export function readBalance(data: FieldReader): Balance {
  return {
    merchantId: data.id("merchantId"),
    usdtBalance: data.text("usdtBalance"),
    kfbBalance: data.text("kfbBalance"),
  };
}

export function readExchange(data: FieldReader): Exchange {
  return {
    sendCurrency: data.text("sendCurrency"),
    receiveCurrency: data.text("receiveCurrency"),
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    rate: data.text("rate"),
    transactionId: data.id("transactionId"),
  };
}

export function readWithdrawFee(data: FieldReader): WithdrawFee {
  return {
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    fee: data.text("fee"),
    rate: data.text("rate"),
  };
}
