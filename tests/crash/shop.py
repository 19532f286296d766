"""Books on a real database for tests of failures: opened, funded, used, and checked afterwards.

Everything is done with the program's own parts. Only checks read with plain SQL.
"""

import asyncio
import os
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

import uvloop
from psycopg import AsyncConnection

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    Command,
    MerchantToUser,
    Register,
    Submission,
    UserToMerchant,
)
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Adjusted, Outcome, SubUserFound
from merchant_wallet.book.verification.verify import BookReport, verify_book
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.addresses import write_issued
from merchant_wallet.merchants.issued_addresses import IssuedAddress, issue_address
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.records import Merchant

COIN = 10**6
FUNDS = 10**6 * COIN
ALICE = "alice"
MASTER_KEY = bytes(range(32))

Result = TypeVar("Result")


def run(scenario: Coroutine[Any, Any, Result]) -> Result:
    """Run a scenario on the event loop that the service uses."""
    return uvloop.run(scenario)


async def open_merchant(url: str, name: str = "Shop", *, at_ms: int | None = None) -> store.NewMerchant:
    """A merchant with an empty book, created at `at_ms` (or now), with nonce partitions around that time."""
    opened_ms = now_ms() if at_ms is None else at_ms
    keyring = Keyring(MASTER_KEY)
    async with await connect(url) as connection:
        await ensure_nonce_partitions(connection, opened_ms // DAY_MS)
        seed = keyring.sandbox_seed()
        return await store.create(connection, keyring, name, seed=seed, at_ms=opened_ms)


async def issue_first(url: str, merchant: Merchant) -> IssuedAddress:
    """Issue a new merchant's first address, for its first sub-user."""
    async with await connect(url) as connection:
        return await issue_address(connection, merchant.merchant_id, merchant.account_xpubs)


async def open_shop(url: str, name: str = "Shop", *, at_ms: int | None = None) -> "Shop":
    """A merchant with a million KFB and one sub-user, alice, whose wallet is empty."""
    opened = await open_merchant(url, name, at_ms=at_ms)
    shop = Shop(url, opened.merchant.merchant_id)
    issued = await issue_first(url, opened.merchant)
    shop.alice_address = issued.evm_address
    writer = Writer(url, clock=now_ms if at_ms is None else lambda: at_ms)
    funded = await shop.ask(writer, Adjust(KFB, FUNDS, "opening balance", "test", None))
    registered = await shop.ask(writer, Register(ALICE, KFB, *issued))
    await writer.close()
    assert isinstance(funded, Adjusted)
    assert isinstance(registered, SubUserFound)
    shop.alice_id = registered.user_id
    return shop


class Shop:
    """One merchant's book: its sub-user, how to submit commands, and what is in it."""

    alice_address: bytes
    alice_id: int

    def __init__(self, url: str, merchant_id: int) -> None:
        self.url = url
        self.merchant_id = merchant_id

    def credit(self, mc_order_id: str, amount_units: int = COIN) -> MerchantToUser:
        """A transfer to alice."""
        return MerchantToUser(mc_order_id, self.alice_address, KFB, amount_units)

    def debit(self, mc_order_id: str, amount_units: int = COIN) -> UserToMerchant:
        """A transfer from alice."""
        return UserToMerchant(mc_order_id, ALICE, KFB, amount_units, 0, False)

    def send(self, writer: Writer, command: Command, nonce: str | None = None) -> asyncio.Future[Outcome]:
        """Submit a command as a merchant's request, with its own nonce."""
        return writer.submit(self.merchant_id, Submission(command, nonce or os.urandom(8).hex()))

    async def ask(self, writer: Writer, command: Command, nonce: str | None = None) -> Outcome:
        """Submit a command and wait for its outcome."""
        return await self.send(writer, command, nonce)

    async def gather(self, writer: Writer, commands: Iterable[Command]) -> list[Outcome | BaseException]:
        """Submit commands at once. Returns their outcomes or exceptions, in order."""
        futures = [self.send(writer, command) for command in commands]
        return await asyncio.gather(*futures, return_exceptions=True)

    async def issue(self, *addresses: bytes) -> None:
        """Add invented addresses to the platform's list, for a sub-user that a test registers with them."""
        async with await connect(self.url) as connection:
            await write_issued(connection, self.merchant_id, addresses)

    async def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Read or change something with plain SQL. `%s` are the values."""
        async with await connect(self.url) as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def orders(self) -> dict[str, int]:
        """The entries with an order id: entry id by order id. No order id may occur twice."""
        found = await self.rows(
            "select mc_order_id, entry_id from entry where merchant_id = %s and mc_order_id is not null"
            " order by entry_id",
            self.merchant_id,
        )
        by_order = dict(found)
        assert len(by_order) == len(found)
        return by_order

    async def batches(self) -> int:
        """How many batches of this book were committed. Each leaves its group's id at its nonces."""
        found = await self.rows(
            "select count(distinct group_id) from nonce where merchant_id = %s", self.merchant_id
        )
        return int(found[0][0])

    async def alice_units(self) -> int:
        """Alice's balance."""
        found = await self.rows(
            "select balance from account where merchant_id = %s and account_id = %s",
            self.merchant_id,
            self.alice_id,
        )
        return int(found[0][0])

    async def verify(self) -> BookReport:
        """Verify the book; it must be sound."""
        async with await connect(self.url) as connection:
            return await verify_sound(connection, self.merchant_id)


async def verify_sound(connection: AsyncConnection, merchant_id: int) -> BookReport:
    """Verify a book, and assert that it is sound."""
    report = await verify_book(connection, connection, merchant_id)
    assert report.violation is None, report.violation
    return report
