"""The sandbox's control actions, field by field. A live service has none of them."""

from typing import Final

from merchant_wallet.api.reference.fields import (
    ADDRESS,
    CHAIN,
    DECIMAL,
    LONG,
    PLAIN_TEXT,
    SHOWN_ID,
    SIGN,
    STRING,
    TX_HASH,
    WHOLE,
    Field,
)
from merchant_wallet.api.reference.operations import REFERENCES, OperationReference
from merchant_wallet.base.codes import (
    ADDRESS_UNUSABLE,
    AMOUNT_OUT_OF_RANGE,
    CHAIN_UNSUPPORTED,
    CURRENCY_UNSUPPORTED,
    LIMIT_EXCEEDED,
    ORDER_ID_CONFLICT,
    ORDER_NOT_FOUND,
    SUBUSER_NOT_FOUND,
    WALLET_NOT_FOUND,
)
from merchant_wallet.base.currencies import CURRENCIES

SANDBOX: Final = "/sandbox/"
GROUP: Final = "Sandbox"
LISTEN: Final = "listenCallbacks"
_TEST_AMOUNT: Final = (
    r"^(?:0\.(?:[1-9][0-9]{0,5}|0[1-9][0-9]{0,4}|00[1-9][0-9]{0,3}|000[1-9][0-9]{0,2}|0000[1-9][0-9]?"
    r"|00000[1-9])|[1-9][0-9]{0,5}(?:\.[0-9]{1,6})?|1000000(?:\.0{1,6})?)$"
)
"""More than 0 and up to 1000000, at most 6 decimals."""
_SIGN: Final = Field("sign", STRING, at_most=32, pattern=SIGN)
_HASH: Final = (Field("txHash", STRING, "of a deposit with `finality` = `manual`", 66, PLAIN_TEXT),)
_ORDER: Final = Field("orderId", LONG, "the order, as `createMerchantWithdrawOrder` answered it", 20, WHOLE)
_EVENT: Final = (Field("event", STRING, "the `eventId` of a callback", 64, PLAIN_TEXT),)
_RECEIVED: Final = (
    Field("txHash", STRING, pattern=TX_HASH),
    Field("chainType", STRING, values=(CHAIN,)),
    Field("address", STRING, pattern=ADDRESS),
    Field("amount", DECIMAL),
)
_RELEASED: Final = (*_RECEIVED, _SIGN)
_DEPOSITED: Final = (
    *_RECEIVED,
    Field("finalTime", LONG, "when it is final; `null` while that is not known", is_nullable=True),
    _SIGN,
)
_QUERIED: Final = next(reference.answer for reference in REFERENCES if reference.name == "queryOrder")
_DONE: Final = (Field("event", STRING), _SIGN)


def _optional(
    name: str, meaning: str, at_most: int, pattern: str = PLAIN_TEXT, values: tuple[str, ...] = ()
) -> Field:
    return Field(name, STRING, meaning, at_most, pattern, values, is_required=False, is_nullable=True)


def _control(
    name: str, summary: str, text: str, request: tuple[Field, ...], answer: tuple[Field, ...], *codes: int
) -> OperationReference:
    own = (*codes, LIMIT_EXCEEDED)
    return OperationReference(name, GROUP, summary, text, request, answer, own, SANDBOX)


