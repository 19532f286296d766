"""An apart cell that Citus places: a distributed schema on a worker node, and home on the run's PostgreSQL.

`WALLET_TEST_CITUS` is the URL of a database on a coordinator with worker nodes, for a superuser whom every
node trusts. Tests drop and create its schema `far`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cells.layout import Layout, open_layout
from tests.conftest import FAR

from merchant_wallet.base.db import connect_sync, place, strip_identity
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE

COORDINATOR: Final = os.environ.get("WALLET_TEST_CITUS", "")
NO_CITUS: Final = "WALLET_TEST_CITUS names no PostgreSQL with Citus: cells on Citus are not tested"
_FIND_NODE: Final = "select nodename, nodeport from citus_shards where table_name::text = %s"


@contextmanager
def citus_layout(url: str) -> Iterator[Layout]:
    """A cell on the Citus that was named. Its URL is the worker node's."""
    with connect_sync(COORDINATOR) as coordinator:
        drop_schema(coordinator, FAR)
        try:
            yield open_citus_layout(url, COORDINATOR)
        finally:
            drop_schema(coordinator, FAR)


def open_citus_layout(url: str, coordinator_url: str) -> Layout:
    """The cell's schema is made on the coordinator, then distributed."""
    with connect_sync(coordinator_url) as coordinator:
        add_roles(coordinator, str(conninfo_to_dict(url)["user"]))
        layout = open_layout(url, place(coordinator_url, None, FAR), coordinator_url)
        coordinator.execute("select citus_schema_distribute(%s::regnamespace)", (FAR,))
    place_at_node(layout, coordinator_url)
    return layout


def place_at_node(layout: Layout, coordinator_url: str) -> None:
    """Tell the layout and home the node that has the schema now, and the coordinator."""
    with connect_sync(coordinator_url) as coordinator:
        row = coordinator.execute(_FIND_NODE, (f"{FAR}.book",)).fetchone()
    assert row is not None
    address = make_conninfo(coordinator_url, host=row[0], port=row[1])
    layout.far_url = place(address, None, FAR)
    with connect_sync(layout.url) as home:
        home.execute(
            "update cell set address = %s, admin_address = %s where name = %s",
            (strip_identity(address), strip_identity(coordinator_url), FAR),
        )


def add_roles(coordinator: psycopg.Connection, owner: str) -> None:
    """The service's roles, on every node."""
    for role, rights in ((owner, "superuser login"), (WEB_ROLE, "login"), (WORKER_ROLE, "login")):
        if coordinator.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is None:
            coordinator.execute(sql.SQL("create role {} {}").format(sql.Identifier(role), sql.SQL(rights)))


def move_schema(coordinator: psycopg.Connection, name: str) -> None:
    """Let Citus move the schema to another node."""
    row = coordinator.execute(_FIND_NODE, (f"{name}.book",)).fetchone()
    others = coordinator.execute(
        "select nodename, nodeport from pg_dist_node"
        " where shouldhaveshards and (nodename, nodeport) <> (%s, %s)",
        row,
    ).fetchall()
    coordinator.execute(
        "select citus_schema_move(%s::regnamespace, %s, %s, 'block_writes')", (name, *others[0])
    )


def drop_schema(coordinator: psycopg.Connection, name: str) -> None:
    """Drop what an earlier test left, when no other test uses it any more."""
    coordinator.execute("select pg_advisory_lock(hashtext(%s))", (name,))
    coordinator.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(name)))
