"""The sandbox's chains as reconciliation reads them: payouts and arrivals in blocks that are moments.

Rules: a block's number is the millisecond at which what it holds became final, so that any moment may be
asked for. All is read over the connection that the books are read over, hence in one snapshot with them. The
wallet that pays has no bottom: it is taken to have begun with all that anybody could order.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from psycopg import AsyncConnection

from merchant_wallet.base.db import Queries
from merchant_wallet.chains.protocol import Block, TokenTransfer
from merchant_wallet.chains.sandbox.chain import ENDLESS_UNITS
from merchant_wallet.chains.sandbox.reader import name_transaction

QUERIES: Final = Queries(Path(__file__).with_name("sandbox.sql"))
_TEXTS: Final = {name: query.text.encode() for name, query in QUERIES.items()}

NOBODY: Final = bytes(20)
OVERLAP_MS: Final = 60_000
"""So far back a stretch reads again: a transfer is dated before its commit makes it visible."""


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
        """There is nothing to give back: the connection is its owner's."""

    async def head(self) -> Block:
        """Now."""
        return _block(self._clock())

    async def final(self) -> Block:
        """Now: what is not final yet is in no block."""
        return _block(self._clock())

    async def block(self, number: int) -> Block | None:
        """A moment that has passed."""
        return _block(number) if number <= self._clock() else None

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """What became final in these milliseconds, and a while before them."""
        parameters = self._span(last) | {"first_ms": max(0, first - OVERLAP_MS)}
        cursor = await self._connection.execute(_TEXTS["list_transfers"], parameters)
        found = []
        for name, sender, recipient, amount_units, final_ms in await cursor.fetchall():
            place = (0, final_ms, _block(final_ms).hash)
            if sender is None:
                # What the sandbox pays leaves its world, even to an address that is given out here.
                found.append(TokenTransfer(self._name, name, *place, self._wallet, NOBODY, amount_units))
            else:
                tx_hash = name_transaction(self._name, int(name))
                ends = (bytes(sender), bytes(recipient))
                found.append(TokenTransfer(self._name, tx_hash, *place, *ends, amount_units))
        return found

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """What an address has got, and for the wallet that pays what is left of it all."""
        span = self._span(self._clock() if block is None else block.number)
        units = (await self._sum_received(span)).get(address, 0)
        if address != self._wallet:
            return units
        [(paid_units,)] = await (await self._connection.execute(_TEXTS["sum_paid"], span)).fetchall()
        return ENDLESS_UNITS + units - int(paid_units)

    async def _sum_received(self, span: dict[str, Any]) -> dict[bytes, int]:
        """What every address has got, asked once for each moment: one snapshot has but one answer."""
        if self._received[0] != span["last_ms"]:
            cursor = await self._connection.execute(_TEXTS["sum_received"], span)
            sums = {bytes(recipient): int(units) for recipient, units in await cursor.fetchall()}
            self._received = (span["last_ms"], sums)
        return self._received[1]

    async def coin_balance(self, address: bytes) -> int:
        """Nothing: the sandbox's chains have no coin."""
        return 0

    def _span(self, last_ms: int) -> dict[str, Any]:
        return {"chain": self._name, "last_ms": last_ms, "confirm_ms": self._confirm_ms}


def _block(at_ms: int) -> Block:
    return Block(at_ms, f"moment {at_ms}", f"moment {at_ms - 1}", at_ms)
