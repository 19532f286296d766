export { readAnswer, NotAnAnswer } from "./answers.js";
export { verifyCallback, } from "./callbacks.js";
export * from "./client.js";
export { CODES } from "./codes.js";
export * from "./errors.js";
export { CallbackReceiver, FileCallbackStore, } from "./receiver.js";
export { TxnStatus, } from "./results.js";
export { buildStringToSign, signRequest } from "./signing.js";
