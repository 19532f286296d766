"""The bytes of TRON transactions, contract calls and transfers of TRX: encoded, parsed and hashed. Pure.

Rules:
- The same transaction has the same bytes and id everywhere.
- Only transactions of the platform's own form can be parsed: one contract, one signature, no memo, no
  permission other than the owner's, no coins with a call.
- A parsed transaction is encoded again and must give the same bytes. So no unknown field, other order or
  longer number hides in what somebody signs.
- An address has 20 bytes. The prefix 0x41 belongs to the wire.
- Field numbers are those of TRON's published protocol buffers.
"""

import hashlib
from typing import Final

import msgspec
from coincurve import PublicKey

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.base.units import MAX_BIGINT

SIGNATURE_BYTES: Final = 65
ID_HEX_DIGITS: Final = 64

_PREFIX: Final = b"\x41"
_TRANSFER_KIND: Final = 1
_CALL_KIND: Final = 31
_TYPE_URLS: Final = {
    _TRANSFER_KIND: b"type.googleapis.com/protocol.TransferContract",
    _CALL_KIND: b"type.googleapis.com/protocol.TriggerSmartContract",
}
_VARINT_BYTES: Final = 10

_NUMBER: Final = 0
_BYTES: Final = 2

_Fields = dict[int, int | bytes]


class TronTransaction(msgspec.Struct, frozen=True, gc=False):
    """One transaction: a call of `contract`, or a transfer of `amount_sun` to `recipient` (then contract is
    None).

    `ref_block_bytes` (2 bytes) and `ref_block_hash` (8) name a recent block (see `reference_to`). The chain
    takes the transaction only while its own time is before `expiration_ms`. `fee_limit_sun` is the most that
    a call may burn.
    """

    ref_block_bytes: bytes
    ref_block_hash: bytes
    expiration_ms: int
    timestamp_ms: int
    fee_limit_sun: int
    owner: bytes
    contract: bytes | None = None
    call_data: bytes = b""
    recipient: bytes | None = None
    amount_sun: int = 0


def reference_to(block_id: str) -> tuple[bytes, bytes]:
    """The `ref_block_bytes` and `ref_block_hash` of the block with this id (64 hex digits).

    Raises ValueError.
    """
    raw = bytes.fromhex(block_id)
    if len(raw) != 32 or len(block_id) != ID_HEX_DIGITS:
        raise ValueError("a block's id is 64 hex digits")
    return raw[6:8], raw[8:16]


def encode_raw(transaction: TronTransaction) -> bytes:
    """The `raw_data` message, which is signed.

    Raises ValueError for an impossible transaction.
    """
    _check(transaction)
    return b"".join(
        (
            _bytes_field(1, transaction.ref_block_bytes),
            _bytes_field(4, transaction.ref_block_hash),
            _number_field(8, transaction.expiration_ms),
            _bytes_field(11, _encode_contract(transaction)),
            _number_field(14, transaction.timestamp_ms),
            _number_field(18, transaction.fee_limit_sun),
        )
    )


def parse_raw(raw_data: bytes) -> TronTransaction:
    """The transaction of a `raw_data` message.

    Raises ValueError unless `encode_raw` would write exactly these bytes.
    """
    fields = _read(raw_data)
    contract = _read(_bytes_of(fields, 11))
    parameter = _read(_bytes_of(contract, 2))
    kind = _number_of(contract, 1)
    value = _read(_bytes_of(parameter, 2))
    is_call = kind == _CALL_KIND
    transaction = TronTransaction(
        ref_block_bytes=_bytes_of(fields, 1),
        ref_block_hash=_bytes_of(fields, 4),
        expiration_ms=_number_of(fields, 8),
        timestamp_ms=_number_of(fields, 14),
        fee_limit_sun=_number_of(fields, 18),
        owner=_address_of(value, 1),
        contract=_address_of(value, 2) if is_call else None,
        call_data=_bytes_of(value, 4) if is_call else b"",
        recipient=None if is_call else _address_of(value, 2),
        amount_sun=0 if is_call else _number_of(value, 3),
    )
    if encode_raw(transaction) != raw_data:
        raise ValueError("the transaction holds something that the platform never writes")
    return transaction


def txid_of(raw_data: bytes) -> str:
    """The id of a transaction on the chain: SHA-256 of `raw_data`, 64 hex digits without a prefix."""
    return hashlib.sha256(raw_data).hexdigest()


def compute_signing_hash(raw_data: bytes) -> bytes:
    """The 32 bytes that are signed: the id itself."""
    return hashlib.sha256(raw_data).digest()


