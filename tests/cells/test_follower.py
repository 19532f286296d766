"""Who follows Citus, and when not. The catalogue is plain tables of Citus' names; the nodes are one server.

`test_citus_failover.py` has a real Citus, whose node dies.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest
from psycopg import AsyncConnection, OperationalError, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cells.layout import Layout
from tests.cells.test_metrics import show
from tests.conftest import FAR
from tests.crash.shop import open_shop, run
from tests.roles import as_worker
from tests.waits import eventually

from merchant_wallet.audit.records import Author
from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import connect, connect_sync, strip_identity
from merchant_wallet.merchants.cells import citus
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.follower import CellFollower
from merchant_wallet.merchants.cells.updates import CellUpdates

CATALOGUE: Final = (
    "create table far.pg_dist_shard (logicalrelid regclass, shardid bigint)",
    "create table far.pg_dist_placement (shardid bigint, groupid int)",
    "create table far.pg_dist_node (groupid int, nodename text, nodeport int, noderole text)",
    "insert into far.pg_dist_shard values ('far.book', 7)",
    "insert into far.pg_dist_placement values (7, 1)",
    "insert into far.pg_dist_node values (1, '', 5432, 'primary'), (1, 'standby', 5432, 'secondary')",
    "grant select on far.pg_dist_shard, far.pg_dist_placement, far.pg_dist_node to public",
)
NOWHERE: Final = "/nowhere"
AGE: Final = ("wallet_cell_unfollowed_seconds", ("far",))


@dataclass(frozen=True)
class Citus:
    """A cell that Citus places. `first` and `second` are two names of the one server."""

    layout: Layout
    first: str
    second: str

    def address(self, host: str) -> str:
        return make_conninfo(strip_identity(self.layout.url), host=host)

    def name(self, host: str) -> None:
        """Let the catalogue name this node."""
        self.run("update far.pg_dist_node set nodename = %s where noderole = 'primary'", host)

    def run(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement as the owner, and return its rows."""
        with connect_sync(self.layout.url) as connection:
            cursor = connection.execute(statement.encode(), parameters)
            return cursor.fetchall() if cursor.description else []

    @property
    def versions(self) -> tuple[int, int]:
        """The cell's version in home, and in the cell."""
        [found] = self.run("select c.version, s.version from cell c join far.cell_state s using (cell_id)")
        return found

    @property
    def host(self) -> str:
        """The node that home knows."""
        [(address,)] = self.run("select address from cell where name = 'far'")
        return str(conninfo_to_dict(address)["host"])

    @property
    def cause(self) -> str | None:
        """Why the node that Citus names is not used, as home says."""
        [(cause,)] = self.run("select unfollowed_cause from cell where name = 'far'")
        return None if cause is None else str(cause)

    def follow(self, *, by_person: bool = False, seen: citus.Place | None = None) -> str:
        """Follow once, as a worker or as a person does. `seen` is what was read before."""

        async def act(home: AsyncConnection, directory: Directory) -> str:
            at = seen or await citus.read_place(home, FAR)
            author = Author("worker", "worker", 1)
            async with await connect(at.make_cell(directory, at.address).table_url) as coordinator:
                return await citus.follow(home, coordinator, directory, at, author, accepts_older=by_person)

        address = self.act(act, as_owner=by_person)
        return str(conninfo_to_dict(address)["host"])

    def read_place(self) -> citus.Place:
        place = self.act(lambda home, _: citus.read_place(home, FAR))
        assert isinstance(place, citus.Place)
        return place

    def act(
        self, act: Callable[[AsyncConnection, Directory], Awaitable[Any]], *, as_owner: bool = False
    ) -> Any:
        """Act with a connection to home and with a directory, as the worker's role or as the owner."""
        url = self.layout.url if as_owner else as_worker(self.layout.url)

        async def scenario() -> Any:
            async with await connect(url) as home:
                return await act(home, Directory(url))

        return asyncio.run(scenario())


