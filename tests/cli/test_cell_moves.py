"""`cell move`: a cell moves to another cluster, back, not at all, and after an interruption."""

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cells.moved import TwoClusters, open_clusters
from tests.cli.conftest import Wallet
from tests.cli.restored_home import ACCEPT, open_scene
from tests.conftest import SharedPostgres
from tests.journeys.conftest import Shop, running
from tests.journeys.orders import credit, debit
from tests.waits import BLOCKED_BY, wait_until

from merchant_wallet.base.db import connect_sync, place, strip_identity
from merchant_wallet.merchants.cells import moving

pytestmark = pytest.mark.new_database

DEBIT = "transferFromUserToMerchant"
BUSY = 50300
NOWHERE = "postgresql://127.0.0.1:1/none"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def clusters() -> Iterator[TwoClusters]:
    """Two servers, between which cells are moved."""
    with open_clusters() as found:
        yield found


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no fault."""
    monkeypatch.setattr(moving, "USUAL", moving.Timing(budget_s=20.0, retry_s=0.05))


@dataclass
class Places:
    """A fresh database of each cluster, as URLs of home's owner."""

    old: str
    new: str


@pytest.fixture
def places(clusters: TwoClusters, wallet: Wallet) -> Places:
    owner = str(conninfo_to_dict(wallet.url)["user"])
    clusters.prepare(owner)
    name = f"moves_{next(_numbers)}"
    for cluster in (clusters.first, clusters.second):
        cluster.execute(f"create database {name}")
    return Places(*(make_conninfo(one.url(name), user=owner) for one in (clusters.first, clusters.second)))


@pytest.fixture
def shop(wallet: Wallet, places: Places) -> int:
    """A merchant with 100 USDT in the cell `east`, which is at its old place."""
    wallet.run("cell", "add", "east", places.old)
    merchant_id = wallet.open_merchant("Shop", "--cell", "east")
    wallet.credit("Shop", "USDT", "100")
    return merchant_id


def read_schemas(url: str) -> list[str]:
    with connect_sync(url) as connection:
        rows = connection.execute("select nspname from pg_namespace where nspname = 'east'").fetchall()
    return [name for (name,) in rows]


def count_entries(url: str) -> int:
    with connect_sync(place(url, None, "east")) as connection:
        row = connection.execute("select count(*) from entry").fetchone()
    assert row is not None
    return int(row[0])


def look(wallet: Wallet) -> dict[str, Any]:
    """The cell in `cell list`."""
    [_, east] = wallet.ask("cell", "list")["cells"]
    return dict(east)


def check(wallet: Wallet) -> dict[str, Any] | None:
    """What doctor says of the move. No service runs, so something else is always wrong."""
    checks = wallet.ask("doctor", status=1)["checks"]
    return next((line for line in checks if line["name"] == "move of cell east"), None)


@pytest.mark.usefixtures("shop")
def test_a_cell_moves_to_another_cluster_and_its_old_copy_is_dropped_later(
    wallet: Wallet, places: Places
) -> None:
    moved = wallet.ask("cell", "move", "east", make_conninfo(places.new, password="secret"))
    assert (moved["name"], moved["done"], moved["books"], moved["entries"]) == ("east", "moved", 1, 1)
    assert 0 < moved["closedMs"] < 20_000
    assert "secret" not in str(moved)
    assert (moved["schema"], moved["oldAddress"]) == ("east", strip_identity(places.old))
    assert look(wallet)["move"] == "switched"
    found = check(wallet)
    assert found is not None
    assert "cell move east --drop-old" in found["hint"]

    # Commands work at the new place at once.
    wallet.credit("Shop", "USDT", "5")
    assert (count_entries(places.new), count_entries(places.old)) == (2, 1)
    assert "not dropped" in wallet.refuse("cell", "move", "east", places.old)
    assert "moved back" in wallet.refuse("cell", "move", "east", "--undo")

    assert wallet.ask("cell", "move", "east", "--drop-old")["done"] == "old copy dropped"
    assert (look(wallet)["move"], check(wallet)) == (None, None)
    assert (read_schemas(places.old), read_schemas(places.new)) == ([], ["east"])
    # And back again.
    assert wallet.ask("cell", "move", "east", places.old)["entries"] == 2
    assert all(book["ok"] for book in wallet.ask("book", "verify")["books"])
    actions = [entry["action"] for entry in wallet.ask("audit", "list")["entries"]]
    assert [action for action in reversed(actions) if action.startswith("cell.move")] == [
        "cell.move.begin",
        "cell.move.switch",
        "cell.move.drop_old",
        "cell.move.begin",
        "cell.move.switch",
    ]