def join(raw_data: bytes, signature: bytes) -> bytes:
    """The whole transaction, ready for broadcast: `raw_data` and its signature (r, s and v, which is 0 or 1).

    Raises ValueError.
    """
    if len(signature) != SIGNATURE_BYTES or signature[64] > 1:
        raise ValueError("a signature is 65 bytes, the last of them 0 or 1")
    return _bytes_field(1, raw_data) + _bytes_field(2, signature)


def parse_envelope(raw: bytes) -> tuple[bytes, bytes]:
    """The `raw_data` and the signature of the result of `join`. Raises ValueError for any other bytes."""
    fields = _read(raw)
    raw_data, signature = _bytes_of(fields, 1), _bytes_of(fields, 2)
    if join(raw_data, signature) != raw:
        raise ValueError("not a transaction with exactly one signature")
    return raw_data, signature


def parse_foreign_envelope(raw: bytes) -> tuple[bytes, bytes]:
    """The same of a transaction that another wallet signed, whose v may be 27 or 28. Raises ValueError."""
    fields = _read(raw)
    return _bytes_of(fields, 1), _bytes_of(fields, 2)


def recover_owner(raw_data: bytes, signature: bytes) -> bytes:
    """The 20-byte address whose key signed. Raises ValueError if no key can have made the signature."""
    try:
        key = PublicKey.from_signature_and_message(signature, compute_signing_hash(raw_data), hasher=None)
    except Exception as error:
        # The curve library raises bare Exception for a signature that no key can have made.
        raise ValueError("not a signature of these bytes") from error
    return keccak256(key.format(compressed=False)[1:])[12:]


def _check(transaction: TronTransaction) -> None:
    is_call, is_transfer = transaction.contract is not None, transaction.recipient is not None
    if (
        is_call == is_transfer
        or (is_call and transaction.amount_sun)
        or (is_transfer and transaction.call_data)
    ):
        raise ValueError("a transaction either calls a contract or transfers TRX")
    numbers = (
        transaction.expiration_ms,
        transaction.timestamp_ms,
        transaction.fee_limit_sun,
        transaction.amount_sun,
    )
    if not all(0 <= number <= MAX_BIGINT for number in numbers):
        raise ValueError("a number of a transaction is not negative and has at most 63 bits")
    if len(transaction.ref_block_bytes) != 2 or len(transaction.ref_block_hash) != 8:
        raise ValueError("a reference block is named by 2 bytes of its number and 8 of its id")


def _encode_contract(transaction: TronTransaction) -> bytes:
    owner = _bytes_field(1, _prefixed(transaction.owner))
    if transaction.contract is not None:
        kind = _CALL_KIND
        value = (
            owner + _bytes_field(2, _prefixed(transaction.contract)) + _bytes_field(4, transaction.call_data)
        )
    else:
        kind = _TRANSFER_KIND
        value = owner + _bytes_field(2, _prefixed(transaction.recipient or b""))
        value += _number_field(3, transaction.amount_sun)
    parameter = _bytes_field(1, _TYPE_URLS[kind]) + _bytes_field(2, value)
    return _number_field(1, kind) + _bytes_field(2, parameter)


def _prefixed(address: bytes) -> bytes:
    if len(address) != 20:
        raise ValueError("an address has 20 bytes")
    return _PREFIX + address


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _number_field(field: int, number: int) -> bytes:
    # proto3 does not write a zero or empty value.
    return _varint(field << 3 | _NUMBER) + _varint(number) if number else b""


def _bytes_field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(content)) + content if content else b""


def _read(message: bytes) -> _Fields:
    """The fields of a message. Each appears at most once, as a number or bytes."""
    fields: _Fields = {}
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        field, wire = key >> 3, key & 7
        number, at = _read_varint(message, at)
        if field in fields or wire not in (_NUMBER, _BYTES):
            raise ValueError("a message of a transaction has each field once, as a number or as bytes")
        if wire == _NUMBER:
            fields[field] = number
            continue
        content = message[at : at + number]
        if len(content) != number:
            raise ValueError("a message of a transaction ends too early")
        fields[field], at = content, at + number
    return fields


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(_VARINT_BYTES):
        if at + place >= len(message):
            break
        byte = message[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:
            return number, at + place + 1
    raise ValueError("a number of a transaction has no end")


def _number_of(fields: _Fields, field: int) -> int:
    number = fields.get(field, 0)
    if not isinstance(number, int):
        raise ValueError(f"field {field} is no number")
    return number


def _bytes_of(fields: _Fields, field: int) -> bytes:
    content = fields.get(field, b"")
    if not isinstance(content, bytes):
        raise ValueError(f"field {field} is not bytes")
    return content


def _address_of(fields: _Fields, field: int) -> bytes:
    content = _bytes_of(fields, field)
    if len(content) != 21 or content[:1] != _PREFIX:
        raise ValueError(f"field {field} is no address")
    return content[1:]
