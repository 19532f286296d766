"""The test vectors for clients agree with the service's own code, and the script writes these files."""

import json
from collections import Counter
from typing import Any

import pytest
from scripts.vectors import rules
from scripts.vectors.__main__ import FOLDER, write_vectors
from scripts.vectors.rules import NUMBER

from merchant_wallet.api import gate, wire
from merchant_wallet.base.codes import CODES, Refused, refuse
from merchant_wallet.base.signing import (
    CALLBACK_PATH,
    MD5,
    build_md5_string_to_sign,
    build_string_to_sign,
    find_control_character,
    sign,
    sign_response,
    verify,
)
from merchant_wallet.base.webhooks import sign_webhook

Case = dict[str, Any]
LEAST = {"requests.json": 300, "answers.json": 600, "callbacks.json": 280, "codes.json": 32}


def read(name: str) -> list[Case]:
    cases: list[Case] = json.loads((FOLDER / name).read_text(encoding="ascii"))
    return cases


def texts_of(fields: list[tuple[str, str | None, str]]) -> dict[str, str]:
    return {name: text for name, text, _ in fields if text}


def check_request(case: Case) -> dict[str, str]:
    """What the gate does with a request before it looks at the signature. Raises Refused."""
    fields = wire.parse_body(case["contentType"], case["body"].encode())
    gate.refuse_callback(fields)
    texts = wire.read_signed_texts(fields)
    if case["method"] == MD5:
        gate.refuse_hidden_field(texts)
    return texts


def test_the_files_are_what_the_script_writes() -> None:
    written = write_vectors()
    assert {path.name for path in FOLDER.glob("*.json")} == set(written)
    for name, text in written.items():
        assert (FOLDER / name).read_text(encoding="ascii") == text, f"make vectors writes {name} anew"


def test_there_are_hundreds_of_cases_and_each_outcome_has_some() -> None:
    assert all(len(read(name)) >= least for name, least in LEAST.items())
    assert min(Counter(case["outcome"] for case in read("answers.json")).values()) > 10
    assert min(Counter(case["valid"] for case in read("requests.json")).values()) > 40
    verdicts = Counter((case["validBySign"], case["validByWebhook"]) for case in read("callbacks.json"))
    assert len(verdicts) == 4
    assert min(verdicts.values()) > 2


def test_the_service_reads_and_signs_each_request_as_the_vector_says() -> None:
    for case in read("requests.json"):
        if not case["valid"]:
            continue
        texts = check_request(case)
        assert texts == texts_of(case["fields"]), case["name"]
        path, method = case["path"], case["method"]
        signed = build_md5_string_to_sign(texts) if method == MD5 else build_string_to_sign(path, texts)
        assert signed == case["stringToSign"], case["name"]
        assert sign(method, case["secret"], path, texts) == case["sign"], case["name"]
        assert verify(method, ["other", case["secret"]], path, texts, case["sign"]) == case["secret"]


def test_the_service_refuses_each_wrong_request_with_the_code_of_the_vector() -> None:
    for case in read("requests.json"):
        if case["valid"]:
            continue
        with pytest.raises(Refused) as refused:
            check_request(case)
        assert refused.value.refusal.code == case["code"], case["name"]


def test_the_service_signs_and_writes_each_true_answer_as_the_vector_says() -> None:
    shapes = 0
    for case in read("answers.json"):
        if not case["valid"]:
            continue
        items = [(name, text, kind == NUMBER) for name, text, kind in case["data"]]
        length = rules.SHORT_SIGN if case["operation"] in rules.SHORT_OPERATIONS else rules.LONG_SIGN
        present = wire.list_present_texts(items)
        path, nonce = case["path"], case["nonceStr"]
        signed = sign_response(case["method"], case["secret"], path, present, 200, nonce, length)
        data = json.loads(case["body"], parse_int=str, parse_float=str)["data"]
        assert data == {**{name: text for name, text, _ in items}, "sign": signed}, case["name"]
        shapes += wire.encode_success(items, signed).decode() == case["body"]
    assert shapes > 150, "most true answers are the bytes that the service writes"


def test_no_altered_answer_has_the_services_signature_unless_its_form_is_refused() -> None:
    for case in read("answers.json"):
        if case["outcome"] != "unsafe":
            continue
        assert rules.check_answer(
            case["method"], case["secret"], case["operation"], case["nonceStr"], case["body"]
        )
        try:
            data = rules.read_object(case["body"])["data"]
        except rules.BadBody:
            continue
        if not isinstance(data, dict) or not all(
            value is None or isinstance(value, str) for value in data.values()
        ):
            continue
        present = {name: str(value) for name, value in data.items() if value and name != "sign"}
        if find_control_character(present) or not all(name.isidentifier() for name in present):
            continue
        if case["method"] == rules.MD5 and set(rules.NEVER_IN_ANSWERS) & set(data):
            # A callback's or a request's signature: the service made it, but for no answer.
            continue
        length = rules.SHORT_SIGN if case["operation"] in rules.SHORT_OPERATIONS else rules.LONG_SIGN
        try:
            signed = sign_response(
                case["method"], case["secret"], case["path"], present, 200, case["nonceStr"], length
            )
        except ValueError:
            continue
        assert signed != data.get("sign"), case["name"]


def test_the_refusals_are_bytes_that_the_service_writes() -> None:
    seen = set()
    for case in read("answers.json"):
        if case["outcome"] != "refused":
            continue
        payload = (
            {n: int(t) if kind == NUMBER else t for n, t, kind in case["data"]} if case["data"] else None
        )
        with pytest.raises(Refused) as refused:
            refuse(case["code"], case["msg"], payload)
        assert wire.encode_refusal(refused.value.refusal).decode() == case["body"], case["name"]
        seen.add(case["code"])
    assert seen >= CODES.keys() - {200}


def test_the_service_signs_each_callback_as_the_vector_says() -> None:
    for case in read("callbacks.json"):
        if case["validBySign"]:
            body = json.loads(case["body"], parse_int=str, parse_float=str)
            texts = {name: text for name, text in body.items() if text and name != "sign"}
            assert texts == texts_of(case["event"]), case["name"]
            assert sign(case["method"], case["secret"], CALLBACK_PATH, texts) == body["sign"], case["name"]
        if case["validByWebhook"]:
            headers = {name.lower(): value for name, value in case["headers"].items()}
            event_id, at_s = headers["webhook-id"], int(headers["webhook-timestamp"])
            signature = sign_webhook(
                case["callbackSecret"].removeprefix("whsec_"), event_id, at_s, case["body"].encode()
            )
            assert signature.decode() in headers["webhook-signature"].split(" "), case["name"]


def test_the_codes_are_those_of_the_service() -> None:
    table = [
        {"code": row.code, "name": row.name, "retry": row.retry, "httpStatus": row.http_status}
        for row in CODES.values()
    ]
    assert read("codes.json") == table
