"""The code table is complete and agrees with its constants. Refusals have the given values."""

import pytest
from tests.rows import each_row

from merchant_wallet.base import codes
from merchant_wallet.base.codes import CODES, Refusal, Refused, refuse

INTERFACE_CODES = {
    *(200, 40000, 40001, 40002, 40003, 40004, 40005, 40006, 40100, 40101, 40102, 40103, 40104),
    *(40300, 40301, 40302, 40400, 40401, 40402, 40403, 40900, 42200, 42201, 42202, 42203),
    *(42900, 50000, 50300, 404, 405, 413, 415),
}


def test_the_table_holds_every_code_of_the_interface_and_no_other() -> None:
    assert set(CODES) == INTERFACE_CODES


@each_row("code", sorted(CODES))
def test_every_row_is_named_after_its_constant(code: int) -> None:
    row = CODES[code]
    assert row.code == code
    assert getattr(codes, row.name) == code
    assert row.meaning


def test_every_constant_has_a_row() -> None:
    constants = {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)}
    assert constants == set(CODES)


def test_only_transport_answers_and_three_more_leave_http_200() -> None:
    others = {code: row.http_status for code, row in CODES.items() if row.http_status != 200}
    assert others == {404: 404, 405: 405, 413: 413, 415: 415, 42900: 429, 50000: 500, 50300: 503}


def test_what_the_same_order_id_may_repeat_is_marked_so() -> None:
    assert {code for code, row in CODES.items() if row.retry == "same mcOrderId"} == {50000, 50300}


def test_a_refusal_knows_its_http_status() -> None:
    assert Refusal(codes.TOO_MANY_REQUESTS, "slow down", retry_after_s=1).http_status == 429
    assert Refusal(codes.FIELD_INVALID, "amount is required").http_status == 200


def test_refuse_raises_the_refusal_it_was_given() -> None:
    with pytest.raises(Refused) as caught:
        refuse(codes.TIMESTAMP_OUT_OF_TOLERANCE, "timestamp is stale", {"serverTime": 1}, 2)
    assert caught.value.refusal == Refusal(40102, "timestamp is stale", {"serverTime": 1}, 2)
