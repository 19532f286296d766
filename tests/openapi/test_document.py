"""The OpenAPI document is valid, has everything that the code has, and nothing else."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.late_modules import openapi_spec_validator
from tests.openapi.described import CONTEXT, OUTCOMES, find_codes, judge, make_merchant, read_fields
from tests.openapi.schemas import answer_schema, document, find_errors, request_schema, webhook_schema
from tests.rows import each_row

from merchant_wallet.api.operation import Operation
from merchant_wallet.api.reference.callbacks import CALLBACKS, DEPOSITED, HEADERS, ORDER
from merchant_wallet.api.reference.fields import DECIMAL, LONG, LONG_OR_STRING, WHOLE, Field
from merchant_wallet.api.reference.openapi import build_document, read_examples
from merchant_wallet.api.reference.operations import (
    COMMON_CODES,
    COMMON_FIELDS,
    REFERENCES,
    OperationReference,
)
from merchant_wallet.api.reference.refusals import REFUSALS, show_refusal
from merchant_wallet.api.reference.sandbox_controls import CONTROLS
from merchant_wallet.base.codes import CODES, FIELD_INVALID, SUCCESS
from merchant_wallet.callbacks.payloads import build_payload
from merchant_wallet.processes.routes import OPERATIONS

MALFORMED = (40000, 40001, 40002)
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much]

by_operation = pytest.mark.parametrize(
    ("operation", "reference"),
    [pytest.param(*pair, id=pair[0].name) for pair in zip(OPERATIONS, REFERENCES, strict=True)],
)


def sent(operation: Operation) -> dict[str, str]:
    """The own fields of the operation's example, as they are read from the wire, and those it leaves out."""
    example = read_examples()["operations"][operation.name]["request"]
    common = {field.name for field in COMMON_FIELDS}
    return {name: str(value) for name, value in example.items() if name not in common}


def test_a_validator_of_openapi_accepts_the_document() -> None:
    assert list(openapi_spec_validator.OpenAPIV31SpecValidator(document()).iter_errors()) == []
    live = build_document("https://pay.example", ("ERC20",), sandbox=False)
    assert list(openapi_spec_validator.OpenAPIV31SpecValidator(live).iter_errors()) == []


def test_every_operation_has_its_path_and_there_is_no_other() -> None:
    controls = [control.path for control in CONTROLS]
    assert list(document()["paths"]) == [operation.path for operation in OPERATIONS] + controls
    assert list(build_document(sandbox=False)["paths"]) == [operation.path for operation in OPERATIONS]
    assert [reference.name for reference in REFERENCES] == [operation.name for operation in OPERATIONS]


@by_operation
def test_a_request_has_the_fields_that_the_code_reads_in_its_order(
    operation: Operation, reference: OperationReference
) -> None:
    fields = {**{field.name: "1" for field in reference.request}, **sent(operation)}
    assert read_fields(operation, fields) == [field.name for field in reference.request]


@by_operation
def test_an_answer_has_the_fields_that_the_code_answers_with_their_types(
    operation: Operation, reference: OperationReference
) -> None:
    items = operation.answer(make_merchant(), OUTCOMES[operation.name], CONTEXT)
    described = {field.name: field for field in reference.answer}
    assert [*(name for name, _, _ in items), "sign"] == list(described)
    for name, text, is_number in items:
        field = described[name]
        assert (text is None) <= field.is_nullable
        assert field.kind == LONG_OR_STRING or text is None or is_number == (field.kind in (LONG, DECIMAL))
    assert described["sign"].at_most == operation.sign_length


@by_operation
def test_the_codes_are_those_that_the_code_can_refuse_with(
    operation: Operation, reference: OperationReference
) -> None:
    assert find_codes(operation) | set(COMMON_CODES) == {*reference.codes, *COMMON_CODES}
    assert not set(reference.codes) & set(COMMON_CODES)


def test_every_code_is_described_and_has_an_example() -> None:
    described = document()["components"]["schemas"]["Code"]
    assert described["enum"] == list(CODES)
    for words in ("x-enum-varnames", "x-enum-descriptions", "x-ask-again", "x-http-status"):
        assert len(described[words]) == len(CODES)
    assert set(REFUSALS) == set(CODES) - {SUCCESS}
    reached = {code for reference in REFERENCES for code in reference.codes} | set(COMMON_CODES)
    assert reached | {SUCCESS, 404, 405} == set(CODES)


