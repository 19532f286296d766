export { readAnswer, NotAnAnswer, type Question, type RawAnswer } from "./answers.js";
export { type Callback, type CallbackHeaders, type DepositCallback, type OrderCallback, type OtherCallback, verifyCallback, type VerifyOptions, } from "./callbacks.js";
export * from "./client.js";
export { type Code, CODES, type RetryClass } from "./codes.js";
export * from "./errors.js";
export type { Fields } from "./fields.js";
export { type CallbackStore, CallbackReceiver, FileCallbackStore, type HandlerOptions, type Reply, } from "./receiver.js";
export { type Amount, type Balance, type Customer, type Exchange, type MerchantToUserTransfer, type Order, TxnStatus, type UserToMerchantTransfer, type WithdrawFee, type WithdrawOrder, } from "./results.js";
export { buildStringToSign, type SignMethod, signRequest } from "./signing.js";
