"""Two clusters, a cell on the first, and its move to the second, as the command does it."""

import asyncio
import itertools
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict
from tests.cells.layout import Layout, open_layout
from tests.clusters import Cluster, lone_cluster
from tests.conftest import FAR
from tests.crash.shop import COIN, Shop, open_shop
from tests.crash_points import Point, Program, run_killed
from tests.fork_server import fork_program
from tests.waits import eventually

from merchant_wallet.base.db import connect, connect_sync, place, strip_identity
from merchant_wallet.book.errors import CommitUnknown, Unavailable
from merchant_wallet.book.outcomes import Transferred
from merchant_wallet.book.verification.verify import verify_all
from merchant_wallet.merchants.cells import moves
from merchant_wallet.merchants.cells.copies import CheckpointFolder
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.moves import Auditor
from merchant_wallet.merchants.cells.moving import Mover, Progress, Timing, open_mover
from merchant_wallet.merchants.cells.takeover import MoveTakeover
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE

BY: Final = Auditor("cli:test", "terminal")
ROOMY: Final = Timing(budget_s=20.0, retry_s=0.05)
"""A busy machine is no fault."""
PAUSE_S: Final = 0.02
"""Between two requests of a client. Without it the load would take both processors from what moves."""
_numbers = itertools.count(1)


@dataclass
class TwoClusters:
    """Servers with the roles of the service. Each test has a database of its own on both."""

    first: Cluster
    second: Cluster

    def prepare(self, owner: str) -> None:
        for cluster in (self.first, self.second):
            cluster.execute(
                f"do $$ begin if not exists (select from pg_roles where rolname = '{owner}') then"
                f" create role {owner} superuser login; end if; end $$"
            )


@contextmanager
def open_clusters(programs: Path | None = None) -> Iterator[TwoClusters]:
    """`programs` are those of the first cluster, if it is of another version."""
    with lone_cluster(programs) as first, lone_cluster() as second:
        for cluster in (first, second):
            for role in (WEB_ROLE, WORKER_ROLE):
                cluster.execute(f"create role {role} login")
        yield TwoClusters(first, second)


@dataclass
class MovableCell:
    """The layout with the cell at its old place, and the URL of its new place."""

    layout: Layout
    old_url: str
    new_url: str
    shops: list[Shop] = field(default_factory=list)

    @property
    def new_cell_url(self) -> str:
        """The cell's schema at the new place, for its owner."""
        return place(self.layout.url, self.new_url, FAR)

    async def open_shops(self, *names: str) -> None:
        """Books at the old place."""
        for name in names:
            self.shops.append(self.layout.send_away(await open_shop(self.layout.url, name)))

    async def move(
        self,
        timing: Timing = ROOMY,
        progress: Progress = print,
        checkpoints: CheckpointFolder | None = None,
    ) -> Mover:
        """Begin or continue the move, to its end."""
        return await move_to(self.layout.url, self.new_url, timing, progress, checkpoints)

    async def undo(self) -> None:
        """Undo the move."""
        async with await connect(self.layout.url) as home:
            move = await moves.read_move(home, self.layout.far_id)
            assert move is not None
            async with open_mover(home, self.layout.url, move, BY, print) as mover:
                await mover.undo()

    async def drop_old(self) -> None:
        """Drop the old copy."""
        async with await connect(self.layout.url) as home:
            move = await moves.read_move(home, self.layout.far_id)
            assert move is not None
            async with open_mover(home, self.layout.url, move, BY, print) as mover:
                await mover.drop_old()

    def turn_round(self) -> None:
        """The next move is back to the old place."""
        self.old_url, self.new_url = self.new_url, self.old_url

    def follow(self) -> None:
        """From now on the shops and the layout mean the new place."""
        self.layout.far_url = self.new_cell_url
        for shop in self.shops:
            shop.url = self.new_cell_url

    async def verify(self) -> None:
        """All books are sound where the layout says that the cell is."""
        async with await connect(self.layout.url) as home, await connect(self.layout.far_url) as far:
            reports = await verify_all(home, far)
        assert [report.merchant_id for report in reports] == [shop.merchant_id for shop in self.shops]
        assert [report.violation for report in reports] == [None] * len(reports)

    def read_place(self) -> tuple[str, int, str | None]:
        """The address and the version that home says, and the state of the move."""
        with connect_sync(self.layout.url) as home:
            found = home.execute(
                "select c.address, c.version, m.state from cell c left join cell_move m using (cell_id)"
                " where c.cell_id = %s",
                (self.layout.far_id,),
            ).fetchone()
        assert found is not None
        return found


async def move_to(
    home_url: str,
    new_url: str,
    timing: Timing = ROOMY,
    progress: Progress = print,
    checkpoints: CheckpointFolder | None = None,
) -> Mover:
    """Move the tests' cell, as the command does it."""
    async with await connect(home_url) as home:
        cell_id = await moves.find_cell_id(home, FAR)
        move = await moves.plan(home, cell_id, strip_identity(new_url))
        async with open_mover(home, home_url, move, BY, progress, timing=timing) as mover:
            await mover.run(checkpoints)
            return mover


async def take_over(home_url: str) -> None:
    """What a worker does about a mover that died, without the wait."""
    worker = MoveTakeover(Directory(home_url), timeout_ms=0)
    try:
        await worker.take_over()
    finally:
        await worker.close()