@by_operation
def test_the_examples_are_what_the_schemas_say(operation: Operation, reference: OperationReference) -> None:
    example = read_examples()["operations"][operation.name]
    assert find_errors(request_schema(operation.name), example["request"]) == []
    assert find_errors(answer_schema(operation.path, 200), example["answer"]) == []


@by_operation
def test_each_refusal_is_what_the_schemas_say(operation: Operation, reference: OperationReference) -> None:
    for code, row in CODES.items():
        if code == SUCCESS:
            continue
        told = find_errors(answer_schema(operation.path, row.http_status), show_refusal(code))
        is_own = code in reference.codes or code in COMMON_CODES or code in (404, 405)
        assert (told == []) == is_own, code


@by_operation
def test_an_answer_with_another_field_type_or_code_is_not_what_the_schemas_say(
    operation: Operation, reference: OperationReference
) -> None:
    answer = json.loads(json.dumps(read_examples()["operations"][operation.name]["answer"]))
    schema = answer_schema(operation.path, 200)
    assert find_errors(schema, {**answer, "code": 40001})
    assert find_errors(schema, {**answer, "data": {**answer["data"], "more": 1}})
    assert not find_errors(schema, {**answer, "data": {**answer["data"], "more": 1}}, strict=False)
    for name in answer["data"]:
        lacking = {key: value for key, value in answer["data"].items() if key != name}
        assert find_errors(schema, {**answer, "data": lacking}), name
        assert find_errors(schema, {**answer, "data": {**answer["data"], name: [1]}}), name


def test_generators_of_clients_find_no_form_that_they_cannot_read() -> None:
    """What stopped openapi-generator, oapi-codegen or openapi-python-client, or made code that is no code."""
    built = document()
    assert "webhooks" not in built
    created = built["paths"]["/merchant/createMerchantWithdrawOrder"]["post"]["responses"]["200"]
    assert created["links"]["queryOrder"]["requestBody"] == "$response.body#/data"
    for name, schema in built["components"]["schemas"].items():
        assert schema["type"] in ("object", "integer"), name
        for field, value in schema.get("properties", {}).items():
            assert isinstance(value, dict), (name, field)
            kinds = value.get("type", [])
            assert kinds != "null", (name, field)
            assert isinstance(kinds, str) or set(kinds) - {"null"} == set(kinds[:1]), (name, field)
            assert "integer" not in kinds or value["format"] == "int64", (name, field)


def test_each_code_of_a_refusal_is_one_of_its_operation() -> None:
    refusal = {"code": 42200, "msg": "the balance is too small", "data": None}
    assert find_errors(answer_schema("/merchant/exchange", 200), refusal) == []
    assert find_errors(answer_schema("/merchant/getMerchantBalance", 200), refusal)
    assert find_errors(answer_schema("/merchant/exchange", 429), refusal)


@pytest.mark.parametrize("callback", CALLBACKS, ids=lambda callback: callback.name)
def test_a_callback_is_what_the_schema_says(callback: Any) -> None:
    example = read_examples()["callbacks"][callback.name]
    assert find_errors(webhook_schema(callback.name), example["body"]) == []
    assert list(example["body"]) == [field.name for field in callback.fields]
    assert list(example["headers"]) == list(HEADERS)
    for name in example["body"]:
        lacking = {key: value for key, value in example["body"].items() if key != name}
        assert find_errors(webhook_schema(callback.name), lacking), name


def test_every_callback_has_the_headers_that_are_described() -> None:
    payload = build_payload(make_merchant(), "evt_1_2", {}, "n", 1)
    assert {name.decode() for name, _ in payload.headers} >= set(HEADERS)


def right_texts(field: Field) -> st.SearchStrategy[str]:
    """Texts that the field's pattern accepts."""
    if field.values:
        return st.sampled_from(field.values)
    return st.from_regex(field.pattern.replace("$", r"\Z")) if field.pattern else st.text()


