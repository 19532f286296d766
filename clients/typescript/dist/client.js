import { randomBytes } from "node:crypto";
import { readAnswer } from "./answers.js";
import { UnsafeAnswerError } from "./errors.js";
import * as results from "./results.js";
import { pathOf, signRequest } from "./signing.js";
import { LostAnswer, post, repeat } from "./transport.js";
/** What happens again at a repeat without mcOrderId. */
const ONCE = new Set(["exchange", "/sandbox/fund", "/sandbox/deposit"]);
/** A client of one merchant. It may be used for any number of calls at once. */
export class MerchantWallet {
    #baseUrl;
    #appKey;
    #secret;
    #signMethod;
    #connection;
    constructor(baseUrl, appKey, secret, options = {}) {
        if (!/^https?:\/\//.test(baseUrl))
            throw new TypeError("baseUrl must begin with https:// or http://");
        if (!appKey || !secret)
            throw new TypeError("appKey and secret must not be empty");
        this.#baseUrl = baseUrl.replace(/\/+$/, "");
        this.#appKey = appKey;
        this.#secret = secret;
        this.#signMethod = options.signMethod ?? "HMAC";
        const { timeoutMs = 30_000, retries = 3, waitMs = 1000, fetch = globalThis.fetch } = options;
        this.#connection = { timeoutMs, retries, waitMs, fetch };
    }
    /** Takes an amount from a sub-user's wallet. */
    async transferFromUserToMerchant(order, options) {
        return results.readUserToMerchantTransfer(await this.#ask("transferFromUserToMerchant", order, options));
    }
    /** Gives an amount to the sub-user that an address belongs to. */
    async transferFromMerchantToUser(order, options) {
        return results.readMerchantToUserTransfer(await this.#ask("transferFromMerchantToUser", order, options));
    }
    /** Creates an order that pays USDT to an address on a chain. */
    async createMerchantWithdrawOrder(order, options) {
        const own = { currency: "USDT", ...order };
        return results.readWithdrawOrder(await this.#ask("createMerchantWithdrawOrder", own, options));
    }
    /** Shows a withdrawal order. */
    async queryOrder(order, options) {
        return results.readOrder(await this.#ask("queryOrder", order, options));
    }
    /** Finds a sub-user. An unknown one is created, unless the operator has switched that off. */
    async getMerchantCustomer(user, options) {
        return results.readCustomer(await this.#ask("getMerchantCustomer", user, options));
    }
    /** Your balances, without the amounts on hold. */
    async getMerchantBalance(options) {
        return results.readBalance(await this.#ask("getMerchantBalance", {}, options));
    }
    /** Exchanges one of your currencies for the other. */
    async exchange(order, options) {
        if (!order.mcOrderId)
            throw new TypeError("mcOrderId is required: without it a repeat exchanges again");
        return results.readExchange(await this.#ask("exchange", order, options));
    }
    /** What a withdrawal created now would cost. */
    async getWithdrawFee(quote, options) {
        const own = { currency: "USDT", ...quote };
        return results.readWithdrawFee(await this.#ask("getWithdrawFee", own, options));
    }
    /**
     * Calls any operation and returns all signed fields of `data` as texts, also those that this version does not
     * know. An operation that moves money must have an order id in `own`. An exchange without one is sent once: a
     * repeat would be another exchange.
     */
    async call(operation, own, options = {}) {
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
    async sandbox(action, own = {}, options = {}) {
        return this.call(`/sandbox/${action}`, own, options);
    }
    async #ask(operation, own, options) {
        const data = await this.call(operation, own, options);
        return new results.FieldReader(data, (message) => new UnsafeAnswerError(`the answer is odd: ${message}`));
    }
    async #attempt(operation, own, signal) {
        const path = pathOf(operation);
        const nonceStr = randomBytes(16).toString("hex");
        const common = { appKey: this.#appKey, timestamp: String(Date.now()), nonceStr };
        const fields = new Map([...Object.entries(common), ...own]);
        const [method, secret] = [this.#signMethod, this.#secret];
        fields.set("sign", signRequest(method, secret, path, fields));
        const body = JSON.stringify(Object.fromEntries(fields));
        const lost = (cause) => {
            throw new LostAnswer("the connection was lost", { cause });
        };
        const answer = await post(this.#connection, this.#baseUrl + path, body, signal).catch(lost);
        const data = readAnswer({ method, secret, operation, nonceStr }, answer);
        const other = method === "MD5" ? findOther(own, data) : null;
        if (other)
            throw new UnsafeAnswerError(other, answer.requestId);
        return data;
    }
}
/** Whether an answer is for another order or user. MD5 signs no nonce, so an old one could be sent again. */
function findOther(own, data) {
    for (const name of ["mcOrderId", "extUserId"]) {
        const [asked, answered] = [own.get(name), data.get(name)];
        if (asked && answered && asked !== answered)
            return `it is for another ${name}: an old one was sent again`;
    }
    return null;
}
function toTexts(own) {
    const texts = new Map();
    for (const [name, value] of Object.entries(own)) {
        if (value === null || value === undefined || value === "")
            continue;
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
