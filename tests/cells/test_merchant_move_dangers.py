"""Moves of books that must not succeed, or not yet: wrong copies, slow switches, movers that wake up late."""

import asyncio
from pathlib import Path

import psycopg
import pytest
from tests.book.test_checkpoints import OTHER, SIGNER
from tests.cells.book_moved import (
    BY,
    MAIN,
    MovableBook,
    frozen_mover,
    open_book,
    stop_mover,
    take_over,
    under_load,
)
from tests.cells.killable_book_mover import SWITCH_POINTS
from tests.cells.layout import Layout
from tests.cells.moved import has_answers
from tests.checkpoints import write_checkpoints
from tests.crash.shop import MASTER_KEY, run
from tests.crash_points import Point
from tests.waits import eventually

from merchant_wallet.base.cells import CellClosed
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.merchants import store
from merchant_wallet.merchants.cells import book_moving, moves
from merchant_wallet.merchants.cells.book_copies import BookCopy
from merchant_wallet.merchants.cells.book_moving import BookMover
from merchant_wallet.merchants.cells.book_tables import list_tables
from merchant_wallet.merchants.cells.copies import CheckpointFolder, CopyWrong
from merchant_wallet.merchants.cells.moves import MoveLost, MoveRefused
from merchant_wallet.merchants.cells.moving import Timing
from merchant_wallet.merchants.keys import Keyring

COPIED = Point("set transaction isolation level")
"""The journal is copied, and nothing else."""


DAMAGES = (
    "update posting set amount = amount + 1 where entry_id = (select min(entry_id) from posting)",
    "update posting set amount = amount + 1 where entry_id = (select max(entry_id) from posting)",
    "update entry set facts = facts || ' ' where entry_id = (select min(entry_id) from entry)",
    "delete from posting where entry_id = (select max(entry_id) from posting)",
)


@pytest.mark.parametrize("damages", [DAMAGES[1:], pytest.param(DAMAGES[:1], marks=pytest.mark.extended)])
def test_a_copy_whose_journal_is_wrong_never_counts(layout: Layout, damages: tuple[str, ...]) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        for damage in damages:
            await stop_mover(book, COPIED)
            with connect_sync(layout.far_url) as far:
                assert far.execute(damage.encode()).rowcount > 0
            with pytest.raises(CopyWrong):
                await book.move()
            assert book.read_place() == (0, "copying")
            assert book.list_copies() == (True, False)
            await book.undo()
        await book.move()
        await book.verify()

    run(scenario())


SPOIL = """
create function far.spoil() returns trigger language plpgsql as $$
begin new.username := new.username || '!'; return new; end $$;
create trigger spoil before insert or update on far.sub_user for each row execute function far.spoil();
"""
"""From now on sub-users come out wrong in the new cell."""


@pytest.mark.parametrize("when", ["copying from cell main to cell far", "switching"])
def test_a_copy_that_comes_out_wrong_never_counts(layout: Layout, when: str) -> None:
    def spoil(text: str) -> None:
        if text == when:
            with connect_sync(layout.far_url) as far, connect_sync(layout.url) as home:
                far.execute(SPOIL)
                # So that the row is copied again in the switch.
                home.execute("update sub_user set language = 'en'")

    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            with pytest.raises(CopyWrong, match="sub_user differs"):
                await book.move(progress=spoil)
            assert book.read_place() == (0, "copying")
            assert book.list_copies() == (True, False)
            with connect_sync(layout.far_url) as far:
                far.execute("drop trigger spoil on sub_user")
            # What can change is compared and copied anew.
            await book.move()

    run(scenario())


def test_a_copy_that_differs_from_its_checkpoints_never_counts(layout: Layout, tmp_path: Path) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with await connect(layout.url) as home:
            assert await write_checkpoints(home, SIGNER, tmp_path, 1000) == 1
        with pytest.raises(CopyWrong, match="is not signed with this key"):
            await book.move(checkpoints=CheckpointFolder(tmp_path, OTHER.keys))
        assert book.read_place() == (0, "copying")
        await book.move(checkpoints=CheckpointFolder(tmp_path, SIGNER.keys))
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())