@contextmanager
def open_movable(clusters: TwoClusters, url: str) -> Iterator[MovableCell]:
    """A cell in a fresh database of the first cluster, and a fresh database of the second."""
    clusters.prepare(str(conninfo_to_dict(url)["user"]))
    name = f"cell_{next(_numbers)}"
    for cluster in (clusters.first, clusters.second):
        cluster.execute(f"create database {name}")
    old_url, new_url = clusters.first.url(name), clusters.second.url(name)
    try:
        yield MovableCell(open_layout(url, place(old_url, None, FAR), old_url), old_url, new_url)
    finally:
        _clean_up(clusters, name)


def _clean_up(clusters: TwoClusters, name: str) -> None:
    """A server has few slots and few workers of subscriptions."""
    for new_place, old_place in ((clusters.second, clusters.first), (clusters.first, clusters.second)):
        _drop_replication(new_place, old_place, name)


def _drop_replication(new_place: Cluster, old_place: Cluster, name: str) -> None:
    with connect_sync(new_place.url(name)) as new:
        for (subscription,) in new.execute(
            "select subname from pg_subscription"
            " where subdbid = (select oid from pg_database where datname = current_database())"
        ).fetchall():
            for change in ("disable", "set (slot_name = none)"):
                new.execute(f"alter subscription {subscription} {change}".encode())
            new.execute(f"drop subscription {subscription}".encode())
    where = f"from pg_replication_slots where database = '{name}'"
    old_place.execute(f"select count(pg_terminate_backend(active_pid)) {where} and active_pid is not null")
    old_place.until(f"select not exists (select {where} and active_pid is not null)")
    old_place.execute(f"select count(pg_drop_replication_slot(slot_name)) {where}")


@dataclass
class Load:
    """Clients that credit alice again and again. Each repeats a refused request until it is answered."""

    shop: Shop
    acknowledged: list[str] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"load{next(_numbers)}")
    refused_count: int = 0
    unknown_count: int = 0
    longest_gap_s: float = 0.0
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, writers: CellWriters, clients: int = 4) -> None:
        """Until `end`."""
        await asyncio.gather(*[self._client(writers, number) for number in range(clients)])

    def end(self) -> None:
        """Let each client finish its request."""
        self._ended.set()

    async def _client(self, writers: CellWriters, client: int) -> None:
        for number in itertools.count():
            if self._ended.is_set():
                return
            order = f"{self.name}-{client}-{number}"
            began_s = time.monotonic()
            await self._credit(writers, order)
            self.longest_gap_s = max(self.longest_gap_s, time.monotonic() - began_s)
            self.acknowledged.append(order)
            await asyncio.sleep(PAUSE_S)

    async def _credit(self, writers: CellWriters, order: str) -> None:
        while True:
            try:
                command = self.shop.credit(order)
                answer = await self.shop.send(writers, command)  # type: ignore[arg-type]  # the same interface
                assert isinstance(answer, Transferred), answer
                return
            except CommitUnknown:
                self.unknown_count += 1
            except Unavailable:
                self.refused_count += 1
            await asyncio.sleep(0.01)


async def has_answers(loads: list[Load], counts: list[int] | None = None) -> bool:
    """Whether each client load got some answers, and some more than it had."""
    counts = counts or [0] * len(loads)
    return all(len(load.acknowledged) > count + 6 for load, count in zip(loads, counts, strict=True))


@asynccontextmanager
async def under_load(cell: MovableCell) -> AsyncIterator[Load]:
    """Clients credit alice meanwhile. In the end she has what was acknowledged, once, and books are sound."""
    (shop,) = cell.shops
    before, orders = await shop.alice_units(), set(await shop.orders())
    async with cell.layout.open_writers() as writers:
        load = Load(shop)
        running = asyncio.create_task(load.run(writers, clients=2))
        await eventually(lambda: has_answers([load]))
        yield load
        count = len(load.acknowledged)
        await eventually(lambda: has_answers([load], [count]))
        load.end()
        await running
    if cell.read_place()[2] == "switched":
        cell.follow()
    assert await shop.alice_units() == before + len(load.acknowledged) * COIN
    assert set(await shop.orders()) - orders == set(load.acknowledged)
    await cell.verify()


async def stop_mover(cell: MovableCell, point: Point) -> None:
    """Move the cell until the mover is killed at the point."""
    work = move_to(cell.layout.url, cell.new_url)
    assert await run_killed(work, point.make_test()), f"the mover never came to {point}"


@asynccontextmanager
async def frozen_mover(cell: MovableCell, point: Point) -> AsyncIterator[Program]:
    """A mover that is frozen at the point."""
    async with Program(point.make_test()).frozen(move_to(cell.layout.url, cell.new_url)) as late:
        yield late


async def kill_mover(cell: MovableCell, point: Point) -> None:
    """Move the cell in a process of its own that kills itself at the point."""
    values = (point.text, str(point.earlier), cell.layout.url, cell.new_url)
    child = fork_program("tests.cells.killable_mover", *values)
    try:
        assert await asyncio.to_thread(child.wait_for_state) == -signal.SIGKILL
    finally:
        child.end()
