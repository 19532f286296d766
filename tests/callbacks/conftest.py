"""Several merchants' books on a real database, one writer, callback senders on demand, all with one clock."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from psycopg import AsyncConnection
from tests.callbacks.receiver import Received, Receiver, open_receiver
from tests.roles import as_worker

from merchant_wallet.base.db import connect
from merchant_wallet.base.setting_types import LOOPBACK
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    Approve,
    Cancel,
    Command,
    CreateWithdrawal,
    Fail,
    Refund,
    Settle,
    Submission,
    TakeUp,
)
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.writer import Writer
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.callbacks.sender import CallbackSender
from merchant_wallet.callbacks.target_policy import TargetPolicy
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.merchants.store import NewMerchant

START_MS = 1_763_712_000_000
COIN = 1_000_000
MASTER_KEY = bytes(range(32))
ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance_s(self, seconds: int) -> None:
        self.now_ms += 1000 * seconds


async def to_loopback(host: str, port: int) -> Sequence[str]:
    """A name resolver that resolves every name to this machine."""
    return ["127.0.0.1"]


def make_client(timeout_s: float = 10.0) -> CallbackClient:
    """A client with a sandbox's rules, which resolves every name to this machine."""
    return CallbackClient(TargetPolicy(to_loopback, LOOPBACK, http_allowed=True), timeout_s=timeout_s)


def verify_sign(request: Received, secret: str) -> bool:
    """Check a callback's `sign` as a merchant does, from the body's text alone."""
    fields = request.fields
    lines = [
        f"{name}={fields[name]}" for name in sorted(fields) if name != "sign" and fields[name] is not None
    ]
    digest = hmac.new(secret.encode(), "\n".join(["callback", *lines]).encode(), "sha256").hexdigest()
    return bool(fields["sign"] == digest[:32])


@dataclass
class CallbackScene:
    """Merchants with 1000 USDT each. One receiver serves all their endpoints and tells them apart by host
    name.
    """

    url: str
    connection: AsyncConnection
    book: Writer
    receiver: Receiver
    closing: AsyncExitStack
    clock: Clock = field(default_factory=Clock)
    keyring: Keyring = field(default_factory=lambda: Keyring(MASTER_KEY))
    orders: int = 0

    async def open_merchant(self, name: str = "Shop", **settings: str) -> NewMerchant:
        opened = await store.create(
            self.connection,
            self.keyring,
            name,
            seed=self.keyring.sandbox_seed(),
            at_ms=self.clock(),
            settings=settings,
        )
        await self.ask(opened, Adjust("USDT", 1000 * COIN, "opening balance", "test", None))
        return opened

    async def ask(self, opened: NewMerchant, command: Command) -> Outcome:
        return await self.book.submit(opened.merchant.merchant_id, Submission(command))

    async def order(self, opened: NewMerchant, url: str | None = None) -> Withdrawal:
        """A new order of 10.5 USDT that waits for approval."""
        self.orders += 1
        outcome = await self.ask(
            opened,
            CreateWithdrawal(
                mc_order_id=f"order-{self.orders}",
                amount_units=10 * COIN + COIN // 2,
                chain="TRC20",
                address=ADDRESS,
                notify_url=url or self.receiver.url(),
                fee_rate_e8=1_000_000,
                fee_minimum_units=COIN,
                approval_limit_units=0,
                daily_limit_units=None,
                allowed=True,
                deadline_after_ms=3_600_000,
            ),
        )
        assert isinstance(outcome, Withdrawal)
        return outcome

    async def cancelled(self, opened: NewMerchant, url: str | None = None) -> str:
        """An order that was cancelled. Returns the id of its callback's event."""
        order = await self.order(opened, url)
        await self.ask(opened, Cancel(order.order_id, "test"))
        return f"evt_{order.order_id}_4"

    async def taken_up(self, opened: NewMerchant) -> Withdrawal:
        order = await self.order(opened)
        await self.ask(opened, Approve(order.order_id, "test"))
        await self.ask(opened, TakeUp(order.order_id))
        return order

    async def paid(self, opened: NewMerchant) -> Withdrawal:
        """An order that was paid, with the transaction 0xfeed."""
        order = await self.taken_up(opened)
        await self.ask(opened, Settle(order.order_id, "0xfeed"))
        return order

    async def failed(self, opened: NewMerchant, *, refund: bool = True) -> Withdrawal:
        """An order that failed and, with `refund`, is refunded a moment later: two events."""
        order = await self.taken_up(opened)
        await self.ask(opened, Fail(order.order_id, "the recipient is blacklisted"))
        if refund:
            self.clock.advance_s(1)
            await self.ask(opened, Refund(order.order_id))
        return order

    def sender(self, *, timeout_s: float = 10.0, **settings: Any) -> CallbackSender:
        client = settings.pop("client", None) or make_client(timeout_s)
        made = CallbackSender(
            self.connect, self.keyring, client, clock=self.clock, draw=lambda: 0.5, **settings
        )
        self.closing.push_async_callback(made.close)
        return made

    async def connect(self) -> AsyncConnection:
        """A database connection as the workers have it."""
        return await connect(as_worker(self.url))

    async def turn(self, sender: CallbackSender) -> int:
        """Read the queue once, and finish every attempt that starts."""
        begun = await sender.start_due()
        await sender.finish()
        return begun

    async def deliver(self, sender: CallbackSender) -> int:
        """Repeat turns until nothing is due now. Returns the number of attempts."""
        attempts = 0
        while begun := await self.turn(sender):
            attempts += begun
        return attempts

    async def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        cursor = await self.connection.execute(statement.encode(), values)
        return await cursor.fetchall() if cursor.description else []

    async def states(self) -> dict[str, str]:
        """The state of every callback, by event."""
        return dict(await self.rows("select event_id, state from callback"))


Scenario = Callable[[CallbackScene], Awaitable[None]]
InScene = Callable[[Scenario], None]


async def run_scene(url: str, scenario: Scenario) -> None:
    """Run a scenario in a fresh scene on this database."""
    async with AsyncExitStack() as closing:
        connection = await closing.enter_async_context(await connect(url))
        await ensure_nonce_partitions(connection, START_MS // DAY_MS)
        receiver = await closing.enter_async_context(open_receiver())
        clock = Clock()
        book = Writer(url, connections=4, clock=clock)
        await book.open()
        closing.push_async_callback(book.close)
        await scenario(CallbackScene(url, connection, book, receiver, closing, clock))


@pytest.fixture
def in_scene(database_url: str) -> InScene:
    """Runs a scenario in a fresh scene."""

    def run(scenario: Scenario) -> None:
        asyncio.run(run_scene(database_url, scenario))

    return run
