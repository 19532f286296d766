"""A real service with HTTP and PostgreSQL. The web side and the workers run in a thread of this process.

Rules: each module has one service and one database. Each test has its own merchant, `shop`. Tests that change
nothing of a merchant share `same_shop`. A module sets its service up with three constants: `SETTINGS` are
settings, `WORKING` starts the workers, and `CLOCK_MS` gives it a clock that tests move.
"""

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
import pytest
import uvloop
from tests.conftest import TEMPLATE, SharedPostgres
from tests.journeys.client import Answer, Client
from tests.roles import as_web, as_worker
from tests.waits import TIMEOUT_S

from merchant_wallet.base import db
from merchant_wallet.base.cells import DEFAULT_CELL_ID
from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.money import parse_rate, parse_units
from merchant_wallet.base.settings import make_settings
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import rules
from merchant_wallet.book.commands import Adjust, Command, Submission
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Adjusted, Outcome
from merchant_wallet.book.state import Draft
from merchant_wallet.exchange import rates
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cells.carrying import find_and_carry
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.processes import app, ending, worker
from merchant_wallet.processes import web as server
from merchant_wallet.processes.app import Web, open_web
from merchant_wallet.processes.base import Base, make_base, make_writer
from merchant_wallet.sub_users import controls
from merchant_wallet.web.templates import Templates

MASTER_KEY = bytes(range(32))
WAITING_BATCHES = (
    "select count(*) from pg_stat_activity where application_name = 'merchant-wallet writer'"
    " and datname = current_database() and wait_event_type = 'Lock'"
)
T = TypeVar("T")
load_templates = cache(Templates)
"""Services of this process share the loaded templates, which nothing changes."""
Connection = psycopg.AsyncConnection[Any]


@dataclass
class Clock:
    """A clock that moves only when a test moves it."""

    now_ms: int

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        self.now_ms += ms


