"""The bytes of EVM transactions and of the platform's one token call: encoded, parsed and hashed. Pure.

Rules:
- The same transaction has the same bytes and hash everywhere.
- Only transactions of the platform's own form can be parsed: fees by EIP-1559, a 20-byte recipient, an empty
  access list.
- A parsed transaction is encoded again and must give the same bytes. So no other encoding of a number or a
  list hides in what somebody signs.
- A signature's s is in the lower half of the curve's order (EIP-2). Otherwise anyone could give the same
  transfer a second hash.
"""

from typing import Final

import msgspec
from coincurve import PublicKey

from merchant_wallet.base.addresses import keccak256

SIGNATURE_BYTES: Final = 65
# keccak("transfer(address,uint256)"), the first four bytes. The same on EVM chains and TRON (ERC-20, TRC-20).
TRANSFER_SELECTOR: Final = bytes.fromhex("a9059cbb")

_TYPE: Final = b"\x02"
_WORD: Final = 32
_UNSIGNED_FIELDS: Final = 9
_SIGNED_FIELDS: Final = 12
_HALF_ORDER: Final = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_SHORT: Final = 55

Item = bytes | list["Item"]


class EvmTransaction(msgspec.Struct, frozen=True, gc=False):
    """An unsigned transaction with fees by EIP-1559.

    Fees are wei per unit of gas, `value` is wei.
    """

    chain_id: int
    nonce: int
    max_priority_fee: int
    max_fee: int
    gas_limit: int
    to: bytes
    value: int = 0
    call_data: bytes = b""


def encode_unsigned(transaction: EvmTransaction) -> bytes:
    """The bytes that are hashed and signed: 0x02 and the fields in RLP (EIP-1559, EIP-2718).

    Raises ValueError for an impossible transaction.
    """
    return _TYPE + write_list(_fields_of(transaction))


def parse_unsigned(unsigned: bytes) -> EvmTransaction:
    """The transaction of these bytes.

    Raises ValueError unless `encode_unsigned` would write exactly these bytes.
    """
    transaction = _transaction_of(_read_fields(unsigned, _UNSIGNED_FIELDS))
    if encode_unsigned(transaction) != unsigned:
        raise ValueError("the transaction is not in its canonical encoding")
    return transaction


def compute_signing_hash(unsigned: bytes) -> bytes:
    """The 32 bytes that are signed."""
    return keccak256(unsigned)


def join(unsigned: bytes, signature: bytes) -> bytes:
    """The whole transaction, ready for broadcast.

    `signature` has 65 bytes: r, s and v, which is 0 or 1. Raises ValueError.
    """
    transaction = parse_unsigned(unsigned)
    r, s, parity = _split(signature)
    return _TYPE + write_list([*_fields_of(transaction), number_of(parity), number_of(r), number_of(s)])


def parse_signed(raw: bytes) -> tuple[EvmTransaction, bytes]:
    """The transaction and the 65-byte signature of the result of `join`.

    Raises ValueError for any other bytes.
    """
    fields = _read_fields(raw, _SIGNED_FIELDS)
    transaction = _transaction_of(fields[:_UNSIGNED_FIELDS])
    parity, r, s = (_integer(field) for field in fields[_UNSIGNED_FIELDS:])
    if parity > 1 or max(r, s) >= 1 << 8 * _WORD:
        raise ValueError("a signature's numbers have at most 32 bytes, and its parity is 0 or 1")
    signature = r.to_bytes(_WORD, "big") + s.to_bytes(_WORD, "big") + bytes((parity,))
    if join(encode_unsigned(transaction), signature) != raw:
        raise ValueError("the transaction is not in its canonical encoding")
    return transaction, signature


def recover_sender(raw: bytes) -> bytes:
    """The 20-byte address whose key signed a whole transaction. Raises ValueError."""
    transaction, signature = parse_signed(raw)
    return recover_signer(encode_unsigned(transaction), signature)


def recover_signer(unsigned: bytes, signature: bytes) -> bytes:
    """The 20-byte address whose key made this signature of these bytes. Raises ValueError."""
    _split(signature)
    try:
        key = PublicKey.from_signature_and_message(signature, compute_signing_hash(unsigned), hasher=None)
    except Exception as error:
        # The curve library raises bare Exception for a signature that no key can have made.
        raise ValueError("not a signature of these bytes") from error
    return keccak256(key.format(compressed=False)[1:])[12:]


def hash_of(raw: bytes) -> str:
    """The hash of a whole transaction on the chain: 0x and 64 hex digits."""
    return "0x" + keccak256(raw).hex()


