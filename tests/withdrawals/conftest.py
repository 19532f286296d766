"""One merchant's book on a real database, its writer, and payers made on demand, all with one clock."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection
from tests.cells.layout import Layout, open_near_layout
from tests.roles import as_worker
from tests.withdrawals.fake_chains import FakeChain, open_fake

from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.base.workers import WorkerConnection
from merchant_wallet.book import frozen_orders
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.commands import (
    Adjust,
    Approve,
    Command,
    CreateWithdrawal,
    ReadWithdrawal,
    Submission,
)
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.protocol import (
    Chain,
    FinalRecord,
    Payout,
    Pending,
    SignedTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.sandbox.chain import SandboxChain
from merchant_wallet.withdrawals import freezes, payouts
from merchant_wallet.withdrawals.attempt import Book
from merchant_wallet.withdrawals.expiry import Expiry
from merchant_wallet.withdrawals.nonce_gaps import NonceGapWorker
from merchant_wallet.withdrawals.payer import Payer
from merchant_wallet.withdrawals.sandbox_ledger import SandboxLedger

START_MS = 1_763_712_000_000
COIN = 1_000_000
CONFIRM_MS = 1_500
SEED = bytes(range(64))
MERCHANT_ID = 1001
ERC20_ADDRESS = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
TRC20_ADDRESS = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        self.now_ms += ms


class ScriptedChain:
    """A chain that answers what a test sets, and records what it is given."""

    wallet = bytes(range(40, 60))
    has_nonces = False

    def __init__(self, verdict: Verdict | None = None, name: str = "told") -> None:
        self.verdict = verdict
        self.name = name
        self.funds_units = 1_000_000 * COIN
        self.built: list[Payout] = []
        self.signed: list[SignedTransfer] = []
        self.broadcasts: list[bytes] = []
        self.judged: list[list[str]] = []
        self.check_error: Exception | None = None
        self.build_error: Exception | None = None
        self.on_broadcast: Callable[[bytes], Awaitable[None]] | None = None
        self.building = asyncio.Event()
        self.may_build = asyncio.Event()
        self.may_build.set()
        self.judging = asyncio.Event()
        self.may_judge = asyncio.Event()
        self.may_judge.set()

    def final(self, transfer: Transfer | None = None) -> FinalRecord:
        """Final: the first transfer that it built, or another transfer in its place."""
        return FinalRecord(transfer or self.built[0].transfer, self.signed[0].tx_hash)

    def final_record_of(self, payout_id: int) -> FinalRecord:
        """Final: the transfer that it built for this payout."""
        index = next(i for i, payout in enumerate(self.built) if payout.payout_id == payout_id)
        return FinalRecord(self.built[index].transfer, self.signed[index].tx_hash)

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        return 0

    async def funds(self) -> int:
        return self.funds_units

    async def check_payable(self, transfer: Transfer) -> None:
        if self.check_error:
            raise self.check_error

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        self.built.append(payout)
        self.building.set()
        await self.may_build.wait()
        if self.build_error:
            raise self.build_error
        number = f" anew {len(earlier)}" if earlier else ""
        named = f"{payout.payout_id}{number}"
        signed = SignedTransfer(f"{self.name} {named}".encode(), f"hash by {self.name} of {named}")
        self.signed.append(signed)
        return signed

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        raise ValueError("no nonces here")

    async def broadcast(self, raw: bytes) -> None:
        self.broadcasts.append(raw)
        if self.on_broadcast:
            await self.on_broadcast(raw)

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        assert payout.payout_id > 0
        self.judged.append([one.tx_hash for one in signed])
        self.judging.set()
        verdict = (self.verdict if self.broadcasts else None) or Pending()
        await self.may_judge.wait()
        return verdict


@dataclass
class Shop:
    """One merchant with 1000 USDT. Its withdrawals up to 100 USDT need no approval."""

    url: str
    connection: AsyncConnection
    book: Writer
    clock: Clock
    closing: AsyncExitStack
    folder: Path
    layout: Layout | None = None
    """Where the book is in an apart cell."""
    orders: int = 0

    @property
    def book_url(self) -> str:
        """The database of the book."""
        return self.url if self.layout is None else self.layout.far_url

    async def connect(self) -> AsyncConnection:
        """A database connection as the workers have it."""
        return await connect(as_worker(self.url))

    async def connect_cell(self) -> AsyncConnection:
        """A connection to the book's cell as the workers have it."""
        return await connect(as_worker(self.book_url))

    def worker_connection(self) -> WorkerConnection:
        worker_connection = WorkerConnection(self.connect)
        self.closing.push_async_callback(worker_connection.close)
        return worker_connection

    def chains(self, seed: bytes = SEED) -> dict[str, SandboxChain]:
        ledger = SandboxLedger(self.worker_connection())
        make = partial(SandboxChain, ledger=ledger, seed=seed, confirm_ms=CONFIRM_MS, clock=self.clock)
        return {"ERC20": make("ERC20"), "TRC20": make("TRC20")}

    def scripted(self, verdict: Verdict | None = None, name: str = "told") -> ScriptedChain:
        return ScriptedChain(verdict, name)

    def fake(self, kind: str) -> FakeChain:
        """This shop's fake chain: `sequenced` for ERC20 or `expiring` for TRC20. Its state is the same at
        every call.
        """
        return open_fake(kind, self.folder / kind)

    def fakes(self) -> dict[str, Chain]:
        return {"ERC20": self.fake("sequenced"), "TRC20": self.fake("expiring")}

    def gaps(self, chains: Mapping[str, Chain], **settings: Any) -> NonceGapWorker:
        gaps = NonceGapWorker(self.connect, chains, clock=self.clock, **settings)
        self.closing.push_async_callback(gaps.close)
        return gaps

    def payer(
        self,
        told: ScriptedChain | None = None,
        *,
        chains: Mapping[str, Chain] | None = None,
        **settings: Any,
    ) -> Payer:
        """A payer with the sandbox's chains, with one scripted chain for both names, or with the given
        chains.
        """
        book = settings.pop("book", self.book)
        chosen = chains or ({"ERC20": told, "TRC20": told} if told else self.chains())
        if self.layout is not None:
            settings |= {"connect_cell": self.connect_cell, "cell_id": self.layout.far_id}
        payer = Payer(self.connect, book, chosen, clock=self.clock, **settings)
        self.closing.push_async_callback(payer.close)
        return payer

    def expiry(self, book: Book | None = None) -> Expiry:
        expiry = Expiry(self.connect_cell, book or self.book, clock=self.clock)
        self.closing.push_async_callback(expiry.close)
        return expiry

    async def ask(self, command: Command) -> Outcome:
        return await self.book.submit(MERCHANT_ID, Submission(command))

    async def follow_frozen_orders(self) -> None:
        """What maintenance does once a minute."""
        cell_id = DEFAULT_CELL_ID if self.layout is None else self.layout.far_id
        async with await self.connect() as home, await self.connect_cell() as cell:
            await freezes.follow_home(home, cell, cell_id, self.clock.now_ms)

    async def thaw(self, order_id: int) -> None:
        """What an operator does, after a look at the order."""
        assert await payouts.thaw(self.connection, MERCHANT_ID, order_id)
        await frozen_orders.thaw(self.connection, MERCHANT_ID, order_id)

    async def order(
        self, amount: int = 10 * COIN, address: str = ERC20_ADDRESS, fee: int = COIN, chain: str = ""
    ) -> Withdrawal:
        """A new order. Above 100 USDT it waits up to an hour for approval."""
        self.orders += 1
        chain = chain or ("ERC20" if address.startswith("0x") else "TRC20")
        command = CreateWithdrawal(
            mc_order_id=str(self.orders),
            amount_units=amount,
            chain=chain,
            address=address,
            notify_url="https://example.com/notify",
            fee_rate_e8=0,
            fee_minimum_units=fee,
            approval_limit_units=100 * COIN,
            daily_limit_units=None,
            allowed=True,
            deadline_after_ms=3_600_000,
        )
        outcome = await self.ask(command)
        assert isinstance(outcome, Withdrawal)
        return outcome

    async def approve(self, order: Withdrawal) -> Outcome:
        return await self.ask(Approve(order.order_id, "operator"))

    async def status(self, order: Withdrawal) -> int:
        outcome = await self.ask(ReadWithdrawal(order.order_id, order.mc_order_id))
        assert isinstance(outcome, Withdrawal)
        return outcome.status

    async def turn(self, payer: Payer) -> int:
        """Read the queue once, and finish every attempt that starts."""
        started = await payer.start_due()
        await payer.finish()
        return started

    async def pay(self, payer: Payer, order: Withdrawal) -> int:
        """Run the payer until the order makes no further progress within some minutes. Returns its status."""
        for _ in range(30):
            await self.turn(payer)
            if await self.status(order) in (2, 4, 5, 6):
                break
            self.clock.advance(CONFIRM_MS)
        return await self.status(order)

    async def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        cursor = await self.connection.execute(statement, parameters)
        return await cursor.fetchall() if cursor.description else []

    async def balances(self) -> dict[str, int]:
        """Account balances by name, without those that are zero."""
        found = await self.rows("select kind || ':' || currency, balance from account where balance <> 0")
        return dict(found)

    async def suspend(self, status: str = "suspended") -> None:
        """Set the merchant's status, as every change of settings does."""
        async with self.connection.transaction():
            await self.rows(
                "update book set settings_version = settings_version + 1, version = gen_random_uuid()"
            )
            await self.rows(
                "update public.merchant set status = %s, settings_version = settings_version + 1,"
                " carried_version = carried_version + 1",
                status,
            )
            # An apart cell has a copy.
            await self.rows("update merchant set status = %s", status)

    async def transfers(self) -> list[tuple[Any, ...]]:
        """Every transfer that the sandbox's chains accepted."""
        return await self.rows(
            "select chain, recipient, amount_units, tx_hash from sandbox_transfer order by tx_hash"
        )


