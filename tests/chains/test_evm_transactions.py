"""EVM bytes compared with eth-account and web3, which share no code with us, and what a strict parser
refuses.
"""

import pytest
from coincurve import PrivateKey
from hexbytes import HexBytes
from hypothesis import given
from hypothesis import strategies as st
from tests.late_modules import eth_account, web3
from tests.rows import each_row

from merchant_wallet.chains.evm.transactions import (
    EvmTransaction,
    Item,
    compute_signing_hash,
    encode_transfer_call,
    encode_unsigned,
    hash_of,
    join,
    number_of,
    parse_signed,
    parse_transfer_call,
    parse_unsigned,
    recover_sender,
    recover_signer,
    write_list,
)

KEY = PrivateKey(bytes(range(1, 33)))
HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
ORDER = 2 * HALF_ORDER + 1

wei = st.integers(0, 2**96 - 1)
transactions = st.builds(
    lambda chain_id, nonce, tip, more, gas, to, value, call: EvmTransaction(
        chain_id, nonce, tip, tip + more, gas, to, value, call
    ),
    st.integers(1, 2**53),
    st.integers(0, 2**63),
    wei,
    wei,
    st.integers(21_000, 30_000_000),
    st.binary(min_size=20, max_size=20),
    wei,
    st.binary(max_size=200),
)
SAMPLE = EvmTransaction(1, 7, 2, 100, 60_000, b"\x03" * 20, 0, encode_transfer_call(b"\x02" * 20, 5))


def sign(transaction: EvmTransaction) -> bytes:
    unsigned = encode_unsigned(transaction)
    return join(unsigned, KEY.sign_recoverable(compute_signing_hash(unsigned), hasher=None))


def as_others_write_it(transaction: EvmTransaction) -> dict[str, object]:
    return {
        "type": 2,
        "chainId": transaction.chain_id,
        "nonce": transaction.nonce,
        "maxPriorityFeePerGas": transaction.max_priority_fee,
        "maxFeePerGas": transaction.max_fee,
        "gas": transaction.gas_limit,
        "to": web3.Web3.to_checksum_address(transaction.to),
        "value": transaction.value,
        "data": transaction.call_data,
    }


@pytest.fixture(scope="module", autouse=True)
def _others_are_imported() -> None:
    # It raises the limit of recursion, which Hypothesis does not allow a test.
    assert eth_account.Account
    assert web3.Web3


@given(transactions)
def test_the_bytes_the_hash_and_the_signature_are_those_of_eth_account(transaction: EvmTransaction) -> None:
    raw = sign(transaction)
    theirs = eth_account.Account.from_key(KEY.secret).sign_transaction(as_others_write_it(transaction))
    assert raw == theirs.raw_transaction
    assert hash_of(raw) == web3.Web3.to_hex(theirs.hash)
    assert eth_account.Account.recover_transaction(raw) == web3.Web3.to_checksum_address(recover_sender(raw))


@given(transactions)
def test_what_is_written_is_read_back(transaction: EvmTransaction) -> None:
    raw = sign(transaction)
    read, signature = parse_signed(raw)
    assert read == transaction == parse_unsigned(encode_unsigned(transaction))
    assert recover_signer(encode_unsigned(read), signature) == recover_sender(raw)


def test_others_read_our_bytes_as_what_we_meant() -> None:
    read = eth_account.typed_transactions.TypedTransaction.from_bytes(HexBytes(sign(SAMPLE))).as_dict()
    ours = as_others_write_it(SAMPLE)
    assert {name: read[name] for name in ("chainId", "nonce", "maxFeePerGas", "gas")} == {
        name: ours[name] for name in ("chainId", "nonce", "maxFeePerGas", "gas")
    }
    contract = web3.Web3().eth.contract(
        abi=[
            {
                "type": "function",
                "name": "transfer",
                "stateMutability": "nonpayable",
                "inputs": [{"name": "to", "type": "address"}, {"name": "value", "type": "uint256"}],
                "outputs": [],
            }
        ]
    )
    function, arguments = contract.decode_function_input(HexBytes(read["data"]))
    assert function.fn_name == "transfer"
    assert arguments == {"to": web3.Web3.to_checksum_address(b"\x02" * 20), "value": 5}


@given(transactions, st.data())
def test_no_other_bytes_are_read(transaction: EvmTransaction, data: st.DataObject) -> None:
    raw = sign(transaction)
    at = data.draw(st.integers(0, len(raw) - 1))
    changed = raw[:at] + bytes((raw[at] ^ data.draw(st.integers(1, 255)),)) + raw[at + 1 :]
    try:
        read, signature = parse_signed(changed)
    except ValueError:
        return
    # If the changed bytes still parse, they are another transaction in its only valid encoding.
    assert join(encode_unsigned(read), signature) == changed
    assert (read, signature) != parse_signed(raw)


