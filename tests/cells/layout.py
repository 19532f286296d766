"""Home in schema `public`, an apart cell in schema `far`, and books that tests put there."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.clusters import Cluster, lone_cluster
from tests.conftest import FAR
from tests.crash.shop import Shop

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync, place
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.committer import OpenConnection
from merchant_wallet.book.nonce_partitions import open_nonce_days
from merchant_wallet.book.writer import Writer
from merchant_wallet.merchants.cells.directory import Directory
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.grants import Side, grant
from merchant_wallet.postgres.migrate import migrate

MIRRORED: Final = "merchant_id name status currency_mode deposit_notify_url require_pin frame_origins"
"""The columns of the cell's copy of a merchant."""
TABLES: Final = (
    "book account entry posting sub_user wallet_address merchant_address nonce withdrawal_step withdrawal"
    " deposit deposit_credit callback"
)
"""The tables of a book that tests move, in the order of their foreign keys."""

OF_CHAINS: Final = ("chain_position", "credited_transaction")
"""Tables of a cell that are not of one book. A cell that takes over a book knows what its chains had."""


@dataclass
class Layout:
    """A home database with an apart cell. `far_url` is the cell's, for its owner."""

    url: str
    far_url: str
    far_id: int = 1

    @property
    def both_url(self) -> str:
        """A look at both at once, for checks: the cell's tables hide those of the same name in home."""
        return make_conninfo(self.url, options=f"-c search_path={FAR},public")

    def make_directory(self) -> Directory:
        """A directory as a process has it."""
        return Directory(self.url)

    def make_writers(self, directory: Directory | None = None, connections: int = 4) -> CellWriters:
        """The writers of a process."""

        def make(cell: Any, open_connection: OpenConnection, note_closed: Any) -> Writer:
            return Writer(
                cell.url,
                connections=connections,
                make_partition=partial(open_nonce_days, cell.url),
                open_connection=open_connection,
                note_closed=note_closed,
            )

        return CellWriters(directory or self.make_directory(), make)

    @asynccontextmanager
    async def open_writers(self) -> AsyncIterator[CellWriters]:
        """The same, opened, and closed at the end."""
        writers = self.make_writers()
        await writers.open()
        try:
            yield writers
        finally:
            await writers.close()

    def send_away(self, shop: Shop) -> Shop:
        """Move a book from the default cell to the apart one. Returns the shop as it is there."""
        self.move_book(shop.merchant_id)
        moved = Shop(self.far_url, shop.merchant_id)
        moved.alice_address, moved.alice_id = shop.alice_address, shop.alice_id
        return moved

    def move_book(self, merchant_id: int, *, keeps: bool = False) -> None:
        """Move a book from the default cell to the apart one. Nothing may use it meanwhile.

        `keeps`: a closed copy stays in the default cell.
        """
        with self.both() as (home, far), home.transaction(), far.transaction():
            _copy(home, far, "merchant", MIRRORED.split(), merchant_id)
            for (day,) in home.execute("select distinct day from nonce").fetchall():
                far.execute("select add_nonce_days(%s, %s)", (day, day))
            for table in OF_CHAINS:
                _copy(home, far, table, _list_columns(far, table))
            for table in TABLES.split():
                _copy(home, far, table, _list_columns(far, table), merchant_id)
            if keeps:
                home.execute("update book set is_open = false where merchant_id = %s", (merchant_id,))
            for table in () if keeps else reversed(TABLES.split()):
                delete = sql.SQL("delete from {} where merchant_id = %s").format(sql.Identifier(table))
                home.execute(delete, (merchant_id,))
            home.execute(
                "update merchant set cell_id = %s where merchant_id = %s", (self.far_id, merchant_id)
            )

    def list_merchants(self) -> tuple[list[int], list[int]]:
        """The merchants whose books are in the default and in the apart cell."""
        query = "select merchant_id from book order by merchant_id"
        with self.both() as (home, far):
            default, apart = (conn.execute(query.encode()).fetchall() for conn in (home, far))
        return [row[0] for row in default], [row[0] for row in apart]

    @contextmanager
    def both(self) -> Iterator[tuple[psycopg.Connection, psycopg.Connection]]:
        """A connection to home and one to the apart cell."""
        with connect_sync(self.url) as home, connect_sync(self.far_url) as far:
            yield home, far


def open_layout(url: str, far_url: str, address: str | None = None) -> Layout:
    """Tell home about the cell, and the cell about itself. Its tables are made unless it has them."""
    layout = Layout(url, far_url)
    if not _has_tables(far_url):
        migrate(far_url, lambda _: None, schema=FAR)
        grant(far_url, {Side.WEB: WEB_ROLE, Side.WORKER: WORKER_ROLE}, FAR)
    with layout.both() as (home, far):
        home.execute(
            "insert into cell (cell_id, name, schema_name, address, added_ms) values (%s, 'far', %s, %s, %s)",
            (layout.far_id, FAR, address, now_ms()),
        )
        far.execute("insert into cell_state values (%s, 1, true)", (layout.far_id,))
        today = now_ms() // DAY_MS
        far.execute("select add_nonce_days(%s, %s)", (today - 1, today + 1))
    return layout


def _has_tables(far_url: str) -> bool:
    with connect_sync(far_url) as far:
        return far.execute("select to_regclass(%s)", [f"{FAR}.book"]).fetchone() != (None,)


def open_near_layout(url: str) -> Layout:
    """The apart cell is in home's own database."""
    return open_layout(url, place(url, None, FAR))


@contextmanager
def far_cluster(url: str, programs: Path | None = None) -> Iterator[tuple[Layout, Cluster]]:
    """The apart cell is on a server of its own, which a test may kill and start again.

    `programs` are those of another version of PostgreSQL.
    """
    owner = str(conninfo_to_dict(url)["user"])
    with lone_cluster(programs) as cluster:
        cluster.execute(f"create role {owner} superuser login")
        for role in (WEB_ROLE, WORKER_ROLE):
            cluster.execute(f"create role {role} login")
        layout = open_layout(url, place(cluster.url(), None, FAR), cluster.url())
        yield layout, cluster


def _list_columns(connection: psycopg.Connection, table: str) -> list[str]:
    query = (
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0"
        " and not attisdropped and attgenerated = ''"
    )
    return [name for (name,) in connection.execute(query, (table,)).fetchall()]


def _copy(
    home: psycopg.Connection,
    far: psycopg.Connection,
    table: str,
    columns: list[str],
    merchant_id: int | None = None,
) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    read = sql.SQL("select {} from {}").format(names, sql.Identifier(table))
    if merchant_id is not None:
        read += sql.SQL(" where merchant_id = {}").format(merchant_id)
    values = sql.SQL(", ").join([sql.Placeholder()] * len(columns))
    write = sql.SQL("insert into {} ({}) values ({}) on conflict do nothing").format(
        sql.Identifier(table), names, values
    )
    for row in home.execute(read).fetchall():
        far.execute(write, row)
