"""Databases with an apart cell."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.cells.layout import Layout, open_layout, open_near_layout
from tests.cells.moved import MovableCell, TwoClusters, open_clusters, open_movable
from tests.conftest import FAR, TEMPLATE_WITH_CELL, SharedPostgres

from merchant_wallet.base.db import place


class TwoDatabases(NamedTuple):
    """The URLs of home and of an apart cell in another database. No transaction can write both."""

    home: str
    cell: str


@pytest.fixture(scope="module")
def clusters() -> Iterator[TwoClusters]:
    """Two servers, between which cells are moved."""
    with open_clusters() as found:
        yield found


@pytest.fixture
def movable(clusters: TwoClusters, database_url: str) -> Iterator[MovableCell]:
    """A cell on the first of them, and a database for it on the second."""
    with open_movable(clusters, database_url) as found:
        yield found


@pytest.fixture
def layout(url_with_cell: str) -> Layout:
    """Home in schema `public`, and an apart cell in schema `far` of the same database."""
    return open_near_layout(url_with_cell)


@pytest.fixture(params=["schemas", pytest.param("clusters", marks=pytest.mark.extended)])
def cells_of_both_kinds(request: pytest.FixtureRequest) -> Iterator[Layout]:
    """Two cells: schemas of one database, or on two servers."""
    if request.param == "schemas":
        yield request.getfixturevalue("layout")
        return
    with open_movable(request.getfixturevalue("clusters"), request.getfixturevalue("database_url")) as found:
        yield found.layout


@pytest.fixture
def two_databases(postgres: SharedPostgres) -> Iterator[TwoDatabases]:
    """Home in schema `public` of one database, an apart cell in schema `far` of another one."""
    postgres.prepare_template_with_cell()
    with postgres.database(TEMPLATE_WITH_CELL) as home, postgres.database(TEMPLATE_WITH_CELL) as other:
        cell = place(other, None, FAR)
        open_layout(home, cell, other)
        yield TwoDatabases(home, cell)