class Platform:
    """A running service, and what an operator does on it."""

    def __init__(
        self, url: str, data: Path, *, working: bool = False, clock: Clock | None = None, **settings: Any
    ) -> None:
        quiet = {"log_level": "warning", "sandbox_confirm_ms": 50}
        quiet |= {"rate_limit": 0, "failed_auth_limit": 0, "page_rate_limit": 0}
        chosen: dict[str, Any] = {**quiet, **settings}
        self.url = url
        self.base: Base = make_base(
            make_settings({"database_url": url, "master_key": MASTER_KEY, "data": data, "port": 0, **chosen}),
            url,
        )
        self.clock: Callable[[], int] = clock or now_ms
        self.address = ""
        self._working = working
        self._events: queue.Queue[BaseException | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="service")
        self._names = 0

    @property
    def port(self) -> int:
        return int(self.address.rsplit(":", 1)[1])

    def start(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(server, "open_web", self._open_web)
            # It is meant for a process of its own. This one has all tests, and a collection takes a second.
            patch.setattr(server, "_tune_garbage_collection", lambda: None)
            patch.setattr(app, "Templates", load_templates)
            self._thread.start()
            problem = self._events.get(timeout=TIMEOUT_S)
        if problem is not None:
            raise problem

    @asynccontextmanager
    async def _open_web(
        self, base: Base, public_url: str, clock: Callable[[], int], siblings: None
    ) -> AsyncIterator[Web]:
        """Open the web side with this service's clock and keep it, so that tests can look inside."""
        assert clock is now_ms
        async with open_web(base, public_url, clock=self.clock) as self.web:
            yield self.web

    @property
    def under_way(self) -> int:
        """The number of requests without an answer yet."""
        return self.web.dependencies.in_flight.count

    @property
    def writer(self) -> CellWriters:
        """The web side's writer."""
        writer = self.web.dependencies.writer
        assert isinstance(writer, CellWriters)
        return writer

    @property
    def waiting(self) -> int:
        """The number of commands in the queues. It is counted in the service's event loop, where the
        queues change.
        """

        async def count() -> int:
            return self.writer.waiting_count

        return self.run(count)

    def ask_to_stop(self) -> None:
        """Begin to stop, as a signal does."""
        self._loop.call_soon_threadsafe(self._stop.set)

    def join(self) -> None:
        """Stop, and wait for the end."""
        with pytest.MonkeyPatch.context() as patch:
            # No client is left that needs an answer from a service that stops.
            patch.setattr(ending, "LINGER_S", 0)
            if self._thread.is_alive():
                self.ask_to_stop()
            self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        assert self._events.empty(), self._events.get_nowait()

    def _run(self) -> None:
        try:
            uvloop.run(self._live())
        except BaseException as error:
            self._events.put(error)

    async def _live(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._turn = asyncio.Lock()
        ready: set[str] = set()

        def note_ready(side: str, address: str = "") -> None:
            self.address = address or self.address
            ready.add(side)
            if len(ready) == 1 + self._working:
                self._events.put(None)

        self._book = make_writer(self.base, connections=2, clock=self.clock)
        try:
            async with await db.connect(self.url) as self._connection, asyncio.TaskGroup() as sides:
                web, working = (make_base(self.base.settings, side(self.url)) for side in (as_web, as_worker))
                sides.create_task(server.serve(web, partial(note_ready, "web"), self._stop))
                if self._working:
                    sides.create_task(worker.work(working, partial(note_ready, "work"), self._stop))
        finally:
            await self._book.close()

    @property
    def is_at_lock(self) -> bool:
        """Whether a batch has left its queue and waits for the book's lock in the database."""
        return self.rows(WAITING_BATCHES) != [(0,)]

    def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Await something in the service's event loop."""

        async def wait() -> T:
            return await make()

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result(TIMEOUT_S)

    @contextmanager
    def holding_loop(self) -> Iterator[None]:
        """Keep the service's event loop busy: it finds all that is sent meanwhile at once."""
        held, released = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            released.wait(TIMEOUT_S)

        self._loop.call_soon_threadsafe(hold)
        assert held.wait(TIMEOUT_S)
        try:
            yield
        finally:
            released.set()

    def operate(self, act: Callable[[Connection], Awaitable[T]]) -> T:
        """Do what an operator's command does, on a separate database connection."""

        async def take_turn() -> T:
            async with self._turn:
                return await act(self._connection)

        return self.run(take_turn)

    def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

        async def read(conn: Connection) -> list[tuple[Any, ...]]:
            cursor = await conn.execute(statement, parameters)
            return await cursor.fetchall() if cursor.description else []

        return self.operate(read)

    def ask_book(self, merchant_id: int, command: Command) -> Outcome:
        """Submit a command to the book, as the service's own workers do."""

        async def ask() -> Outcome:
            return await self._book.submit(merchant_id, Submission(command))

        return self.run(ask)

    def set_rate(
        self, direction: str, rate: str, merchant_id: int = 0, max_age_ms: int | None = None
    ) -> None:
        at_ms, rate_e8 = self.clock(), parse_rate(rate)
        self.operate(
            lambda conn: rates.set_rate(conn, direction, rate_e8, merchant_id, max_age_ms, at_ms=at_ms)
        )

    def open_merchant(self, cell_id: int = DEFAULT_CELL_ID, **settings: str) -> "Shop":
        """A new merchant without money. Settings are text as an operator types it, with `_` for `-`."""
        self._names += 1
        name = settings.pop("name", f"Shop {self._names:04d}")
        typed = {key.replace("_", "-"): text for key, text in settings.items()}
        keyring, at_ms = self.base.keyring, self.clock()
        new = self.operate(
            lambda conn: store.create(
                conn, keyring, name, seed=keyring.sandbox_seed(), at_ms=at_ms, settings=typed, cell_id=cell_id
            )
        )
        if cell_id != DEFAULT_CELL_ID:
            # A worker that runs may have carried it already.
            self.run(lambda: find_and_carry(self.base.cells, new.merchant.merchant_id))
        merchant, app_key = new.merchant, new.merchant.app_key
        if not self.base.settings.sandbox:
            # The merchant keeps the sandbox's seed, so that no pool of accounts is needed.
            app_key = app_key.replace("mk_test_", "mk_live_")
            renaming = f"update merchant set app_key = '{app_key}' where merchant_id = {merchant.merchant_id}"
            self.operate(lambda conn: conn.execute(renaming.encode()))
        client = Client(self.port, app_key, new.app_secret, merchant.sign_method, now_ms=self.clock)
        return Shop(self, merchant.merchant_id, client)


@dataclass(frozen=True)
class Shop:
    """One merchant: its client, and what an operator does for it."""

    platform: Platform
    merchant_id: int
    client: Client
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def callback_secret(self) -> str:
        """What signs its callbacks."""
        keyring = self.platform.base.keyring
        merchant = self.platform.operate(lambda conn: store.load(conn, keyring, self.merchant_id))
        assert merchant is not None
        return merchant.callback_secret

    def with_client(self, **changes: Any) -> Client:
        """The same merchant's client with changes."""
        return replace(self.client, **changes)

    def next_order(self) -> str:
        """An unused mcOrderId."""
        self.counted["orders"] = self.counted.get("orders", 0) + 1
        return f"{self.counted['orders']}"

    def change(self, **settings: str) -> None:
        typed = {key.replace("_", "-"): text for key, text in settings.items()}
        keyring = self.platform.base.keyring
        self.platform.operate(lambda conn: store.change_settings(conn, keyring, self.merchant_id, typed))

    def suspend(self) -> None:
        self.platform.operate(lambda conn: store.suspend(conn, self.merchant_id))

    def resume(self) -> None:
        self.platform.operate(lambda conn: store.resume(conn, self.merchant_id))

    def rotate_secret(self) -> str:
        keyring, at_ms = self.platform.base.keyring, self.platform.clock()
        return self.platform.operate(
            lambda conn: store.rotate_secret(conn, keyring, self.merchant_id, at_ms=at_ms)
        )

    def retire_secret(self) -> None:
        at_ms = self.platform.clock()
        self.platform.operate(lambda conn: store.retire_secret(conn, self.merchant_id, at_ms=at_ms))

    def set_rate(self, direction: str, rate: str, max_age_ms: int | None = None) -> None:
        self.platform.set_rate(direction, rate, self.merchant_id, max_age_ms)

    def pause_rate(self, direction: str) -> None:
        at_ms = self.platform.clock()
        self.platform.operate(lambda conn: rates.pause(conn, direction, self.merchant_id, at_ms=at_ms))

    def set_controls(self, ext_user_id: str, **settings: Any) -> None:
        """Set what the sub-user allows. Limits are amounts as text."""
        parsed: dict[str, Any] = {
            name: parse_units(v) if isinstance(v, str) else v for name, v in settings.items()
        }
        self.platform.operate(
            lambda conn: controls.set_controls(conn, self.merchant_id, ext_user_id, **parsed)
        )

    def set_pin(self, ext_user_id: str) -> None:
        """Set a sub-user's PIN, as the wallet page does: the book gets a new version."""
        self.platform.rows(
            "update sub_user set pin_hash = 'hash' where merchant_id = %s and ext_user_id = %s",
            self.merchant_id,
            ext_user_id,
        )
        self.platform.rows(
            "update book set version = gen_random_uuid() where merchant_id = %s", self.merchant_id
        )

    def fund(self, currency: str, amount: str, ext_user_id: str | None = None) -> None:
        """Credit the merchant's balance or, with `ext_user_id`, a sub-user's wallet."""
        command = Adjust(currency, parse_units(amount), "opening balance", "operator", ext_user_id)
        assert isinstance(self.ask_book(command), Adjusted)

    def ask_book(self, command: Command) -> Outcome:
        return self.platform.ask_book(self.merchant_id, command)

    def user(self, ext_user_id: str, amount: str = "0", currency: str = "KFB") -> Answer:
        """Look a sub-user up, which registers it, and fund its wallet."""
        if amount != "0":
            self.client.do("getMerchantCustomer", extUserId=ext_user_id)
            self.fund(currency, amount, ext_user_id)
        return self.client.do("getMerchantCustomer", extUserId=ext_user_id)

    def user_balance(self, ext_user_id: str) -> str:
        return str(self.client.do("getMerchantCustomer", extUserId=ext_user_id)["balance"])

    def balances(self) -> tuple[str, str]:
        """The balances in USDT and KFB."""
        answer = self.client.do("getMerchantBalance")
        return str(answer["usdtBalance"]), str(answer["kfbBalance"])

    def entry_count(self) -> int:
        found = self.platform.rows("select entry_count from book where merchant_id = %s", self.merchant_id)
        return int(found[0][0])

    @contextmanager
    def holding_book(self) -> Iterator[None]:
        """Hold this book's lock: one batch waits for the lock, later requests wait in the queue."""
        with db.connect_sync(self.platform.url) as connection, connection.transaction():
            connection.execute(
                "update book set last_ms = last_ms where merchant_id = %s", (self.merchant_id,)
            )
            yield


def replace_rule(
    patch: pytest.MonkeyPatch, command: type[Command], rule: Callable[[Draft, Any], Outcome]
) -> None:
    """Replace the rule for one kind of command."""
    patch.setitem(rules.RULES, command, rule)


@contextmanager
def running(url: str, data: Path, **how: Any) -> Iterator[Platform]:
    """A service with exchange rates, stopped at the end."""
    platform = Platform(url, data, **how)
    platform.start()
    try:
        today = platform.clock() // DAY_MS
        platform.operate(lambda conn: ensure_nonce_partitions(conn, today))
        platform.set_rate("USDT:KFB", "7.1")
        platform.set_rate("KFB:USDT", "0.14")
        yield platform
    finally:
        platform.join()


@pytest.fixture(scope="module")
def clock(request: pytest.FixtureRequest) -> Clock | None:
    """The module's clock, if it sets `CLOCK_MS`."""
    start_ms = getattr(request.module, "CLOCK_MS", None)
    return None if start_ms is None else Clock(start_ms)


@pytest.fixture(scope="module")
def platform(
    postgres: SharedPostgres,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    clock: Clock | None,
) -> Iterator[Platform]:
    """The module's service."""
    module = request.module
    settings = getattr(module, "SETTINGS", {})
    working = getattr(module, "WORKING", False)
    data = tmp_path_factory.mktemp("service")
    with (
        postgres.database(TEMPLATE) as url,
        running(url, data, working=working, clock=clock, **settings) as platform,
    ):
        yield platform


RunPlatform = Callable[..., AbstractContextManager[Platform]]


@pytest.fixture
def own_platform(database_url: str, tmp_path: Path) -> RunPlatform:
    """Starts a service for one test alone; used with `with`."""
    return partial(running, database_url, tmp_path)


def open_shop(platform: Platform) -> Shop:
    """A merchant with 1000 of each currency."""
    made = platform.open_merchant()
    made.fund("USDT", "1000")
    made.fund("KFB", "1000")
    return made


@pytest.fixture
def shop(platform: Platform) -> Shop:
    """A merchant with 1000 of each currency, for this test alone."""
    return open_shop(platform)


@pytest.fixture(scope="module")
def same_shop(platform: Platform) -> Shop:
    """The same for all tests of a module that change nothing of it, or nothing that another one sees."""
    return open_shop(platform)
