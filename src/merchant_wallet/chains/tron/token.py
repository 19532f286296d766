"""What the token's contract on TRON says: balances, successor, pause, blacklist, fee. Nothing is sent.

Rules:
- A token without such a function reverts, and that means "no". The simulation of the transfer shows every
  other obstacle.
- One node is enough to make a payout wait.
- What is the same for all orders is asked once for all of them, and what is about one order once for its
  check and its signature (see `recent`).
- A blacklisted recipient makes an order fail. So it must be in final state, on two nodes if several
  are configured.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from merchant_wallet.base.chains import TRC20
from merchant_wallet.base.currencies import LEDGER_DECIMALS
from merchant_wallet.chains.agreement import cautious_low
from merchant_wallet.chains.evm.transactions import encode_transfer_call
from merchant_wallet.chains.issuer import compute_fee_units, read_successor
from merchant_wallet.chains.protocol import Blocked, Obstacle
from merchant_wallet.chains.recent import Recent
from merchant_wallet.chains.transport import NodeFailed
from merchant_wallet.chains.tron.http import CallResult, TronNode, TronNodes

DECIMALS: Final = LEDGER_DECIMALS
"""A TRON token has the ledger's decimals, so nothing is converted."""

_WORD: Final = 32
_SELECTOR_BYTES: Final = 4

T = TypeVar("T")


class TronToken:
    """The token's contract on the configured nodes. Every request raises ChainAway."""

    def __init__(self, contract: bytes, nodes: TronNodes, recent: Recent) -> None:
        self._contract = contract
        self._nodes = nodes
        self._recent = recent

    async def balance(self, address: bytes, *, is_solid: bool) -> int:
        """Units at an address, at the newest final block or at the head."""
        return await self._nodes.first(lambda node: self._balance(node, address, is_solid=is_solid))

    async def least_balance(self, address: bytes, *, is_solid: bool) -> int:
        """The lowest balance that nodes show (see `agreement`)."""
        return cautious_low(await self._answers(lambda node: self._balance(node, address, is_solid=is_solid)))

    async def recent_balance(self, address: bytes) -> int:
        """A recent `least_balance` at the head, of an address of ours."""
        key = ("balance", address)
        return await self._recent.read(key, lambda: self.least_balance(address, is_solid=False))

    async def _balance(self, node: TronNode, address: bytes, *, is_solid: bool) -> int:
        balance = await self._view(node, "balanceOf(address)", _word(address), is_solid=is_solid)
        if balance is None:
            raise NodeFailed(node.name, "there is no token that answers balanceOf")
        return balance

    async def shown_balance(self, address: bytes) -> int:
        """The lowest balance that nodes show now, of any contract. 0 if it does not answer as a token."""

        async def ask(node: TronNode) -> int:
            return await self._view(node, "balanceOf(address)", _word(address), is_solid=False) or 0

        return cautious_low(await self._nodes.answers(ask))

    async def decimals(self, node: TronNode) -> int | None:
        """The number of decimals that one node reports. Raises NodeFailed."""
        return await self._view(node, "decimals()", b"", is_solid=False)

    async def successor(self) -> str | None:
        """The contract that any node says replaces the token."""

        async def ask(node: TronNode) -> str | None:
            return read_successor(TRC20, await self._view(node, "upgradedAddress()", b"", is_solid=False))

        said = await self._recent.read("successor", lambda: self._answers(ask))
        return next((successor for successor in said if successor), None)

    async def is_paused(self) -> bool:
        """Whether any node says that the token is paused."""

        async def ask(node: TronNode) -> int | None:
            return await self._view(node, "paused()", b"", is_solid=False)

        return any(await self._recent.read("paused", lambda: self._answers(ask)))

    async def is_recently_blacklisted(self, address: bytes) -> bool:
        """A recent `is_blacklisted`. Raises Blocked."""
        return await self._recent.read(("blacklisted", address), lambda: self.is_blacklisted(address))

    async def is_blacklisted(self, address: bytes) -> bool:
        """Whether an address is certainly on the token's blacklist.

        Raises Blocked if only some nodes or only the newest blocks say so.
        """
        now = await self._says_blacklisted(address, is_solid=False)
        if not any(now):
            return False
        final = await self._says_blacklisted(address, is_solid=True)
        if sum(final) >= self._nodes.quorum and all(final):
            return True
        text = "an address is on the token's blacklist, but not in final blocks of all nodes"
        raise Blocked(Obstacle("node", text))

    async def compute_fee_units(self, amount_units: int) -> int:
        """The highest fee of a transfer that any node reports. 0 while the token takes no fee."""

        async def ask(node: TronNode) -> tuple[int | None, int | None]:
            points = await self._view(node, "basisPointsRate()", b"", is_solid=False)
            # Without a rate the maximum does not matter. One call less pays for the one about a successor.
            most = await self._view(node, "maximumFee()", b"", is_solid=False) if points else None
            return points, most

        said = await self._recent.read("fee", lambda: self._answers(ask))
        return max(compute_fee_units(amount_units, points, most) for points, most in said)

    async def simulate_recently(self, sender: bytes, recipient: bytes, amount_units: int) -> CallResult:
        """A recent `simulate`."""
        key = ("transfer", sender, recipient, amount_units)
        return await self._recent.read(key, lambda: self.simulate(sender, recipient, amount_units))

    async def simulate(self, sender: bytes, recipient: bytes, amount_units: int) -> CallResult:
        """What the transfer would do now, and its energy."""
        words = encode_transfer_call(recipient, amount_units)[_SELECTOR_BYTES:]
        function = "transfer(address,uint256)"
        return await self._nodes.first(lambda node: node.call(self._contract, sender, function, words))

    async def _answers(self, ask: Callable[[TronNode], Awaitable[T]]) -> list[T]:
        return await self._nodes.answers(ask, is_urgent=True)

    async def _says_blacklisted(self, address: bytes, *, is_solid: bool) -> list[bool]:
        async def ask(node: TronNode) -> bool:
            said = await self._view(node, "isBlackListed(address)", _word(address), is_solid=is_solid)
            return bool(said)

        return await self._answers(ask)

    async def _view(self, node: TronNode, function: str, words: bytes, *, is_solid: bool) -> int | None:
        """The one number that a function returns. None if the contract has no such function."""
        result = await node.call(self._contract, self._contract, function, words, is_solid=is_solid)
        if result.revert is not None or len(result.returned) != _WORD:
            return None
        return int.from_bytes(result.returned, "big")


def _word(address: bytes) -> bytes:
    return address.rjust(_WORD, b"\0")
