"""The bytes of TRON transactions: known ones, round trips, and bytes that must be refused."""

import hashlib

import pytest
from coincurve import PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.tron.transactions import (
    TronTransaction,
    compute_signing_hash,
    encode_raw,
    join,
    parse_envelope,
    parse_raw,
    recover_owner,
    reference_to,
    txid_of,
)

BLOCK_ID = "0000000003b2a1f0c3d1e5f70011223344556677889900aabbccddeeff001122"
KEY = PrivateKey(hashlib.sha256(b"a key for tests").digest())
OWNER = keccak256(KEY.public_key.format(compressed=False)[1:])[12:]
CONTRACT = bytes.fromhex("a614f803b6fd780986a42c78ec9c7f77e6ded13c")
RECIPIENT = bytes(range(1, 21))
CALL = TronTransaction(
    ref_block_bytes=bytes.fromhex("a1f0"),
    ref_block_hash=bytes.fromhex("c3d1e5f700112233"),
    expiration_ms=1_800_000_060_000,
    timestamp_ms=1_800_000_000_000,
    fee_limit_sun=100_000_000,
    owner=OWNER,
    contract=CONTRACT,
    call_data=bytes.fromhex("a9059cbb") + RECIPIENT.rjust(32, b"\0") + (12_345_678).to_bytes(32, "big"),
)
COINS = TronTransaction(
    ref_block_bytes=CALL.ref_block_bytes,
    ref_block_hash=CALL.ref_block_hash,
    expiration_ms=CALL.expiration_ms,
    timestamp_ms=CALL.timestamp_ms,
    fee_limit_sun=0,
    owner=OWNER,
    recipient=RECIPIENT,
    amount_sun=30_000_000,
)
BOTH = pytest.mark.parametrize("transaction", [CALL, COINS], ids=["call", "coins"])

addresses = st.binary(min_size=20, max_size=20)
numbers = st.integers(0, 2**63 - 1)
heads = {
    "ref_block_bytes": st.binary(min_size=2, max_size=2),
    "ref_block_hash": st.binary(min_size=8, max_size=8),
    "expiration_ms": numbers,
    "timestamp_ms": numbers,
    "fee_limit_sun": numbers,
    "owner": addresses,
}
transactions = st.one_of(
    st.builds(TronTransaction, **heads, contract=addresses, call_data=st.binary(max_size=100)),
    st.builds(TronTransaction, **heads, recipient=addresses, amount_sun=numbers),
)


def sign(raw_data: bytes) -> bytes:
    return KEY.sign_recoverable(compute_signing_hash(raw_data), hasher=None)


def with_fields(transaction: TronTransaction, **changes: object) -> TronTransaction:
    fields = {name: getattr(transaction, name) for name in transaction.__struct_fields__}
    return TronTransaction(**(fields | changes))


@given(transactions)
def test_every_transaction_is_read_as_it_was_written(transaction: TronTransaction) -> None:
    assert parse_raw(encode_raw(transaction)) == transaction


@given(transactions, st.binary(min_size=64, max_size=64), st.integers(0, 1))
def test_every_envelope_is_read_as_it_was_joined(transaction: TronTransaction, r_s: bytes, v: int) -> None:
    raw_data, signature = encode_raw(transaction), r_s + bytes([v])
    assert parse_envelope(join(raw_data, signature)) == (raw_data, signature)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_transaction_are_refused_and_nothing_else_happens(raw: bytes) -> None:
    for parse in (parse_raw, parse_envelope):
        with pytest.raises(ValueError, match=r".+"):
            parse(raw)


@given(transactions, st.data())
def test_no_byte_can_be_changed_without_changing_what_is_read(
    transaction: TronTransaction, data: st.DataObject
) -> None:
    raw_data = bytearray(encode_raw(transaction))
    at = data.draw(st.integers(0, len(raw_data) - 1))
    raw_data[at] ^= data.draw(st.integers(1, 255))
    try:
        read = parse_raw(bytes(raw_data))
    except ValueError:
        return
    assert read != transaction


def test_the_reference_is_a_slice_of_the_blocks_id() -> None:
    assert reference_to(BLOCK_ID) == (CALL.ref_block_bytes, CALL.ref_block_hash)
    for wrong in ("", BLOCK_ID[:-2], BLOCK_ID + "00", "x" * 64, BLOCK_ID[:-2] + "  "):
        with pytest.raises(ValueError, match=r".+"):
            reference_to(wrong)


@BOTH
def test_the_id_is_what_is_signed_and_the_owner_comes_back(transaction: TronTransaction) -> None:
    raw_data = encode_raw(transaction)
    assert txid_of(raw_data) == hashlib.sha256(raw_data).hexdigest() == compute_signing_hash(raw_data).hex()
    assert recover_owner(raw_data, sign(raw_data)) == OWNER


