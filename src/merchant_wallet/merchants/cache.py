"""Merchants by appKey, cached in memory.

A cached merchant may be outdated. So callers send the settings' version to the book with each command, and
call `refresh` before they refuse a request because of a setting. An unknown appKey is looked up every time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import psycopg
import structlog

from merchant_wallet.base import db
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.pool import Pool, is_idle
from merchant_wallet.merchants import store
from merchant_wallet.merchants.issued_addresses import IssuedAddress, issue_address
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import Merchant

Reading = asyncio.Task[Merchant | None]

MAX_MERCHANTS = 100_000
READ_TIMEOUT_S = 10.0

log = structlog.get_logger(__name__)


class MerchantsUnavailable(TransientError):
    """The database can't be used now."""


class MerchantCache:
    """The merchants that the web process has read."""

    def __init__(
        self,
        url: str,
        keyring: Keyring,
        connections: int = 4,
        note_cell: Callable[[int, int], None] = lambda merchant_id, cell_id: None,
        carry: Callable[[int], Awaitable[object]] | None = None,
    ) -> None:
        """`note_cell` is called with each merchant that was read and the cell of its book.

        `carry` is called with a merchant whose cell has not these settings yet, before they are used.
        """
        self._note_cell = note_cell
        self._carry = carry
        self._keyring = keyring
        self._merchants: OrderedDict[str, Merchant] = OrderedDict()
        self._reading: dict[str, Reading] = {}
        self._following: dict[str, Reading] = {}
        self._pool = Pool(partial(db.connect, url), connections, is_usable=is_idle)
        self._pool_for_unknown = Pool(partial(db.connect, url), 1, is_usable=is_idle)

    def get(self, app_key: str) -> Merchant | None:
        """The merchant as it was read last, without asking the database."""
        return self._merchants.get(app_key)

    async def load(self, app_key: str) -> Merchant | None:
        """Read a merchant again; None if there is none. Raises MerchantsUnavailable.

        A read that began before the call might miss a change. So the caller waits for the next read, together
        with all others who ask for the same merchant. A flood of refused requests thus costs one read at a
        time.
        """
        following = self._following.get(app_key)
        if following is None:
            reading = self._reading.get(app_key)
            following = asyncio.create_task(self._read_after(app_key, reading))
            self._following[app_key] = following
        return await asyncio.shield(following)

    async def _read_after(self, app_key: str, reading: Reading | None) -> Merchant | None:
        if reading is not None:
            await asyncio.wait((reading,))
        mine = self._reading[app_key] = self._following.pop(app_key)
        try:
            # Callers who guess appKeys wait for each other. A known merchant never waits for them.
            pool = self._pool if app_key in self._merchants else self._pool_for_unknown
            async with asyncio.timeout(READ_TIMEOUT_S):
                async with _acquire(pool) as connection:
                    read = await store.load_by_app_key(connection, self._keyring, app_key)
                merchant = self._keep(app_key, read)
                if merchant is not None and not merchant.is_carried:
                    await self._carry_settings(merchant.merchant_id)
                return merchant
        except TimeoutError as error:
            raise MerchantsUnavailable("no answer in time") from error
        finally:
            if self._reading.get(app_key) is mine:
                del self._reading[app_key]

    async def _carry_settings(self, merchant_id: int) -> None:
        """Tell the cell of a merchant's book the settings that were read, or else it would refuse them."""
        if self._carry is None:
            return
        try:
            await self._carry(merchant_id)
        except Exception as error:
            if not db.is_transient_error(error):
                raise
            # The book answers what it can. The worker carries the settings when the cell is back.
            log.warning("settings could not be carried", merchant_id=merchant_id, reason=str(error))

    async def refresh(self, merchant: Merchant) -> Merchant | None:
        """The merchant as it is now: the same object if nothing changed. Raises MerchantsUnavailable."""
        fresh = await self.load(merchant.app_key)
        return (
            merchant if fresh is not None and fresh.settings_version == merchant.settings_version else fresh
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()
        await self._pool_for_unknown.close()

    def _keep(self, app_key: str, merchant: Merchant | None) -> Merchant | None:
        if merchant is None:
            self._merchants.pop(app_key, None)
            return None
        self._note_cell(merchant.merchant_id, merchant.cell_id)
        self._merchants[app_key] = merchant
        if len(self._merchants) > MAX_MERCHANTS:
            self._merchants.popitem(last=False)
        return merchant

    async def issue_address(self, merchant: Merchant) -> IssuedAddress:
        """Issue the next address of a merchant. Raises MerchantsUnavailable."""
        async with _acquire(self._pool) as connection:
            return await issue_address(connection, merchant.merchant_id, merchant.account_xpubs)


@asynccontextmanager
async def _acquire(pool: Pool[store.Connection]) -> AsyncIterator[store.Connection]:
    """A connection. It is used again only if nothing went wrong with it. Raises MerchantsUnavailable."""
    try:
        async with pool.acquire() as connection:
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
    except psycopg.Error as error:
        if not (isinstance(error, psycopg.OperationalError) or db.is_database_away(error)):
            raise
        raise MerchantsUnavailable(str(error)) from error
