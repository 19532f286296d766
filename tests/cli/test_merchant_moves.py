"""`merchant move`: a book moves to another cell, back, not at all, and after an interruption."""

import signal

import pytest
from tests.cells.book_moved import list_tables_with_merchants
from tests.cli.conftest import Wallet
from tests.cli.test_cells import count
from tests.waits import wait_until
from typer.testing import CliRunner

from merchant_wallet.base.db import connect_sync, place
from merchant_wallet.cli.program import app
from merchant_wallet.merchants.cells import book_moving, moving


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no fault, and nobody reads old copies."""
    monkeypatch.setattr(moving, "USUAL", moving.Timing(budget_s=20.0, retry_s=0.05))
    monkeypatch.setattr(book_moving, "REST_S", 0)


@pytest.fixture
def shop(wallet: Wallet) -> int:
    """A merchant with 100 USDT in the default cell. There is a cell `east`, too."""
    merchant_id = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "100")
    wallet.run("cell", "add", "east")
    return merchant_id


def list_actions(wallet: Wallet) -> list[str]:
    """What the audit log says of moves, the oldest first."""
    entries = wallet.ask("audit", "list")["entries"]
    return [e["action"] for e in reversed(entries) if e["action"].startswith("merchant.move.")]


def read_doctor_line(wallet: Wallet, merchant_id: int) -> str:
    """What `doctor` says of the move, with its advice."""
    lines = CliRunner().invoke(app, ["doctor"], env=wallet.variables).output.splitlines()
    begin = next(number for number, line in enumerate(lines) if f"move of merchant {merchant_id}" in line)
    return " ".join(lines[begin : begin + 2])


def test_a_book_moves_its_old_copy_is_removed_and_it_moves_back(wallet: Wallet, shop: int) -> None:
    moved = wallet.ask("merchant", "move", "Shop", "east")
    closed_ms = moved.pop("closedMs")
    assert moved == {"merchantId": shop, "fromCell": "main", "toCell": "east", "done": "moved"}
    assert 0 < closed_ms < 20_000
    assert count(wallet.url, "east", "entry") == count(wallet.url, "public", "entry") == 1
    wallet.credit("Shop", "USDT", "7")
    assert wallet.balance("Shop", "merchant:USDT") == "107"
    assert count(wallet.url, "public", "entry") == 1
    assert wallet.ask("merchant", "move", "Shop")["done"] == "moved already"
    assert "old copy is still in cell main" in read_doctor_line(wallet, shop)
    assert "--drop-old" in wallet.refuse("merchant", "move", "Shop", "main")
    assert wallet.ask("merchant", "move", "Shop", "--drop-old")["done"] == "old copy removed"
    assert count(wallet.url, "public", "entry") == 0
    assert wallet.ask("merchant", "move", "Shop", "main")["done"] == "moved"
    wallet.run("merchant", "move", "Shop", "--drop-old")
    assert count(wallet.url, "east", "entry") == 0
    assert [book["ok"] for book in wallet.ask("book", "verify", "Shop")["books"]] == [True]
    begun = ["merchant.move.begin", "merchant.move.switch", "merchant.move.drop_old"]
    assert list_actions(wallet) == [*begun, *begun]


def test_a_book_moves_between_two_cells_beside_home(wallet: Wallet) -> None:
    for name in ("east", "west"):
        wallet.run("cell", "add", name)
    wallet.open_merchant("Shop", "--cell", "east")
    wallet.credit("Shop", "USDT", "100")
    wallet.run("merchant", "set", "Shop", "--require-pin")
    assert wallet.ask("merchant", "move", "Shop", "west")["fromCell"] == "east"
    wallet.run("merchant", "suspend", "Shop")
    with connect_sync(place(wallet.url, None, "west")) as west:
        assert west.execute("select require_pin, status from merchant").fetchall() == [(True, "suspended")]
    wallet.credit("Shop", "USDT", "5")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    with connect_sync(place(wallet.url, None, "east")) as east:
        for table in list_tables_with_merchants(east):
            assert count(wallet.url, "east", table) == 0, table
    [book] = wallet.ask("book", "verify", "Shop")["books"]
    assert (book["ok"], book["entries"]) == (True, 2)


def test_a_move_that_cannot_begin_says_why(wallet: Wallet, shop: int) -> None:
    assert "There is no cell west" in wallet.refuse("merchant", "move", "Shop", "west")
    assert "is in cell main already" in wallet.refuse("merchant", "move", "Shop", "main")
    assert "is not being moved. Name the cell" in wallet.refuse("merchant", "move", "Shop")
    assert "is not being moved." in wallet.refuse("merchant", "move", "Shop", "--undo")
    assert "not both" in wallet.refuse("merchant", "move", "Shop", "--undo", "--drop-old", status=2)
    wallet.run("cell", "drain", "east")
    assert "is draining" in wallet.refuse("merchant", "move", "Shop", "east")
    wallet.run("cell", "drain", "east", "--undo")
    wallet.run("cell", "add", "west")
    wallet.run("merchant", "move", "Shop", "east")
    assert "remove" in wallet.refuse("merchant", "move", "Shop", "west").lower()
    assert list_actions(wallet) == ["merchant.move.begin", "merchant.move.switch"]


def test_a_move_that_was_interrupted_is_undone_or_continued(wallet: Wallet, shop: int) -> None:
    with connect_sync(place(wallet.url, None, "east")) as east:
        # The mover waits for this lock when it fills the copy.
        east.execute("begin")
        east.execute("lock table book in exclusive mode")
        with wallet.begin("merchant", "move", "Shop", "east") as command:
            wait_until(lambda: is_waiting(wallet), command.read_errors)
            assert "a command is at it" in read_doctor_line(wallet, shop)
            assert "another job has these books, move of a" in wallet.refuse("merchant", "move", "Shop")
            command.send(signal.SIGINT)
            status, _, said = command.finish()
    assert status == 130
    assert "continues where it was" in said
    assert "continue it with" in read_doctor_line(wallet, shop)
    wallet.credit("Shop", "USDT", "7")
    assert wallet.ask("merchant", "move", "Shop", "--undo")["done"] == "undone"
    assert count(wallet.url, "east", "book") == 0
    assert wallet.ask("merchant", "move", "Shop", "east")["done"] == "moved"
    assert wallet.balance("Shop", "merchant:USDT") == "107"


def is_waiting(wallet: Wallet) -> bool:
    """Whether somebody waits for a lock."""
    with connect_sync(wallet.url) as connection:
        row = connection.execute(
            "select exists (select from pg_stat_activity where wait_event_type = 'Lock'"
            " and datname = current_database())"
        ).fetchone()
    return row == (True,)
