"""The EVM node that runs the contracts of the fake TRON chain."""

from typing import Any

from devnet.evm_node import post

_GAS = hex(3_000_000)


class EvmRefused(Exception):
    """An error of the EVM node, usually a reverted call."""


class Evm:
    """JSON-RPC to the EVM node that runs the contracts. It impersonates every account."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, *params: object) -> Any:
        """One request. Raises EvmRefused."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = post(self._url, question)
        if "error" in answer:
            raise EvmRefused(str(answer["error"]))
        return answer["result"]

    def send(self, sender: bytes, to: bytes | None, call_data: bytes) -> str:
        """Put a transaction into the next block. Returns its hash."""
        call = {"from": _hex(sender), "data": _hex(call_data), "gas": _GAS, "gasPrice": "0x0"}
        return str(self.ask("eth_sendTransaction", call if to is None else call | {"to": _hex(to)}))

    def call(self, sender: bytes, to: bytes, call_data: bytes, block: str) -> bytes:
        """Simulate a call on the state of a block. Raises EvmRefused."""
        call = {"from": _hex(sender), "to": _hex(to), "data": _hex(call_data)}
        return bytes.fromhex(str(self.ask("eth_call", call, block))[2:])

    def simulate(self, sender: bytes, to: bytes, calls: list[bytes], block: str) -> list[dict[str, Any]]:
        """The outcomes of calls one after the other, each with `returnData`, `logs` and `status`."""
        asked = [{"from": _hex(sender), "to": _hex(to), "data": _hex(one)} for one in calls]
        [simulated] = self.ask("eth_simulateV1", {"blockStateCalls": [{"calls": asked}]}, block)
        return list(simulated["calls"])


def _hex(content: bytes) -> str:
    return "0x" + content.hex()
