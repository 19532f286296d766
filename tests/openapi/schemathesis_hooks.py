"""What schemathesis needs to know of this interface: how a request is signed, and what `code` must be.

Rules:
- Every request is signed with the merchant's secret, so that its fields are judged and not its signature.
  Only a common field that is malformed on purpose stays as it is.
- Every other well-formed request gets values that exist: a sub-user, an address, an order.
- JSON Schema takes 7.0 for a whole number, and the interface does not: such a number is written as 7.
- HTTP status 200 is also a refusal's, so schemathesis' own judgement of statuses is replaced by one of
  `code`.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, HookContext, Response
from tests.openapi.schemas import find_errors, request_schema

MERCHANT: Final[dict[str, Any]] = json.loads(os.environ["WALLET_TEST_MERCHANT"])
"""appKey, secret, and for each operation values that exist."""
COUNTED: Final = Path(os.environ["WALLET_TEST_COUNTED"])
"""A line for each case: its operation, and the code of its answer."""
FORMS: Final = {
    "appKey": r"[!-~]{1,20}",
    "timestamp": r"0|[1-9][0-9]{0,19}",
    "nonceStr": r"[A-Za-z0-9_-]{1,32}",
    "sign": r"[0-9A-Fa-f]{32}",
}
WHOLE_NUMBERS: Final = ("timestamp", "orderId")
NOT_FOR_WELL_FORMED: Final = {40000, 40001, 40002, 40100, 40101, 40102, 40103}
ARRIVES_AS_ZERO: Final = "amount: nothing would arrive after the exchange at the present rate"


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """Sign a request."""
    body: Any = case.body
    if not isinstance(body, dict):
        return
    if is_well_formed(case):
        body |= {name: int(value) for name, value in body.items() if is_whole_float(name, value)}
    if is_well_formed(case) and hashlib.sha256(repr(sorted(body)).encode()).digest()[0] % 2:
        body |= MERCHANT["values"].get(case.operation.path.rsplit("/", 1)[1], {})
    fresh = {
        "appKey": MERCHANT["appKey"],
        "timestamp": time.time_ns() // 1_000_000,
        "nonceStr": secrets.token_hex(16),
        "sign": "",
    }
    mine = [name for name in fresh if re.fullmatch(FORMS[name], show(body.get(name)))]
    body |= {name: fresh[name] for name in mine}
    if "sign" in mine:
        texts = {name: show(value) for name, value in body.items() if name != "sign"}
        body["sign"] = sign(case.operation.path, texts)


@schemathesis.check
def code_is_right(context: CheckContext, response: Response, case: Case[Any]) -> None:
    """A well-formed request is refused only for what it asks, and a malformed one is not carried out."""
    answer = response.json()
    operation = case.operation.path.rsplit("/", 1)[1]
    with COUNTED.open("a", encoding="utf-8") as file:
        file.write(f"{operation} {answer['code']}\n")
    if not isinstance(case.body, dict):
        assert answer["code"] != 200, "a body that is no object was carried out"
    elif is_well_formed(case):
        is_right = answer["code"] not in NOT_FOR_WELL_FORMED or answer["msg"] == ARRIVES_AS_ZERO
        assert is_right, f"a well-formed request was refused: {answer}"
    elif find_errors(request_schema(operation), as_texts(case.body), strict=False):
        assert answer["code"] != 200, "a malformed request was carried out"


def is_well_formed(case: Case[Any]) -> bool:
    """Whether schemathesis made the request as the document says."""
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


def is_whole_float(name: str, value: Any) -> bool:
    """Whether a field that must be a whole number is one like 7.0."""
    return name in WHOLE_NUMBERS and isinstance(value, float) and value.is_integer()


def show(value: Any) -> str:
    """A value as its text on the wire."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def as_texts(body: Mapping[str, Any]) -> dict[str, Any]:
    """A body as the service reads it and the schemas say it: numbers as texts, but for a Long, and what is
    empty left out.
    """
    texts = {
        name: show(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in body.items()
        if value is not None and value != ""
    }
    is_whole = re.compile(FORMS["timestamp"]).fullmatch
    wholes = {name: texts[name] for name in WHOLE_NUMBERS if isinstance(texts.get(name), str)}
    return texts | {name: int(text) for name, text in wholes.items() if is_whole(text)}


def sign(path: str, texts: Mapping[str, str]) -> str:
    """The signature of a request."""
    present = {name: text for name, text in texts.items() if text}
    signed = "\n".join([path, *(f"{name}={present[name]}" for name in sorted(present))])
    digest = hmac.new(MERCHANT["secret"].encode(), signed.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return digest.hexdigest()[:32]
