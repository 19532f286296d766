"""The vectors that all clients share: requests, answers, callbacks and codes.

Rules: one test plays all cases of a file, as a test for each of thousands of cases would take ten times as
long. Each case that fails is named.
"""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from merchant_wallet_client import (
    CODES,
    BadArgumentError,
    BadCallbackError,
    NoAnswerError,
    RefusedError,
    Retries,
    UnsafeAnswerError,
    WalletError,
    verify_callback,
)
from merchant_wallet_client.callbacks import AnyCallback, DepositCallback, OrderCallback, OtherCallback
from merchant_wallet_client.calls import Call, Credentials, Done, Reply
from merchant_wallet_client.cli.checking import check_answer, check_callback
from merchant_wallet_client.cli.profiles import Profile
from merchant_wallet_client.cli.terminal import Failure
from merchant_wallet_client.errors import CLASSES
from merchant_wallet_client.signing import build_string_to_sign, sign
from merchant_wallet_client.wire import Number, check_fields

VECTORS = Path(__file__).parents[2] / "vectors"
Case = Mapping[str, Any]
ERRORS: Mapping[str, tuple[type[WalletError], ...]] = {
    "refused": (RefusedError, NoAnswerError),
    "unsafe": (UnsafeAnswerError,),
    "noAnswer": (NoAnswerError,),
}


def play(name: str, check: Callable[[Case], None]) -> None:
    """Check every case of a file."""
    cases: list[Case] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    assert cases
    errors: list[BaseException] = []
    for case in cases:
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"case: {case['name']}")
            errors.append(error)
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} of {len(cases)} cases failed", errors)


def read_fields(listed: list[list[str | None]] | None) -> dict[str, str | None]:
    """The fields of a case, numbers as `Number`."""
    return {
        str(name): Number(value) if kind == "number" and value is not None else value
        for name, value, kind in listed or []
    }


def test_a_request_is_signed_as_everybody_signs_it_or_not_at_all() -> None:
    play("requests", check_request)


def check_request(case: Case) -> None:
    if case["fields"] is None:
        return  # Only a body can show it, and this client makes bodies from fields.
    listed = [name for name, _, _ in case["fields"]]
    fields = read_fields(case["fields"])
    if not case["valid"]:
        if len(listed) == len(fields):  # A dictionary can't name a field twice.
            with pytest.raises(BadArgumentError):
                check_fields(fields, case["method"])
        return
    checked = check_fields(fields, case["method"])
    assert build_string_to_sign(case["method"], case["path"], checked) == case["stringToSign"]
    assert sign(case["method"], case["secret"], case["path"], checked) == case["sign"]


def test_an_answer_is_read_as_everybody_reads_it() -> None:
    play("answers", check_answer_read)


def check_answer_read(case: Case) -> None:
    call = Call(Credentials("key", case["secret"], case["method"]), case["path"], {}, Retries(tries=1))
    call.prepare(case["nonceStr"], 0)
    reply = Reply(case["httpStatus"], {}, case["body"].encode("utf-8", "surrogatepass"))
    if case["outcome"] == "success":
        step = call.judge(reply)
        assert isinstance(step, Done)
        data = {name: value for name, value in step.answer.data.items() if name != "sign"}
        assert data == read_fields(case["data"])
        return
    with pytest.raises(ERRORS[case["outcome"]]) as caught:
        call.judge(reply)
    # With one try, a busy service is a NoAnswerError that has the refusal.
    refusal = getattr(caught.value, "refusal", caught.value)
    if case["outcome"] == "refused":
        assert isinstance(refusal, RefusedError)
        assert (refusal.code, refusal.msg) == (case["code"], case["msg"])
    else:
        assert not isinstance(refusal, RefusedError)


@pytest.mark.parametrize("by", ["secret", "callbackSecret"])
def test_a_callback_is_taken_by_either_secret_when_it_is_proven_by_it(by: str) -> None:
    play("callbacks", partial(check_callback_read, by))


def check_callback_read(by: str, case: Case) -> None:
    headers = case["headers"] if isinstance(case["headers"], dict) else dict(case["headers"])
    body = case["body"].encode("utf-8", "surrogatepass")

    def verify() -> AnyCallback:
        return verify_callback(
            body, headers, case[by], sign_method=case["method"], now_ms=int(case["now_ms"])
        )

    if not case["validBySign" if by == "secret" else "validByWebhook"]:
        with pytest.raises(BadCallbackError):
            verify()
        return
    came = verify()
    event = read_fields(case["event"])
    assert came.event_id == event["eventId"]
    if isinstance(came, OtherCallback):
        assert came.event_type == event["eventType"]
        return
    assert isinstance(came, OrderCallback | DepositCallback)
    assert came.amount == Decimal(str(event["amount"]))


def test_the_command_verify_judges_an_answer_as_the_client_does() -> None:
    play("answers", check_answer_verified)


def check_answer_verified(case: Case) -> None:
    profile = Profile("test", secret=case["secret"], sign_method=case["method"])
    try:
        is_right = check_answer(profile, case["body"], case["path"], case["nonceStr"])["ok"]
    except Failure:
        is_right = False
    assert is_right is (case["outcome"] == "success")


@pytest.mark.parametrize("by", ["secret", "callback_secret"])
def test_the_command_verify_judges_a_callback_as_the_client_does(by: str) -> None:
    """But for its age, which it only shows."""
    play("callbacks", partial(check_callback_verified, by))


def check_callback_verified(by: str, case: Case) -> None:
    named = {"secret": case["secret"]} if by == "secret" else {"callback_secret": case["callbackSecret"]}
    profile = Profile("test", sign_method=case["method"], **named)
    headers = {name.lower(): value for name, value in dict(case["headers"]).items()}
    is_valid = case["validBySign" if by == "secret" else "validByWebhook"]
    is_old = case["why"] == "the timestamp is not of the last five minutes"
    try:
        is_right = check_callback(profile, case["body"], headers)["ok"]
    except Failure:
        is_right = False
    assert is_right is (is_valid or is_old)


def test_a_code_has_a_class_and_a_row() -> None:
    play("codes", check_code)


def check_code(case: Case) -> None:
    row = CODES[case["code"]]
    told = (case["name"], case["retry"], case["httpStatus"])
    assert (row.name, row.retry.value, row.http_status) == told
    words = "".join(word.capitalize() for word in row.name.split("_"))
    assert row.code == 200 or CLASSES[row.code].__name__ == f"{words}Error"
