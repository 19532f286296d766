"""Home is restored from a back-up, its cell is not: after the acceptance everything works again.

Home does not know where a book or a cell has moved, nor new merchants. What can't come back is named.
"""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from tests.cells.book_moved import take_over
from tests.cells.layout import open_layout
from tests.cells.moved import take_over as take_cell_over
from tests.cli.conftest import Wallet
from tests.cli.killable_archive import run_to_death
from tests.cli.restored_home import ACCEPT, Scene, open_scene
from tests.conftest import FAR, TEMPLATE_WITH_CELL, SharedPostgres
from tests.crash_points import Point, Program, before_change
from tests.waits import wait_until

from merchant_wallet.base.db import (
    APPLICATION_NAME,
    complete_conninfo,
    connect_sync,
    place,
    strip_identity,
)
from merchant_wallet.merchants.cells import book_moving, moving
from merchant_wallet.merchants.cells.fence import MOVED
from merchant_wallet.postgres import WEB_ROLE
from merchant_wallet.postgres.grants import Side, grant

KILLED_COPYING = Point("update merchant set move_version", 1)
KILLED_SWITCHING = Point("insert into audit_entry", 1)
SWITCHING = """insert into cell_move (cell_id, move_id, state, address, old_address, began_ms, changed_ms)
 select cell_id, gen_random_uuid(), 'switching', %(address)s, address, 0, 0 from cell where name = 'far'"""
PAYOUT = """insert into payout
 (merchant_id, order_id, fence, claimed_by, claimed_until_ms, chain, phase, signed_no)
 values (%(shop)s, %(order_id)s, %(fence)s, case when %(fence)s > 0 then 'payer' end, 0, 'ERC20', %(phase)s,
         %(signed_no)s)"""