@contextmanager
def paying(shop: Shop) -> Iterator[list[float]]:
    """A client that debits alice again and again. Gives how long each debit took, with its repeats."""
    ended = threading.Event()
    took: list[float] = []

    def pay() -> None:
        while not ended.is_set():
            began_s, order = time.monotonic(), shop.next_order()
            while shop.client.call(DEBIT, **debit(order, "1")).code == BUSY:
                time.sleep(0.01)
            took.append(time.monotonic() - began_s)

    thread = threading.Thread(target=pay)
    thread.start()
    try:
        yield took
    finally:
        ended.set()
        thread.join()


def test_merchants_over_http_go_on_at_the_new_place(wallet: Wallet, places: Places, tmp_path: Path) -> None:
    wallet.run("cell", "add", "east", places.old)
    [east_id] = [row[0] for row in wallet.read("select cell_id from cell where name = 'east'")]
    with running(wallet.url, tmp_path / "http") as platform:
        shop = platform.open_merchant(cell_id=east_id)
        shop.fund("KFB", "10000")
        alice = shop.client.do("getMerchantCustomer", extUserId="alice")["address"]
        shop.client.do("transferFromMerchantToUser", **credit("opening", alice, "9000"))
        before = count_entries(places.old)
        with paying(shop) as took:
            wait_until(lambda: len(took) > 20, "payments before")
            wallet.run("cell", "move", "east", places.new)
            count = len(took)
            wait_until(lambda: len(took) > count + 20, "payments at the new place")
        assert shop.balances()[1] == f"{1000 + len(took)}"
    assert count_entries(places.new) == before + len(took)
    assert all(book["ok"] for book in wallet.ask("book", "verify")["books"])


@pytest.mark.usefixtures("shop")
def test_a_cell_leaves_homes_database_only_if_that_has_logical_replication(
    wallet: Wallet, places: Places
) -> None:
    wallet.run("cell", "add", "north")
    said = wallet.refuse("cell", "move", "north", places.new)
    assert "wal_level = replica" in said or "REPLICATION" in said
    # Nothing was begun, so another place may be named.
    assert wallet.read("select count(*) from cell_move") == [(0,)]


@pytest.mark.usefixtures("shop")
def test_what_can_not_be_moved_is_refused_with_the_reason(wallet: Wallet, places: Places) -> None:
    assert "There is no cell west" in wallet.refuse("cell", "move", "west", places.new)
    assert "home's own schema" in wallet.refuse("cell", "move", "main", places.new)
    for words in ((), ("--undo",), ("--drop-old",)):
        assert "is not being moved" in wallet.refuse("cell", "move", "east", *words)
    assert "only with one of them" in wallet.refuse("cell", "move", "east", "--gone", status=2)
    assert "has a schema east already" in wallet.refuse("cell", "move", "east", places.old)
    assert "can't be reached" in wallet.refuse("cell", "move", "east", NOWHERE, status=2)
    assert wallet.read("select count(*) from cell_move") == [(0,)]
    assert "There is no cell west" in wallet.refuse_document("cell", "move", "west", places.new)["msg"]


