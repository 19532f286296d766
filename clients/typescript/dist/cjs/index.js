"use strict";
var __createBinding = (this && this.__createBinding) || (Object.create ? (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    var desc = Object.getOwnPropertyDescriptor(m, k);
    if (!desc || ("get" in desc ? !m.__esModule : desc.writable || desc.configurable)) {
      desc = { enumerable: true, get: function() { return m[k]; } };
    }
    Object.defineProperty(o, k2, desc);
}) : (function(o, m, k, k2) {
    if (k2 === undefined) k2 = k;
    o[k2] = m[k];
}));
var __exportStar = (this && this.__exportStar) || function(m, exports) {
    for (var p in m) if (p !== "default" && !Object.prototype.hasOwnProperty.call(exports, p)) __createBinding(exports, m, p);
};
Object.defineProperty(exports, "__esModule", { value: true });
exports.signRequest = exports.buildStringToSign = exports.TxnStatus = exports.FileCallbackStore = exports.CallbackReceiver = exports.CODES = exports.verifyCallback = exports.NotAnAnswer = exports.readAnswer = void 0;
var answers_js_1 = require("./answers.js");
Object.defineProperty(exports, "readAnswer", { enumerable: true, get: function () { return answers_js_1.readAnswer; } });
Object.defineProperty(exports, "NotAnAnswer", { enumerable: true, get: function () { return answers_js_1.NotAnAnswer; } });
var callbacks_js_1 = require("./callbacks.js");
Object.defineProperty(exports, "verifyCallback", { enumerable: true, get: function () { return callbacks_js_1.verifyCallback; } });
__exportStar(require("./client.js"), exports);
var codes_js_1 = require("./codes.js");
Object.defineProperty(exports, "CODES", { enumerable: true, get: function () { return codes_js_1.CODES; } });
__exportStar(require("./errors.js"), exports);
var receiver_js_1 = require("./receiver.js");
Object.defineProperty(exports, "CallbackReceiver", { enumerable: true, get: function () { return receiver_js_1.CallbackReceiver; } });
Object.defineProperty(exports, "FileCallbackStore", { enumerable: true, get: function () { return receiver_js_1.FileCallbackStore; } });
var results_js_1 = require("./results.js");
Object.defineProperty(exports, "TxnStatus", { enumerable: true, get: function () { return results_js_1.TxnStatus; } });
var signing_js_1 = require("./signing.js");
Object.defineProperty(exports, "buildStringToSign", { enumerable: true, get: function () { return signing_js_1.buildStringToSign; } });
Object.defineProperty(exports, "signRequest", { enumerable: true, get: function () { return signing_js_1.signRequest; } });
