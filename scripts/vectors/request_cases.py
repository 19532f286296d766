"""Cases of requests: what a client signs and sends, and what it must refuse to sign."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

from scripts.vectors import rules
from scripts.vectors.rules import HMAC, MD5, TEXT, Field
from scripts.vectors.values import (
    CONTROLS,
    ERC20_ADDRESS,
    FORM_TYPE,
    JSON_TYPE,
    METHODS,
    NOW_MS,
    NUMBERS,
    SECRET,
    TEXTS,
    TRC20_ADDRESS,
    draw,
    number,
    text,
    write_object,
)

Case = dict[str, Any]
BODY_UNREADABLE: Final = 40000
FIELD_INVALID: Final = 40001
QUERY: Final = "getMerchantBalance"

OPERATIONS: Final[dict[str, list[Field]]] = {
    "transferFromUserToMerchant": text(extUserId="alice", currency="KFB", amount="40.5", mcOrderId="cart-7"),
    "transferFromMerchantToUser": text(
        currency="KFB", amount="100", mcOrderId="topup-1", address=ERC20_ADDRESS
    ),
    "createMerchantWithdrawOrder": text(
        amount="12.50",
        chainType="TRC20",
        currency="USDT",
        mcOrderId="10001",
        address=TRC20_ADDRESS,
        notifyUrl="https://example.com/n?a=1&b=2",
    ),
    "queryOrder": [*number(orderId=8589934599), *text(mcOrderId="10001")],
    "getMerchantCustomer": text(extUserId="alice"),
    QUERY: [],
    "exchange": text(
        amount="71.00",
        sendCurrency="KFB",
        receiveCurrency="USDT",
        mcOrderId="fx-1",
        minAmountArrival="9.9",
    ),
    "getWithdrawFee": text(amount="12.50", currency="USDT"),
}


def list_requests() -> Iterator[Case]:
    """All cases, in the order of the file."""
    for method in METHODS:
        yield from _usual(method)
        yield from _texts_and_numbers(method)
        yield from _orders_and_absent(method)
        yield from _refused(method)
    yield from _refused_by_md5()
    yield from _refused_bodies()


def _common(name: str) -> list[Field]:
    return [
        *text(appKey="mk_test_shop"),
        *number(timestamp=NOW_MS),
        *text(nonceStr=draw(name)),
    ]


def _usual(method: str) -> Iterator[Case]:
    for operation, own in OPERATIONS.items():
        fields = [*_common(f"{method} {operation}"), *own]
        yield _case(f"{operation} as JSON", method, operation, fields)
        yield _case(f"{operation} as a form", method, operation, fields, content_type=FORM_TYPE)
        texts: list[Field] = [(name, value, TEXT) for name, value, _ in fields]
        yield _case(f"{operation} with every value as a text", method, operation, texts)
    yield _case("a timestamp in seconds", method, QUERY, _seconds(_common("seconds")))
    fields = [*_common("key"), *OPERATIONS["exchange"]]
    yield _case("a secret of 100 characters", method, "exchange", fields, secret="s3cret-0.!" * 10)
    yield _case("a secret beyond ASCII", method, "exchange", fields, secret="pässwörd-商户-😀")


def _seconds(fields: list[Field]) -> list[Field]:
    return [
        (name, value[:10] if name == "timestamp" and value else value, kind) for name, value, kind in fields
    ]


def _texts_and_numbers(method: str) -> Iterator[Case]:
    for what, value in TEXTS.items():
        fields = [*_common(what), *text(extUserId=value)]
        yield _case(f"a text: {what}", method, "getMerchantCustomer", fields)
        yield _case(
            f"a text, escaped to ASCII: {what}", method, "getMerchantCustomer", fields, ascii_only=True
        )
        yield _case(
            f"a text in a form: {what}", method, "getMerchantCustomer", fields, content_type=FORM_TYPE
        )
    for literal in NUMBERS:
        fields = [*_common(literal), *number(amount=literal), *text(currency="USDT")]
        yield _case(f"a number keeps its text: {literal}", method, "getWithdrawFee", fields)


def _orders_and_absent(method: str) -> Iterator[Case]:
    unsorted = text(b="1", a_="2", B="3", a0="4", aB="5", a="6", A="7", _="8", ab="9", Z9="10", z="11")
    yield _case(
        "names in byte order: digits, capitals, underscore, small letters",
        method,
        QUERY,
        [*_common("o"), *unsorted],
    )
    yield _case("the order in the body does not matter", method, QUERY, [*unsorted[::-1], *_common("o")])
    yield _case(
        "names that begin with each other", method, QUERY, [*_common("p"), *text(amountX="1", amount="2")]
    )
    longest = "n" * 64
    yield _case("a name of 64 characters", method, QUERY, [*_common("l"), (longest, "1", TEXT)])
    many: list[Field] = [(f"field{index}", str(index), TEXT) for index in range(40)]
    yield _case("forty fields: field10 before field2", method, QUERY, [*_common("m"), *many])
    absent = [*_common("n"), *text(extUserId=None, amount="", currency="KFB")]
    yield _case("null and the empty text are left out", method, QUERY, absent)
    yield _case(
        "an empty form value is left out", method, QUERY, [*absent[:3], *absent[4:]], content_type=FORM_TYPE
    )
    yield _case("spaces and line feeds between the tokens", method, QUERY, absent, spaced=True)
    yield _case("an unknown field is signed", method, QUERY, [*_common("u"), *text(shop="north", lane="4")])
    hidden = [*_common("h"), *text(notifyUrl="https://example.com/n?timestamp=1&a=2&%74imestamp=3&AppKey=4")]
    yield _case("an & that hides no field", method, QUERY, hidden)


def _refused(method: str) -> Iterator[Case]:
    for control in CONTROLS:
        fields = [*_common("c"), *text(extUserId=f"a{control}b")]
        why = f"U+{ord(control):04X} is a control character: the value could look like another line"
        yield _case(f"a control character U+{ord(control):04X}", method, QUERY, fields, FIELD_INVALID, why)
        if control == "\n":
            yield _case(
                "a line feed in a form", method, QUERY, fields, FIELD_INVALID, why, content_type=FORM_TYPE
            )
    why = "eventId marks callbacks: the signature could be used as that of a callback"
    fields = [*_common("e"), *text(eventId="evt_1_2")]
    yield _case("a request with eventId", method, QUERY, fields, FIELD_INVALID, why)
    for name in ("a b", "a=b", "é", "a-b", "", "a.b", "n" * 65, "a\n"):
        named: list[Field] = [*_common("w"), (name, "1", TEXT)]
        yield _case(
            f"a wrong name: {name[:8]!r}",
            method,
            QUERY,
            named,
            BODY_UNREADABLE,
            "names are 1 to 64 of A-Za-z0-9_",
        )


def _refused_by_md5() -> Iterator[Case]:
    for hidden in rules.HIDDEN_IN_MD5:
        url = f"https://example.com/n?a=1{hidden}2"
        fields = [*_common("q"), *text(notifyUrl=url)]
        why = f"with MD5 {hidden}… in a value reads as a field"
        yield _case(f"a value with {hidden}", MD5, QUERY, fields, FIELD_INVALID, why)
        yield _case(f"a value with {hidden}, which HMAC signs", HMAC, QUERY, fields)


def _refused_bodies() -> Iterator[Case]:
    bodies = {
        "a field twice": ('{"appKey":"a","appKey":"b"}', BODY_UNREADABLE),
        "a field twice, once with an escape": ('{"appKey":"a","app\\u004bey":"b"}', BODY_UNREADABLE),
        "half of a surrogate pair": ('{"appKey":"a","extUserId":"\\ud83d"}', BODY_UNREADABLE),
        "the halves of a surrogate pair in the wrong order": (
            '{"extUserId":"\\ude00\\ud83d"}',
            BODY_UNREADABLE,
        ),
        "an array": ("[1]", BODY_UNREADABLE),
        "NaN": ('{"amount":NaN}', BODY_UNREADABLE),
        "a number with a leading zero": ('{"amount":01}', BODY_UNREADABLE),
        "a comma at the end": ('{"amount":1,}', BODY_UNREADABLE),
        "no JSON": ("appKey=a", BODY_UNREADABLE),
        "nothing": ("", BODY_UNREADABLE),
        "a boolean": ('{"appKey":"a","x":true}', FIELD_INVALID),
        "an array as a value": ('{"appKey":"a","x":[1]}', FIELD_INVALID),
        "an object as a value": ('{"appKey":"a","x":{"y":1}}', FIELD_INVALID),
    }
    for why, (body, code) in bodies.items():
        yield _body_case(why, body, JSON_TYPE, code)
    forms = {
        "a field twice": "appKey=a&appKey=b",
        "a broken escape": "appKey=%4",
        "bytes that are not UTF-8": "a=%FF",
    }
    for why, body in forms.items():
        yield _body_case(f"{why} in a form", body, FORM_TYPE, BODY_UNREADABLE)


def _body_case(why: str, body: str, content_type: str, code: int) -> Case:
    return {
        "name": f"a body that no client may send: {why}",
        "path": f"/merchant/{QUERY}",
        "method": HMAC,
        "secret": SECRET,
        "fields": None,
        "body": body,
        "contentType": content_type,
        "stringToSign": None,
        "sign": None,
        "valid": False,
        "why": why,
        "code": code,
    }


def _case(
    name: str,
    method: str,
    operation: str,
    fields: list[Field],
    code: int | None = None,
    why: str = "",
    *,
    secret: str = SECRET,
    content_type: str = JSON_TYPE,
    ascii_only: bool = False,
    spaced: bool = False,
) -> Case:
    path, valid = f"/merchant/{operation}", code is None
    wrong = rules.refuse_request(method, fields)
    assert (wrong is None) == valid, (name, wrong)
    signed = rules.sign(method, secret, path, fields)
    sent = [*fields, *text(sign=signed)]
    return {
        "name": f"{method}: {name}",
        "path": path,
        "method": method,
        "secret": secret,
        "fields": fields,
        "body": _form(sent)
        if content_type == FORM_TYPE
        else write_object(sent, ascii_only=ascii_only, spaced=spaced),
        "contentType": content_type,
        "stringToSign": rules.string_to_sign(method, path, fields) if valid else None,
        "sign": signed if valid else None,
        "valid": valid,
        "why": why,
        "code": code,
    }


def _form(fields: list[Field]) -> str:
    """A form. Spaces are `+` in every other value and `%20` in the rest."""
    writers = (quote_plus, lambda value: quote(value, safe=""))
    return "&".join(
        f"{quote(name, safe='')}={writers[index % 2](value or '')}"
        for index, (name, value, _) in enumerate(fields)
    )