def test_a_switch_that_takes_too_long_is_taken_back_and_tried_again(layout: Layout) -> None:
    said: list[str] = []

    async def scenario(writer: psycopg.Connection) -> None:
        book = await open_book(layout)

        def write_long(text: str) -> None:
            said.append(text)
            if text == "switching" and said.count(text) == 1:
                # A transaction that does not end. It may have seen the book open.
                writer.execute("insert into callback_pause select merchant_id, 1, 'test' from book")
            elif "trying again" in text:
                writer.rollback()

        async with under_load(book):
            await book.move(timing=Timing(budget_s=2.0, retry_s=0.1, attempts=20), progress=write_long)
        with connect_sync(layout.url) as home:
            taken_back = home.execute(
                "select count(*) from audit_entry where action = 'merchant.move.take_back'"
            ).fetchone()
        assert taken_back == (said.count("switching") - 1,)

    with psycopg.connect(layout.url) as writer:
        run(scenario(writer))
    assert said.count("switching") > 1


SLOW = """
create function far.wait() returns trigger language plpgsql as $$
begin perform pg_sleep(30); return new; end $$;
create trigger wait before insert or update on far.sub_user for each row execute function far.wait();
"""


def test_a_switch_that_stands_still_in_the_new_cell_is_taken_back(layout: Layout) -> None:
    said: list[str] = []

    def hinder(text: str) -> None:
        said.append(text)
        with connect_sync(layout.far_url) as far, connect_sync(layout.url) as home:
            if text == "switching" and said.count(text) == 1:
                far.execute(SLOW)
                home.execute("update sub_user set language = 'en'")
            elif "trying again" in text:
                far.execute("drop trigger if exists wait on sub_user")

    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book):
            await book.move(timing=Timing(budget_s=2.0, retry_s=0.1, attempts=20), progress=hinder)
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())
    assert said.count("switching") > 1


def test_what_was_begun_before_the_switch_is_in_the_new_copy(layout: Layout) -> None:
    async def scenario(writer: psycopg.Connection) -> None:
        book = await open_book(layout)
        loop = asyncio.get_running_loop()

        def write(text: str) -> None:
            if text == "switching":
                writer.execute(
                    "insert into callback_pause select merchant_id, 1, 'test' from book where is_open"
                )
                loop.call_later(0.3, writer.commit)

        await book.move(progress=write)
        with connect_sync(layout.far_url) as far:
            assert far.execute("select paused_by from callback_pause").fetchall() == [("test",)]

    with psycopg.connect(layout.url) as writer:
        run(scenario(writer))


@pytest.mark.parametrize("point", [SWITCH_POINTS[2], SWITCH_POINTS[6], SWITCH_POINTS[7]], ids=str)
def test_a_mover_that_wakes_up_late_changes_nothing(layout: Layout, point: Point) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with under_load(book) as load:
            async with frozen_mover(book, point) as late:
                await take_over(layout.url)
                with pytest.raises(MoveRefused, match="another job has these books, move of a"):
                    await book.move()
                count = len(load.acknowledged)
                await eventually(lambda: has_answers([load], [count]))
                assert isinstance(await late.resume(), MoveLost)
            assert book.read_place() == (0, "copying")
            assert book.list_copies() == (True, False)
            count = len(load.acknowledged)
            await eventually(lambda: has_answers([load], [count]))
            await book.move()
        assert book.read_place() == (layout.far_id, "switched")

    run(scenario())


