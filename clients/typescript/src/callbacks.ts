import { BadCallbackError } from "./errors.js";
import { BodyError, type Fields, findUnclear, readFields, readObject } from "./fields.js";
import { type Amount, FieldReader, type TxnStatus } from "./results.js";
import { CALLBACK_PATH, equals, sign, type SignMethod, signWebhook } from "./signing.js";

const TOLERANCE_MS = 300_000;

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
export function verifyCallback(
  body: string | Uint8Array,
  headers: CallbackHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Callback {
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!secrets.length || secrets.includes("")) throw new TypeError("secret must not be empty");
  try {
    return check(body, headers, secrets, options);
  } catch (error) {
    if (error instanceof BodyError) throw new BadCallbackError(`this is no callback: ${error.message}`);
    throw error;
  }
}

function check(
  body: string | Uint8Array,
  headers: CallbackHeaders,
  secrets: readonly string[],
  options: VerifyOptions,
): Callback {
  const { signMethod = "HMAC", toleranceMs = TOLERANCE_MS, now = Date.now } = options;
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const text = decode(bytes);
  const fields = readBody(text);
  const atMs = findWebhookTime(bytes, headers, secrets, fields) ?? findSignTime(secrets, fields, signMethod);
  if (atMs === null) throw new BodyError("neither its sign nor its webhook-signature is right");
  if (!(Math.abs(now() - atMs) <= toleranceMs)) {
    throw new BodyError(
      "its time is too far from the clock: it was sent again by somebody, or the clock is wrong",
    );
  }
  return makeCallback(text, fields);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new BodyError("the body is not UTF-8");
  }
}

function readBody(text: string): Fields {
  const { values, texts, isRepeated } = readObject(text);
  if (isRepeated) throw new BodyError("a field is named twice");
  const fields = readFields(texts, values);
  const unclear = findUnclear(fields, "HMAC");
  if (unclear) throw new BodyError(unclear);
  if (typeof values["eventId"] !== "string" || !values["eventId"]) throw new BodyError("there is no eventId");
  return fields;
}

/** The time that the headers of Standard Webhooks prove, or null. */
function findWebhookTime(
  body: Uint8Array,
  headers: CallbackHeaders,
  secrets: readonly string[],
  fields: Fields,
): number | null {
  const id = readHeader(headers, "webhook-id");
  const timestamp = readHeader(headers, "webhook-timestamp");
  const given = readHeader(headers, "webhook-signature").split(" ");
  const isRight = (secret: string) => {
    const expected = signWebhook(secret, id, timestamp, body);
    return expected !== null && given.some((each) => equals(expected, each));
  };
  if (id !== fields.get("eventId") || !secrets.some(isRight)) return null;
  return /^\d{1,13}$/.test(timestamp) ? Number(timestamp) * 1000 : NaN;
}

/** The time that the body's `sign` proves, or null. */
function findSignTime(secrets: readonly string[], fields: Fields, method: SignMethod): number | null {
  if (findUnclear(fields, method)) return null;
  const isRight = (secret: string) => equals(sign(method, secret, CALLBACK_PATH, fields), fields.get("sign"));
  if (!secrets.some(isRight)) return null;
  const timestamp = fields.get("timestamp") ?? "";
  return /^\d{1,16}$/.test(timestamp) ? Number(timestamp) : NaN;
}

function readHeader(headers: CallbackHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return typeof value === "string" ? value : (value?.join(" ") ?? "");
  }
  return "";
}

function makeCallback(body: string, fields: Fields): Callback {
  const data = new FieldReader(fields, (message) => new BadCallbackError(`this is no callback: ${message}`));
  const common = {
    eventId: data.text("eventId"),
    appKey: data.text("appKey"),
    timestamp: data.time("timestamp"),
    body,
    fields,
  };
  const eventType = data.optionalText("eventType");
  if (eventType === null) return { kind: "order", ...common, ...readOrder(data) };
  if (eventType === "deposit") return { kind: "deposit", ...common, ...readDeposit(data) };
  return { kind: "other", ...common, eventType };
}

function readOrder(data: FieldReader): Omit<OrderCallback, keyof Common | "kind"> {
  return {
    orderId: data.id("orderId"),
    mcOrderId: data.text("mcOrderId"),
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    fee: data.text("fee"),
    rate: data.text("rate"),
    currency: data.text("currency"),
    chainType: data.text("chainType"),
    address: data.text("address"),
    txnStatus: data.text("txnStatus"),
    txnTime: data.time("txnTime"),
    createTime: data.time("createTime"),
    finishTime: data.time("finishTime"),
    txHash: data.optionalText("txHash"),
  };
}

function readDeposit(data: FieldReader): Omit<DepositCallback, keyof Common | "kind"> {
  return {
    transactionId: data.id("transactionId"),
    userId: data.optionalId("userId"),
    extUserId: data.optionalText("extUserId"),
    sendCurrency: data.text("sendCurrency"),
    receiveCurrency: data.text("receiveCurrency"),
    amount: data.text("amount"),
    amountArrival: data.text("amountArrival"),
    rate: data.optionalText("rate"),
    chainType: data.text("chainType"),
    address: data.text("address"),
    txnTime: data.time("txnTime"),
    createTime: data.time("createTime"),
    txHash: data.text("txHash"),
    logIndex: data.id("logIndex"),
  };
}
