"""The directory: where a merchant's book is, and how seldom home is asked."""

import asyncio

import pytest
from psycopg import AsyncConnection, OperationalError
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cells.layout import Layout
from tests.crash.shop import open_shop, run
from tests.roles import as_web

from merchant_wallet.base.cells import Cell, CellClosed
from merchant_wallet.merchants.cells import directory as directory_module
from merchant_wallet.merchants.cells.directory import Directory


class CountingDirectory(Directory):
    """Counts how often home is asked, and has a clock that tests move."""

    def __init__(self, url: str) -> None:
        self.now_s, self.asked = 1000.0, 0
        super().__init__(url, monotonic=lambda: self.now_s)

    async def connect_home(self) -> AsyncConnection:
        self.asked += 1
        return await super().connect_home()


def test_with_one_cell_home_is_asked_once(database_url: str) -> None:
    async def scenario() -> None:
        directory = CountingDirectory(database_url)
        assert directory.known(1001) is None
        for merchant_id in range(1001, 1050):
            cell = await directory.find(merchant_id)
            assert directory.known(merchant_id) is cell
            directory.note(merchant_id, cell.cell_id)
        assert (cell.cell_id, cell.name, cell.url, cell.is_home) == (0, "main", database_url, True)
        assert directory.asked == 1
        assert directory.list() == (cell,)

    run(scenario())


def test_a_merchants_cell_is_read_once(layout: Layout) -> None:
    async def scenario() -> None:
        near, away = await open_shop(layout.url, "Near"), await open_shop(layout.url, "Away")
        layout.send_away(away)
        directory = CountingDirectory(layout.url)
        for _ in range(3):
            assert (await directory.find(near.merchant_id)).name == "main"
            far = await directory.find(away.merchant_id)
        assert directory.asked == 3
        assert (far.name, far.schema, far.version, far.is_home) == ("far", "far", 1, False)
        assert [cell.name for cell in directory.list()] == ["main", "far"]
        with pytest.raises(KeyError):
            await directory.find(away.merchant_id + 1)

    run(scenario())


def test_a_burst_of_requests_for_many_merchants_asks_home_four_times_at_most(layout: Layout) -> None:
    async def scenario() -> None:
        shops = [await open_shop(layout.url, f"Shop {number}") for number in range(12)]
        layout.send_away(shops[0])
        directory = CountingDirectory(layout.url)
        asked = [directory.find(shop.merchant_id) for shop in shops for _ in range(5)]
        *found, unknown = await asyncio.gather(*asked, directory.find(99), return_exceptions=True)
        assert isinstance(unknown, KeyError)
        assert [cell.name for cell in found if isinstance(cell, Cell)] == ["far"] * 5 + ["main"] * 55
        # For the table of cells, the first merchant, all others, and again for the unknown one.
        assert directory.asked <= 4

    run(scenario())


def test_what_was_just_read_with_a_merchant_is_not_asked_again(layout: Layout) -> None:
    async def scenario() -> None:
        directory = CountingDirectory(layout.url)
        await directory.refresh()
        directory.note(4711, layout.far_id)
        assert (await directory.find(4711)).name == "far"
        assert directory.asked == 1
        directory.forget(4711)
        assert directory.known(4711) is None

    run(scenario())


def test_the_table_of_cells_is_read_at_most_once_a_second_and_by_one_task(layout: Layout) -> None:
    async def scenario() -> None:
        directory = CountingDirectory(layout.url)
        await asyncio.gather(*[directory.refresh() for _ in range(10)])
        before = directory.list()
        with layout.both() as (home, _):
            home.execute("update cell set version = 2, state = 'closed' where name = 'far'")
        await directory.refresh()
        assert directory.list() == before
        assert directory.asked == 1
        directory.now_s += 1.0
        await directory.refresh()
        main, far = directory.list()
        assert main is before[0]
        assert (far.version, far.is_open) == (2, False)

    run(scenario())


def test_a_merchant_in_a_cell_that_was_just_added_is_found(layout: Layout) -> None:
    async def scenario() -> None:
        away = layout.send_away(await open_shop(layout.url))
        with layout.both() as (home, _):
            home.execute("update cell set state = 'retired' where name = 'far'")
        directory = CountingDirectory(layout.url)
        await directory.refresh()
        assert len(directory.list()) == 1
        with layout.both() as (home, _):
            home.execute("update cell set state = 'open' where name = 'far'")
        # The interface reads the merchant with its cell.
        directory.note(away.merchant_id, layout.far_id)
        assert directory.known(away.merchant_id) is None
        with pytest.raises(CellClosed, match="not known yet"):
            await directory.find(away.merchant_id)
        directory.now_s += 1.0
        assert (await directory.find(away.merchant_id)).name == "far"

    run(scenario())


