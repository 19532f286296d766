"""Transactions as a real node shows them, made by eth-account: their hash and signature prove them, or
not.
"""

import functools
from typing import Any

import pytest
from devnet.evm_node import CHAIN_ID, COIN, EvmDevnet
from tests.late_modules import eth_account
from tests.rows import each_row

from merchant_wallet.chains.evm.proof import prove

TO = "0x" + "11" * 20
FEES = {"maxPriorityFeePerGas": 10**9, "maxFeePerGas": 10**11}
PRICE = {"gasPrice": 10**11}
ACCESS = [{"address": TO, "storageKeys": ["0x" + "22" * 32]}]
KINDS: dict[str, dict[str, Any]] = {
    "before EIP-2718": {**PRICE, "to": TO, "chainId": CHAIN_ID},
    "before EIP-155, for any chain": {**PRICE, "to": TO},
    "EIP-2930": {**PRICE, "to": TO, "type": 1, "chainId": CHAIN_ID, "accessList": ACCESS},
    "EIP-1559": {**FEES, "to": TO, "type": 2, "chainId": CHAIN_ID},
    "EIP-1559 with an access list": {**FEES, "to": TO, "chainId": CHAIN_ID, "accessList": ACCESS},
    "a new contract": {**FEES, "to": "", "chainId": CHAIN_ID, "data": "0x00"},
}


@functools.cache
def account() -> Any:
    """The sender."""
    return eth_account.Account.from_key(bytes(range(1, 33)))


def show(node: EvmDevnet, kind: str) -> dict[str, Any]:
    """How the node shows a mined transaction of this kind."""
    node.fund(bytes.fromhex(account().address[2:]), COIN)
    filled = {"nonce": 0, "gas": 100_000, "value": 3, "data": "0x", **KINDS[kind]}
    if filled["data"] == "0x00":
        filled["value"] = 0
    signed = account().sign_transaction(filled)
    node.ask("eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())
    node.mine()
    shown: dict[str, Any] = node.ask("eth_getBlockByNumber", "latest", True)["transactions"][0]
    return shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_transaction_is_proven(kind: str, evm_node: EvmDevnet) -> None:
    shown = show(evm_node, kind)
    proven = prove(shown)
    assert proven.sender == bytes.fromhex(account().address[2:])
    assert proven.tx_hash == shown["hash"]
    assert proven.nonce == 0
    assert proven.chain_id == KINDS[kind].get("chainId")


@pytest.mark.parametrize("kind", KINDS)
def test_any_changed_field_is_no_proof(kind: str, evm_node: EvmDevnet) -> None:
    shown = show(evm_node, kind)
    changes: dict[str, Any] = {
        "nonce": "0x1",
        "gas": "0x1",
        "to": "0x" + "33" * 20,
        "value": "0x9",
        "input": "0x01",
        "r": "0x1",
        "s": "0x1",
        "hash": "0x" + "4" * 64,
        "type": "0x3",
    }
    for name, value in changes.items():
        with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
            prove({**shown, name: value})
        if name in shown:
            with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
                prove({**shown, name: {}})


@each_row("shown", [None, [], "0x", {}, {"type": "0x2"}, {"type": 2}])
def test_garbage_is_no_proof(shown: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words.
        prove(shown)
