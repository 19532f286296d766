"""Cases of callbacks of orders and deposits: true, altered, old, and bodies that are something else.

A receiver may check the body's `sign` with the secret, or the headers with the callback secret. Each case
says for both whether they are right.
"""

from collections.abc import Iterator
from typing import Any, Final

from scripts.vectors import rules
from scripts.vectors.rules import CALLBACK, HMAC, MD5, TEXT, Field
from scripts.vectors.values import (
    CALLBACK_SECRET,
    CONTROLS,
    ERC20_ADDRESS,
    METHODS,
    NOW_MS,
    OTHER_SECRET,
    SECRET,
    TEXTS,
    TRC20_ADDRESS,
    draw,
    number,
    text,
    write_object,
)

Case = dict[str, Any]
OTHER_CALLBACK_SECRET: Final = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STATUSES: Final = ("2", "3", "4", "5", "6")


def order(status: str = "2", chain: str = "TRC20", **changes: str | None) -> list[Field]:
    """The callback of an order, without `sign`."""
    tx_hash = draw(f"tx {chain}", 64) if status in "236" else None
    prefix = "" if chain == "TRC20" else "0x"
    fields = [
        *_common(f"evt_8589934599_{status}"),
        *number(orderId=8589934599),
        *text(mcOrderId="10001", amount="12.5", amountArrival="11.5", fee="1", rate="0.001", currency="USDT"),
        *text(
            chainType=chain, address=TRC20_ADDRESS if chain == "TRC20" else ERC20_ADDRESS, txnStatus=status
        ),
        *number(txnTime=NOW_MS - 4000, createTime=NOW_MS - 4000, finishTime=NOW_MS - 1500),
        *text(txHash=tx_hash and prefix + tx_hash),
    ]
    return [(name, changes.get(name, value), kind) for name, value, kind in fields]


def deposit(user: bool = True, chain: str = "ERC20", currency: str = "USDT") -> list[Field]:
    """The callback of a deposit, without `sign`."""
    return [
        *_common("evt_8589934601_0"),
        *text(eventType="deposit"),
        *number(transactionId=8589934601, userId=8589934595 if user else None),
        *text(
            extUserId="alice" if user else None,
            sendCurrency="USDT",
            receiveCurrency=currency,
            amount="25.000001",
            amountArrival="25.000001" if currency == "USDT" else "178.571435",
            rate=None if currency == "USDT" else "7.14285714",
            chainType=chain,
            address=TRC20_ADDRESS if chain == "TRC20" else ERC20_ADDRESS,
        ),
        *number(txnTime=NOW_MS - 1000, createTime=NOW_MS - 60000),
        *text(txHash=("" if chain == "TRC20" else "0x") + draw("deposit", 64)),
        *number(logIndex=3),
    ]


def other(event_type: str, event_id: str) -> list[Field]:
    """A callback of another kind: a test event of the console, or a kind of the future."""
    return [*_common(event_id), *text(eventType=event_type), *number(createTime=NOW_MS - 500)]


def list_callbacks() -> Iterator[Case]:
    """All cases, in the order of the file."""
    for method in METHODS:
        yield from _true(method)
        yield from _texts(method)
        yield from _times(method)
        yield from _altered(method)
        yield from _unclear(method)
    yield from _headers()
    yield from _something_else()
    yield from _hidden()


def _common(event_id: str) -> list[Field]:
    return [
        *text(appKey="mk_test_shop"),
        *number(timestamp=NOW_MS),
        *text(nonceStr=draw(event_id), eventId=event_id),
    ]


def _true(method: str) -> Iterator[Case]:
    for chain in ("ERC20", "TRC20", "BEP20"):
        for status in STATUSES:
            yield _case(f"an order in status {status} on {chain}", method, order(status, chain))
        for user, currency in ((True, "USDT"), (True, "KFB"), (False, "USDT")):
            whose = "a sub-user's" if user else "the merchant's own"
            fields = deposit(user, chain, currency)
            yield _case(f"{whose} deposit on {chain}, credited in {currency}", method, fields)
    yield _case("a test event", method, other("test", "evt_test_17"))
    yield _case("an event of a kind of the future", method, other("refund", "evt_8589934700_0"))