def test_a_cell_that_is_retired_is_no_cell_any_more(layout: Layout) -> None:
    async def scenario() -> None:
        with layout.both() as (home, _):
            home.execute("update cell set state = 'retired' where name = 'far'")
        directory = layout.make_directory()
        await directory.refresh()
        assert [cell.name for cell in directory.list()] == ["main"]

    run(scenario())


def test_an_error_of_home_reaches_everybody_who_asked_and_the_next_one_asks_again(layout: Layout) -> None:
    async def scenario() -> None:
        directory = Directory(layout.url.replace("host=", "host=%2Fnowhere"))
        asked = await asyncio.gather(*[directory.refresh() for _ in range(3)], return_exceptions=True)
        assert [type(error) for error in asked] == [OperationalError] * 3
        with pytest.raises(OperationalError):
            await directory.find(1001)

    run(scenario())


def test_the_merchants_that_are_remembered_are_bounded(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "MAX_MERCHANTS", 2)

    async def scenario() -> None:
        directory = layout.make_directory()
        await directory.refresh()
        for merchant_id in (1, 2, 3):
            directory.note(merchant_id, layout.far_id)
        assert directory.known(1) is None
        assert directory.known(3) is not None

    run(scenario())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("update cell_state set is_open = false", "closed or has moved"),
        ("update cell_state set version = 2", "closed or has moved"),
        ("update cell_state set cell_id = 7", "closed or has moved"),
        ("delete from cell_state", "closed or has moved"),
        ("delete from schema_migration", "older program, 0 of 1"),
        ("alter table cell_state rename to something", "no tables"),
    ],
)
def test_a_connection_leads_to_the_cell_that_is_meant(layout: Layout, change: str, said: str) -> None:
    async def scenario() -> None:
        directory = Directory(as_web(layout.url))
        await directory.refresh()
        _, far = directory.list()
        async with await directory.connect(far) as connection:
            assert await (await connection.execute("select from book")).fetchall() == []
        with layout.both() as (_, owner):
            owner.execute(change.encode())
        with pytest.raises(CellClosed, match=said):
            await directory.connect(far)

    run(scenario())


def test_a_url_that_names_the_user_alone_leaves_the_place_to_home(layout: Layout) -> None:
    async def scenario() -> None:
        web = conninfo_to_dict(as_web(layout.url))
        own = make_conninfo("", user=web["user"], password=web["password"])
        directory = Directory(layout.url, {"far": own})
        await directory.refresh()
        _, far = directory.list()
        async with await directory.connect(far) as connection:
            row = await (await connection.execute("select current_user, current_schema()")).fetchone()
        assert row == ("wallet_web", "far")
        at_home, elsewhere = (
            directory.make_cell(1, "far", "far", address, 1, True) for address in (None, "host=db2 dbname=x")
        )
        told = conninfo_to_dict(elsewhere.url)
        assert (told["user"], told["host"], told["dbname"]) == ("wallet_web", "db2", "x")
        assert told["password"] == web["password"]
        assert conninfo_to_dict(at_home.url)["host"] == conninfo_to_dict(layout.url)["host"]

    run(scenario())


def test_while_a_cell_is_closed_home_is_asked_ten_times_a_second_and_not_for_ever(layout: Layout) -> None:
    async def scenario() -> None:
        directory = CountingDirectory(layout.url)
        await directory.refresh()
        directory.now_s += 0.1
        await directory.refresh()
        assert directory.asked == 1
        directory.note_closed()
        for _ in range(3):
            await directory.refresh()
            directory.now_s += 0.1
        assert directory.asked == 4
        directory.now_s += 10.0
        await directory.refresh()
        directory.now_s += 0.1
        await directory.refresh()
        assert directory.asked == 5

    run(scenario())


def test_a_cell_may_have_a_url_of_its_own(layout: Layout) -> None:
    async def scenario() -> None:
        directory = Directory(layout.url, {"far": as_web(layout.url)})
        await directory.refresh()
        _, far = directory.list()
        async with await directory.connect(far) as connection:
            row = await (await connection.execute("select current_user, current_schema()")).fetchone()
        assert row == ("wallet_web", "far")

    run(scenario())
