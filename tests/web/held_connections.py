"""Pages that wait for a lock of the database, and keep their connections meanwhile."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, LiteralString

import httpx
import pytest
from psycopg import AsyncConnection
from tests.journeys.conftest import Platform
from tests.waits import wait_until

from merchant_wallet.base import db
from merchant_wallet.base.fair_places import SERVICE
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.web import connections
from merchant_wallet.web.connections import Connections

WAITING: LiteralString = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
PATIENCE_MS = 600_000


@pytest.fixture(scope="module", autouse=True)
def patient_pages() -> Iterator[None]:
    """Pages wait for a lock, and for a connection, as long as it takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "LOCK_TIMEOUT_MS", PATIENCE_MS)
        patch.setattr(connections, "STATEMENT_TIMEOUT_MS", PATIENCE_MS)
        patch.setattr(connections, "TAKE_TIMEOUT_S", PATIENCE_MS / 1000)
        yield


@contextmanager
def waiting_pages(
    platform: Platform, table: LiteralString, requests: Sequence[Callable[[], httpx.Response]], waiting: int
) -> Iterator[None]:
    """Send requests whose pages read a locked table, until so many of them wait for it. All are answered at
    the end.
    """
    with db.connect_sync(platform.url) as holder, ThreadPoolExecutor(len(requests)) as threads:
        with holder.transaction():
            holder.execute(f"lock table {table} in access exclusive mode".encode())
            answers = [threads.submit(request) for request in requests]
            wait_until(lambda: platform.rows(WAITING) == [(waiting,)], "the pages did not wait")
            yield
        assert {answer.result().status_code for answer in answers} == {200}


class HeldConnections:
    """Counts the connections that pages hold. `at_work` has the count of each moment of work."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._count = 0
        self.at_work: list[int] = []
        take = Connections.take

        @asynccontextmanager
        async def take_counted(*arguments: Any) -> AsyncIterator[AsyncConnection[Any]]:
            async with take(*arguments) as connection:
                self._count += 1
                try:
                    yield connection
                finally:
                    self._count -= 1

        patch.setattr(Connections, "take", take_counted)

    def watch(self, place: object, work: str) -> None:
        """Note how many connections are held whenever this function of a class or a module runs."""
        run = getattr(place, work)

        def run_noted(*arguments: Any, **values: Any) -> Any:
            self.at_work.append(self._count)
            return run(*arguments, **values)

        self._patch.setattr(place, work, run_noted)


class TakenConnections:
    """Records who takes a connection, and of which pool."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.owners: list[Owner] = []
        self.pools: list[Connections] = []
        take = Connections.take

        def take_noted(
            pool: Connections, owner: Owner = SERVICE
        ) -> AbstractAsyncContextManager[AsyncConnection[Any]]:
            self.owners.append(owner)
            self.pools.append(pool)
            return take(pool, owner)

        patch.setattr(Connections, "take", take_noted)

    def clear(self) -> None:
        """Forget what was taken so far."""
        self.owners.clear()
        self.pools.clear()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> TakenConnections:
    """Who takes connections of the pages during a test."""
    return TakenConnections(monkeypatch)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> HeldConnections:
    """Counts the connections that pages hold during a test."""
    return HeldConnections(monkeypatch)
