"use strict";
/**
 * Results of the operations. Amounts and rates are decimal texts, exactly as the service wrote them: read them
 * with a decimal library, never with Number. Ids are below 2^53. Times are Dates.
 */
Object.defineProperty(exports, "__esModule", { value: true });
exports.FieldReader = exports.TxnStatus = void 0;
exports.readUserToMerchantTransfer = readUserToMerchantTransfer;
exports.readMerchantToUserTransfer = readMerchantToUserTransfer;
exports.readWithdrawOrder = readWithdrawOrder;
exports.readOrder = readOrder;
exports.readCustomer = readCustomer;
exports.readBalance = readBalance;
exports.readExchange = readExchange;
exports.readWithdrawFee = readWithdrawFee;
/** The statuses of an order. Later versions of the service may add some. */
exports.TxnStatus = {
    Accepted: "0",
    BeingPaid: "1",
    Paid: "2",
    Failed: "3",
    Cancelled: "4",
    Expired: "5",
    Refunded: "6",
};
/** Reads typed values. It throws an error of the given class for a field that is absent or of another form. */
class FieldReader {
    #fields;
    #makeError;
    constructor(fields, makeError) {
        this.#fields = fields;
        this.#makeError = makeError;
    }
    text(name) {
        const text = this.#fields.get(name);
        if (text === null || text === undefined)
            throw this.#makeError(`there is no ${name}`);
        return text;
    }
    optionalText(name) {
        return this.#fields.get(name) ?? null;
    }
    id(name) {
        const id = Number(this.text(name));
        if (!Number.isSafeInteger(id))
            throw this.#makeError(`${name} is no id below 2^53`);
        return id;
    }
    optionalId(name) {
        return this.optionalText(name) === null ? null : this.id(name);
    }
    time(name) {
        return new Date(this.id(name));
    }
    optionalTime(name) {
        return this.optionalText(name) === null ? null : this.time(name);
    }
}
exports.FieldReader = FieldReader;
function readUserToMerchantTransfer(data) {
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
function readMerchantToUserTransfer(data) {
    return {
        transactionId: data.id("transactionId"),
        amount: data.text("amount"),
        currency: data.text("currency"),
        mcOrderId: data.text("mcOrderId"),
    };
}
function readWithdrawOrder(data) {
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
function readOrder(data) {
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
function readCustomer(data) {
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
function readBalance(data) {
    return {
        merchantId: data.id("merchantId"),
        usdtBalance: data.text("usdtBalance"),
        kfbBalance: data.text("kfbBalance"),
    };
}
function readExchange(data) {
    return {
        sendCurrency: data.text("sendCurrency"),
        receiveCurrency: data.text("receiveCurrency"),
        amount: data.text("amount"),
        amountArrival: data.text("amountArrival"),
        rate: data.text("rate"),
        transactionId: data.id("transactionId"),
    };
}
function readWithdrawFee(data) {
    return {
        amount: data.text("amount"),
        amountArrival: data.text("amountArrival"),
        fee: data.text("fee"),
        rate: data.text("rate"),
    };
}
