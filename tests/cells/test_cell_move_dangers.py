"""Moves of cells that must not succeed, or not yet: wrong copies, slow switches, movers that wake up late."""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import psycopg
import pytest
from tests.book.test_checkpoints import OTHER, SIGNER
from tests.cells.killable_mover import LATE_POINTS, POINTS, SWITCH_POINTS
from tests.cells.layout import Layout
from tests.cells.moved import BY, MovableCell, frozen_mover, has_answers, stop_mover, take_over, under_load
from tests.checkpoints import write_checkpoints
from tests.crash.shop import run
from tests.crash_points import Point
from tests.waits import TIMEOUT_S, eventually

from merchant_wallet.base.db import complete_conninfo, connect, connect_sync, strip_identity
from merchant_wallet.base.units import HOUR_MS
from merchant_wallet.book import connection as book_connection
from merchant_wallet.merchants.cells import fence, moves
from merchant_wallet.merchants.cells.copies import CheckpointFolder, CopyWrong
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.lost_places import forget_old, undo_without_new
from merchant_wallet.merchants.cells.moves import TIMEOUT_MS, MoveLost, MoveRefused
from merchant_wallet.merchants.cells.moving import Timing, make_urls, open_mover
from merchant_wallet.merchants.cells.takeover import MoveTakeover
from merchant_wallet.postgres.jobs import Kind, hold, scope_of_book

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
COPIED = POINTS[-1]
"""The copy is complete, and not yet verified."""
DAMAGES: Final = (
    b"update posting set amount = amount + 1 where entry_id = (select max(entry_id) from posting)",
    b"update account set balance = balance + 1 where account_id = (select max(user_id) from sub_user)",
    b"delete from wallet_address",
    b"delete from entry where entry_id = (select max(entry_id) from entry)",
)


def test_a_copy_that_is_wrong_never_counts(movable: MovableCell) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        for damage in DAMAGES:
            await stop_mover(movable, COPIED)
            with connect_sync(movable.new_cell_url) as new:
                assert new.execute(damage).rowcount > 0
            with pytest.raises(CopyWrong):
                await movable.move()
            assert movable.read_place()[1:] == (1, "copying"), damage
            await movable.undo()
        async with under_load(movable):
            await movable.move()

    run(scenario())


def test_a_copy_that_differs_from_its_checkpoints_never_counts(movable: MovableCell, tmp_path: Path) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with await connect(movable.layout.far_url) as far:
            assert await write_checkpoints(far, SIGNER, tmp_path, 1000) == 1
        with pytest.raises(CopyWrong, match="is not signed with this key"):
            await movable.move(checkpoints=CheckpointFolder(tmp_path, OTHER.keys))
        assert movable.read_place()[2] == "copying"
        await movable.move(checkpoints=CheckpointFolder(tmp_path, SIGNER.keys))
        assert movable.read_place()[2] == "switched"

    run(scenario())


def test_a_switch_that_takes_too_long_is_taken_back_and_tried_again(movable: MovableCell) -> None:
    locker = psycopg.connect(movable.new_url)
    attempts: list[str] = []

    def act(text: str) -> None:
        if text == "switching":
            attempts.append(text)
            if len(attempts) == 1:
                write_what_cannot_be_applied()
        elif "trying again" in text:
            locker.rollback()

    def write_what_cannot_be_applied() -> None:
        locker.execute("lock table far.callback_pause in share row exclusive mode")
        with connect_sync(movable.layout.far_url) as old:
            old.execute("insert into callback_pause select merchant_id, 1, 'test' from book")

    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable):
            await movable.move(Timing(budget_s=1.5, retry_s=0.1, attempts=20), act)

    with locker:
        run(scenario())
    assert len(attempts) > 1
    assert movable.read_place()[1:] == (2 * len(attempts), "switched")
    with connect_sync(movable.layout.url) as home:
        taken_back = home.execute(
            "select count(*) from audit_entry where action = 'cell.move.take_back'"
        ).fetchone()
    assert taken_back == (len(attempts) - 1,)
    with connect_sync(movable.new_cell_url) as place:
        assert place.execute("select count(*) from callback_pause").fetchone() == (1,)


@pytest.mark.parametrize("point", [SWITCH_POINTS[2], SWITCH_POINTS[8], SWITCH_POINTS[9]], ids=str)
def test_a_mover_that_wakes_up_late_changes_nothing(movable: MovableCell, point: Point) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable) as load:
            async with frozen_mover(movable, point) as late:
                await take_over(movable.layout.url)
                with pytest.raises(MoveRefused, match="another job has these books, move of a"):
                    await movable.move()
                count = len(load.acknowledged)
                await eventually(lambda: has_answers([load], [count]))
                assert await late.resume() is not None
            assert movable.read_place()[1:] == (3, "copying")
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))
            await movable.move()
        assert movable.read_place()[2] == "switched"

    run(scenario())