async def open_book(connection: AsyncConnection) -> None:
    """Insert a merchant and its empty book."""
    await ensure_nonce_partitions(connection, START_MS // DAY_MS)
    await connection.execute(
        "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
        " values (%s, 'Shop', 'shop', 'KFB', %s)",
        (MERCHANT_ID, START_MS),
    )
    await connection.execute("insert into id_range values (1, %s)", (MERCHANT_ID,))
    await connection.execute(
        "insert into book (merchant_id, id_range, head_hash, last_ms) values (%s, 1, %s, %s)",
        (MERCHANT_ID, FIRST_HASH, START_MS),
    )
    for account in FIXED:
        await connection.execute(
            "insert into account (merchant_id, account_id, kind, currency) values (%s, %s, %s, %s)",
            (MERCHANT_ID, *account),
        )


async def _with_shop(
    url: str, folder: Path, scenario: Callable[[Shop], Awaitable[None]], layout: Layout | None = None
) -> None:
    async with AsyncExitStack() as closing:
        async with await connect(url) as connection:
            await open_book(connection)
        book_url, seen_url = url, url
        if layout is not None:
            layout.move_book(MERCHANT_ID)
            book_url, seen_url = layout.far_url, layout.both_url
            async with await connect(book_url) as connection:
                await ensure_nonce_partitions(connection, START_MS // DAY_MS)
        connection = await closing.enter_async_context(await connect(seen_url))
        clock = Clock()
        book = Writer(book_url, connections=4, clock=clock)
        await book.open()
        closing.push_async_callback(book.close)
        shop = Shop(url, connection, book, clock, closing, folder, layout)
        await shop.ask(Adjust("USDT", 1000 * COIN, "opening balance", "test", None))
        await scenario(shop)


InShop = Callable[[Callable[[Shop], Awaitable[None]]], None]


@pytest.fixture
def in_shop(database_url: str, tmp_path: Path) -> InShop:
    """Runs a scenario in a fresh shop. Some modules run it with the book in an apart cell too."""

    def run(scenario: Callable[[Shop], Awaitable[None]]) -> None:
        asyncio.run(_with_shop(database_url, tmp_path, scenario))

    return run


in_shop_of_one_database = in_shop


@pytest.fixture
def in_apart_shop(url_with_cell: str, tmp_path: Path) -> InShop:
    """Runs a scenario in a fresh shop whose book is in an apart cell, so that no transaction has both."""

    def run(scenario: Callable[[Shop], Awaitable[None]]) -> None:
        asyncio.run(_with_shop(url_with_cell, tmp_path, scenario, open_near_layout(url_with_cell)))

    return run


@pytest.fixture(params=["one database", "apart cell"])
def in_each_layout(request: pytest.FixtureRequest) -> InShop:
    """With the book in home's own schema, and in a cell that shares no transaction with it."""
    name = "in_shop_of_one_database" if request.param == "one database" else "in_apart_shop"
    found: InShop = request.getfixturevalue(name)
    return found
