"""Cases of answers: successes, refusals, altered answers, and bodies that are no answer of the service.

`outcome` is what a client does with a case:
- `success`: it returns `data`;
- `refused`: a well-formed refusal. Refusals are not signed;
- `unsafe`: code 200, but the signature does not prove it;
- `noAnswer`: no envelope of the service, as from a proxy. What happened is unknown.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from scripts.vectors import rules
from scripts.vectors.codes import list_codes
from scripts.vectors.rules import HMAC, MD5, NUMBER, TEXT, Field
from scripts.vectors.values import (
    CONTROLS,
    ERC20_ADDRESS,
    METHODS,
    NUMBERS,
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
SUCCESS: Final = "success"
UNSAFE: Final = "unsafe"
CUSTOMER: Final = "getMerchantCustomer"

DATA: Final[dict[str, list[Field]]] = {
    "transferFromUserToMerchant": [
        *number(transactionId=8589934597, amount="40.5", amountArrival="40.2975", rate="0.005", fee="0.2025"),
        *text(currency="KFB", mcOrderId="cart-7"),
    ],
    "transferFromMerchantToUser": [
        *number(transactionId=8589934596, amount="100"),
        *text(currency="KFB", mcOrderId="topup-1"),
    ],
    "createMerchantWithdrawOrder": [
        *number(orderId=8589934599),
        *text(mcOrderId="10001"),
        *number(amount="12.5", amountArrival="11.5"),
        *text(currency="USDT", chainType="TRC20", address=TRC20_ADDRESS, txnStatus="0"),
    ],
    "queryOrder": [
        *number(orderId=8589934599),
        *text(currency="USDT"),
        *number(amount="12.5", rate="0.001", fee="1", amountArrival="11.5", txnTime=1763712000000),
        *text(txnStatus="2"),
        *number(createTime=1763712000000, mcOrderId=10001, notifyTime=1763712003000),
        *text(extUserId=None, chainType="TRC20"),
    ],
    CUSTOMER: [
        *number(userId=8589934595),
        *text(extUserId="alice", username="alice", currency="KFB"),
        *number(balance="0"),
        *text(
            url="https://wallet.example/w/AQAAAAAAAAPpAAAAAgAAAAMAAAGapXr4eOf7Du0XNIjneAePAVCjsX7d",
            address=ERC20_ADDRESS,
            tronAddress="TEJcyYjnqEx9VCCSnYUAH4hHd3g4FTzPSH",
        ),
    ],
    "getMerchantBalance": number(merchantId=1001, usdtBalance="997.44", kfbBalance="869.2975"),
    "exchange": [
        *text(sendCurrency="KFB", receiveCurrency="USDT", amount="71", amountArrival="9.94"),
        *number(rate="0.14", transactionId=8589934598),
    ],
    "getWithdrawFee": number(amount="12.5", amountArrival="11.5", fee="1", rate="0.001"),
}


def list_answers() -> Iterator[Case]:
    """All cases, in the order of the file."""
    for method in METHODS:
        for operation, data in DATA.items():
            yield _case(operation, method, operation, data)
            yield from _altered(method, operation, data)
        yield from _values(method)
        yield from _forged(method)
    yield from _by_hmac()
    yield from _by_md5()
    yield from _refusals()
    yield from _no_answers()


def _altered(method: str, operation: str, data: list[Field]) -> Iterator[Case]:
    """One thing of a true answer is changed. Each must be refused."""
    name, nonce = operation, draw(operation)
    body = _body(data, rules.sign_answer(method, SECRET, operation, data, nonce))
    signature = rules.sign_answer(method, SECRET, operation, data, nonce)
    first, value, kind = next(field for field in data if field[2] == NUMBER or field[0] == "amount")
    quote = '"' if kind == TEXT else ""
    shown = f'"{first}":{quote}{value}{quote}'
    path = f"/merchant/{operation}"
    bound: list[Field] = [*number(code=200), *text(nonceStr=nonce)] if method == HMAC else []
    whole = rules.sign(method, SECRET, path, [*data, *bound])
    is_short = len(signature) == rules.SHORT_SIGN
    zero = "0" if "." in str(value) else ".0"
    swaps = {
        f"{first} has one more digit": (shown, f'"{first}":{quote}{value}1{quote}'),
        f"{first} is written with one more zero": (shown, f'"{first}":{quote}{value}{zero}{quote}'),
        f"{first} is null": (shown, f'"{first}":null'),
        f"{first} is missing": (shown + ",", ""),
        f"{first} is there twice": (shown, f'"{first}":{quote}9{quote},{shown}'),
        "a field more": (shown, shown + ',"bonus":"1"'),
        "a boolean more, which no signature covers": (shown, shown + ',"paid":true'),
        "an array more": (shown, shown + ',"paid":[]'),
        "an object more": (shown, shown + ',"paid":{}'),
        "the signature is cut": (signature, signature[: 10 if is_short else 20]),
        "the signature has one character": (signature, signature[:1]),
        "the signature is empty": (signature, ""),
        "the signature has another first character": (signature, "0" if signature[0] != "0" else "1"),
        "the signature is longer": (signature, whole if is_short else signature + "0"),
        "the signature is missing": (f',"sign":"{signature}"', ""),
        "the signature is null": (f'"{signature}"', "null"),
        "the signature is true": (f'"{signature}"', "true"),
        "data is null": (body[body.index('"data":') + 7 : -1], "null"),
        "data is a text": (body[body.index('"data":') + 7 : -1], '"paid"'),
        "data is an array": (body[body.index('"data":') + 7 : -1], "[]"),
    }
    for why, (old, new) in swaps.items():
        if why == "the signature has another first character":
            new += signature[1:]
        yield _altered_case(f"{name}: {why}", method, operation, body.replace(old, new, 1), nonce, why)
    why = "the answer is signed with another secret"
    forged = _body(data, rules.sign_answer(method, OTHER_SECRET, operation, data, nonce))
    yield _altered_case(f"{name}: {why}", method, operation, forged, nonce, why)


def _values(method: str) -> Iterator[Case]:
    for what, value in TEXTS.items():
        data = _customer(username=value)
        yield _case(f"a text: {what}", method, CUSTOMER, data)
        yield _case(f"a text, escaped to ASCII: {what}", method, CUSTOMER, data, ascii_only=True)
    for literal in NUMBERS:
        yield _case(f"a number keeps its text: {literal}", method, CUSTOMER, _customer(balance=literal))
        if literal in ("0.000001", "1e-6", "1E2", "100.50"):
            data = _customer(balance="0.5")
            nonce = draw(literal)
            signed = rules.sign_answer(method, SECRET, CUSTOMER, data, nonce)
            yield _altered_case(
                f"a number is another: {literal}",
                method,
                CUSTOMER,
                _body(_customer(balance=literal), signed),
                nonce,
            )
    unsorted = text(b="1", a_="2", B="3", a0="4", aB="5", a="6", A="7", _="8", Z9="9")
    yield _case("unknown fields are signed", method, CUSTOMER, [*DATA[CUSTOMER], *unsorted])
    yield _case("the order in data does not matter", method, CUSTOMER, DATA[CUSTOMER][::-1])
    yield _case("an unknown big number", method, CUSTOMER, [*DATA[CUSTOMER], *number(total="9" * 40)])
    empty = [*DATA[CUSTOMER], *text(note="", memo=None)]
    yield _case("null and the empty text are not signed", method, CUSTOMER, empty)
    yield _case("spaces and line feeds between the tokens", method, CUSTOMER, empty, spaced=True)
    query = DATA["queryOrder"]
    for mc_order_id in ("order-7", "007", "9007199254740993"):
        texts = [(n, mc_order_id, TEXT) if n == "mcOrderId" else (n, v, k) for n, v, k in query]
        yield _case(f"mcOrderId as a text: {mc_order_id}", method, "queryOrder", texts)
    untold = [(n, None, k) if n == "notifyTime" else (n, v, k) for n, v, k in query]
    yield _case("no notifyTime yet", method, "queryOrder", untold)


def _forged(method: str) -> Iterator[Case]:
    """Other fields with the same string to sign as a true answer. The signature alone does not show them."""
    separator = "&" if method == MD5 else "\n"
    for control in CONTROLS:
        data = _customer(username=f"a{control}b")
        nonce = draw(control)
        signed = rules.sign_answer(method, SECRET, CUSTOMER, data, nonce)
        why = f"username has the control character U+{ord(control):04X}"
        yield _altered_case(f"signed, but {why}", method, CUSTOMER, _body(data, signed), nonce, why)
    true = _customer(username="a=b")
    forged: list[Field] = [("username=a", "b", TEXT) if field[0] == "username" else field for field in true]
    yield _forged_case("a name takes a part of its value", method, CUSTOMER, true, forged)
    (one, a, _), two, (three, c, _) = true = DATA["getMerchantBalance"]
    forged = [(f"{three}={c}{separator}{one}", a, NUMBER), two]
    yield _forged_case("a name holds a whole line", method, "getMerchantBalance", true, forged)


def _by_hmac() -> Iterator[Case]:
    """What HMAC refuses and MD5 does not see."""
    for operation, data in DATA.items():
        nonce = draw(operation)
        signed = rules.sign_answer(HMAC, SECRET, operation, data, nonce)
        yield _altered_case(
            f"{operation}: the answer to another request", HMAC, operation, _body(data, signed), draw("other")
        )
        other = rules.sign_answer(HMAC, SECRET, operation, data, nonce)
        as_other = "getWithdrawFee" if operation != "getWithdrawFee" else "getMerchantBalance"
        yield _altered_case(
            f"{operation}: as the answer of {as_other}", HMAC, as_other, _body(data, other), nonce
        )
    data = DATA["getWithdrawFee"]
    merged = [*text(amount="12.5\namountArrival=11.5"), *data[2:]]
    yield _forged_case("two fields in one, and amountArrival is gone", HMAC, "getWithdrawFee", data, merged)


def _by_md5() -> Iterator[Case]:
    data = DATA["getMerchantBalance"]
    signed = rules.sign_answer(MD5, SECRET, "getMerchantBalance", data, "")
    case = _case("the nonce is not covered (this method is weak)", MD5, "getMerchantBalance", data)
    yield {**case, "nonceStr": draw("any"), "body": _body(data, signed)}
    for hidden in rules.HIDDEN_IN_MD5:
        hiding = _customer(username=f"a{hidden}b")
        signed = rules.sign_answer(MD5, SECRET, CUSTOMER, hiding, "")
        why = f"username holds {hidden}: the service never signs that"
        yield _altered_case(f"a value with {hidden}", MD5, CUSTOMER, _body(hiding, signed), draw("h"), why)
        yield _case(f"a value with {hidden}", HMAC, CUSTOMER, hiding)
    yield from _not_answers_by_md5()


def _not_answers_by_md5() -> Iterator[Case]:
    """Callbacks and requests: MD5 signs no path, so their signatures hold for an answer, too."""
    own: dict[str, list[Field]] = {
        "appKey": text(appKey="mk_test_shop0001"),
        "eventId": text(eventId="evt_8589934599_2"),
        "nonceStr": text(nonceStr=draw("other")),
        "timestamp": number(timestamp=1763712004000),
    }
    callback = [*DATA["queryOrder"], *(field for fields in own.values() for field in fields)]
    shown = {"the order's callback": callback, **{name: [*DATA["queryOrder"], *own[name]] for name in own}}
    for name, data in shown.items():
        body = _body(data, rules.sign_answer(MD5, SECRET, "queryOrder", data, ""))
        yield _altered_case(f"{name} in place of data", MD5, "queryOrder", body, draw("not"))


def _refusals() -> Iterator[Case]:
    payloads: dict[int, list[Field]] = {
        40101: text(
            stringToSign="/merchant/getMerchantBalance\nappKey=demo\nnonceStr=ed36\ntimestamp=1763712009"
        ),
        40102: number(serverTime=1763712008000, skewMs=-600000),
    }
    for row in list_codes()[1:]:
        code, data = row["code"], payloads.get(row["code"])
        shown = write_object(data) if data else "null"
        msg = f"why: {row['name']}"
        body = f'{{"code":{code},"msg":{json.dumps(msg)},"data":{shown}}}'
        yield _refusal(f"{code} {row['name']}", body, row["httpStatus"], code, msg, data)
    body = '{"code":40101,"msg":"sign does not match the request","data":null}'
    yield _refusal("40101 of a live service", body, 200, 40101, "sign does not match the request", None)
    body = '{"code":49999,"msg":"a code of the future 商户 😀","data":null}'
    yield _refusal(
        "a code that the client does not know", body, 200, 49999, "a code of the future 商户 😀", None
    )
    body = '{"code":40000,"msg":"not an HTTP/1.1 request","data":null}'
    yield _refusal("40000 with HTTP status 400", body, 400, 40000, "not an HTTP/1.1 request", None)


def _no_answers() -> Iterator[Case]:
    bodies = {
        "a page of a proxy": ("<html><body>502 Bad Gateway</body></html>", 502),
        "nothing": ("", 200),
        "a text": ('"success"', 200),
        "an array": ("[200]", 200),
        "null": ("null", 200),
        "JSON without code": ('{"status":"ok"}', 200),
        "a code that is a text": ('{"code":"200","msg":"success","data":{}}', 200),
        "a code that is null": ('{"code":null,"msg":"","data":null}', 200),
        "a code that is true": ('{"code":true,"msg":"","data":null}', 200),
        "a code with a fraction": ('{"code":200.0,"msg":"success","data":{}}', 200),
        "the beginning of an answer": ('{"code":200,"msg":"succ', 200),
        "an answer and something after it": ('{"code":40100,"msg":"","data":null} {}', 200),
        "code in capitals": ('{"CODE":40100,"msg":"","data":null}', 200),
        "two codes": ('{"code":200,"code":40100,"msg":"","data":null}', 200),
    }
    for why, (body, status) in bodies.items():
        yield {
            **_frame(f"no answer of the service: {why}", HMAC, "getMerchantBalance", draw(why), body),
            "httpStatus": status,
            "outcome": "noAnswer",
            "why": why,
        }


def _customer(**changes: str) -> list[Field]:
    return [(name, changes.get(name, value or ""), kind) for name, value, kind in DATA[CUSTOMER]]


def _case(
    name: str,
    method: str,
    operation: str,
    data: list[Field],
    *,
    ascii_only: bool = False,
    spaced: bool = False,
) -> Case:
    nonce = draw(name)
    signed = rules.sign_answer(method, SECRET, operation, data, nonce)
    body = _body(data, signed, ascii_only=ascii_only, spaced=spaced)
    wrong = rules.check_answer(method, SECRET, operation, nonce, body)
    assert wrong is None, (name, wrong)
    return {
        **_frame(f"{method}: {name}", method, operation, nonce, body),
        "code": 200,
        "msg": "success",
        "data": data,
        "outcome": SUCCESS,
        "valid": True,
    }


def _altered_case(name: str, method: str, operation: str, body: str, nonce: str, why: str = "") -> Case:
    wrong = rules.check_answer(method, SECRET, operation, nonce, body)
    assert wrong is not None, name
    frame = _frame(f"{method}: altered: {name}", method, operation, nonce, body)
    return {**frame, "code": 200, "outcome": UNSAFE, "why": why or wrong}


def _forged_case(why: str, method: str, operation: str, data: list[Field], forged: list[Field]) -> Case:
    """Other fields with the signature of a true answer, because they have the same string to sign."""
    nonce = draw(why)
    signed = rules.sign_answer(method, SECRET, operation, data, nonce)
    assert signed == rules.sign_answer(method, SECRET, operation, forged, nonce), why
    return _altered_case(f"forged: {why}", method, operation, _body(forged, signed), nonce, why)


def _refusal(name: str, body: str, status: int, code: int, msg: str, data: list[Field] | None) -> Case:
    frame = _frame(f"refusal: {name}", HMAC, "getMerchantBalance", draw(name), body)
    return {**frame, "httpStatus": status, "code": code, "msg": msg, "data": data, "outcome": "refused"}


def _frame(name: str, method: str, operation: str, nonce: str, body: str) -> Case:
    return {
        "name": name,
        "operation": operation,
        "path": f"/merchant/{operation}",
        "method": method,
        "secret": SECRET,
        "nonceStr": nonce,
        "httpStatus": 200,
        "body": body,
        "code": None,
        "msg": None,
        "data": None,
        "outcome": "",
        "valid": False,
        "why": "",
    }


def _body(data: list[Field], signed: str, *, ascii_only: bool = False, spaced: bool = False) -> str:
    written = write_object([*data, *text(sign=signed)], ascii_only=ascii_only, spaced=spaced)
    return f'{{"code":200,"msg":"success","data":{written}}}'