def test_a_session_that_was_open_before_the_switch_ends_with_its_transaction(movable: MovableCell) -> None:
    asyncio.run(movable.open_shops("Shop"))
    insert = "insert into callback_pause select merchant_id, 1, 'test' from book"
    with ExitStack() as stack:
        idle, busy = (stack.enter_context(connect_sync(movable.layout.far_url)) for _ in range(2))

        def begin_late(text: str) -> None:
            # Before that, PostgreSQL waits for the end of transactions that write.
            if text == "following":
                busy.execute("begin")
                busy.execute(insert)

        run(movable.move(progress=begin_late))
        for session in (idle, busy):
            with pytest.raises(psycopg.OperationalError, match="terminating connection"):
                session.execute(insert)
    for url in (movable.layout.far_url, movable.new_cell_url):
        with connect_sync(url) as place:
            assert place.execute("select count(*) from callback_pause").fetchone() == (0,)


def test_a_persons_open_transaction_is_waited_for_and_not_lost(movable: MovableCell) -> None:
    asyncio.run(movable.open_shops("Shop"))
    url = complete_conninfo(movable.layout.far_url, "psql")
    said: list[str] = []
    with psycopg.connect(url) as person:

        def act(text: str) -> None:
            said.append(text)
            if text == "switching" and said.count(text) == 1:
                person.execute("insert into callback_pause select merchant_id, 1, 'test' from book")
            elif "trying again" in text:
                person.commit()

        run(movable.move(Timing(budget_s=1.0, retry_s=0.1, attempts=50), act))
    assert any(
        "waiting for a transaction that has written in the cell: psql far (pid" in text for text in said
    )
    assert said.count("switching") > 1
    with connect_sync(movable.new_cell_url) as place:
        assert place.execute("select count(*) from callback_pause").fetchone() == (1,)


def test_a_writer_finishes_what_it_has_begun_before_its_session_ends(
    movable: MovableCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence, "GRACE_S", 20.0)
    asyncio.run(movable.open_shops("Shop"))
    url = complete_conninfo(movable.layout.far_url, book_connection.APPLICATION_NAME)
    closed: list[object] = []

    def commit_when_closed() -> None:
        while not closed:
            with connect_sync(movable.layout.far_url) as look:
                closed.extend(look.execute("select from cell_state where not is_open").fetchall())
        writer.commit()

    with psycopg.connect(url) as writer, ThreadPoolExecutor() as threads:

        def begin_late(text: str) -> None:
            if text == "switching":
                writer.execute("insert into callback_pause select merchant_id, 1, 'test' from book")
                running.append(threads.submit(commit_when_closed))

        running: list[Future[None]] = []
        run(movable.move(progress=begin_late))
        running[0].result()
    with connect_sync(movable.new_cell_url) as place:
        assert place.execute("select count(*) from callback_pause").fetchone() == (1,)


@pytest.mark.parametrize("is_begun", [False, True])
def test_a_schema_of_somebody_else_is_neither_used_nor_removed(movable: MovableCell, is_begun: bool) -> None:
    def take_the_name() -> None:
        with connect_sync(movable.new_url) as new:
            new.execute("create schema far")
            new.execute("create table far.cell_state (cell_id int, version bigint, is_open boolean)")
            new.execute("insert into far.cell_state values (1, 0, true)")

    async def scenario() -> None:
        await movable.open_shops("Shop")
        if is_begun:
            await stop_mover(movable, POINTS[1])
        take_the_name()
        with pytest.raises(MoveRefused, match="has not made" if is_begun else "has a schema far already"):
            await movable.move()
        if is_begun:
            await movable.undo()
        await movable.verify()

    run(scenario())
    assert movable.read_place()[2] is None
    with connect_sync(movable.new_url) as new:
        assert new.execute("select * from far.cell_state").fetchall() == [(1, 0, True)]


def test_a_mover_goes_on_with_no_move_that_has_ended_or_leads_elsewhere(layout: Layout) -> None:
    async def scenario() -> None:
        async with await connect(layout.url) as home:
            planned = await moves.plan(home, layout.far_id, "host=here")
            assert await moves.read_again(home, planned) == planned
            begun = await moves.begin(home, layout.far_id, "host=here", BY)
            assert await moves.read_again(home, planned) == begun
            await moves.end(home, begun, BY, "undo")
            with pytest.raises(MoveLost, match="has ended this move of cell far"):
                await moves.read_again(home, begun)
            await moves.begin(home, layout.far_id, "host=elsewhere", BY)
            with pytest.raises(MoveRefused, match="to another place: host=elsewhere"):
                await moves.read_again(home, planned)
            with pytest.raises(MoveLost):
                await moves.read_again(home, begun)

    run(scenario())


