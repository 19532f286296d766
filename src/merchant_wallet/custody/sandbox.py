"""The sandbox's chains as reconciliation reads them. Payouts and deposits are in blocks that are moments.

Rules:
- A block's number is the millisecond at which its content became final. So any moment can be read.
- Everything is read on the connection that reads the books, in the same snapshot.
- The hot wallet never runs empty. Its assumed initial balance is all that anybody could order.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.chains.sandbox.chain import ENDLESS_UNITS
from merchant_wallet.chains.sandbox.reader import compute_tx_hash

QUERIES: Final = Queries(Path(__file__).with_name("sandbox.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

NOBODY: Final = bytes(20)
NUMBER_LENGTH: Final = 20
"""Numbers of blocks are shorter than this, and hashes are longer."""
OVERLAP_MS: Final = 60_000
"""Each range overlaps the previous one by this much: a transfer's time is before its commit."""


class SandboxCustody:
    """One sandbox chain (see `chains.protocol.ChainReader`). Raises `psycopg.Error`."""

    def __init__(
        self,
        name: str,
        wallet: bytes,
        connection: AsyncConnection,
        *,
        confirm_ms: int,
        clock: Callable[[], int],
    ) -> None:
        self._name = name
        self._wallet = wallet
        self._connection = connection
        self._confirm_ms = confirm_ms
        self._clock = clock
        self._received: tuple[int, dict[bytes, int]] = (-1, {})

    async def close(self) -> None:
        """Does nothing: the connection belongs to its owner."""

    async def head(self) -> Block:
        """Now."""
        return _block(self._clock())

    async def final(self) -> Block:
        """Now. What is not final yet is in no block."""
        return _block(self._clock())

    async def block(self, number: int) -> Block | None:
        """A past moment."""
        return _block(number) if number <= self._clock() else None

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """What became final in these milliseconds, and shortly before them."""
        parameters = self._span(last) | {"first_ms": max(0, first - OVERLAP_MS)}
        cursor = await self._connection.execute(_TEXTS["list_transfers"], parameters)
        found = []
        for name, sender, recipient, amount_units, final_ms in await cursor.fetchall():
            place = (0, final_ms, _block(final_ms).hash)
            if sender is None:
                # A payout of the sandbox leaves its chains, even if the address is one of ours.
                cold = NOBODY if recipient is None else bytes(recipient)
                found.append(TokenTransfer(self._name, name, *place, self._wallet, cold, amount_units))
            else:
                # A deposit that a test confirmed has a hash of its own. Others have the number of a block.
                is_number = len(name) < NUMBER_LENGTH
                tx_hash = compute_tx_hash(self._name, int(name)) if is_number else name
                ends = (bytes(sender), bytes(recipient))
                found.append(TokenTransfer(self._name, tx_hash, *place, *ends, amount_units))
        return found

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """What an address has received. For the hot wallet, what is left of its initial balance."""
        span = self._span(self._clock() if block is None else block.number)
        units = (await self._sum_received(span)).get(address, 0)
        if address != self._wallet:
            return units
        [(paid_units,)] = await (await self._connection.execute(_TEXTS["sum_paid"], span)).fetchall()
        return ENDLESS_UNITS + units - int(paid_units)

    async def _sum_received(self, span: dict[str, Any]) -> dict[bytes, int]:
        """What every address has received, read once for each moment: a snapshot has only one answer."""
        if self._received[0] != span["last_ms"]:
            cursor = await self._connection.execute(_TEXTS["sum_received"], span)
            sums = {bytes(recipient): int(units) for recipient, units in await cursor.fetchall()}
            self._received = (span["last_ms"], sums)
        return self._received[1]

    async def coin_balance(self, address: bytes) -> int:
        """Zero: the sandbox's chains have no coin."""
        return 0

    def _span(self, last_ms: int) -> dict[str, Any]:
        return {"chain": self._name, "last_ms": last_ms, "confirm_ms": self._confirm_ms}


def _block(at_ms: int) -> Block:
    return Block(at_ms, f"moment {at_ms}", f"moment {at_ms - 1}", at_ms)