def list_near(right: str, added: str) -> set[str]:
    """A text, each of its beginnings, and the text with something added at each place."""
    places = range(min(len(right), 30) + 1)
    return {right, *(right[:place] for place in places)} | {
        right[:place] + added + right[place:] for place in places
    }


def as_described(operation: Operation, fields: Mapping[str, str]) -> dict[str, str | int]:
    """The fields as the schema has them: a Long as a number, if its text is one."""
    reference = next(one for one in REFERENCES if one.name == operation.name)
    longs = {field.name for field in reference.request if field.kind == LONG}
    is_long = re.compile(WHOLE.replace("$", r"\Z")).match
    return {name: int(text) if name in longs and is_long(text) else text for name, text in fields.items()}


def check_text(operation: Operation, field: Field, text: str) -> None:
    """Compare what the schema and the code say about a text in one field."""
    fields = {name: value for name, value in {**sent(operation), field.name: text}.items() if value != ""}
    body = {**read_examples()["operations"][operation.name]["request"], **as_described(operation, fields)}
    if text == "":
        body.pop(field.name, None)
    is_malformed = judge(operation, fields) in MALFORMED
    is_described = find_errors(request_schema(operation.name), body) == []
    if field.values or field.name in ("address", "notifyUrl", "extUserId"):
        # Such a text has a code of its own, and some are judged later, by the book.
        assert not (is_described and is_malformed), text
    elif text.isprintable():
        # The gate refuses control characters before the operation looks.
        assert is_described != is_malformed, text


def check_texts(operation: Operation, reference: OperationReference, draw: st.DataObject) -> None:
    """Draw a few texts for each field, and compare the schema with the code for all that are near them."""
    for field in reference.request:
        near = list_near(draw.draw(right_texts(field)), draw.draw(st.text(min_size=1, max_size=3)))
        other = draw.draw(st.one_of(st.from_regex(r"[0-9]{0,10}\.?[0-9]{0,8}\Z"), st.text(max_size=70)))
        for text in (*sorted(near), other):
            check_text(operation, field, text)


with_request = pytest.mark.parametrize(
    ("operation", "reference"),
    [
        pytest.param(operation, reference, id=operation.name)
        for operation, reference in zip(OPERATIONS, REFERENCES, strict=True)
        if reference.request
    ],
)


@with_request
@settings(max_examples=15, suppress_health_check=SLOW)
@given(draw=st.data())
def test_the_schema_refuses_exactly_what_the_code_calls_malformed(
    operation: Operation, reference: OperationReference, draw: st.DataObject
) -> None:
    check_texts(operation, reference, draw)


@each_row("text", ["999999999999.999999", "1000000000000", "0"])
def test_the_highest_minimum_to_arrive_is_the_same_in_schema_and_code(text: str) -> None:
    operation = next(one for one in OPERATIONS if one.name == "exchange")
    fields = {**sent(operation), "minAmountArrival": text}
    body = {**read_examples()["operations"]["exchange"]["request"], **fields}
    is_described = find_errors(request_schema("exchange"), body) == []
    assert is_described != (judge(operation, fields) in MALFORMED)


@pytest.mark.extended
@with_request
@settings(max_examples=50, suppress_health_check=SLOW)
@given(draw=st.data())
def test_the_schema_refuses_exactly_what_the_code_calls_malformed_in_thousands_of_cases(
    operation: Operation, reference: OperationReference, draw: st.DataObject
) -> None:
    check_texts(operation, reference, draw)


def test_the_schema_requires_what_the_code_requires() -> None:
    for operation, reference in zip(OPERATIONS, REFERENCES, strict=True):
        for field in reference.request:
            lacking = {name: text for name, text in sent(operation).items() if name != field.name}
            assert (judge(operation, lacking) == FIELD_INVALID) == field.is_required, field.name


def test_order_callbacks_and_deposit_callbacks_are_told_apart() -> None:
    bodies = {name: example["body"] for name, example in read_examples()["callbacks"].items()}
    assert find_errors(webhook_schema(ORDER.name), bodies[DEPOSITED.name])
    assert find_errors(webhook_schema(DEPOSITED.name), bodies[ORDER.name])
