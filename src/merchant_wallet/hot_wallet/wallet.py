"""One chain's hot wallet as the workers that pay from it use it: with its chain, and its key behind that.

Rules:
- A reservation that needs a newer balance asks the chain. Attempts that need it at once share one request.
- If a stranger has used nonces of the wallet, it is frozen.
- A key that has no seed beside it pays only if its wallet is the known one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog
from psycopg import AsyncConnection

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.money import format_units
from merchant_wallet.chains.protocol import Blocked, Chain, Obstacle, Transfer
from merchant_wallet.hot_wallet import funds, nonces, stops, store
from merchant_wallet.hot_wallet.funds import BALANCE_MAX_AGE_MS, Outdated, Shortage, Wanted

REFRESHES = 2

Reserved = TypeVar("Reserved")

Connection = AsyncConnection[Any]

log = structlog.get_logger(__name__)


class HotWallet:
    """The hot wallet of one chain. `may_take`: the key here may become the chain's hot wallet."""

    def __init__(self, name: str, chain: Chain, clock: Callable[[], int], *, may_take: bool = True) -> None:
        self.name = name
        self.chain = chain
        self._clock = clock
        self._may_take = may_take
        self._is_open = False
        self._refreshing: asyncio.Task[None] | None = None

    async def open(self, connection: Connection) -> None:
        """Check that the chain's wallet is the one whose key is here.

        Raises `store.WalletMoved`.
        """
        if not self._is_open:
            await store.open_wallet(
                connection, self.name, self.chain.wallet, self._clock(), may_take=self._may_take
            )
            self._is_open = True

    async def reserve(
        self,
        connection: Connection,
        reserve: Callable[[Wanted, int], Awaitable[Reserved | Shortage | Outdated]],
        transfer: Transfer,
    ) -> Reserved:
        """Reserve money, and a nonce if the chain has nonces, for a transfer.

        `reserve` makes and stores the reservation (see `funds.reserve`); it gets the time. Raises what that
        and the chain raise, and Blocked if the wallet holds too little or its balance is unknown.
        """
        amount_units = transfer.amount_units
        wanted = Wanted(self.name, self.chain.wallet, self.chain.has_nonces, amount_units, transfer.recipient)
        found = await reserve(wanted, self._clock())
        for _ in range(REFRESHES):
            if not isinstance(found, Outdated | Shortage) or (isinstance(found, Shortage) and found.settled):
                break
            await self.refresh(connection)
            found = await reserve(wanted, self._clock())
        if isinstance(found, Outdated | Shortage):
            raise Blocked(self._obstacle(found, amount_units))
        return found

    def _obstacle(self, found: Shortage | Outdated, amount_units: int) -> Obstacle:
        """Why nothing was reserved. Missing funds are reported only from a balance that is valid."""
        if isinstance(found, Shortage):
            free, needed = format_units(max(found.free_units, 0)), format_units(amount_units)
            text = f"the hot wallet of {self.name} has {free} {USDT} free, {needed} are needed"
            return Obstacle("funds", text)
        whose = f"the balance of the hot wallet of {self.name}"
        if found.age_ms is None:
            return Obstacle("stale", f"{whose} is not known yet, although the chain was asked")
        if found.age_ms < 0:
            text = f"{whose} was stored by a clock that is {_seconds(-found.age_ms)} s ahead of this one"
            return Obstacle("clock", f"{text}: compare the clocks of all machines")
        trusted = f"at most {_seconds(BALANCE_MAX_AGE_MS)} s are trusted"
        text = f"{whose} is {_seconds(found.age_ms)} s old, and {trusted}"
        return Obstacle("stale", text)

    async def refresh(self, connection: Connection) -> None:
        """Ask the chain for the wallet's balance and next nonce, and store both. Raises what the chain
        raises.
        """
        while (other := self._refreshing) is not None and not other.done():
            await asyncio.wait((other,))
            if not other.cancelled():
                return other.result()
        self._refreshing = asyncio.create_task(self._refresh(connection))
        await self._refreshing

    async def _refresh(self, connection: Connection) -> None:
        ended_payouts = await store.read_ended_payouts(connection, self.name)
        nonce, known = None, None
        if self.chain.has_nonces:
            given = await nonces.read_known(connection, self.name, self.chain.wallet)
            known = given.known
            nonce = await self.chain.next_nonce(known, is_first=not given.has_begun)
        funds_units = await self.chain.funds()
        cause = await funds.record_chain_state(
            connection,
            self.name,
            self.chain.wallet,
            ended_payouts=ended_payouts,
            funds_units=funds_units,
            nonce=nonce,
            now_ms=self._clock(),
            known=known,
        )
        if cause is not None:
            log.critical("hot wallet frozen, an operator must look", chain=self.name, cause=cause)

    async def freeze(self, connection: Connection, cause: str) -> None:
        """Freeze this wallet until an operator has looked."""
        if await stops.freeze_wallet(connection, self.name, cause, self._clock(), wallet=self.chain.wallet):
            log.critical("hot wallet frozen, an operator must look", chain=self.name, cause=cause)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:g}"