@given(st.binary(max_size=300))
def test_garbage_is_refused_with_a_value_error(garbage: bytes) -> None:
    for read in (parse_unsigned, parse_signed, recover_sender, parse_transfer_call):
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
            read(garbage)


def _items() -> list[Item]:
    return [b"\x01", b"\x07", b"\x02", b"\x64", number_of(60_000), b"\x03" * 20, b"", SAMPLE.call_data, []]


def test_the_items_of_the_next_test_are_a_transaction() -> None:
    assert parse_unsigned(b"\x02" + write_list(_items())) == SAMPLE


@each_row(
    ("place", "item"),
    [
        (0, b"\x00\x01"),
        (1, b"\x00"),
        (5, b"\x03" * 19),
        (5, b""),
        (5, [b"\x03"] * 20),
        (8, b""),
        (8, [[b"\x05" * 20, []]]),
        (2, b"\x65"),
        (7, b"\x05" * 2**16 + b"x"),
    ],
    ids=[
        "a leading zero",
        "a zero written out",
        "a short address",
        "no address (a new contract)",
        "a list for an address",
        "bytes for the access list",
        "an access list",
        "a tip above the whole fee",
        "call data of some length, which is fine",
    ],
)
def test_another_form_is_refused(place: int, item: Item) -> None:
    items = _items()
    items[place] = item
    unsigned = b"\x02" + write_list(items)
    if place == 7:
        assert parse_unsigned(unsigned).call_data == item
        return
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
        parse_unsigned(unsigned)


@each_row("raw", [b"", b"\x02", b"\x01" + encode_unsigned(SAMPLE)[1:], b"\x02\xc0"])
def test_other_kinds_and_lengths_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
        parse_unsigned(raw)
    with pytest.raises(ValueError, match="fields"):
        parse_signed(encode_unsigned(SAMPLE))
    with pytest.raises(ValueError, match="nothing after"):
        parse_unsigned(encode_unsigned(SAMPLE) + b"\0")


def test_a_long_form_of_a_short_length_is_refused() -> None:
    body = encode_unsigned(SAMPLE)[3:]
    assert encode_unsigned(SAMPLE)[1:3] == b"\xf8" + bytes((len(body),))
    with pytest.raises(ValueError, match="canonical encoding"):
        parse_unsigned(b"\x02\xf9\x00" + bytes((len(body),)) + body)


def test_the_same_signature_with_a_high_s_is_refused() -> None:
    unsigned = encode_unsigned(SAMPLE)
    signature = KEY.sign_recoverable(compute_signing_hash(unsigned), hasher=None)
    high = ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high.to_bytes(32, "big") + bytes((1 - signature[64],))
    with pytest.raises(ValueError, match="lower half"):
        join(unsigned, twin)
    fields = [*_items(), number_of(twin[64]), twin[:32], twin[32:64]]
    with pytest.raises(ValueError, match="lower half"):
        parse_signed(b"\x02" + write_list(fields))


@each_row("signature", [b"", bytes(65), b"\1" * 64 + b"\2", b"\1" * 64 + b"\x1b", b"\1" * 66])
def test_what_is_no_signature_is_refused(signature: bytes) -> None:
    with pytest.raises(ValueError, match="signature"):
        join(encode_unsigned(SAMPLE), signature)


@given(st.binary(min_size=20, max_size=20), st.integers(0, 2**256 - 1))
def test_a_transfer_call_is_read_back(recipient: bytes, units: int) -> None:
    assert parse_transfer_call(encode_transfer_call(recipient, units)) == (recipient, units)


@each_row(
    "call",
    [
        b"",
        SAMPLE.call_data[:-1],
        SAMPLE.call_data + b"\0",
        b"\x09\x5e\xa7\xb3" + SAMPLE.call_data[4:],
        SAMPLE.call_data[:4] + b"\1" + SAMPLE.call_data[5:],
    ],
    ids=["nothing", "too short", "too long", "approve", "something before the recipient"],
)
def test_no_other_call_is_a_transfer(call: bytes) -> None:
    with pytest.raises(ValueError, match="not a call"):
        parse_transfer_call(call)


def test_numbers_and_addresses_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="not negative"):
        number_of(-1)
    with pytest.raises(ValueError, match="256 bits"):
        number_of(2**256)
    with pytest.raises(ValueError, match="20 bytes"):
        encode_transfer_call(b"\1" * 19, 1)
    with pytest.raises(ValueError, match="256 bits"):
        encode_transfer_call(b"\1" * 20, 2**256)
