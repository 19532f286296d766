"""Two merchants' books on a real database, a fake chain, watchers and crediting workers."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection
from tests.conftest import TEMPLATE, SharedPostgres
from tests.named_tron import RUN
from tests.roles import as_worker

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.chart import FIXED
from merchant_wallet.book.commands import Register, Submission
from merchant_wallet.book.journal import FIRST_HASH
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import SubUserFound
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.book.writer import Writer
from merchant_wallet.chains.protocol import Block, ChainAway, TokenTransfer
from merchant_wallet.deposits.crediting import CreditingWorker
from merchant_wallet.deposits.watcher import Watcher
from merchant_wallet.merchants.addresses import write_issued
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.reporting.deposits import DepositLine, find_deposits

START_MS = 1_763_712_000_000
COIN = 1_000_000
SHOP, CAFE = 1001, 1002
MINIMUM = COIN
BLOCK_MS = 12_000
FINAL_DEPTH = 3
SENDER = b"S" * 20


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        self.now_ms += ms


def address(name: str, chain: str = "ERC20") -> bytes:
    """The deposit address of a sub-user or a merchant, derived from its name."""
    return hashlib.sha256(f"{name} on {chain}{RUN}".encode()).digest()[:20]


@dataclass
class FakeChainReader:
    """A chain whose blocks are mined, reorganised and hidden as a test says.

    The newest `depth` blocks are not final.
    """

    name: str = "ERC20"
    blocks: list[Block] = field(default_factory=list)
    logs: dict[str, list[TokenTransfer]] = field(default_factory=dict)
    branch: int = 0
    transfer_count: int = 0
    depth: int = FINAL_DEPTH
    behind: int = 0
    most_blocks: int | None = None
    asked: list[tuple[int, int]] = field(default_factory=list)
    closed: bool = False
    on_transfers: Callable[[], Awaitable[None]] | None = None
    pruned_below: int = 0

    def __post_init__(self) -> None:
        self.mine()

    def mine(self, *sent: tuple[bytes, int], blocks: int = 1) -> list[str]:
        """Mine blocks. The first has these transfers (recipient, units). Returns their transaction hashes."""
        hashes = []
        for number in range(len(self.blocks), len(self.blocks) + blocks):
            parent = self.blocks[-1].hash if self.blocks else "0x"
            block = Block(number, f"0xb{number}.{self.branch}", parent, START_MS + number * BLOCK_MS)
            self.blocks.append(block)
            self.logs[block.hash] = []
            for index, (recipient, units) in enumerate(sent):
                self.transfer_count += 1
                hashes.append(self.put(block, f"0xt{self.transfer_count}", recipient, units, index))
            sent = ()
        return hashes

    def put(self, block: Block, tx_hash: str, recipient: bytes, units: int, index: int) -> str:
        """Add a transfer to a block: the next log of its transaction, with this index among the block's
        logs.
        """
        logs = self.logs[block.hash]
        place = sum(log.tx_hash == tx_hash for log in logs)
        where = (place, block.number, block.hash)
        logs.append(
            TokenTransfer(self.name, tx_hash, *where, SENDER, recipient, units, block_log_index=index)
        )
        return tx_hash

    def reorganise(self, depth: int, keep: bool = False, later: int = 0) -> None:
        """Replace the newest `depth` blocks by a branch that is one block longer. With `keep` it has the
        same transfers.

        Kept transfers come `later` blocks later than before, with another index among their block's logs.
        """
        gone = self.blocks[-depth:]
        del self.blocks[-depth:]
        self.branch += 1
        self.mine(blocks=depth + 1)
        for block in gone if keep else ():
            for old in self.logs[block.hash]:
                new = self.blocks[block.number + later]
                assert old.block_log_index is not None
                self.put(new, old.tx_hash, old.recipient, old.amount_units, old.block_log_index + 2)

    async def head(self) -> Block:
        return self.blocks[-1 - self.behind]

    async def final(self) -> Block:
        return self.blocks[max(0, len(self.blocks) - 1 - self.behind - self.depth)]

    async def block(self, number: int) -> Block | None:
        known = self.pruned_below <= number < len(self.blocks) - self.behind
        return self.blocks[number] if known else None

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        self.asked.append((first, last))
        if self.most_blocks is not None and last - first >= self.most_blocks:
            raise ChainAway("too many blocks at once")
        found = [log for block in self.blocks[first : last + 1] for log in self.logs[block.hash]]
        if self.on_transfers:
            await self.on_transfers()
        return found

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        held = self.blocks if block is None else self.blocks[: block.number + 1]
        logs = [log for each in held for log in self.logs[each.hash]]
        return sum(log.amount_units for log in logs if log.recipient == address)

    async def coin_balance(self, address: bytes) -> int:
        return 0

    def forget(self) -> None:
        """It keeps nothing."""

    async def close(self) -> None:
        self.closed = True


@dataclass
class DepositScene:
    """Two merchants with addresses of their own: the shop with Anna (KFB) and Ulla (USDT), the café with
    Otto.

    `url` and `connection` are the cell's, and may be home's too.
    """

    url: str
    home_url: str
    connection: AsyncConnection
    home: AsyncConnection
    book: Writer
    clock: Clock
    closing: AsyncExitStack
    wallets: dict[str, SubUserFound] = field(default_factory=dict)

    @property
    def is_apart(self) -> bool:
        """Whether the cell is another database than home."""
        return self.url != self.home_url

    async def connect(self) -> AsyncConnection:
        """A connection to the cell as the workers have it."""
        return await connect(as_worker(self.url))

    async def connect_home(self) -> AsyncConnection:
        """A connection to home as the workers have it."""
        return await connect(as_worker(self.home_url))

    def watcher(self, chain: FakeChainReader, **settings: Any) -> Watcher:
        settings = {"minimum_units": MINIMUM, "clock": self.clock, **settings}
        watcher = Watcher(self.connect_home, self.connect, chain.name, chain, **settings)
        self.closing.push_async_callback(watcher.close)
        return watcher

    def crediting_worker(self) -> CreditingWorker:
        crediting_worker = CreditingWorker(self.connect_home, self.connect, self.book, clock=self.clock)
        self.closing.push_async_callback(crediting_worker.close)
        return crediting_worker

    async def register(self, name: str, currency: str, merchant_id: int = SHOP) -> SubUserFound:
        index = len(self.wallets)
        evm, tron = address(name), address(name, "TRC20")
        await write_issued(self.home, merchant_id, (evm, tron))
        command = Register(name, currency, index, evm, tron)
        found = await self.book.submit(merchant_id, Submission(command))
        assert isinstance(found, SubUserFound)
        self.wallets[name] = found
        return found

    async def catch_up(self, watcher: Watcher) -> None:
        """Run the watcher until it has nothing more to read."""
        while await watcher.follow():
            pass

    async def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        return await _fetch(self.connection, statement, parameters)

    async def home_rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        return await _fetch(self.home, statement, parameters)

    async def status_of(self, tx_hash: str) -> str:
        """The state of a transaction's only deposit; `nothing` if there is none."""
        return (
            (await self.deposit(tx_hash)).status
            if await find_deposits(self.home, reach_one(self.connection), tx_hash)
            else "nothing"
        )

    async def deposit(self, tx_hash: str) -> DepositLine:
        (shown,) = await find_deposits(self.home, reach_one(self.connection), tx_hash)
        return shown

    async def balances(self, merchant_id: int = SHOP) -> dict[str, int]:
        """Account balances without those that are zero. A sub-user's account has the sub-user's name."""
        found = await self.rows(
            "select coalesce(s.ext_user_id, a.kind || ':' || a.currency), a.balance from account a"
            " left join sub_user s on s.merchant_id = a.merchant_id and s.user_id = a.account_id"
            " where a.balance <> 0 and a.merchant_id = %s",
            merchant_id,
        )
        return dict(found)

    async def set_rate(self, rate_e8: int | None, *, paused: bool = False) -> None:
        """Set the platform's rate from USDT to KFB."""
        await self.rows(
            "insert into rate (merchant_id, usdt_kfb_e8, usdt_kfb_set_ms, usdt_kfb_paused)"
            " values (0, %s, %s, %s) on conflict (merchant_id) do update"
            " set usdt_kfb_e8 = excluded.usdt_kfb_e8, usdt_kfb_paused = excluded.usdt_kfb_paused",
            rate_e8,
            START_MS,
            paused,
        )

    async def expect_sound(self) -> None:
        """Both books must verify."""
        for merchant_id in (SHOP, CAFE):
            report = await verify_book(self.home, self.connection, merchant_id)
            assert report.ok, report.violation