def test_a_worker_takes_over_at_once_when_the_movers_session_is_gone(movable: MovableCell) -> None:
    async def is_taken_back() -> bool:
        await worker.take_over()
        return movable.read_place()[2] == "copying"

    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with (
            frozen_mover(movable, SWITCH_POINTS[3]),
            await connect(movable.layout.url) as home,
        ):
            # A mover whose session lives gets its time, and no longer.
            assert await moves.list_stalled(home, timeout_ms=HOUR_MS) == []
            [found] = await moves.list_all(home)
            assert (found.move.state, found.is_held) == ("switching", True)
            await home.execute("update cell_move set changed_ms = changed_ms - %s", [TIMEOUT_MS])
            assert len(await moves.list_stalled(home)) == 1
            await home.execute("update cell_move set changed_ms = changed_ms + %s", [HOUR_MS])
        book = scope_of_book(1, found.move.cell_id)
        async with (
            await connect(movable.layout.url) as home,
            # Another job in the cell does not make the mover look alive.
            hold(home, Kind.ARCHIVE, book, "cli:ann", patience_s=TIMEOUT_S),
        ):
            await eventually(is_taken_back)
        await worker.close()

    worker = MoveTakeover(Directory(movable.layout.url))
    run(scenario())


@pytest.mark.parametrize("point", [POINTS[5], SWITCH_POINTS[2], SWITCH_POINTS[9]], ids=str)
def test_a_move_to_a_server_that_is_gone_for_good_is_undone(movable: MovableCell, point: Point) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable):
            await stop_mover(movable, point)
            async with await connect(movable.layout.url) as home:
                move = await moves.read_move(home, movable.layout.far_id)
                assert move is not None
                urls = make_urls(movable.layout.url, move, NOWHERE, None)
                with pytest.raises(MoveRefused, match="still at its old place"):
                    await forget_old(home, urls, move, BY)
                await undo_without_new(home, urls, move, BY)

    run(scenario())
    assert movable.read_place()[2] is None
    with connect_sync(movable.old_url) as old:
        assert old.execute("select from pg_replication_slots").fetchall() == []


@pytest.mark.parametrize("point", [LATE_POINTS[0], None], ids=str)
def test_an_old_place_that_is_gone_for_good_is_forgotten(movable: MovableCell, point: Point | None) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable):
            if point is None:
                await movable.move()
            else:
                await stop_mover(movable, point)
            async with await connect(movable.layout.url) as home:
                move = await moves.read_move(home, movable.layout.far_id)
                assert move is not None
                urls = make_urls(movable.layout.url, move, None, NOWHERE)
                with pytest.raises(MoveRefused, match="at its new place"):
                    await undo_without_new(home, urls, move, BY)
                await forget_old(home, urls, move, BY)
            movable.follow()

    run(scenario())
    assert movable.read_place()[2] is None
    with connect_sync(movable.new_url) as new:
        assert new.execute("select from pg_subscription").fetchall() == []


def test_a_copy_that_an_older_program_began_is_not_continued(movable: MovableCell) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        await stop_mover(movable, COPIED)
        with connect_sync(movable.new_cell_url) as new:
            new.execute(
                "delete from schema_migration where version = (select max(version) from schema_migration)"
            )
        with pytest.raises(MoveRefused, match="begun by an older program"):
            await movable.move()
        await movable.undo()
        await movable.move()

    run(scenario())
    assert movable.read_place()[2] == "switched"


def test_the_old_copy_is_dropped_on_demand_and_the_cell_can_move_back(movable: MovableCell) -> None:
    async def scenario() -> None:
        await movable.open_shops("Shop")
        async with under_load(movable):
            await movable.move()
        with pytest.raises(MoveRefused, match="another place"):
            async with await connect(movable.layout.url) as home:
                await moves.begin(home, movable.layout.far_id, "host=elsewhere", BY)
        await movable.drop_old()
        with connect_sync(movable.old_url) as old:
            assert old.execute("select from pg_namespace where nspname = 'far'").fetchall() == []
        movable.turn_round()
        async with under_load(movable):
            await movable.move()

    run(scenario())
    assert movable.read_place()[1:] == (3, "switched")


def test_a_server_without_logical_replication_is_named(layout: Layout, empty_database_url: str) -> None:
    async def scenario() -> None:
        async with await connect(layout.url) as home:
            move = await moves.plan(home, layout.far_id, strip_identity(empty_database_url))
            async with open_mover(home, layout.url, move, BY, print) as mover:
                with pytest.raises(MoveRefused, match=r"REPLICATION|wal_level = replica"):
                    await mover.run(None)
            assert await moves.read_move(home, layout.far_id) is None

    run(scenario())
