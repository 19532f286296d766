"""Transactions that are signed elsewhere: the document for the offline signer, and its answer. Pure.

Rules:
- The document has the exact bytes to sign, and says in words what they do. Wallets on other machines read it.
- Only the signature of exactly these bytes is taken, and only by the key of the sender.
- An answer is the signature alone (65 bytes), the whole signed transaction, or a document of a known wallet
  that contains one of them. Everything in it but the signature is ignored or must be the same.
"""

import json
from typing import Any, Final

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.chains import is_evm
from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.evm import transactions as evm
from merchant_wallet.chains.protocol import SignedTransfer
from merchant_wallet.chains.tron import transactions as tron
from merchant_wallet.custody.cold.store import ColdTransfer

MAX_ANSWER_CHARS: Final = 20_000
SIGNATURE_BYTES: Final = 65
_SIGNED_NAMES: Final = ("rawTransaction", "raw_transaction", "signedTransaction", "raw", "signature")


class SignatureRefused(ValueError):
    """The answer is no signature of the transfer. The text is a sentence that says why."""


def describe_unsigned(one: ColdTransfer) -> dict[str, Any]:
    """The document for the offline signer. Raises ValueError if nothing waits for a signature."""
    if one.unsigned is None:
        raise ValueError("nothing waits for a signature")
    described = {
        "coldTransfer": one.transfer_id,
        "chainType": one.chain,
        "from": format_address(one.chain, one.sender),
        "to": format_address(one.chain, one.transfer.recipient),
        "amount": format_units(one.amount_units),
        "currency": USDT,
        "validUntilMs": one.unsigned_until_ms,
    }
    made = _describe_evm(one.unsigned) if is_evm(one.chain) else _describe_tron(one.unsigned)
    return described | made


def read_answer(one: ColdTransfer, text: str) -> SignedTransfer:
    """The signed transfer of an answer. Raises SignatureRefused."""
    if one.unsigned is None:
        raise SignatureRefused("Nothing waits for a signature.")
    given = _read_bytes(text)
    signature = _find_signature(one, given)
    try:
        if is_evm(one.chain):
            raw, signer = evm.join(one.unsigned, signature), evm.recover_signer(one.unsigned, signature)
            signed = SignedTransfer(raw, evm.hash_of(raw), one.unsigned_at_block or 0)
        else:
            raw, signer = tron.join(one.unsigned, signature), tron.recover_owner(one.unsigned, signature)
            signed = SignedTransfer(raw, tron.txid_of(one.unsigned), one.unsigned_at_block or 0)
    except ValueError as error:
        raise SignatureRefused(f"It is no signature of this transaction: {error}.") from None
    if signer != one.sender:
        made, needed = format_address(one.chain, signer), format_address(one.chain, one.sender)
        raise SignatureRefused(f"It was signed by the key of {made}, and this needs {needed}.")
    return signed


def _describe_evm(unsigned: bytes) -> dict[str, Any]:
    made = evm.parse_unsigned(unsigned)
    return {
        "transaction": {
            "type": "0x2",
            "chainId": hex(made.chain_id),
            "nonce": hex(made.nonce),
            "maxPriorityFeePerGas": hex(made.max_priority_fee),
            "maxFeePerGas": hex(made.max_fee),
            "gas": hex(made.gas_limit),
            "to": format_address("ERC20", made.to),
            "value": hex(made.value),
            "data": "0x" + made.call_data.hex(),
            "accessList": [],
        },
        "unsigned": "0x" + unsigned.hex(),
        "signingHash": "0x" + evm.compute_signing_hash(unsigned).hex(),
    }


def _describe_tron(unsigned: bytes) -> dict[str, Any]:
    made = tron.parse_raw(unsigned)
    contract = "" if made.contract is None else made.contract.hex()
    call = {
        "data": made.call_data.hex(),
        "owner_address": "41" + made.owner.hex(),
        "contract_address": "41" + contract,
    }
    kind = "type.googleapis.com/protocol.TriggerSmartContract"
    raw_data = {
        "contract": [{"parameter": {"value": call, "type_url": kind}, "type": "TriggerSmartContract"}],
        "ref_block_bytes": made.ref_block_bytes.hex(),
        "ref_block_hash": made.ref_block_hash.hex(),
        "expiration": made.expiration_ms,
        "fee_limit": made.fee_limit_sun,
        "timestamp": made.timestamp_ms,
    }
    transaction = {
        "visible": False,
        "txID": tron.txid_of(unsigned),
        "raw_data": raw_data,
        "raw_data_hex": unsigned.hex(),
    }
    return {"transaction": transaction, "unsigned": unsigned.hex(), "signingHash": tron.txid_of(unsigned)}


def _read_bytes(text: str) -> bytes:
    """The bytes of an answer: hexadecimal digits, or a document with them. Raises SignatureRefused."""
    text = text.strip()
    if len(text) > MAX_ANSWER_CHARS:
        raise SignatureRefused("That is too long for a signed transaction.")
    digits = _find_digits(text) if text.startswith("{") else text
    try:
        return bytes.fromhex(digits.strip().removeprefix("0x"))
    except ValueError:
        raise SignatureRefused(
            "Give the signed transaction or its signature in hexadecimal digits, or the signer's document."
        ) from None


def _find_digits(text: str) -> str:
    """The digits in a document. TRON's wallets add a list `signature`. Raises SignatureRefused."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise SignatureRefused("The document is no JSON.") from None
    if not isinstance(document, dict):
        raise SignatureRefused("The document has no signature.")
    inner = document.get("transaction")
    for place in (document, inner if isinstance(inner, dict) else {}):
        for name in _SIGNED_NAMES:
            found = place.get(name)
            if isinstance(found, list) and len(found) == 1:
                found = found[0]
            if isinstance(found, str) and found:
                return found
    raise SignatureRefused("The document has no signature.")


def _find_signature(one: ColdTransfer, given: bytes) -> bytes:
    """The 65 bytes r, s and v, with v as 0 or 1. Raises SignatureRefused."""
    signature = given
    if len(given) != SIGNATURE_BYTES:
        try:
            signed_bytes, signature = _split(one, given)
        except ValueError as error:
            raise SignatureRefused(f"It is no signed transaction of this chain: {error}.") from None
        if signed_bytes != one.unsigned or len(signature) != SIGNATURE_BYTES:
            raise SignatureRefused("It is the signature of another transaction than this one.")
    # Wallets write v in both ways.
    return signature[:64] + bytes([signature[64] - 27]) if signature[64] in (27, 28) else signature


def _split(one: ColdTransfer, raw: bytes) -> tuple[bytes, bytes]:
    if is_evm(one.chain):
        transaction, signature = evm.parse_signed(raw)
        return evm.encode_unsigned(transaction), signature
    return tron.parse_foreign_envelope(raw)
