import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, rm } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

import { type Callback, type CallbackHeaders, verifyCallback, type VerifyOptions } from "./callbacks.js";
import { BadCallbackError } from "./errors.js";

const MAX_BODY_BYTES = 64 * 1024;

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
export class CallbackReceiver {
  readonly #secret: string | readonly string[];
  readonly #store: CallbackStore;
  readonly #options: VerifyOptions;

  constructor(secret: string | readonly string[], store: CallbackStore, options: VerifyOptions = {}) {
    this.#secret = secret;
    this.#store = store;
    this.#options = options;
  }

  /**
   * The reply to a callback: 200 `success` when it is stored, also if it came before; 400 if it is not genuine;
   * 500 if the store failed, so that the service sends it again.
   */
  async receive(body: string | Uint8Array, headers: CallbackHeaders): Promise<Reply> {
    let callback: Callback;
    try {
      callback = verifyCallback(body, headers, this.#secret, this.#options);
    } catch (error) {
      if (!(error instanceof BadCallbackError)) throw error;
      return { status: 400, body: error.message, callback: null, isNew: false, error };
    }
    try {
      const isNew = await this.#store.add(callback);
      return { status: 200, body: "success", callback, isNew };
    } catch (error) {
      return { status: 500, body: "the callback could not be stored", callback, isNew: false, error };
    }
  }

  /** A handler for node:http, and for frameworks on it if no middleware has read the body before. */
  handler(options: HandlerOptions = {}): (request: IncomingMessage, response: ServerResponse) => void {
    const { onNew = () => {}, onError = console.error } = options;
    return (request, response) => {
      this.#answer(request, response)
        .then(({ callback, isNew, error }) => {
          if (error !== undefined) onError(error);
          if (callback && isNew) onNew(callback);
        })
        .catch((error: unknown) => {
          response.destroy();
          onError(error);
        });
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<Reply> {
    const body = await readBody(request);
    const tooLong: Reply = { status: 413, body: "the body is too long", callback: null, isNew: false };
    const reply = body === null ? tooLong : await this.receive(body, request.headers);
    response.writeHead(reply.status, { "Content-Type": "text/plain; charset=utf-8" }).end(reply.body);
    return reply;
  }
}

/** Keeps each callback in a file of a folder. Enough for one machine; needs no database. */
export class FileCallbackStore implements CallbackStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Writes the body to the disk, then gives it its name, which only one of two writers can. */
  async add(callback: Callback): Promise<boolean> {
    await mkdir(this.#folder, { recursive: true });
    const unfinished = join(this.#folder, `.${randomBytes(8).toString("hex")}.tmp`);
    try {
      await writeDurably(unfinished, callback.body);
      await link(unfinished, join(this.#folder, fileName(callback.eventId)));
      await syncFolder(this.#folder);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      return false;
    } finally {
      await rm(unfinished, { force: true });
    }
  }
}

function fileName(eventId: string): string {
  const plain = /^[A-Za-z0-9_-]{1,100}$/.test(eventId);
  return `${plain ? eventId : createHash("sha256").update(eventId).digest("hex")}.json`;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
