"""The field tables of the merchants' page match the operations."""

import json
import re
from typing import Any, NamedTuple

import msgspec
import pytest
from scripts.documents.story import Story

from merchant_wallet.api.operation import Operation, OperationContext
from merchant_wallet.base.codes import FIELD_INVALID, Refused
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.processes.routes import OPERATIONS

COMMON = {"appKey", "timestamp", "nonceStr", "sign"}


class RequestRow(NamedTuple):
    """One row of a request's table."""

    name: str
    kind: str
    required: bool
    at_most: int | None


class AnswerRow(NamedTuple):
    """One row of an answer's table."""

    name: str
    kind: str
    at_most: int | None


by_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def section_of(page: str, title: str) -> str:
    return re.split(r"^#{2,3} ", page.split(f"### {title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def rows_of(section: str, head: str) -> list[list[str]]:
    table = re.search(rf"^\| {head} \|.*\n\| ---.*\n((?:\|.*\n)+)", section, re.M)
    return (
        [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[1].splitlines()]
        if table
        else []
    )


def request_rows(page: str, operation: Operation) -> list[RequestRow]:
    rows = rows_of(section_of(page, operation.name), "Name")
    return [
        RequestRow(row[0], row[1], row[2] == "yes", int(row[3]) if row[3].isdigit() else None) for row in rows
    ]


def answer_rows(page: str, operation: Operation) -> list[AnswerRow]:
    lines = section_of(page, operation.name).split("| Answer |", 1)[1].split("\n<!-- end")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip().removeprefix("|").split("|")] for line in lines]
    return [AnswerRow(row[0], row[1], int(row[2]) if row[2].isdigit() else None) for row in cells]


def merchant() -> Merchant:
    return Merchant(
        merchant_id=1001,
        name="Shop",
        app_key="demo",
        status="active",
        currency_mode="KFB",
        sign_method="HMAC",
        secrets=("s" * 32,),
        callback_secret="c" * 32,
        networks=(),
        disabled_operations=frozenset(),
        transfer_fee_rate_e8=0,
        withdraw_fee_rate_e8=0,
        withdraw_fee_min_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed_addresses=frozenset(),
        auto_register=True,
        require_pin=False,
        rate_limit=None,
        account_xpubs={},
        settings_version=1,
        created_ms=0,
    )


CONTEXT = OperationContext(True, 1, None, frozenset(), (), lambda merchant_id, user_id: "")


def sent(story: Story, operation: Operation) -> dict[str, str]:
    body: dict[str, Any] = json.loads(story.operations[operation.name].body)
    return {name: str(value) for name, value in body.items()}


def judge(operation: Operation, fields: dict[str, str]) -> tuple[int, str] | None:
    """The code and the sentence of the refusal; None if the fields are accepted."""
    try:
        operation.prepare(merchant(), dict(fields), CONTEXT)
    except Refused as refused:
        return refused.refusal.code, refused.refusal.msg
    return None


@by_operation
def test_the_request_table_has_the_fields_of_the_example(
    operation: Operation, story: Story, integrating: str
) -> None:
    rows = request_rows(integrating, operation)
    own = sent(story, operation).keys() - COMMON
    assert {row.name for row in rows if row.required} <= own <= {row.name for row in rows}


@by_operation
def test_a_field_that_the_table_calls_required_is_refused_when_absent(
    operation: Operation, story: Story, integrating: str
) -> None:
    fields = sent(story, operation)
    for row in request_rows(integrating, operation):
        without = {name: value for name, value in fields.items() if name != row.name}
        expected = (FIELD_INVALID, f"{row.name} is required") if row.required else None
        assert judge(operation, without) == expected


@by_operation
def test_a_field_may_be_as_long_as_the_table_says_and_no_longer(
    operation: Operation, story: Story, integrating: str
) -> None:
    fields = sent(story, operation)
    for row in request_rows(integrating, operation):
        if row.at_most is None:
            continue
        too_long = f"{row.name} must have at most {row.at_most} characters"
        assert judge(operation, {**fields, row.name: "1" * (row.at_most + 1)}) == (
            FIELD_INVALID,
            too_long,
        )
        assert judge(operation, {**fields, row.name: "1" * row.at_most}) != (FIELD_INVALID, too_long)


@by_operation
def test_the_fields_are_judged_in_the_order_of_the_table(
    operation: Operation, story: Story, integrating: str
) -> None:
    fields = sent(story, operation)
    required = [row.name for row in request_rows(integrating, operation) if row.required]
    for position, name in enumerate(required):
        before = {earlier: fields[earlier] for earlier in required[:position]}
        assert judge(operation, before) == (FIELD_INVALID, f"{name} is required")


@by_operation
def test_the_answer_table_has_the_fields_and_types_of_the_example(
    operation: Operation, story: Story, integrating: str
) -> None:
    data = story.operations[operation.name].data
    rows = answer_rows(integrating, operation)
    assert [row.name for row in rows] == list(data)
    for row in rows:
        value = data[row.name]
        is_text = isinstance(value, str)
        assert value is None or is_text == (row.kind == "String"), row.name
        assert row.at_most is None or len(str(value)) <= row.at_most, row.name
    assert len(data["sign"]) == operation.sign_length


def test_the_page_knows_exactly_the_operations_there_are(integrating: str) -> None:
    listed = integrating.split("## The eight operations", 1)[1].split("## Withdrawal statuses", 1)[0]
    assert set(re.findall(r"^### (\w+)$", listed, re.M)) == {operation.name for operation in OPERATIONS}


def test_the_merchant_that_these_tests_invent_has_every_field() -> None:
    assert set(Merchant.__struct_fields__) == set(msgspec.structs.asdict(merchant()))
