"""The JSON of TRON nodes: blocks, accounts, contracts and the chain's parameters. Zeros are left out."""

from typing import Any, Final

from devnet.fake_tron import GENESIS_WITNESS, FakeBlock
from devnet.tron_costs import (
    ACTIVATION_BANDWIDTH_SUN,
    ACTIVATION_SUN,
    BANDWIDTH_SUN,
    FREE_BYTES,
    INCREASE_PER_MAINTENANCE,
    MAX_FACTOR,
    MAX_FEE_LIMIT_SUN,
    Usage,
)
from devnet.tron_wire import to_json
from merchant_wallet.base.addresses import keccak256

_WINDOW_SLOTS: Final = 28_800
"""A day."""


def write_block(block: FakeBlock, hidden: set[str], *, is_visible: bool, has_body: bool) -> dict[str, Any]:
    """A block, with all its transactions that are not hidden."""
    if block.number == 0:
        # A node leaves out zeros, and nobody signed the first block.
        first = {"txTrieRoot": block.root, "witness_address": GENESIS_WITNESS, "parentHash": block.parent}
        return {"blockID": block.id, "block_header": {"raw_data": first}}
    numbers = {
        "number": block.number,
        "txTrieRoot": block.root,
        "witness_address": "41" + "77" * 20,
        "parentHash": block.parent,
        "version": 31,
        "timestamp": block.time_ms,
    }
    written: dict[str, Any] = {
        "blockID": block.id,
        "block_header": {"raw_data": numbers, "witness_signature": "00" * 65},
    }
    held = zip(block.transactions, block.records, strict=True)
    shown = [(one, record) for one, record in held if one.txid not in hidden]
    if has_body and shown:
        written["transactions"] = [
            to_json(one, is_visible=is_visible, outcome=outcome_of(record)) for one, record in shown
        ]
    return written


def write_account(address: str, sun: int, usage: Usage, created_ms: int) -> dict[str, Any]:
    """An account."""
    keys = [{"address": address, "weight": 1}]
    account: dict[str, Any] = {
        "address": address,
        "balance": sun,
        "create_time": created_ms,
        "latest_opration_time": usage.time_ms,
        "free_net_usage": usage.free_bytes,
        "latest_consume_free_time": usage.time_ms if usage.free_bytes else 0,
        "net_window_size": _WINDOW_SLOTS,
        "account_resource": {"energy_window_size": _WINDOW_SLOTS},
        "owner_permission": {"permission_name": "owner", "threshold": 1, "keys": keys},
        "active_permission": [
            {
                "type": "Active",
                "id": 2,
                "permission_name": "active",
                "threshold": 1,
                "operations": "7fff1fc0033e01" + "00" * 25,
                "keys": keys,
            }
        ],
    }
    return _without_zeros(account)


def write_resources(usage: Usage) -> dict[str, Any]:
    """What an account can use and has used without burning TRX."""
    return _without_zeros(
        {
            "freeNetUsed": usage.free_bytes,
            "freeNetLimit": FREE_BYTES,
            "TotalNetLimit": 43_200_000_000,
            "EnergyUsed": usage.used_energy,
            "EnergyLimit": usage.staked_energy,
            "TotalEnergyLimit": 180_000_000_000,
        }
    )


def write_parameters(energy_sun: int) -> dict[str, Any]:
    """The chain's prices."""
    prices = {
        "getEnergyFee": energy_sun,
        "getTransactionFee": BANDWIDTH_SUN,
        "getCreateAccountFee": ACTIVATION_BANDWIDTH_SUN,
        "getCreateNewAccountFeeInSystemContract": ACTIVATION_SUN,
        "getFreeNetLimit": FREE_BYTES,
        "getMaxFeeLimit": MAX_FEE_LIMIT_SUN,
        "getAllowDynamicEnergy": 1,
        "getDynamicEnergyIncreaseFactor": INCREASE_PER_MAINTENANCE,
        "getDynamicEnergyMaxFactor": MAX_FACTOR,
    }
    return {"chainParameter": [{"key": key, "value": value} for key, value in prices.items()]}


def outcome_of(record: dict[str, Any]) -> str:
    """What a block says about the result of a transaction."""
    return str(record["receipt"].get("result", "SUCCESS"))


def _without_zeros(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if value != 0}


def describe_contract(address: bytes, owner: bytes) -> dict[str, Any]:
    """A node's description of the token's contract, with the part of its interface that clients here use."""
    return {
        "bytecode": "00",
        "name": "TetherToken",
        "contract_address": "41" + address.hex(),
        "origin_address": "41" + owner.hex(),
        "consume_user_resource_percent": 100,
        "origin_energy_limit": 10_000_000,
        "code_hash": keccak256(b"\0").hex(),
        "version": 1,
        "abi": {
            "entrys": [
                _function("decimals", [], "uint8", "View"),
                _function("balanceOf", [("who", "address")], "uint256", "View"),
                _function("transfer", [("to", "address"), ("value", "uint256")], "bool", "Nonpayable"),
            ]
        },
    }


def _function(name: str, inputs: list[tuple[str, str]], output: str, mutability: str) -> dict[str, Any]:
    # A node's words for kinds and mutability begin with a capital.
    return {
        "name": name,
        "type": "Function",
        "inputs": [{"name": label, "type": kind} for label, kind in inputs],
        "outputs": [{"type": output}],
        "stateMutability": mutability,
    }
