"""TRON transactions as the fake chain parses them from bytes and writes them in JSON.

Rules: it shares no code with the product's encoder, so an error there can't hide here. It parses more than
the product writes (a memo, a permission), because other clients write it.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from coincurve import PublicKey

from merchant_wallet.base.addresses import keccak256, to_tron

CALL = "TriggerSmartContract"
TRANSFER = "TransferContract"
KINDS = {1: TRANSFER, 31: CALL}

# The room that the chain reserves for a transaction's result, its signature and its envelope.
_OVERHEAD_BYTES = 134


class Refused(Exception):
    """A node's refusal of bytes: one of TRON's codes and a text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True)
class WireTransaction:
    """The parts of a transaction. `owner`, `contract` and `recipient` have 20 bytes."""

    raw: bytes
    kind: str
    owner: bytes
    contract: bytes
    call_data: bytes
    recipient: bytes
    amount_sun: int
    ref_bytes: bytes
    ref_hash: bytes
    expiration_ms: int
    timestamp_ms: int
    fee_limit_sun: int
    memo: bytes
    permission: int
    signature: bytes = b""

    @property
    def txid(self) -> str:
        """SHA-256 of the raw data."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def size(self) -> int:
        """Its bandwidth."""
        return len(self.raw) + _OVERHEAD_BYTES


def read_transaction(raw: bytes, signature: bytes = b"") -> WireTransaction:
    """Parse raw data. Raises Refused for anything that the fake chain can't run."""
    try:
        fields = read_message(raw)
        if 11 not in fields:
            raise Refused("CONTRACT_VALIDATE_ERROR", "Contract validate error : No contract!")
        contract = read_message(_bytes(fields, 11))
        kind = KINDS.get(_number(contract, 1))
        value = read_message(_bytes(read_message(_bytes(contract, 2)), 2))
        if kind is None:
            raise Refused("CONTRACT_VALIDATE_ERROR", "only calls and transfers can be run")
        is_call = kind == CALL
        return WireTransaction(
            raw=raw,
            kind=kind,
            owner=_address(value, 1),
            contract=_address(value, 2) if is_call else b"",
            call_data=_bytes(value, 4) if is_call else b"",
            recipient=b"" if is_call else _address(value, 2),
            amount_sun=0 if is_call else _number(value, 3),
            ref_bytes=_bytes(fields, 1),
            ref_hash=_bytes(fields, 4),
            expiration_ms=_number(fields, 8),
            timestamp_ms=_number(fields, 14),
            fee_limit_sun=_number(fields, 18),
            memo=_bytes(fields, 10),
            permission=_number(contract, 5),
            signature=signature,
        )
    except (IndexError, ValueError) as error:
        raise Refused("CONTRACT_VALIDATE_ERROR", f"not a transaction: {error}") from error


def read_envelope(text: str) -> tuple[bytes, list[bytes]]:
    """The raw data and the signatures of a whole transaction in hex. Raises ValueError in a node's words."""
    try:
        envelope = bytes.fromhex(text)
    except ValueError:
        kind, what = "org.bouncycastle.util.encoders.DecoderException", "exception decoding Hex string"
        raise ValueError(f"class {kind} : {what}: invalid characters encountered in Hex string") from None
    try:
        fields = read_message(envelope)
        signatures = [one for one in fields.get(2, []) if isinstance(one, bytes)]
        return _bytes(fields, 1), signatures
    except (IndexError, ValueError):
        kind, what = "com.google.protobuf.InvalidProtocolBufferException", "While parsing a protocol message"
        raise ValueError(
            f"class {kind} : {what}, the input ended unexpectedly in the middle of a field."
        ) from None


def signer_of(raw: bytes, signature: bytes) -> bytes:
    """The signer's 20 bytes. v may be 0 or 1, or 27 or 28. Raises Refused."""
    if len(signature) < 65:
        raise Refused("SIGERROR", f"Validate signature error: Signature size is {len(signature)}")
    compact = signature[:64] + bytes([signature[64] % 27])
    try:
        key = PublicKey.from_signature_and_message(compact, hashlib.sha256(raw).digest(), hasher=None)
    except Exception as error:
        # The curve library raises bare Exception for a signature that no key can have made.
        raise Refused("SIGERROR", "Validate signature error") from error
    return keccak256(key.format(compressed=False)[1:])[12:]


def read_message(message: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a protocol buffer, each with all its values."""
    fields: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == 0:
            fields.setdefault(key >> 3, []).append(value)
        elif key & 7 == 2:
            if at + value > len(message):
                raise ValueError("a field ends too early")
            fields.setdefault(key >> 3, []).append(message[at : at + value])
            at += value
        else:
            raise ValueError("an unknown kind of field")
    return fields


def to_json(transaction: WireTransaction, *, is_visible: bool, outcome: str | None = None) -> dict[str, Any]:
    """A transaction in a node's JSON. `is_visible` writes addresses in base58."""
    write = to_tron if is_visible else (lambda address: "41" + address.hex())
    value: dict[str, Any] = {"owner_address": write(transaction.owner)}
    if transaction.kind == CALL:
        value |= {"contract_address": write(transaction.contract), "data": transaction.call_data.hex()}
    else:
        value |= {"to_address": write(transaction.recipient), "amount": transaction.amount_sun}
    parameter = {"value": value, "type_url": f"type.googleapis.com/protocol.{transaction.kind}"}
    raw_data: dict[str, Any] = {
        "contract": [{"parameter": parameter, "type": transaction.kind}],
        "ref_block_bytes": transaction.ref_bytes.hex(),
        "ref_block_hash": transaction.ref_hash.hex(),
        "expiration": transaction.expiration_ms,
        "timestamp": transaction.timestamp_ms,
    }
    if transaction.permission:
        raw_data["contract"][0]["Permission_id"] = transaction.permission
    if transaction.fee_limit_sun:
        raw_data["fee_limit"] = transaction.fee_limit_sun
    if transaction.memo:
        raw_data["data"] = transaction.memo.hex()
    written = {
        "visible": is_visible,
        "txID": transaction.txid,
        "raw_data": raw_data,
        "raw_data_hex": transaction.raw.hex(),
    }
    if transaction.signature:
        written["signature"] = [transaction.signature.hex()]
    if outcome is not None:
        written["ret"] = [{"contractRet": outcome}]
    return written


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _bytes(fields: dict[int, list[int | bytes]], field: int) -> bytes:
    value = fields.get(field, [b""])[0]
    if not isinstance(value, bytes):
        raise ValueError(f"field {field} is a number")
    return value


def _number(fields: dict[int, list[int | bytes]], field: int) -> int:
    value = fields.get(field, [0])[0]
    if not isinstance(value, int):
        raise ValueError(f"field {field} is no number")
    return value


def _address(fields: dict[int, list[int | bytes]], field: int) -> bytes:
    value = _bytes(fields, field)
    if len(value) != 21 or value[0] != 0x41:
        raise ValueError(f"field {field} is no address")
    return value[1:]
