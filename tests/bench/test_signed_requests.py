"""Prepared requests: their content, their signatures, and that none is prepared twice."""

import random
from pathlib import Path

import pytest
from bench.invented import invent_addresses, name_sub_user
from bench.merchants import BenchMerchant, KnownOrder, MerchantSet, SubUser, read_merchants, write_merchants
from bench.signed_requests import (
    BLOCK,
    CREDIT,
    DEBIT,
    FIELDS,
    MIX,
    SHARES,
    SliceSpec,
    make_request,
    make_requests,
    write_slice,
)

from merchant_wallet.api.wire import Fields, parse_body, read_signed_texts
from merchant_wallet.base.addresses import parse_wallet_address
from merchant_wallet.base.signing import HMAC, verify
from merchant_wallet.processes.routes import OPERATIONS

AT_MS = 1_763_712_000_000
SUB_USER = SubUser(8589934600, "u0", "0x52908400098527886E0F7030069857D2E4169EE7", "52" * 20, "41" * 20)
PLAYER = BenchMerchant(1001, "mk_one", "secret of one", {}, [SUB_USER], [KnownOrder(8589934601, "q0")])
OTHER = BenchMerchant(1002, "mk_two", "secret of two", {}, [SUB_USER], [KnownOrder(8589934602, "q0")])
CAST = MerchantSet({"both": [PLAYER, OTHER]})


def read_request(request: bytes) -> tuple[str, Fields]:
    """A request's path and fields. Checks its length."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert f"Content-Length: {len(body)}" in lines
    return lines[0].split()[1], parse_body("application/json", body)


def read_records(path: Path) -> list[bytes]:
    """The requests in a slice's file."""
    content, records = path.read_bytes(), []
    while content:
        length = int(content[:5])
        records.append(content[5 : 5 + length])
        content = content[5 + length :]
    return records


def test_there_is_a_request_for_every_operation_of_the_service() -> None:
    assert set(FIELDS) == {operation.name for operation in OPERATIONS}
    assert set(SHARES) == set(FIELDS)
    assert sum(SHARES.values()) == 100


@pytest.mark.parametrize("operation", FIELDS)
def test_a_request_is_signed_with_its_merchants_secret_for_its_path(operation: str) -> None:
    path, fields = read_request(make_request(PLAYER, operation, random.Random(1), "name1", AT_MS))
    given = fields["sign"]
    assert isinstance(given, str)
    assert path == f"/merchant/{operation}"
    assert verify(HMAC, [PLAYER.secret], path, read_signed_texts(fields), given) == PLAYER.secret
    assert verify(HMAC, [OTHER.secret], path, read_signed_texts(fields), given) is None


@pytest.mark.parametrize("operation", [*FIELDS, MIX])
def test_names_of_requests_are_used_once_and_fit_every_field(operation: str) -> None:
    order = SliceSpec("both", operation, 300, "0123456789")
    requests = make_requests(CAST, order, AT_MS, 0, 150) + make_requests(CAST, order, AT_MS, 150, 150)
    names = [read_request(request)[1]["nonceStr"] for request in requests]
    assert len(set(names)) == 300
    assert all(isinstance(name, str) and len(name) <= 20 for name in names)


def test_the_mix_holds_every_operation_and_every_merchant() -> None:
    requests = [
        read_request(request)
        for request in make_requests(CAST, SliceSpec("both", MIX, 900, "0"), AT_MS, 0, 900)
    ]
    assert {path for path, _ in requests} == {f"/merchant/{operation}" for operation in SHARES}
    assert {fields["appKey"] for _, fields in requests} == {"mk_one", "mk_two"}


def test_requests_name_invented_sub_users_as_they_are_registered() -> None:
    merchant = BenchMerchant(1003, "mk_three", "secret of three", {}, [], [], invented=3)
    registered = {invent_addresses(1003, number).evm: name_sub_user(number) for number in range(3)}
    draw, named = random.Random(1), set()
    for number in range(50):
        _, debit = read_request(make_request(merchant, DEBIT, draw, f"d{number}", AT_MS))
        _, credit = read_request(make_request(merchant, CREDIT, draw, f"c{number}", AT_MS))
        assert debit["extUserId"] in registered.values()
        _, address = parse_wallet_address(str(credit["address"]))
        named.add(address)
    assert named == registered.keys()


def test_a_slice_holds_as_many_requests_as_were_ordered(tmp_path: Path) -> None:
    write_merchants(CAST, tmp_path / "merchants.json")
    write_slice(
        str(tmp_path / "merchants.json"), str(tmp_path / "slice"), SliceSpec("both", MIX, BLOCK + 7, "0")
    )
    records = read_records(tmp_path / "slice")
    assert len(records) == BLOCK + 7
    assert len({read_request(record)[1]["nonceStr"] for record in records}) == BLOCK + 7


def test_the_cast_is_for_its_owner_alone_and_comes_back_as_it_was(tmp_path: Path) -> None:
    write_merchants(CAST, tmp_path / "merchants.json")
    assert (tmp_path / "merchants.json").stat().st_mode & 0o777 == 0o600
    assert read_merchants(tmp_path / "merchants.json") == CAST


def test_a_cast_shows_no_secret() -> None:
    assert "secret of one" not in repr(CAST)
