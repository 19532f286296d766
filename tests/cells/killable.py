"""Programs over home and a cell that tests kill at each step.

A step is a statement of a psycopg connection or a command to the book. Opening a connection is no step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from tests.crash.shop import MASTER_KEY
from tests.crash_points import OwnProcess, at_step, find_program, no_steps

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


class FirstCall:
    """What the first look-up of a sub-user uses."""

    def __init__(self, cache: MerchantCache, writer: Writer) -> None:
        self._cache, self._writer = cache, writer

    async def issue_address(self, merchant: Merchant) -> IssuedAddress:
        return await self._cache.issue_address(merchant)

    async def ask(self, merchant: Merchant, command: Command) -> Outcome:
        def submit() -> Awaitable[Outcome]:
            return self._writer.submit(merchant.merchant_id, Submission(command))

        program = find_program()
        return await (submit() if program is None else program.around("submit", submit))


async def look_up(home_url: str, cell_url: str, merchant_id: str, name: str) -> None:
    """A call of getMerchantCustomer: it registers an unknown sub-user."""
    cache, writer = MerchantCache(home_url, KEYRING), Writer(cell_url, connections=1)
    try:
        await _look_up(home_url, cache, writer, int(merchant_id), name)
    finally:
        await cache.close()
        await writer.close()


async def _look_up(home_url: str, cache: MerchantCache, writer: Writer, merchant_id: int, name: str) -> None:
    command = ReadSubUser(name)
    with no_steps():
        async with await db.connect(home_url) as home:
            merchant = await store.load(home, KEYRING, merchant_id)
        assert merchant is not None
        outcome = await writer.submit(merchant.merchant_id, Submission(command))
    if outcome is SUB_USER_UNKNOWN:
        assert GET_CUSTOMER.follow_up is not None
        first_call = FirstCall(cache, writer)
        outcome = await GET_CUSTOMER.follow_up(merchant, command, outcome, first_call)
    assert isinstance(outcome, SubUserFound)


async def allocate(home_url: str, cell_url: str, merchant_id: str) -> None:
    """Give a book its further id range."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        await allocate_range(home, cell, int(merchant_id))


async def create(home_url: str, cell_url: str, name: str) -> None:
    """Create a merchant in the apart cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        made = await store.create(
            home, KEYRING, name, seed=KEYRING.sandbox_seed(), at_ms=NOW_MS, cell_id=FAR_ID
        )
        await carry(home, cell, FAR_ID, made.merchant.merchant_id)


async def change(home_url: str, cell_url: str, merchant_id: str, name: str) -> None:
    """Change the settings of a merchant whose book is in the apart cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
        changed = {"name": name, "require-pin": "on", "frame-origins": "https://shop.example"}
        await store.change_settings(home, KEYRING, int(merchant_id), changed)
        await carry(home, cell, FAR_ID, int(merchant_id))


async def mirror_once(home_url: str, cell_url: str) -> None:
    """Copy rates and evidence to the cell."""
    async with await db.connect(home_url) as home, await db.connect(cell_url) as cell:
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
    program = OwnProcess(at_step(point))
    asyncio.run(program.run_to_death(ACTIONS[action](home_url, cell_url, *arguments)))