@contextmanager
def held_copy(url: str) -> Iterator[Callable[[], bool]]:
    """A move from this place stands still when its empty copy is made. Gives whether it stands."""
    with psycopg.connect(url) as locker, connect_sync(url) as other:
        locker.execute("lock table east.posting in access exclusive mode")

        def stands() -> bool:
            return other.execute(BLOCKED_BY, [locker.info.backend_pid]).fetchone() is not None

        yield stands
        locker.rollback()


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("signal_no", "undone"), [(signal.SIGINT, False), (signal.SIGKILL, True)])
def test_an_interrupted_move_is_continued_or_undone(
    wallet: Wallet, places: Places, signal_no: signal.Signals, undone: bool
) -> None:
    with held_copy(places.old) as stands, wallet.begin("cell", "move", "east", places.new) as command:
        wait_until(stands, command.read_errors)
        assert "another job has these books, move of a" in wallet.refuse("cell", "move", "east", places.new)
        elsewhere = make_conninfo(places.new, dbname="postgres")
        assert "to another place" in wallet.refuse("cell", "move", "east", elsewhere)
        assert look(wallet)["move"] == "copying"
        found = check(wallet)
        assert found is not None
        assert found["ok"]
        command.send(signal_no)
        status, _, said = command.finish()
    if signal_no == signal.SIGINT:
        assert status == 130
        assert "`merchant-wallet cell move east` continues" in said
    found = check(wallet)
    assert found is not None
    assert "no command is at it" in found["text"]
    assert "`merchant-wallet cell move east --undo`" in found["advice"]

    wallet.credit("Shop", "USDT", "5")
    if undone:
        assert wallet.ask("cell", "move", "east", "--undo")["done"] == "undone"
        assert (read_schemas(places.old), read_schemas(places.new)) == (["east"], [])
    else:
        assert wallet.ask("cell", "move", "east")["entries"] == 2
    wallet.credit("Shop", "USDT", "6")
    [book] = wallet.ask("book", "verify")["books"]
    assert (book["ok"], book["entries"]) == (True, 3)


@pytest.mark.usefixtures("shop")
def test_a_server_that_is_gone_for_good_does_not_hold_a_move(wallet: Wallet, places: Places) -> None:
    with held_copy(places.old) as stands, wallet.begin("cell", "move", "east", places.new) as command:
        wait_until(stands, command.read_errors)
        command.send(signal.SIGKILL)
        command.wait()
    assert wallet.ask("cell", "move", "east", "--undo", "--gone")["done"] == "undone"
    with connect_sync(places.new) as new:
        new.execute("drop schema east cascade")
        [(name,)] = new.execute("select subname from pg_subscription").fetchall() or [(None,)]
        if name is not None:
            for change in ("disable", "set (slot_name = none)"):
                new.execute(f"alter subscription {name} {change}".encode())
            new.execute(f"drop subscription {name}".encode())
    wallet.run("cell", "move", "east", places.new)
    assert wallet.ask("cell", "move", "east", "--drop-old", "--gone")["done"] == "old copy forgotten"
    assert (look(wallet)["move"], read_schemas(places.old)) == (None, ["east"])
    wallet.credit("Shop", "USDT", "5")


@pytest.mark.usefixtures("shop")
def test_a_setting_that_would_hold_a_process_at_the_old_place_is_named(
    wallet: Wallet, places: Places
) -> None:
    user = str(conninfo_to_dict(places.old)["user"])
    wallet.variables["WALLET_CELL_URLS"] = f"east=postgresql://{user}@"
    assert "WALLET_CELL_URLS" not in wallet.run("cell", "move", "east", places.new).stderr
    # Only the user is named. So the cell is found at its new place.
    wallet.credit("Shop", "USDT", "5")
    wallet.run("cell", "move", "east", "--drop-old")
    host = conninfo_to_dict(places.new)
    wallet.variables["WALLET_CELL_URLS"] = f"east=postgresql://{user}@/{host['dbname']}?host={host['host']}"
    assert "does not follow the move" in wallet.run("cell", "move", "east", places.old).stderr


@pytest.mark.usefixtures("shop")
def test_home_restored_to_before_a_move_finds_the_cell_by_its_old_place(
    postgres: SharedPostgres, wallet: Wallet, places: Places
) -> None:
    with open_scene(postgres, wallet, places.old) as scene:
        before = scene.back_up()
        wallet.run("cell", "move", "east", places.new)
        wallet.credit("Shop", "USDT", "5")
        scene.restore(before)
        assert scene.work() == ["home"]
        # The restored home knows no server of that name, and its owner's password goes to no other.
        assert "--cell-url east=URL" in wallet.refuse(*ACCEPT)
        [cell] = wallet.ask(*ACCEPT, "--cell-url", f"east={places.new}")["cells"]
        assert (cell["name"], cell["address"]) == ("east", strip_identity(places.new))
        wallet.credit("Shop", "USDT", "7")
        assert wallet.balance("Shop", "merchant:USDT") == "112"
        assert "--drop-old" in wallet.refuse("cell", "move", "east", places.old)
        wallet.run("cell", "move", "east", "--drop-old")
        assert read_schemas(places.old) == []
        wallet.run("cell", "move", "east", places.old)
        scene.require_sound()
        assert wallet.balance("Shop", "merchant:USDT") == "112"