def test_a_mover_whose_copy_another_has_taken_up_writes_nothing_more(layout: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        async with await connect(layout.url) as old, await connect(layout.far_url) as new:
            tables = await list_tables(old, new, to_home=False)
            first, second = (BookCopy(old, new, book.merchant_id, tables, version) for version in (1, 2))
            await first.take_up()
            await second.take_up()
            for write in (first.take_up, lambda: first.copy_journal(lambda *_: None), first.catch_up):
                with pytest.raises(MoveLost):
                    await write()
            assert layout.list_merchants()[1] == [book.merchant_id]
            with connect_sync(layout.far_url) as far:
                assert far.execute("select count(*) from entry").fetchone() == (0,)

    run(scenario())


def test_a_copy_that_is_open_is_never_written_to_or_removed(layout: Layout) -> None:
    async def scenario() -> None:
        book = await open_book(layout)
        await book.move()

        async def undo(mover: BookMover) -> None:
            await mover.undo()

        async with book.open_mover() as mover:
            with pytest.raises(MoveRefused, match="already"):
                await undo(mover)
        # Home was restored from an old back-up, or somebody has opened the old copy by hand.
        with connect_sync(layout.url) as home:
            home.execute("update book set is_open = true")
        with pytest.raises(MoveLost, match="is open"):
            await book.drop_old()
        assert book.list_copies() == (True, True)

    run(scenario())


def test_a_change_of_settings_meets_the_book_where_it_is(layout: Layout) -> None:
    """A closed book refuses it in the default cell; for an apart one it waits in home."""
    keyring = Keyring(MASTER_KEY)

    async def change(book: MovableBook, limit: str) -> None:
        async with await connect(layout.url) as home:
            await store.change_settings(home, keyring, book.merchant_id, {"rate-limit": limit})

    async def scenario() -> None:
        book = await open_book(layout)
        await stop_mover(book, SWITCH_POINTS[7])
        with pytest.raises(CellClosed):
            await change(book, "7")
        await take_over(layout.url)
        await change(book, "8")
        await book.move()
        await book.drop_old()
        # Nobody carries it to the apart cell before the book has moved back.
        await change(book, "9")
        await book.move(MAIN)
        with connect_sync(layout.url) as home:
            found = home.execute(
                "select m.settings_version, m.carried_version, b.settings_version, m.rate_limit"
                " from merchant m join book b using (merchant_id)"
            ).fetchone()
        assert found is not None
        assert found[0] == found[1] == found[2]
        assert found[3] == 9
        await book.verify()

    run(scenario())


def test_a_cell_and_a_book_of_it_are_not_moved_at_once(layout: Layout) -> None:
    async def scenario() -> None:
        book, other = await open_book(layout), await open_book(layout, "Other")
        await stop_mover(book, COPIED)
        async with await connect(layout.url) as home:
            with pytest.raises(MoveRefused, match=f"merchant {book.merchant_id} is being moved"):
                await moves.begin(home, layout.far_id, "host=elsewhere", BY)
            await book.move()
            # The old copy that is left is whole.
            await moves.begin(home, layout.far_id, "host=elsewhere", BY)
            with pytest.raises(MoveRefused, match="Cell far is being moved itself"):
                await other.move()
        assert other.read_place() == (0, None)

    run(scenario())


def test_sessions_that_were_dropped_in_one_copy_alone_hold_nothing_up(layout: Layout) -> None:
    """Each cell's worker drops expired sessions by itself, also in closed copies."""

    def drop(text: str) -> None:
        with connect_sync(layout.far_url) as far, connect_sync(layout.url) as home:
            if text == "following":
                home.execute("delete from wallet_session where token_hash = sha256('2')")
            elif text == "switching":
                far.execute("delete from wallet_session where token_hash = sha256('1')")

    async def scenario() -> None:
        book = await open_book(layout)
        await book.shop.rows(
            "insert into wallet_session select merchant_id, sha256(i::text::bytea), user_id, false, 1, 1, 2"
            " from sub_user, generate_series(1, 3) i"
        )
        await book.move(progress=drop)
        with connect_sync(layout.far_url) as far:
            assert far.execute("select count(*) from wallet_session").fetchone() == (2,)

    run(scenario())


def test_an_old_copy_is_removed_only_after_those_who_read_it_have_ended(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book_moving, "REST_S", 1000)

    async def scenario() -> None:
        book = await open_book(layout)
        await book.move()
        async with book.open_mover() as mover:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await mover.drop_old()
        assert book.list_copies() == (False, True)
        with connect_sync(layout.url) as home:
            home.execute("update merchant_move set changed_ms = changed_ms - 1000000")
        async with book.open_mover() as mover:
            await mover.drop_old()
        assert book.list_copies() == (None, True)

    run(scenario())