def _texts(method: str) -> Iterator[Case]:
    for what, value in TEXTS.items():
        fields = order(mcOrderId=value)
        yield _case(f"a text: {what}", method, fields)
        yield _case(
            f"a text, escaped to ASCII: {what}",
            method,
            fields,
            write_object(_signed(method, fields), ascii_only=True),
        )
    more: list[Field] = [
        *order(),
        *text(B="1", a_="2", Z="3"),
        *number(block="123456789012345678901234567890"),
    ]
    yield _case("fields that the client does not know are signed", method, more)
    yield _case("the order of the fields does not matter", method, order()[::-1])
    yield _case("a number keeps its text", method, [*order(), *number(gas="0.000001", cost="1E-6")])
    spaced = write_object(_signed(method, order()), spaced=True)
    yield _case("spaces and line feeds between the tokens", method, order(), spaced)


def _times(method: str) -> Iterator[Case]:
    for late_s in (1, 60, 299, 300, -1, -299, -300):
        yield _case(
            f"received {late_s} s after its timestamp", method, order(), now_ms=NOW_MS + late_s * 1000
        )
    for late_s in (301, 600, 86400, 400 * 86400, -301, -3600):
        why = "the timestamp is not of the last five minutes"
        name, now_ms = f"received {late_s} s after its timestamp", NOW_MS + late_s * 1000
        yield _case(name, method, order(), now_ms=now_ms, why=why, by_sign=False, by_webhook=False)


def _altered(method: str) -> Iterator[Case]:
    """The body was changed on its way. Both signatures show it."""
    fields = order("3")
    signed = rules.sign(method, SECRET, CALLBACK, fields)
    body = write_object(_signed(method, fields))
    swaps = {
        "the status is another": ('"txnStatus":"3"', '"txnStatus":"2"'),
        "the amount is larger": ('"amount":"12.5"', '"amount":"1250"'),
        "the amount has a zero more": ('"amount":"12.5"', '"amount":"12.50"'),
        "the address is another": (TRC20_ADDRESS, "TEJcyYjnqEx9VCCSnYUAH4hHd3g4FTzPSH"),
        "the eventId is another": ("evt_8589934599_3", "evt_8589934599_4"),
        "the eventId is missing": ('"eventId":"evt_8589934599_3",', ""),
        "the eventId is null": ('"eventId":"evt_8589934599_3"', '"eventId":null'),
        "the eventId is empty": ('"eventId":"evt_8589934599_3"', '"eventId":""'),
        "the timestamp is newer": (f'"timestamp":{NOW_MS}', f'"timestamp":{NOW_MS + 1000}'),
        "a field is missing": ('"fee":"1",', ""),
        "a field more": ('"fee":"1"', '"fee":"1","bonus":"1"'),
        "a boolean more": ('"fee":"1"', '"fee":"1","paid":true'),
        "an object more": ('"fee":"1"', '"fee":"1","paid":{"x":1}'),
        "a field twice": ('"fee":"1"', '"fee":"2","fee":"1"'),
        "the signature is cut to 20 characters": (signed, signed[:20]),
        "the signature is empty": (signed, ""),
        "the signature is missing": (f',"sign":"{signed}"', ""),
        "the signature is null": (f'"{signed}"', "null"),
        "the body is cut": ("}", ""),
    }
    for why, (old, new) in swaps.items():
        changed = body.replace(old, new, 1)
        assert changed != body, why
        yield _case(
            f"altered: {why}",
            method,
            fields,
            changed,
            why=why,
            by_sign=False,
            by_webhook=False,
            signed_body=body,
        )
    why = "both secrets are another merchant's"
    yield _case(
        f"altered: {why}", method, order(), why=why, by_sign=False, by_webhook=False,
        secret=OTHER_SECRET, callback_secret=OTHER_CALLBACK_SECRET,
    )  # fmt: skip


