"""What a chain's node says about a transaction, read over the node's own interface without the service.

Rules: only the Transfer event in the receipt (ERC-20) counts, not that a transaction was accepted.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import httpx

from demo.deployment import Failure

TIMEOUT_S: Final = 20.0
ERC20: Final = "ERC20"
TRANSFER_TOPIC: Final = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""The Keccak-256 hash of `Transfer(address,address,uint256)`."""
ADDRESS_DIGITS: Final = 40
TOKEN_UNIT: Final = Decimal(1_000_000)
BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@dataclass(frozen=True)
class Transfer:
    """One Transfer event. Addresses are 40 lower-case hexadecimal digits. `said` is the event as the node
    sent it.
    """

    said: str
    block: int
    token: str
    sender: str
    recipient: str
    amount: Decimal


def read_transfer(chain: str, url: str, tx_hash: str) -> Transfer:
    """The single Transfer of a transaction, from the node at `url`. Raises Failure."""
    try:
        block, events = (_ask_evm if chain == ERC20 else _ask_tron)(url, tx_hash)
        [event] = [each for each in events if each["topics"][0].removeprefix("0x") == TRANSFER_TOPIC]
        _, sender, recipient = (topic[-ADDRESS_DIGITS:] for topic in event["topics"])
        return Transfer(
            said=json.dumps(event, separators=(",", ":")),
            block=block,
            token=event["address"][-ADDRESS_DIGITS:],
            sender=sender,
            recipient=recipient,
            amount=int(event["data"], 16) / TOKEN_UNIT,
        )
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"the node of {chain} does not tell of one transfer in {tx_hash}: {error}") from error


def read_digits(address: str) -> str:
    """An address of either chain as 40 lower-case hexadecimal digits. Its checksum is not checked."""
    if address.startswith("0x"):
        return address[2:].lower()
    number = 0
    for sign in address:
        number = number * len(BASE58) + BASE58.index(sign)
    # One byte for the network, 20 of the address, 4 of the checksum.
    return number.to_bytes(25, "big")[1:21].hex()


def _ask_evm(url: str, tx_hash: str) -> tuple[int, list[dict[str, Any]]]:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionReceipt", "params": [tx_hash]}
    receipt = _post(url, asked)["result"]
    return int(receipt["blockNumber"], 16), receipt["logs"]


def _ask_tron(url: str, tx_hash: str) -> tuple[int, list[dict[str, Any]]]:
    receipt = _post(f"{url}/walletsolidity/gettransactioninfobyid", {"value": tx_hash})
    return receipt["blockNumber"], receipt["log"]


def _post(url: str, asked: dict[str, Any]) -> dict[str, Any]:
    answer = httpx.post(url, json=asked, timeout=TIMEOUT_S, trust_env=False)
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    return told