@pytest.fixture
def placed(layout: Layout) -> Citus:
    """The cell is at the first node, and Citus says so."""
    host = str(conninfo_to_dict(layout.url)["host"])
    found = Citus(layout, host, f"{host}/.")
    for statement in CATALOGUE:
        found.run(statement)
    found.name(host)
    address = found.address(host)
    found.run("update cell set address = %s, admin_address = %s where name = 'far'", address, address)
    return found


def test_the_named_node_is_used_and_the_audit_log_says_who_followed(placed: Citus) -> None:
    assert placed.follow() == placed.first
    assert placed.versions == (1, 1)
    placed.name(placed.second)
    assert placed.follow() == placed.second
    assert (placed.host, placed.versions) == (placed.second, (2, 2))
    [(actor, action, before, after)] = placed.run(
        "select actor, action, before, after from audit_entry where subject = 'cell far'"
    )
    assert (actor, action) == ("worker", "cell.follow")
    assert before == {"address": placed.address(placed.first)}
    assert after == {"address": placed.address(placed.second)}


def test_of_two_workers_one_follows_and_a_late_one_brings_nothing_back(placed: Citus) -> None:
    seen = placed.read_place()
    placed.name(placed.second)
    placed.follow(seen=seen)
    with pytest.raises(citus.PlaceChanged):
        placed.follow(seen=seen)
    assert (placed.host, placed.versions, placed.cause) == (placed.second, (2, 2), None)
    # The catalogue names the first node again. To the late one nothing has changed.
    placed.name(placed.first)
    placed.follow(seen=seen)
    assert (placed.host, placed.versions) == (placed.second, (2, 2))
    assert placed.follow() == placed.first
    assert placed.versions == (3, 3)
    # The other one has told home, and not the copy yet.
    seen = placed.read_place()
    placed.run("update cell set version = 4 where name = 'far'")
    placed.name(placed.second)
    with pytest.raises(citus.PlaceChanged):
        placed.follow(seen=seen)
    assert (placed.host, placed.versions, placed.cause) == (placed.first, (4, 3), None)


def test_a_node_that_does_not_answer_is_not_followed_and_home_says_why(placed: Citus) -> None:
    placed.name(NOWHERE)
    for _ in range(2):
        with pytest.raises(citus.NotFollowed, match="Citus names the node /nowhere:5432, which is away"):
            placed.follow()
    assert (placed.host, placed.versions) == (placed.first, (1, 1))
    assert "which is away" in (placed.cause or "")
    [(since_ms,)] = placed.run(
        "update cell set unfollowed_ms = unfollowed_ms - 90000 where name = 'far' returning unfollowed_ms"
    )
    assert show(placed.layout.url)[AGE] >= 90
    placed.run("update far.pg_dist_placement set groupid = 2")
    with pytest.raises(citus.NotFollowed, match="is not distributed"):
        placed.follow()
    assert placed.run("select unfollowed_ms from cell where name = 'far'") == [(since_ms,)]
    placed.run("update far.pg_dist_placement set groupid = 1")
    placed.name(placed.first)
    placed.follow()
    assert placed.cause is None
    assert show(placed.layout.url)[AGE] == 0
    # Where home knows it, the node is away and nothing else.
    placed.name(NOWHERE)
    placed.run("update cell set address = %s where name = 'far'", placed.address(NOWHERE))
    with pytest.raises(OperationalError):
        placed.follow()
    assert placed.cause is None


COPIES: Final = (
    ("update far.cell_state set version = 3", "whose copy is newer: its version is 3, home knows 2"),
    ("update far.cell_state set version = 2, is_open = false", "whose copy of the cell is closed"),
    ("alter table far.cell_state rename to other", "which has no tables for this program"),
    ("alter table far.other rename to cell_state; delete from far.cell_state", "which has another cell"),
)
"""What happens to the copy, one after the other, and why it is not followed."""