def _unclear(method: str) -> Iterator[Case]:
    """Signed by the right secret, and still to be refused: the signature could mean something else."""
    for control in CONTROLS:
        why = f"mcOrderId has the control character U+{ord(control):04X}"
        fields = order(mcOrderId=f"a{control}b")
        yield _case(f"signed, but {why}", method, fields, why=why, by_sign=False, by_webhook=False)
    forged: list[Field] = [
        (name, "1", kind)
        if name == "fee"
        else ("fee=", value, kind)
        if name == "rate"
        else (name, value, kind)
        for name, value, kind in order()
    ]
    why = "a name has = in it"
    yield _case(f"signed, but {why}", method, forged, why=why, by_sign=False, by_webhook=False)


def _headers() -> Iterator[Case]:
    body = write_object(_signed(HMAC, order()))
    event_id, at_s = "evt_8589934599_2", str(NOW_MS // 1000)
    right = rules.sign_webhook(CALLBACK_SECRET, event_id, at_s, body)
    wrong = rules.sign_webhook(OTHER_CALLBACK_SECRET, event_id, at_s, body)
    usual = {"webhook-id": event_id, "webhook-timestamp": at_s, "webhook-signature": right}
    true = {
        "names in capitals": {name.upper(): value for name, value in usual.items()},
        "names as Go and nginx write them": {name.title(): value for name, value in usual.items()},
        "other headers beside them": {
            **usual,
            "content-type": "application/json; charset=utf-8",
            "host": "x",
        },
        "two signatures, the first is another's": {**usual, "webhook-signature": f"{wrong} {right}"},
        "two signatures, the second is another's": {**usual, "webhook-signature": f"{right} {wrong}"},
        "a signature of another version before it": {
            **usual,
            "webhook-signature": f"v1a,{right[3:]} {right}",
        },
    }
    for what, headers in true.items():
        yield _case(f"headers: {what}", HMAC, order(), headers=headers)
    yield _case(
        "headers: a callback secret with whsec_", HMAC, order(), shown_secret=f"whsec_{CALLBACK_SECRET}"
    )
    later = rules.sign_webhook(CALLBACK_SECRET, event_id, int(at_s) + 1, body)
    false = {
        "none": {},
        "no webhook-id": {name: usual[name] for name in ("webhook-timestamp", "webhook-signature")},
        "no webhook-timestamp": {name: usual[name] for name in ("webhook-id", "webhook-signature")},
        "no webhook-signature": {name: usual[name] for name in ("webhook-id", "webhook-timestamp")},
        "an empty webhook-signature": {**usual, "webhook-signature": ""},
        "a signature without its version": {**usual, "webhook-signature": right[3:]},
        "a signature of another version": {**usual, "webhook-signature": f"v2,{right[3:]}"},
        "a signature with another secret": {**usual, "webhook-signature": wrong},
        "a signature in small letters": {**usual, "webhook-signature": right.lower()},
        "a signature that is cut": {**usual, "webhook-signature": right[:-8]},
        "the signature of another second": {**usual, "webhook-signature": later},
        "another webhook-id": {**usual, "webhook-id": "evt_8589934599_3"},
        "another webhook-timestamp": {**usual, "webhook-timestamp": str(int(at_s) + 1)},
        "webhook-timestamp in milliseconds": {**usual, "webhook-timestamp": str(NOW_MS)},
        "webhook-timestamp is no number": {**usual, "webhook-timestamp": "now"},
    }
    for what, headers in false.items():
        yield _case(f"headers: {what}", HMAC, order(), why=what, headers=headers, by_webhook=False)
    spaced = write_object(_signed(HMAC, order()), spaced=True)
    why = "the body was written anew: only its bytes are other ones"
    yield _case(f"headers: {why}", HMAC, order(), spaced, why=why, by_webhook=False, signed_body=body)
    why = "webhook-id is not the eventId of the body"
    other = {
        **usual,
        "webhook-id": "evt_1_2",
        "webhook-signature": rules.sign_webhook(CALLBACK_SECRET, "evt_1_2", at_s, body),
    }
    yield _case(f"headers: {why}", HMAC, order(), why=why, headers=other, by_webhook=False)
    why = "the method is another"
    fields = write_object(_signed(MD5, order()))
    yield _case(f"sign: {why}", HMAC, order(), fields, why=why, by_sign=False)
    yield _case(f"sign: {why}", MD5, order(), body, why=why, by_sign=False)


def _something_else() -> Iterator[Case]:
    """Requests and answers are signed with the same secret. They are no callbacks."""
    request = [field for field in order() if field[0] != "eventId"]
    why = "a signed request, which has no eventId"
    for method in METHODS:
        body = write_object(_signed(method, request))
        yield _case(f"{method} {why}", method, request, body, why=why, by_sign=False, by_webhook=False)
        signed = rules.sign(method, SECRET, "/merchant/queryOrder", order())
        body = write_object([*order(), *text(sign=signed)])
        as_request = "signed as a request to /merchant/queryOrder"
        if method == HMAC:
            yield _case(as_request, method, order(), body, why=as_request, by_sign=False)
    for what, body in {
        "nothing": "",
        "null": "null",
        "an array": "[]",
        "a text": '"success"',
        "no JSON": "a=1",
    }.items():
        yield _case(f"a body that is {what}", HMAC, order(), body, why=what, by_sign=False, by_webhook=False)


def _hidden() -> Iterator[Case]:
    for hidden in rules.HIDDEN_IN_MD5:
        fields = order(mcOrderId=f"a{hidden}b")
        why = f"mcOrderId holds {hidden}, which reads as a field"
        yield _case(f"a value with {hidden}", MD5, fields, why=why, by_sign=False)
        yield _case(f"a value with {hidden}", HMAC, fields)
    fields = [("mcOrderId", "1&eventId=evt_1_2", TEXT), *order()[:3], *text(txnStatus="2")]
    why = "the eventId is hidden in a value, so a signed request looks like a callback"
    yield _case(why, MD5, fields, why=why, by_sign=False, by_webhook=False)


def _case(
    name: str,
    method: str,
    fields: list[Field],
    body: str | None = None,
    *,
    why: str = "",
    by_sign: bool = True,
    by_webhook: bool = True,
    now_ms: int = NOW_MS + 250,
    headers: dict[str, str] | None = None,
    signed_body: str | None = None,
    secret: str = SECRET,
    callback_secret: str = CALLBACK_SECRET,
    shown_secret: str = CALLBACK_SECRET,
) -> Case:
    """`secret`, `callback_secret` and `signed_body` are what was signed, the case shows what arrived."""
    body = write_object(_signed(method, fields, secret)) if body is None else body
    if headers is None:
        event_id = next((value or "" for field, value, _ in fields if field == "eventId"), "")
        headers = _write_headers(callback_secret, event_id, body if signed_body is None else signed_body)
    wrong = (
        rules.check_callback(method, SECRET, body, now_ms),
        rules.check_webhook(shown_secret, headers, body, now_ms),
    )
    assert [each is None for each in wrong] == [by_sign, by_webhook], (name, method, wrong)
    return {
        "name": f"{method}: {name}",
        "method": method,
        "secret": SECRET,
        "callbackSecret": shown_secret,
        "headers": headers,
        "body": body,
        "now_ms": now_ms,
        "validBySign": by_sign,
        "validByWebhook": by_webhook,
        "valid": by_sign and by_webhook,
        "why": why,
        "event": _read(body) if by_sign or by_webhook else None,
    }


def _signed(method: str, fields: list[Field], secret: str = SECRET) -> list[Field]:
    return [*fields, *text(sign=rules.sign(method, secret, CALLBACK, fields))]


def _write_headers(callback_secret: str, event_id: str, body: str) -> dict[str, str]:
    at_s = str(NOW_MS // 1000)
    signature = rules.sign_webhook(callback_secret, event_id, at_s, body)
    return {"webhook-id": event_id, "webhook-timestamp": at_s, "webhook-signature": signature}


def _read(body: str) -> list[Field]:
    return [field for field in rules.flat_fields(rules.read_object(body)) if field[0] != "sign"]