def encode_transfer_call(recipient: bytes, units: int) -> bytes:
    """The call data of the token's `transfer(address,uint256)`. Raises ValueError."""
    if len(recipient) != 20 or not 0 <= units < 1 << 8 * _WORD:
        raise ValueError("a transfer goes to 20 bytes, its amount has at most 256 bits")
    return TRANSFER_SELECTOR + recipient.rjust(_WORD, b"\0") + units.to_bytes(_WORD, "big")


def parse_transfer_call(call_data: bytes) -> tuple[bytes, int]:
    """The recipient's 20 bytes and the units of a token transfer's call data.

    Raises ValueError for any other call, and for anything besides its two arguments.
    """
    recipient, units = call_data[16:36], int.from_bytes(call_data[36:], "big")
    if len(call_data) != 4 + 2 * _WORD or encode_transfer_call(recipient, units) != call_data:
        raise ValueError("not a call of the token's transfer(address,uint256)")
    return recipient, units


def _fields_of(transaction: EvmTransaction) -> list[Item]:
    if len(transaction.to) != 20:
        raise ValueError("a transaction goes to an address of 20 bytes")
    if transaction.max_priority_fee > transaction.max_fee:
        raise ValueError("the priority fee is above the whole fee")
    return [
        number_of(transaction.chain_id),
        number_of(transaction.nonce),
        number_of(transaction.max_priority_fee),
        number_of(transaction.max_fee),
        number_of(transaction.gas_limit),
        transaction.to,
        number_of(transaction.value),
        transaction.call_data,
        [],
    ]


def _transaction_of(fields: list[bytes]) -> EvmTransaction:
    chain_id, nonce, max_priority_fee, max_fee, gas_limit = (_integer(field) for field in fields[:5])
    to, value, call_data, access_list = fields[5], _integer(fields[6]), fields[7], fields[8]
    if access_list:
        raise ValueError("the platform's transactions have no access list")
    return EvmTransaction(chain_id, nonce, max_priority_fee, max_fee, gas_limit, to, value, call_data)


def _split(signature: bytes) -> tuple[int, int, int]:
    if len(signature) != SIGNATURE_BYTES or signature[64] > 1:
        raise ValueError("a signature is 65 bytes, the last of them 0 or 1")
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if not r or not 0 < s <= _HALF_ORDER:
        raise ValueError("a signature's r is not zero and its s is in the lower half")
    return r, s, signature[64]


# RLP (Ethereum yellow paper, appendix B), as far as a flat list needs it. Reading accepts more than writing
# makes. The caller encodes again and compares, which makes it strict.


def number_of(value: int) -> bytes:
    """A whole number in RLP: big-endian, no leading zeros, empty for 0. Raises ValueError."""
    if not 0 <= value < 1 << 8 * _WORD:
        raise ValueError("a number of a transaction is not negative and has at most 256 bits")
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _integer(field: bytes) -> int:
    return int.from_bytes(field, "big")


def write_list(items: list[Item]) -> bytes:
    """A list in RLP. Its items are bytes or lists."""
    content = b"".join(map(_write, items))
    return _head(len(content), 0xC0) + content


def _write(item: Item) -> bytes:
    if isinstance(item, list):
        return write_list(item)
    if len(item) == 1 and item[0] < 0x80:
        return item
    return _head(len(item), 0x80) + item


def _head(length: int, offset: int) -> bytes:
    if length <= _SHORT:
        return bytes((offset + length,))
    size = number_of(length)
    return bytes((offset + _SHORT + len(size),)) + size


def _read_fields(raw: bytes, count: int) -> list[bytes]:
    """The fields of a transaction. An empty list is read as no bytes. Raises ValueError."""
    if raw[:1] != _TYPE:
        raise ValueError("not a transaction with fees by EIP-1559")
    content, end = _read(raw, 1)
    fields, at = [], 0
    while at < len(content):
        field, at = _read(content, at)
        fields.append(field)
    if end != len(raw) or len(fields) != count:
        raise ValueError(f"a transaction of this kind has {count} fields and nothing after them")
    return fields


def _read(raw: bytes, at: int) -> tuple[bytes, int]:
    """The content of the item at `at`, and the position of the next item."""
    first = raw[at] if at < len(raw) else 0x80
    start, length = at + 1, first & 0x3F
    if first < 0x80:
        start, length = at, 1
    elif length > _SHORT:
        start += length - _SHORT
        length = int.from_bytes(raw[at + 1 : start], "big")
    if start + length > len(raw):
        raise ValueError("a transaction ends too early")
    return raw[start : start + length], start + length