PAYOUTS = (("closed", 1, 1), ("queued", 0, 0), ("taken_up", 1, 1))
MOVE = ("merchant", "move", "Shop", FAR)


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no fault, and nobody reads old copies."""
    monkeypatch.setattr(moving, "USUAL", moving.Timing(budget_s=20.0, retry_s=0.05))
    monkeypatch.setattr(book_moving, "REST_S", 0)


@pytest.fixture
def scene(postgres: SharedPostgres, wallet: Wallet) -> Iterator[Scene]:
    """A shop with 100 USDT in the default cell, and a cell `far` in another database."""
    postgres.prepare_template_with_cell()
    with postgres.database(TEMPLATE_WITH_CELL) as far:
        open_layout(wallet.url, place(far, None, FAR), far)
        with open_scene(postgres, wallet, far) as scene:
            wallet.open_merchant("Shop")
            wallet.credit("Shop", "USDT", "100")
            assert scene.work() == []
            yield scene


def find_shop(wallet: Wallet) -> int:
    [shop] = [one for one in wallet.ask("merchant", "list")["merchants"] if one["name"] == "Shop"]
    return int(shop["merchantId"])


def make_payout(wallet: Wallet, shop: int, phase: str, fence: int, signed_no: int) -> int:
    """A payout as the payer leaves it. Returns the id of its order."""
    order_id = 2**33 + 500 + len(wallet.read("select order_id from payout"))
    wallet.tamper(PAYOUT, shop=shop, order_id=order_id, phase=phase, fence=fence, signed_no=signed_no)
    return order_id


def test_a_book_that_has_moved_away_is_in_its_new_cell_again(scene: Scene) -> None:
    wallet, before = scene.wallet, scene.back_up()
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.credit("Shop", "USDT", "7")
    assert scene.work() == []
    scene.restore(before)
    # Nobody has looked yet, and the old copy takes an order.
    wallet.credit("Shop", "USDT", "3")
    shop = find_shop(wallet)
    [(left,)] = wallet.read("select max(entry_id) from entry where merchant_id = %(shop)s", shop=shop)
    wallet.tamper(PAYOUT, shop=shop, order_id=left, phase="taken_up", fence=1, signed_no=1)
    found = scene.list_faults()["checkpoints"]
    assert "home was rolled back" in found
    assert "book accept-rollback" in found
    assert "home" in scene.work()
    assert "accept-rollback" in wallet.refuse("merchant", "move", "Shop", FAR)
    assert "accept-rollback" in wallet.refuse("merchant", "create", "Other")

    answer = wallet.ask(*ACCEPT)
    [book] = answer["books"]
    assert (book["merchantId"], book["cell"], book["entries"]) == (shop, FAR, 2)
    assert (list(book["leftBehind"].values()), book["closedOrders"]) == ([[left]], [left])
    assert (answer["cells"], answer["merchants"], answer["lost"]) == ([], [], [])
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "107"
    wallet.credit("Shop", "USDT", "1")
    assert "--drop-old" in wallet.refuse("merchant", "move", "Shop", "main")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    wallet.run("merchant", "move", "Shop", "main")
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "108"


def test_a_copy_with_a_newer_checkpoint_is_right_although_it_is_shorter(scene: Scene) -> None:
    wallet, before = scene.wallet, scene.back_up()
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.credit("Shop", "USDT", "7")
    assert scene.work() == []
    wallet.run("merchant", "move", "Shop", "--drop-old")
    wallet.run("merchant", "move", "Shop", "main")
    wallet.credit("Shop", "USDT", "20")
    # An hour later a checkpoint is signed that no copy has.
    scene.copy(scene.far)
    assert scene.work() == []
    scene.restore(before)
    for _ in range(3):
        wallet.credit("Shop", "USDT", "1")
    assert "home" in scene.work()
    [book] = wallet.ask(*ACCEPT)["books"]
    assert (book["cell"], book["entries"]) == (FAR, 2)
    assert [len(entries) for entries in book["leftBehind"].values()] == [3]
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "107"


@pytest.mark.parametrize(("kept", "balance"), [(FAR, "107"), ("main", "106")])
def test_copies_that_went_different_ways_are_left_to_a_person(scene: Scene, kept: str, balance: str) -> None:
    wallet, before = scene.wallet, scene.back_up()
    shop = find_shop(wallet)
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.credit("Shop", "USDT", "7")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    wallet.run("merchant", "move", "Shop", "main")
    away = wallet.open_merchant("Away", "--cell", FAR)
    scene.restore(before)
    for _ in range(2):
        wallet.credit("Shop", "USDT", "3")
        # Nobody signs the head of a book that may be the wrong copy.
        assert scene.work() == ["home"]
    refused = wallet.refuse(*ACCEPT)
    assert f"--keep {shop}=CELL" in refused
    assert "2 entries of its own" in refused
    assert "1 entry of its own" in refused
    assert "no such cell" in wallet.refuse(*ACCEPT, "--keep", f"{shop}=north")
    assert "no such merchant" in wallet.refuse(*ACCEPT, "--keep", f"{away + 1}={kept}")
    wallet.refuse(*ACCEPT, "--keep", "Shop=far", status=2)
    answer = wallet.ask(*ACCEPT, "--keep", f"{shop}={kept}")
    # The refused command brought it back.
    assert answer["merchants"] == [away]
    [book] = answer["books"]
    assert book["cell"] == kept
    assert list(book["leftBehind"]) == [{FAR: "main", "main": FAR}[kept]]
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == balance


def test_a_book_that_has_moved_home_is_the_closed_copy_again(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.run("merchant", "move", "Shop", "--drop-old")
    assert scene.work() == []
    before = scene.back_up()
    wallet.credit("Shop", "USDT", "7")
    wallet.run("merchant", "move", "Shop", "main")
    wallet.credit("Shop", "USDT", "20")
    assert scene.work() == []
    scene.restore(before)
    assert "home" in scene.work()
    answer = wallet.ask(*ACCEPT)
    # What it had when it moved is there. What came after was in home alone, and is named.
    assert [(book["cell"], book["entries"]) for book in answer["books"]] == [(FAR, 2)]
    assert [sign["cause"] for sign in answer["signs"] if sign["subject"] == "book"] != []
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "107"


def test_a_book_whose_last_copy_was_in_home_begins_anew(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.run("merchant", "move", "Shop", "--drop-old")
    shop = find_shop(wallet)
    assert scene.work() == []
    before = scene.back_up()
    wallet.run("merchant", "move", "Shop", "main")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    assert scene.work() == []
    scene.restore(before)
    paid, queued, signed = (make_payout(wallet, shop, *state) for state in PAYOUTS)
    assert scene.work() != []
    answer = wallet.ask(*ACCEPT)
    assert answer["lost"] == [shop]
    assert answer["lostOrders"] == [{"merchantId": shop, "dropped": [queued], "closed": [signed]}]
    assert wallet.read("select order_id from payout order by 1") == [(paid,), (signed,)]
    scene.require_sound()
    wallet.credit("Shop", "USDT", "100")
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    wallet.run("merchant", "move", "Shop", "main")


def test_a_book_whose_only_copy_was_still_being_filled_begins_anew(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.run("merchant", "move", "Shop", "--drop-old")
    other = wallet.open_merchant("Other", "--cell", FAR)
    wallet.credit("Shop", "USDT", "7")
    assert scene.work() == []
    before = scene.back_up()
    wallet.run("merchant", "move", "Shop", "main")
    shop = find_shop(wallet)
    with connect_sync(place(scene.far, None, FAR)) as far:
        for table in ("posting", "entry"):
            last = f"(select max(entry_id) from {table} where merchant_id = {shop})"
            far.execute(f"delete from {table} where entry_id = {last}".encode())
    scene.restore(before)
    assert "home" in scene.work()
    assert wallet.ask(*ACCEPT)["lost"] == [shop]
    assert other in scene.count_books()
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "0"


def test_merchants_that_home_does_not_know_come_back_suspended(scene: Scene) -> None:
    wallet, before = scene.wallet, scene.back_up()
    near, away = wallet.open_merchant("Near", "--cell", "main"), wallet.open_merchant("Away", "--cell", FAR)
    for name in ("Near", "Away"):
        wallet.credit(name, "USDT", "5")
    user = wallet.register(away, "carol")
    assert scene.work() == []
    scene.restore(before)
    answer = wallet.ask(*ACCEPT)
    assert answer["merchants"] == [away]
    # The other one was in home alone. Its loss is named, and its id is given to nobody else.
    assert [sign["merchantId"] for sign in answer["signs"] if sign["subject"] == "book"] == [near]
    scene.require_sound()
    found = wallet.ask("merchant", "show", "Away")
    assert (found["merchantId"], found["status"]) == (away, "suspended")
    wallet.run("merchant", "rotate-secret", "Away")
    wallet.run("merchant", "resume", "Away")
    wallet.credit("Away", "USDT", "1")
    assert wallet.balance("Away", "merchant:USDT") == "6"
    assert wallet.register(away, "dave").evm_address != user.evm_address
    assert wallet.open_merchant("Next") == away + 1
    scene.require_sound()
    wallet.run("merchant", "move", "Away", "main")
    scene.require_sound()


def test_a_cell_that_was_added_since_is_named_by_a_person(scene: Scene) -> None:
    wallet, before = scene.wallet, scene.back_up()
    with_north = scene.copy(scene.far)
    wallet.run("cell", "add", "north", with_north)
    away = wallet.open_merchant("Away", "--cell", "north")
    wallet.credit("Away", "USDT", "5")
    assert scene.work() == []
    scene.restore(before)
    assert "book" in scene.work()
    assert "no open one" in wallet.refuse(*ACCEPT, "--cell-url", f"south={with_north}")
    answer = wallet.ask(*ACCEPT, "--cell-url", f"north={with_north}")
    assert [cell["name"] for cell in answer["cells"]] == ["north"]
    assert answer["merchants"] == [away]
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "5"


def test_a_cell_that_has_moved_is_found_where_its_old_place_says(scene: Scene) -> None:
    wallet = scene.wallet
    away = wallet.open_merchant("Away", "--cell", FAR)
    before = scene.back_up()
    first, second = scene.move_far(), scene.move_far()
    wallet.credit("Away", "USDT", "5")
    wallet.run("merchant", "move", "Shop", FAR)
    assert scene.work() == []
    scene.restore(before)
    found = scene.list_faults()
    assert "home was rolled back" in found["checkpoints"]
    assert "dbname=" + first.split("/")[-1].split("?")[0] in found["cell far"]
    assert "book accept-rollback --reason TEXT`" in found["cell far"]
    assert "home" in scene.work()

    answer = wallet.ask(*ACCEPT)
    [cell] = answer["cells"]
    assert (cell["name"], cell["address"], cell["version"]) == (FAR, strip_identity(second), 3)
    assert [book["cell"] for book in answer["books"]] == [FAR]
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "5"
    assert wallet.balance("Shop", "merchant:USDT") == "100"
    assert wallet.register(away, "dave").ext_user_id == "dave"
    # Home has the record of the move again.
    assert "old copy was not dropped" in wallet.refuse("cell", "move", FAR, first)


def test_a_cell_is_not_followed_to_a_server_that_nobody_knows(scene: Scene) -> None:
    wallet, before = scene.wallet, scene.back_up()
    old = scene.far
    new = scene.move_far()
    scene.restore(before)
    with socket.create_server(("127.0.0.9", 0)) as thief, connect_sync(place(old, None, FAR)) as there:
        thief.setblocking(False)
        port = thief.getsockname()[1]
        note = f"comment on schema {FAR} is '{MOVED}host=127.0.0.9 port={port} dbname=wallet sslmode=disable'"
        there.execute(note.encode())
        refused = wallet.refuse(*ACCEPT)
        assert f"moved to dbname=wallet host=127.0.0.9 port={port}." in refused
        assert "--cell-url far=URL" in refused
        with pytest.raises(BlockingIOError):
            thief.accept()
        there.execute(f"comment on schema {FAR} is '{MOVED}host=''".encode() + b"'")
        assert "--cell-url far=URL" in scene.list_faults()["cell far"]
        assert "--cell-url far=URL" in wallet.refuse(*ACCEPT)
    answer = wallet.ask(*ACCEPT, "--cell-url", f"far={new}")
    assert [cell["address"] for cell in answer["cells"]] == [strip_identity(new)]


def test_where_a_cell_has_moved_is_typed_if_its_old_place_does_not_say_it(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.open_merchant("Away", "--cell", FAR)
    before, old = scene.back_up(), scene.far
    new = scene.move_far(is_noted=False)
    wallet.credit("Away", "USDT", "5")
    scene.restore(before)
    assert "--cell-url far=URL" in scene.list_faults()["cell far"]
    assert scene.work() == ["home"]
    assert "--cell-url far=URL" in wallet.refuse(*ACCEPT)
    wallet.refuse(*ACCEPT, "--cell-url", "far", status=2)
    assert "is not at" in wallet.refuse(*ACCEPT, "--cell-url", f"far={before}")
    answer = wallet.ask(*ACCEPT, "--cell-url", f"far={new}")
    assert [cell["version"] for cell in answer["cells"]] == [2]
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "5"
    # The old place is not opened again, also while the new one is away.
    assert "newer copy" in wallet.refuse(*ACCEPT, "--cell-url", f"far={old}")
    with scene.postgres.closing(new):
        assert "newer copy" in wallet.refuse(*ACCEPT, "--cell-url", f"far={old}")


def test_an_old_place_is_opened_again_if_a_person_says_so(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.open_merchant("Away", "--cell", FAR)
    wallet.credit("Away", "USDT", "5")
    grant(place(scene.far, None, FAR), {Side.WEB: WEB_ROLE}, FAR)
    before, old = scene.back_up(), scene.far
    new = scene.move_far()
    with connect_sync(place(old, None, FAR)) as far:
        # What the end of a move does.
        far.execute(
            f"revoke insert, update, delete, truncate on all tables in schema {FAR} from {WEB_ROLE}".encode()
        )
    wallet.credit("Away", "USDT", "7")
    assert scene.work() == []
    scene.restore(before)
    with scene.postgres.closing(new):
        # The server of the new place is lost for good.
        assert "--cell-url" in wallet.refuse(*ACCEPT)
        answer = wallet.ask(*ACCEPT, "--cell-url", f"far={old}")
        assert [cell["version"] for cell in answer["cells"]] == [3]
        assert [sign["subject"] for sign in answer["signs"]] != []
        scene.far = old
        assert scene.read_far(f"select has_table_privilege('{WEB_ROLE}', 'sub_user', 'insert')") == [(True,)]
        assert scene.read_far("select obj_description(current_schema()::regnamespace)") == [(None,)]
        scene.require_sound()
        assert wallet.balance("Away", "merchant:USDT") == "5"


def test_an_acceptance_that_is_killed_anywhere_is_repeated(scene: Scene) -> None:
    wallet = scene.wallet
    before = scene.back_up()
    away = wallet.open_merchant("Away", "--cell", FAR)
    wallet.credit("Away", "USDT", "5")
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.credit("Shop", "USDT", "7")
    scene.move_far()
    assert scene.work() == []
    scene.restore(before)
    wallet.credit("Shop", "USDT", "3")
    is_stopped: list[bool] = []
    # A command that was killed after its last commit has accepted everything.
    while not (is_stopped[-1:] == [False] and any(is_stopped)):
        assert run_to_death(Program(before_change(len(is_stopped) + 1)), wallet.variables, *ACCEPT)
        is_stopped.append(wallet.read("select count(*) from rollback_evidence") != [(0,)])
    # From its first commit to its last one nothing is paid.
    assert sorted(is_stopped[:-1]) == is_stopped[:-1]
    assert len(is_stopped) > 20
    assert [wallet.balance(name, "merchant:USDT") for name in ("Shop", "Away")] == ["107", "5"]
    assert wallet.ask("merchant", "show", "Away")["merchantId"] == away
    scene.require_sound()


def test_an_acceptance_that_closes_open_copies_and_is_killed_anywhere_is_repeated(scene: Scene) -> None:
    wallet, old, shop = scene.wallet, scene.far, find_shop(scene.wallet)
    away = wallet.open_merchant("Away", "--cell", FAR)
    before = scene.back_up()
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.credit("Shop", "USDT", "7")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    wallet.run("merchant", "move", "Shop", "main")
    new = scene.move_far(is_noted=False)
    wallet.credit("Away", "USDT", "5")
    scene.restore(before)
    with connect_sync(place(old, None, FAR)) as far:
        far.execute("update cell_state set version = 1, is_open = true")
    for name in ("Shop", "Away"):
        wallet.credit(name, "USDT", "3")
    assert "home" in scene.work()
    arguments = (*ACCEPT, "--cell-url", f"far={new}", "--keep", f"{shop}={FAR}")
    number = 1
    while wallet.read("select count(*) from rollback_evidence") != [(0,)]:
        assert run_to_death(Program(before_change(number)), wallet.variables, *arguments)
        number += 1
    assert number > 20
    with connect_sync(place(old, None, FAR)) as far:
        assert far.execute("select is_open from cell_state").fetchall() == [(False,)]
    # However often it was killed, what only a closed copy has is named.
    entries = wallet.ask("audit", "list")["entries"]
    left = [entry["after"]["leftBehind"] for entry in entries if "leftBehind" in (entry["after"] or {})]
    assert left == [{"main": 1}, {str(away): 1}]
    assert [wallet.balance(name, "merchant:USDT") for name in ("Shop", "Away")] == ["107", "5"]
    scene.far = new
    scene.require_sound()


def test_a_cell_restored_to_before_a_book_left_it_has_its_copy_closed(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.run("merchant", "move", "Shop", FAR)
    wallet.run("merchant", "move", "Shop", "--drop-old")
    wallet.open_merchant("Away", "--cell", FAR)
    before = scene.copy(scene.far)
    wallet.run("merchant", "move", "Shop", "main")
    wallet.run("merchant", "move", "Shop", "--drop-old")
    for name in ("Shop", "Away"):
        wallet.credit(name, "USDT", "7")
    assert scene.work() == []
    scene.far = before
    wallet.tamper("update cell set address = %(address)s where name = 'far'", address=strip_identity(before))
    assert scene.work() == ["book", "home"]
    answer = wallet.ask(*ACCEPT)
    assert [(book["cell"], book["leftBehind"]) for book in answer["books"]] == [("main", {})]
    assert scene.read_far("select is_open from book order by merchant_id") == [(False,), (True,)]
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "107"


@pytest.mark.parametrize("step", [KILLED_COPYING, KILLED_SWITCHING])
def test_a_move_that_home_knows_as_begun_was_finished_in_the_lost_time(scene: Scene, step: Point) -> None:
    wallet = scene.wallet
    assert run_to_death(Program(step.make_test()), wallet.variables, *MOVE)
    before = scene.back_up()
    asyncio.run(take_over(wallet.url))
    wallet.run("merchant", "move", "Shop")
    wallet.credit("Shop", "USDT", "7")
    scene.restore(before)
    # A worker that has not heard of the rollback opens the old copy again.
    asyncio.run(take_over(wallet.url))
    assert scene.work() == ["home"]
    for option in ((), ("--undo",)):
        assert "accept-rollback" in wallet.refuse("merchant", "move", "Shop", *option)
    assert [book["cell"] for book in wallet.ask(*ACCEPT)["books"]] == [FAR]
    scene.require_sound()
    assert wallet.balance("Shop", "merchant:USDT") == "107"
    wallet.run("merchant", "move", "Shop", "--drop-old")
    scene.require_sound()


def test_a_cell_that_switched_when_home_was_backed_up_is_not_opened_at_its_old_place(scene: Scene) -> None:
    wallet = scene.wallet
    wallet.open_merchant("Away", "--cell", FAR)
    before = scene.back_up()
    new = scene.move_far()
    wallet.credit("Away", "USDT", "5")
    scene.restore(before)
    wallet.tamper("update cell set version = 2 where name = 'far'")
    wallet.tamper(SWITCHING, address=strip_identity(new))
    asyncio.run(take_cell_over(wallet.url))
    assert "home was rolled back" in scene.list_faults()["cell far"]
    assert scene.work() == ["home"]
    assert "accept-rollback" in wallet.refuse("cell", "move", FAR)
    assert [cell["address"] for cell in wallet.ask(*ACCEPT)["cells"]] == [strip_identity(new)]
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "5"


def test_a_cell_whose_switch_a_worker_took_back_is_at_the_place_that_a_person_names(scene: Scene) -> None:
    wallet, old = scene.wallet, scene.far
    away = wallet.open_merchant("Away", "--cell", FAR)
    wallet.credit("Away", "USDT", "5")
    wallet.credit("Shop", "USDT", "5")
    before = scene.back_up()
    new = scene.move_far(is_noted=False)
    wallet.credit("Away", "USDT", "7")
    assert scene.work() == []
    scene.restore(before)
    # The back-up is of the middle of the switch, and the old place does not say that it ended.
    wallet.tamper("update cell set version = 2 where name = 'far'")
    wallet.tamper(SWITCHING, address=strip_identity(new))
    asyncio.run(take_cell_over(wallet.url))
    scene.far = old
    wallet.credit("Away", "USDT", "1")
    assert "book" in scene.work()
    # A copy that has nothing of its own is not taken for the cell.
    assert "newer copy" in wallet.refuse(*ACCEPT, "--cell-url", f"far={scene.copy(old)}")
    [cell] = wallet.ask(*ACCEPT, "--cell-url", f"far={new}")["cells"]
    assert (cell["address"], cell["version"]) == (strip_identity(new), 4)
    assert [len(own) for own in cell["leftBehind"].values()] == [1]
    assert list(cell["leftBehind"]) == [str(away)]
    assert scene.read_far("select is_open from cell_state") == [(False,)]
    scene.far = new
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "12"


def test_an_open_old_place_is_closed_after_its_writers_have_ended(scene: Scene) -> None:
    wallet, old = scene.wallet, scene.far
    away = wallet.open_merchant("Away", "--cell", FAR)
    before = scene.back_up()
    new = scene.move_far(is_noted=False)
    wallet.credit("Away", "USDT", "7")
    scene.restore(before)
    # The server of the old place was restored with home.
    with connect_sync(place(old, None, FAR)) as far:
        far.execute("update cell_state set version = 1, is_open = true")
    wallet.credit("Away", "USDT", "1")
    with ExitStack() as sessions:
        service, person = (
            sessions.enter_context(psycopg.connect(complete_conninfo(place(old, None, FAR), name)))
            for name in (APPLICATION_NAME, "psql")
        )
        service.execute("select 1")
        person.execute("update book set version = version where merchant_id = %s", (away,))
        accepting = sessions.enter_context(wallet.begin(*ACCEPT, "--cell-url", f"far={new}", "--json"))
        wait_until(lambda: "written in the cell: psql" in accepting.read_errors(), "it waits for a person")
        with pytest.raises(psycopg.OperationalError):
            service.execute("select 1")
        assert wallet.read("select version from cell where name = 'far'") == [(1,)]
        person.commit()
        status, answer, errors = accepting.finish()
    assert status == 0, errors
    [cell] = json.loads(answer)["cells"]
    assert [len(own) for own in cell["leftBehind"].values()] == [1]
    with connect_sync(place(old, None, FAR)) as far:
        assert far.execute("select is_open, version from cell_state").fetchall() == [(False, 2)]
    scene.require_sound()
    assert wallet.balance("Away", "merchant:USDT") == "7"