def test_a_copy_that_is_not_the_cell_is_followed_by_nobody_and_an_older_one_by_a_person(
    placed: Citus,
) -> None:
    placed.name(placed.second)
    placed.run("update cell set version = 2 where name = 'far'")
    with pytest.raises(citus.NotFollowed, match="whose copy is older: its version is 1, home knows 2"):
        placed.follow()
    for change, cause in COPIES:
        for statement in change.split("; "):
            placed.run(statement)
        for by_person in (False, True):
            with pytest.raises(citus.NotFollowed, match=cause):
                placed.follow(by_person=by_person)
    assert placed.host == placed.first
    placed.run("insert into far.cell_state values (%s, 1, true)", placed.layout.far_id)
    assert placed.follow(by_person=True) == placed.second
    assert placed.versions == (3, 3)


def test_what_was_killed_between_home_and_the_cell_is_ended_by_the_next_look(placed: Citus) -> None:
    placed.run("update cell set version = 2 where name = 'far'")
    placed.follow()
    assert placed.versions == (2, 2)
    # A closed copy stays closed.
    placed.run("update far.cell_state set is_open = false, version = 1")
    placed.follow()
    assert placed.versions == (2, 1)


def test_the_database_refuses_moves_and_lets_workers_change_no_other_address(placed: Citus) -> None:
    shop = run(open_shop(placed.layout.url))
    with pytest.raises(errors.ForeignKeyViolation, match="cell_move_of_plain"):
        placed.run(
            "insert into cell_move (cell_id, move_id, state, address, began_ms, changed_ms)"
            " values (1, gen_random_uuid(), 'copying', 'host=x', 1, 1)"
        )
    for from_cell, to_cell, key in ((0, 1, "merchant_move_to_plain"), (1, 0, "merchant_move_from_plain")):
        with pytest.raises(errors.ForeignKeyViolation, match=key):
            placed.run(
                "insert into merchant_move"
                " (merchant_id, move_id, state, from_cell_id, to_cell_id, began_ms, changed_ms)"
                " values (%s, gen_random_uuid(), 'copying', %s, %s, 1, 1)",
                shop.merchant_id,
                from_cell,
                to_cell,
            )

    async def change(home: AsyncConnection, _: Directory) -> None:
        with pytest.raises(errors.InsufficientPrivilege):
            await home.execute("update cell set address = 'host=x'")

    placed.act(change)
    placed.run("update cell set admin_address = null where name = 'far'")
    assert placed.run("select follow_cell(1, 1, 'host=x')") == [(False,)]
    assert placed.host == placed.first


def test_a_worker_follows_as_soon_as_the_cell_does_not_answer(placed: Citus) -> None:
    async def scenario() -> None:
        url = as_worker(placed.layout.url)
        directory, away, stop = Directory(url), asyncio.Event(), asyncio.Event()
        await directory.refresh()
        [_, cell] = directory.list()

        async def refuse() -> AsyncConnection:
            raise CellClosed("cell far is closed or has moved")

        updates = CellUpdates(cell.cell_id, directory.connect_home, refuse, away)
        follower = CellFollower(directory, cell, away)
        placed.name(NOWHERE)
        looking = asyncio.create_task(follower.run(stop))
        # Its first look is in vain. The next one would be in a minute.
        await eventually(lambda: _is_refused(placed))
        placed.name(placed.second)
        with pytest.raises(CellClosed):
            await updates.update()
        await eventually(lambda: _is_followed(placed))
        stop.set()
        await looking
        await updates.close()

    asyncio.run(scenario())


async def _is_refused(placed: Citus) -> bool:
    return placed.cause is not None


async def _is_followed(placed: Citus) -> bool:
    return placed.host == placed.second and placed.versions == (2, 2)


def test_an_address_of_the_coordinator_does_not_win_over_the_nodes_name() -> None:
    coordinator = "host=c1,c2 hostaddr=10.0.0.1,10.0.0.2 port=5432,5433 dbname=wallet sslmode=verify-full"

    address = citus.make_address(coordinator, "node7", 5440)
    found = {name: of for name, of in conninfo_to_dict(address).items() if of}
    assert found == {"host": "node7", "port": "5440", "dbname": "wallet", "sslmode": "verify-full"}