async def _fetch(
    connection: AsyncConnection, statement: LiteralString, parameters: Sequence[object]
) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(statement, parameters)
    return await cursor.fetchall() if cursor.description else []


async def _open_merchant(scene: DepositScene, merchant_id: int, name: str, range_no: int) -> None:
    home, cell = scene.home, scene.connection
    for connection in (home, cell) if scene.is_apart else (home,):
        await connection.execute(
            "insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)"
            " values (%s, %s, %s, 'KFB', %s)",
            (merchant_id, name, name, START_MS),
        )
    await home.execute("insert into id_range values (%s, %s)", (range_no, merchant_id))
    await cell.execute(
        "insert into book (merchant_id, id_range, head_hash, last_ms) values (%s, %s, %s, %s)",
        (merchant_id, range_no, FIRST_HASH, START_MS),
    )
    for account in FIXED:
        await cell.execute(
            "insert into account (merchant_id, account_id, kind, currency) values (%s, %s, %s, %s)",
            (merchant_id, *account),
        )
    for chain in ("ERC20", "TRC20"):
        own = address(name, chain)
        await cell.execute("insert into merchant_address values (%s, %s, %s)", (merchant_id, chain, own))
        await home.execute("insert into issued_address values (%s, %s)", (own, merchant_id))