@BOTH
def test_a_signature_of_other_bytes_names_somebody_else(transaction: TronTransaction) -> None:
    raw_data = encode_raw(transaction)
    other = encode_raw(with_fields(transaction, timestamp_ms=transaction.timestamp_ms + 1))
    assert recover_owner(raw_data, sign(other)) != OWNER
    with pytest.raises(ValueError, match="not a signature"):
        recover_owner(raw_data, bytes(65))


@BOTH
@pytest.mark.parametrize(
    "extra",
    [
        pytest.param(b"\x52\x04memo", id="a memo"),
        pytest.param(b"\x98\x01\x01", id="an unknown number"),
        pytest.param(b"\x70\x01", id="a time twice"),
        pytest.param(b"\x90\x01\x00", id="a limit twice, of zero"),
        pytest.param(b"\x00", id="half a field"),
        pytest.param(b"\x0d\x00\x00\x00\x00", id="a kind of field that no message has"),
        pytest.param(b"\x52\xff\xff\xff\xff\xff\xff\xff\xff\x7f", id="a text longer than everything"),
        pytest.param(b"\xa0\x01" + b"\x80" * 10 + b"\x00", id="a number without an end"),
    ],
)
def test_nothing_may_follow(transaction: TronTransaction, extra: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_raw(encode_raw(transaction) + extra)


def field_of(number: int, content: bytes | int) -> bytes:
    """One encoded field, also in an invalid form."""
    if isinstance(content, int):
        return bytes([number << 3]) + bytes([content])
    length = len(content)
    size = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    key = number << 3 | 2
    return (bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])) + size + content


def raw_with(value: bytes, kind: int = 31, name: bytes = b"TriggerSmartContract", tail: bytes = b"") -> bytes:
    parameter = field_of(1, b"type.googleapis.com/protocol." + name) + field_of(2, value)
    contract = field_of(1, kind) + field_of(2, parameter) + tail
    raw_data = encode_raw(CALL)
    head, end = raw_data[:4] + raw_data[4:14], raw_data.index(b"\x5a")
    assert raw_data.startswith(head)
    time_and_limit = raw_data[raw_data.rindex(b"\x70\x80") :]
    return raw_data[:end] + field_of(11, contract) + time_and_limit


def test_what_a_call_could_hide_is_refused() -> None:
    owner, contract = field_of(1, b"\x41" + OWNER), field_of(2, b"\x41" + CONTRACT)
    call_data = field_of(4, CALL.call_data)
    assert parse_raw(raw_with(owner + contract + call_data)) == CALL
    hidden = {
        "coins sent along": owner + contract + field_of(3, 1) + call_data,
        "tokens sent along": owner + contract + call_data + field_of(5, 1),
        "another order": contract + owner + call_data,
        "another prefix": owner + field_of(2, b"\xa0" + CONTRACT) + call_data,
        "a short address": owner + field_of(2, b"\x41" + CONTRACT[1:]) + call_data,
        "no owner": contract + call_data,
    }
    for value in hidden.values():
        with pytest.raises(ValueError, match=r".+"):
            parse_raw(raw_with(value))
    for raw_data in (
        raw_with(owner + contract + call_data, tail=field_of(5, 2)),
        raw_with(owner + contract + call_data, kind=1),
        raw_with(owner + contract + call_data, kind=30),
        raw_with(owner + contract + call_data, name=b"TransferContract"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            parse_raw(raw_data)


@each_row(
    "changes",
    [
        {"recipient": RECIPIENT},
        {"contract": None},
        {"amount_sun": 1},
        {"owner": OWNER[1:]},
        {"contract": CONTRACT + b"\0"},
        {"ref_block_bytes": b"\1"},
        {"ref_block_hash": b"\1" * 9},
        {"expiration_ms": -1},
        {"fee_limit_sun": 2**63},
    ],
)
def test_what_can_be_no_transaction_is_not_written(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        encode_raw(with_fields(CALL, **changes))


def test_an_envelope_has_exactly_one_signature() -> None:
    raw_data = encode_raw(CALL)
    signature = sign(raw_data)
    raw = join(raw_data, signature)
    for wrong in (raw + field_of(2, signature), raw[:-1], raw + field_of(5, b"\x18\x01"), raw_data, b""):
        with pytest.raises(ValueError, match=r".+"):
            parse_envelope(wrong)
    for wrong in (signature[:64], signature + b"\0", signature[:64] + b"\x1b"):
        with pytest.raises(ValueError, match="65 bytes"):
            join(raw_data, wrong)
