"""A program over home and a cell that kills itself at a given step. Tests start it.

A step is a statement of a psycopg connection or a command to the book. Step `n` has two points: `before n`
and `after n`. So every moment between two commits is a point. Opening a connection is no step.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from tests.crash.shop import MASTER_KEY

from merchant_wallet.api.operations.sub_users import GET_CUSTOMER
from merchant_wallet.base import db
from merchant_wallet.book.commands import Command, ReadSubUser, Submission
from merchant_wallet.book.outcomes import SUB_USER_UNKNOWN, Outcome, SubUserFound
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cache import MerchantCache
from merchant_wallet.merchants.cells.carrying import carry
from merchant_wallet.merchants.cells.mirroring import mirror
from merchant_wallet.merchants.id_ranges import allocate_range
from merchant_wallet.merchants.issued_addresses import IssuedAddress
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import Merchant

KEYRING: Final = Keyring(MASTER_KEY)
NOW_MS: Final = 1_763_712_000_000
FAR_ID: Final = 1
"""The apart cell's id."""


class KillPoint:
    """Counts the steps of this process and kills it at the given point."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.steps = 0

    async def around(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Take one step."""
        self.steps += 1
        number = self.steps
        self._pass(f"before {number}")
        done = await step()
        self._pass(f"after {number}")
        return done

    def _pass(self, here: str) -> None:
        if here == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


def _watch_statements(kill_point: KillPoint) -> None:
    execute = db.Cursor.execute

    async def killable(self: db.Cursor, query: Any, *arguments: Any, **options: Any) -> Any:
        if query == db.SESSION:
            return await execute(self, query, *arguments, **options)
        return await kill_point.around(lambda: execute(self, query, *arguments, **options))

    db.Cursor.execute = killable  # type: ignore[method-assign]  # in the killed process alone


class FirstCall:
    """What the first look-up of a sub-user uses."""

    def __init__(self, cache: MerchantCache, writer: Writer, kill_point: KillPoint) -> None:
        self._cache, self._writer, self._kill_point = cache, writer, kill_point

    async def issue_address(self, merchant: Merchant) -> IssuedAddress:
        return await self._cache.issue_address(merchant)

    async def ask(self, merchant: Merchant, command: Command) -> Outcome:
        submit = self._writer.submit
        outcome: Outcome = await self._kill_point.around(
            lambda: submit(merchant.merchant_id, Submission(command))
        )
        return outcome


async def look_up(home_url: str, cell_url: str, kill_point: KillPoint, merchant_id: str, name: str) -> None:
    """A call of getMerchantCustomer: it registers an unknown sub-user."""
    cache, writer = MerchantCache(home_url, KEYRING), Writer(cell_url, connections=1)
    async with await db.connect(home_url) as home:
        merchant = await store.load(home, KEYRING, int(merchant_id))
    assert merchant is not None
    command = ReadSubUser(name)
    outcome = await writer.submit(merchant.merchant_id, Submission(command))
    _watch_statements(kill_point)
    if outcome is SUB_USER_UNKNOWN:
        assert GET_CUSTOMER.follow_up is not None
        first_call = FirstCall(cache, writer, kill_point)
        outcome = await GET_CUSTOMER.follow_up(merchant, command, outcome, first_call)
    assert isinstance(outcome, SubUserFound)
    await cache.close()
    await writer.close()


async def allocate(home_url: str, cell_url: str, kill_point: KillPoint, merchant_id: str) -> None:
    """Give a book its further id range."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        _watch_statements(kill_point)
        await allocate_range(home, cell, int(merchant_id))


async def create(home_url: str, cell_url: str, kill_point: KillPoint, name: str) -> None:
    """Create a merchant in the apart cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        _watch_statements(kill_point)
        made = await store.create(
            home, KEYRING, name, seed=KEYRING.sandbox_seed(), at_ms=NOW_MS, cell_id=FAR_ID
        )
        await carry(home, cell, FAR_ID, made.merchant.merchant_id)


async def change(home_url: str, cell_url: str, kill_point: KillPoint, merchant_id: str, name: str) -> None:
    """Change the settings of a merchant whose book is in the apart cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        _watch_statements(kill_point)
        changed = {"name": name, "require-pin": "on", "frame-origins": "https://shop.example"}
        await store.change_settings(home, KEYRING, int(merchant_id), changed)
        await carry(home, cell, FAR_ID, int(merchant_id))


async def mirror_once(home_url: str, cell_url: str, kill_point: KillPoint) -> None:
    """Copy rates and evidence to the cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        _watch_statements(kill_point)
        await mirror(home, cell)


ACTIONS: Final[Mapping[str, Callable[..., Coroutine[Any, Any, None]]]] = {
    "allocate": allocate,
    "change": change,
    "create": create,
    "look_up": look_up,
    "mirror": mirror_once,
}


def main(action: str, point: str, home_url: str, cell_url: str, *arguments: str) -> None:
    """What the fork server runs."""
    asyncio.run(ACTIONS[action](home_url, cell_url, KillPoint(point), *arguments))