async def visit(
    url: str,
    scenario: Callable[[DepositScene], Awaitable[None]],
    *,
    is_new: bool = False,
    home_url: str | None = None,
) -> None:
    """Run a scenario on a database. With `is_new` its merchants and books are created first.

    With `home_url` home is another database.
    """
    async with AsyncExitStack() as closing:
        home_url = home_url or url
        connection = await closing.enter_async_context(await connect(url))
        home = await closing.enter_async_context(await connect(home_url))
        clock = Clock()
        book = Writer(url, connections=2, clock=clock)
        await book.open()
        closing.push_async_callback(book.close)
        scene = DepositScene(url, home_url, connection, home, book, clock, closing)
        if is_new:
            await _build(scene)
        await scenario(scene)


async def _build(scene: DepositScene) -> None:
    await ensure_nonce_partitions(scene.connection, START_MS // DAY_MS)
    await _open_merchant(scene, SHOP, "shop", 1)
    await _open_merchant(scene, CAFE, "cafe", 2)
    await scene.set_rate(7 * 10**8)
    await scene.register("anna", KFB)
    await scene.register("ulla", USDT)
    await scene.register("otto", USDT, CAFE)


InScene = Callable[[Callable[[DepositScene], Awaitable[None]]], None]


@pytest.fixture
def in_scene(database_url: str) -> InScene:
    """Runs a scenario in a fresh scene."""

    def run(scenario: Callable[[DepositScene], Awaitable[None]]) -> None:
        asyncio.run(visit(database_url, scenario, is_new=True))

    return run


@pytest.fixture(params=[pytest.param("one", marks=pytest.mark.extended), "apart"])
def in_each_layout(request: pytest.FixtureRequest, database_url: str, postgres: SharedPostgres) -> InScene:
    """The same, once with home and the cell in one database, and once in two."""

    def run(scenario: Callable[[DepositScene], Awaitable[None]]) -> None:
        if request.param == "one":
            asyncio.run(visit(database_url, scenario, is_new=True))
            return
        with postgres.database(TEMPLATE) as home_url:
            asyncio.run(visit(database_url, scenario, is_new=True, home_url=home_url))

    return run
