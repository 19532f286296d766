import { randomBytes } from "node:crypto";

import { readAnswer } from "./answers.js";
import { UnsafeAnswerError } from "./errors.js";
import type { Fields } from "./fields.js";
import * as results from "./results.js";
import { pathOf, type SignMethod, signRequest } from "./signing.js";
import { type Connection, LostAnswer, post, repeat } from "./transport.js";

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

/** What happens again at a repeat without mcOrderId. */
const ONCE: ReadonlySet<string> = new Set(["exchange", "/sandbox/fund", "/sandbox/deposit"]);

/** A client of one merchant. It may be used for any number of calls at once. */
export class MerchantWallet {
  readonly #baseUrl: string;
  readonly #appKey: string;
  readonly #secret: string;
  readonly #signMethod: SignMethod;
  readonly #connection: Connection;

  constructor(baseUrl: string, appKey: string, secret: string, options: Options = {}) {
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError("baseUrl must begin with https:// or http://");
    if (!appKey || !secret) throw new TypeError("appKey and secret must not be empty");
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#appKey = appKey;
    this.#secret = secret;
    this.#signMethod = options.signMethod ?? "HMAC";
    const { timeoutMs = 30_000, retries = 3, waitMs = 1000, fetch = globalThis.fetch } = options;
    this.#connection = { timeoutMs, retries, waitMs, fetch };
  }

  /** Takes an amount from a sub-user's wallet. */
  async transferFromUserToMerchant(
    order: TransferFromUserToMerchant,
    options?: CallOptions,
  ): Promise<results.UserToMerchantTransfer> {
    return results.readUserToMerchantTransfer(await this.#ask("transferFromUserToMerchant", order, options));
  }

  /** Gives an amount to the sub-user that an address belongs to. */
  async transferFromMerchantToUser(
    order: TransferFromMerchantToUser,
    options?: CallOptions,
  ): Promise<results.MerchantToUserTransfer> {
    return results.readMerchantToUserTransfer(await this.#ask("transferFromMerchantToUser", order, options));
  }

  /** Creates an order that pays USDT to an address on a chain. */
  async createMerchantWithdrawOrder(
    order: CreateMerchantWithdrawOrder,
    options?: CallOptions,
  ): Promise<results.WithdrawOrder> {
    const own = { currency: "USDT", ...order };
    return results.readWithdrawOrder(await this.#ask("createMerchantWithdrawOrder", own, options));
  }

  /** Shows a withdrawal order. */
  async queryOrder(order: QueryOrder, options?: CallOptions): Promise<results.Order> {
    return results.readOrder(await this.#ask("queryOrder", order, options));
  }

  /** Finds a sub-user. An unknown one is created, unless the operator has switched that off. */
  async getMerchantCustomer(user: GetMerchantCustomer, options?: CallOptions): Promise<results.Customer> {
    return results.readCustomer(await this.#ask("getMerchantCustomer", user, options));
  }

  /** Your balances, without the amounts on hold. */
  async getMerchantBalance(options?: CallOptions): Promise<results.Balance> {
    return results.readBalance(await this.#ask("getMerchantBalance", {}, options));
  }

  /** Exchanges one of your currencies for the other. */
  async exchange(order: ExchangeOrder, options?: CallOptions): Promise<results.Exchange> {
    if (!order.mcOrderId) throw new TypeError("mcOrderId is required: without it a repeat exchanges again");
    return results.readExchange(await this.#ask("exchange", order, options));
  }

  /** What a withdrawal created now would cost. */
  async getWithdrawFee(quote: GetWithdrawFee, options?: CallOptions): Promise<results.WithdrawFee> {
    const own = { currency: "USDT", ...quote };
    return results.readWithdrawFee(await this.#ask("getWithdrawFee", own, options));
  }

  /**
   * Calls any operation and returns all signed fields of `data` as texts, also those that this version does not
   * know. An operation that moves money must have an order id in `own`. An exchange without one is sent once: a
   * repeat would be another exchange.
   */
  async call(operation: string, own: OwnFields, options: CallOptions = {}): Promise<Fields> {
    const texts = toTexts(own);
    // What is known of an operation is known by its name.
    const name = operation.replace(/^\/merchant\//, "");
    const attempt = () => this.#attempt(name, texts, options.signal);
    const isOnce = ONCE.has(name) && !texts.has("mcOrderId");
    const connection = isOnce ? { ...this.#connection, retries: 0 } : this.#connection;
    return repeat(connection, name, attempt, options.signal);
  }

  /**
   * Calls a control action of a sandbox, for your tests: `wallet.sandbox("deposit", { chainType: "TRC20", amount: "10" })`.
   * Returns as `call` does. A `fund` without mcOrderId and a `deposit` are sent once: a repeat would be another.
   */
  async sandbox(action: string, own: OwnFields = {}, options: CallOptions = {}): Promise<Fields> {
    return this.call(`/sandbox/${action}`, own, options);
  }

  async #ask(operation: string, own: object, options?: CallOptions): Promise<results.FieldReader> {
    const data = await this.call(operation, own as OwnFields, options);
    return new results.FieldReader(data, (message) => new UnsafeAnswerError(`the answer is odd: ${message}`));
  }

  async #attempt(operation: string, own: Fields, signal?: AbortSignal): Promise<Fields> {
    const path = pathOf(operation);
    const nonceStr = randomBytes(16).toString("hex");
    const common = { appKey: this.#appKey, timestamp: String(Date.now()), nonceStr };
    const fields = new Map<string, string | null>([...Object.entries(common), ...own]);
    const [method, secret] = [this.#signMethod, this.#secret];
    fields.set("sign", signRequest(method, secret, path, fields));
    const body = JSON.stringify(Object.fromEntries(fields));
    const lost = (cause: unknown) => {
      throw new LostAnswer("the connection was lost", { cause });
    };
    const answer = await post(this.#connection, this.#baseUrl + path, body, signal).catch(lost);
    const data = readAnswer({ method, secret, operation, nonceStr }, answer);
    const other = method === "MD5" ? findOther(own, data) : null;
    if (other) throw new UnsafeAnswerError(other, answer.requestId);
    return data;
  }
}

/** Whether an answer is for another order or user. MD5 signs no nonce, so an old one could be sent again. */
function findOther(own: Fields, data: Fields): string | null {
  for (const name of ["mcOrderId", "extUserId"]) {
    const [asked, answered] = [own.get(name), data.get(name)];
    if (asked && answered && asked !== answered)
      return `it is for another ${name}: an old one was sent again`;
  }
  return null;
}

function toTexts(own: OwnFields): Fields {
  const texts = new Map<string, string | null>();
  for (const [name, value] of Object.entries(own)) {
    if (value === null || value === undefined || value === "") continue;
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
      throw new TypeError(`${name} must be a text such as "12.50", never a floating-point number`);
    }
    if (typeof value !== "string" && typeof value !== "number") {
      throw new TypeError(`${name} must be a text`);
    }
    if (/amount/i.test(name) && typeof value === "number") {
      throw new TypeError(`${name} must be a text such as "12.50"`);
    }
    texts.set(name, String(value));
  }
  return texts;
}
