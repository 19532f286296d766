"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.FileCallbackStore = exports.CallbackReceiver = void 0;
const node_crypto_1 = require("node:crypto");
const promises_1 = require("node:fs/promises");
const node_path_1 = require("node:path");
const callbacks_js_1 = require("./callbacks.js");
const errors_js_1 = require("./errors.js");
const MAX_BODY_BYTES = 64 * 1024;
/** Verifies callbacks, stores each eventId once, and only then says `success`. */
class CallbackReceiver {
    #secret;
    #store;
    #options;
    constructor(secret, store, options = {}) {
        this.#secret = secret;
        this.#store = store;
        this.#options = options;
    }
    /**
     * The reply to a callback: 200 `success` when it is stored, also if it came before; 400 if it is not genuine;
     * 500 if the store failed, so that the service sends it again.
     */
    async receive(body, headers) {
        let callback;
        try {
            callback = (0, callbacks_js_1.verifyCallback)(body, headers, this.#secret, this.#options);
        }
        catch (error) {
            if (!(error instanceof errors_js_1.BadCallbackError))
                throw error;
            return { status: 400, body: error.message, callback: null, isNew: false, error };
        }
        try {
            const isNew = await this.#store.add(callback);
            return { status: 200, body: "success", callback, isNew };
        }
        catch (error) {
            return { status: 500, body: "the callback could not be stored", callback, isNew: false, error };
        }
    }
    /** A handler for node:http, and for frameworks on it if no middleware has read the body before. */
    handler(options = {}) {
        const { onNew = () => { }, onError = console.error } = options;
        return (request, response) => {
            this.#answer(request, response)
                .then(({ callback, isNew, error }) => {
                if (error !== undefined)
                    onError(error);
                if (callback && isNew)
                    onNew(callback);
            })
                .catch((error) => {
                response.destroy();
                onError(error);
            });
        };
    }
    async #answer(request, response) {
        const body = await readBody(request);
        const tooLong = { status: 413, body: "the body is too long", callback: null, isNew: false };
        const reply = body === null ? tooLong : await this.receive(body, request.headers);
        response.writeHead(reply.status, { "Content-Type": "text/plain; charset=utf-8" }).end(reply.body);
        return reply;
    }
}
exports.CallbackReceiver = CallbackReceiver;
/** Keeps each callback in a file of a folder. Enough for one machine; needs no database. */
class FileCallbackStore {
    #folder;
    constructor(folder) {
        this.#folder = folder;
    }
    /** Writes the body to the disk, then gives it its name, which only one of two writers can. */
    async add(callback) {
        await (0, promises_1.mkdir)(this.#folder, { recursive: true });
        const unfinished = (0, node_path_1.join)(this.#folder, `.${(0, node_crypto_1.randomBytes)(8).toString("hex")}.tmp`);
        try {
            await writeDurably(unfinished, callback.body);
            await (0, promises_1.link)(unfinished, (0, node_path_1.join)(this.#folder, fileName(callback.eventId)));
            await syncFolder(this.#folder);
            return true;
        }
        catch (error) {
            if (error.code !== "EEXIST")
                throw error;
            return false;
        }
        finally {
            await (0, promises_1.rm)(unfinished, { force: true });
        }
    }
}
exports.FileCallbackStore = FileCallbackStore;
function fileName(eventId) {
    const plain = /^[A-Za-z0-9_-]{1,100}$/.test(eventId);
    return `${plain ? eventId : (0, node_crypto_1.createHash)("sha256").update(eventId).digest("hex")}.json`;
}
async function writeDurably(path, text) {
    const file = await (0, promises_1.open)(path, "wx");
    try {
        await file.writeFile(text);
        await file.sync();
    }
    finally {
        await file.close();
    }
}
async function syncFolder(folder) {
    const handle = await (0, promises_1.open)(folder, "r");
    try {
        await handle.sync();
    }
    finally {
        await handle.close();
    }
}
async function readBody(request) {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
        size += chunk.length;
        if (size > MAX_BODY_BYTES)
            return null;
        chunks.push(chunk);
    }
    return Buffer.concat(chunks);
}