CONTROLS: Final = (
    _control(
        "fund",
        "Add test money",
        "money from a tap. Answers `transactionId`, `balance`",
        (
            Field("currency", STRING, "`USDT` or `KFB`", 20, values=CURRENCIES),
            Field("amount", STRING, "more than 0, at most 1000000 and 6 decimals", 20, _TEST_AMOUNT),
            _optional("extUserId", "optional: to this sub-user's wallet, otherwise to your balance", 20),
            _optional("mcOrderId", "optional, at most 48: a repeat gives no second money", 48, SHOWN_ID),
        ),
        (
            Field("transactionId", LONG, "our id of the credit", 20),
            Field("currency", STRING, values=CURRENCIES),
            Field("amount", DECIMAL),
            Field("balance", DECIMAL, "the balance after it"),
            Field("extUserId", STRING, is_nullable=True),
            Field("mcOrderId", STRING, is_nullable=True),
            _SIGN,
        ),
        AMOUNT_OUT_OF_RANGE,
        CURRENCY_UNSUPPORTED,
        SUBUSER_NOT_FOUND,
        ORDER_ID_CONFLICT,
    ),
    _control(
        "deposit",
        "Simulate a deposit",
        "USDT arrives at a deposit address. Answers `txHash`, and `finalTime` if it is known",
        (
            Field("chainType", STRING, "the chain", 20, values=(CHAIN,)),
            _optional(
                "address",
                "of you or of one of your sub-users. Send `address` or `extUserId`, never both; "
                "with neither it is your own address",
                64,
                ADDRESS,
            ),
            _optional("extUserId", "the sub-user, see `address`", 20),
            Field(
                "amount",
                STRING,
                "more than 0, at most 1000000 and 6 decimals; a small one is dust",
                20,
                _TEST_AMOUNT,
            ),
            _optional(
                "finality",
                "`auto` (default): final by itself; `manual`: when you call `confirm`",
                20,
                "",
                ("auto", "manual"),
            ),
            _optional(
                "screening",
                "`pass` (default); `hold`, `refuse`: screening holds or refuses it, and it is not credited"
                " until `release`",
                20,
                "",
                ("pass", "hold", "refuse"),
            ),
        ),
        _DEPOSITED,
        AMOUNT_OUT_OF_RANGE,
        CHAIN_UNSUPPORTED,
        ADDRESS_UNUSABLE,
        SUBUSER_NOT_FOUND,
        WALLET_NOT_FOUND,
    ),
    _control(
        "confirm",
        "Confirm a deposit",
        "the deposit's block becomes final, and it is credited",
        _HASH,
        _DEPOSITED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "reorganise",
        "Reorganise a deposit's block",
        "the deposit's block leaves the chain; `confirm` brings the deposit back in another block",
        _HASH,
        _DEPOSITED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "release",
        "Release a held deposit",
        "screening lets the deposit pass, and it is credited. Operators do the same in the console",
        (Field("txHash", STRING, "of a deposit that screening holds or refuses", 66, PLAIN_TEXT),),
        _RELEASED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "advance",
        "Advance a withdrawal order",
        "the order comes to this status: it is approved, its transfer is final now, or its refund is made. In"
        " 3 it stays until the next `advance`. Answers as `queryOrder`, when it is done",
        (
            _ORDER,
            _optional(
                "txnStatus",
                "optional: 1, 2, 3, 4 or 6; otherwise the next one (0 to 1, 1 to 2, 3 to 6)",
                1,
                "",
                ("1", "2", "3", "4", "6"),
            ),
        ),
        _QUERIED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "fail",
        "Fail a withdrawal order",
        "the order's transfer fails for good: 3, and then 6. Answers as `queryOrder`, when the money is back",
        (_ORDER,),
        _QUERIED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "freeze",
        "Freeze a withdrawal order",
        "the payer freezes the order: it stays in its status, without a callback, until an operator resumes"
        " it in the console, or until `advance` or `fail`. Answers as `queryOrder`, when it is frozen",
        (_ORDER,),
        _QUERIED,
        ORDER_NOT_FOUND,
    ),
    _control(
        "resendCallback",
        "Resend a callback",
        "the callback is sent now, whatever its state",
        _EVENT,
        _DONE,
        ORDER_NOT_FOUND,
    ),
    _control(
        "acceptCallback",
        "Accept a callback",
        "the callback counts as accepted, as if `notifyUrl` had answered `success`. For a listener, after its"
        " own receiver has accepted it",
        _EVENT,
        _DONE,
        ORDER_NOT_FOUND,
    ),
    _control(
        LISTEN,
        "Listen to callbacks",
        "a stream of all attempts at your callbacks, see below",
        (_optional("after", "optional: the `eventId` of the last line that you got", 64),),
        (),
        ORDER_NOT_FOUND,
    ),
)

EXAMPLES: Final[dict[str, dict[str, str | int]]] = {
    "fund": {"currency": "USDT", "amount": "1000", "mcOrderId": "tap-1"},
    "deposit": {"chainType": "ERC20", "extUserId": "alice", "amount": "25", "finality": "manual"},
    "confirm": {"txHash": "0x" + "ab" * 32},
    "reorganise": {"txHash": "0x" + "ab" * 32},
    "release": {"txHash": "0x" + "ab" * 32},
    "advance": {"orderId": 8_589_934_599, "txnStatus": "2"},
    "fail": {"orderId": 8_589_934_599},
    "freeze": {"orderId": 8_589_934_599},
    "resendCallback": {"event": "evt_8589934599_2"},
    "acceptCallback": {"event": "evt_8589934599_2"},
    LISTEN: {"after": "evt_8589934599_2"},
}
"""The own fields of a request of each action. The common ones are those of any operation."""
