"""Proof that an address signed a transaction that a node shows. Hash and signature are computed again. Pure.

Rules:
- A node can claim anything about a transaction's sender, but it can't sign for anybody. Only what `prove`
  returns counts as sent by an address.
- Transactions of types 0, 1 and 2 are understood (EIP-155, EIP-2930, EIP-1559). Any other type is no proof.
"""

from typing import Any

import msgspec
from coincurve import PublicKey

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.chains.evm.transactions import Item, number_of, write_list
from merchant_wallet.chains.jsonrpc import read_bytes, read_quantity


class ProvenTransaction(msgspec.Struct, frozen=True, gc=False):
    """A transaction that this address signed. `chain_id` is None if its type names no chain.

    `to` is empty if the transaction creates a contract.
    """

    tx_hash: str
    sender: bytes
    nonce: int
    chain_id: int | None
    to: bytes
    call_data: bytes

    def is_call(self, to: bytes, call_data: bytes) -> bool:
        """Whether it asks a contract for exactly this. Wallet programs choose their own fees."""
        return (self.to, self.call_data) == (to, call_data)


def prove(shown: Any) -> ProvenTransaction:
    """What is certain about a transaction in the execution API's JSON.

    Raises ValueError if its hash or signature does not fit, or if its type is not understood.
    """
    try:
        kind = read_quantity(shown.get("type", "0x0"))
        proven = _prove_legacy(shown) if kind == 0 else _prove_typed(shown, kind)
        shown_hash = shown["hash"]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("a required field of the transaction is missing") from error
    if shown_hash != proven.tx_hash:
        raise ValueError("the transaction does not match its hash")
    return proven


def _prove_legacy(shown: Any) -> ProvenTransaction:
    v = read_quantity(shown["v"])
    chain_id = (v - 35) // 2 if v >= 35 else None
    parity = (v - 35) % 2 if v >= 35 else v - 27
    fields = _numbers(shown, "nonce", "gasPrice", "gas") + _content(shown)
    whole = write_list([*fields, number_of(v), *_numbers(shown, "r", "s")])
    marked = [*fields, number_of(chain_id), b"", b""] if chain_id is not None else fields
    return _proven(shown, whole, write_list(marked), parity, chain_id)


def _prove_typed(shown: Any, kind: int) -> ProvenTransaction:
    fees = {1: ("gasPrice",), 2: ("maxPriorityFeePerGas", "maxFeePerGas")}.get(kind)
    if fees is None:
        raise ValueError(f"a transaction of kind {kind} is not understood")
    fields = _numbers(shown, "chainId", "nonce", *fees, "gas") + _content(shown)
    fields.append([_access(entry) for entry in shown["accessList"]])
    parity = read_quantity(shown["yParity"] if "yParity" in shown else shown["v"])
    prefix = bytes((kind,))
    whole = prefix + write_list([*fields, number_of(parity), *_numbers(shown, "r", "s")])
    return _proven(shown, whole, prefix + write_list(fields), parity, read_quantity(shown["chainId"]))


def _proven(
    shown: Any, whole: bytes, unsigned: bytes, parity: int, chain_id: int | None
) -> ProvenTransaction:
    if parity not in (0, 1):
        raise ValueError("a signature's parity is 0 or 1")
    r, s = (read_quantity(shown[name]).to_bytes(32, "big") for name in ("r", "s"))
    try:
        key = PublicKey.from_signature_and_message(r + s + bytes((parity,)), keccak256(unsigned), hasher=None)
    except Exception as error:
        # The curve library raises bare Exception for a signature that no key can have made.
        raise ValueError("not a signature of this transaction") from error
    sender = keccak256(key.format(compressed=False)[1:])[12:]
    to = b"" if shown["to"] is None else read_bytes(shown["to"], 20)
    tx_hash, nonce = "0x" + keccak256(whole).hex(), read_quantity(shown["nonce"])
    return ProvenTransaction(tx_hash, sender, nonce, chain_id, to, read_bytes(shown["input"]))


def _numbers(shown: Any, *names: str) -> list[Item]:
    return [number_of(read_quantity(shown[name])) for name in names]


def _content(shown: Any) -> list[Item]:
    """Recipient (empty for a new contract), value and call data."""
    to = b"" if shown["to"] is None else read_bytes(shown["to"], 20)
    return [to, number_of(read_quantity(shown["value"])), read_bytes(shown["input"])]


def _access(entry: Any) -> Item:
    return [read_bytes(entry["address"], 20), [read_bytes(key, 32) for key in entry["storageKeys"]]]
