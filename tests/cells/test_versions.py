"""Cells on clusters of every supported version of PostgreSQL, beside a home on the newest one."""

from pathlib import Path

import pytest
from tests.cells.book_moved import MAIN, open_book
from tests.cells.book_moved import under_load as book_under_load
from tests.cells.layout import Layout, far_cluster
from tests.cells.moved import open_clusters, open_movable, under_load
from tests.cells.test_workers import open_shop, order, wait_until_paid
from tests.conftest import FAR
from tests.crash.shop import run
from tests.journeys.conftest import running
from tests.other_postgres import FROM_DEBIAN, FROM_NPM
from tests.tools import require_tool


@pytest.fixture(params=[*FROM_DEBIAN, *FROM_NPM])
def programs(request: pytest.FixtureRequest) -> Path:
    """The programs of an older version."""
    return require_tool(f"postgresql-{request.param}").parent


def test_orders_of_a_cell_on_an_older_version_are_paid(
    database_url: str, tmp_path: Path, programs: Path
) -> None:
    with (
        far_cluster(database_url, programs) as (layout, _),
        running(layout.url, tmp_path, working=True) as platform,
    ):
        away = open_shop(platform, layout, away=True)
        wait_until_paid(away, order(away))


def test_a_cell_moves_to_a_newer_version(database_url: str, programs: Path) -> None:
    with open_clusters(programs) as clusters, open_movable(clusters, database_url) as movable:

        async def scenario() -> None:
            await movable.open_shops("Shop")
            async with under_load(movable):
                await movable.move()
            assert movable.read_place()[2] == "switched"

        run(scenario())


def test_a_book_moves_to_a_cell_on_an_older_version_and_back(database_url: str, programs: Path) -> None:
    async def scenario(layout: Layout) -> None:
        book = await open_book(layout)
        for cell in (FAR, MAIN):
            async with book_under_load(book):
                await book.move(cell)
            await book.drop_old()

    with far_cluster(database_url, programs) as (layout, _):
        run(scenario(layout))
