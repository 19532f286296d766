"""`cell move` with users who are no superusers and sign in with passwords, out of home's own database."""

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from demo.cells.servers import Server, Servers
from tests.cli.conftest import Wallet

from merchant_wallet.base.config import load_or_create_master_key

PASSWORD = "pw"
ROLES = ("own", "web", "work")


@pytest.fixture
def servers() -> Iterator[list[Server]]:
    made = Servers()
    try:
        yield [made.add(name) for name in ("old", "new")]
    finally:
        made.remove()


def execute(server: Server, *statements: str) -> None:
    """As the superuser."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def test_a_cell_leaves_homes_database_with_users_who_have_just_the_rights_that_it_needs(
    servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WALLET_DATABASE_URL", raising=False)
    old, new = servers
    for server in servers:
        execute(server, *(f"create role {role} login password '{PASSWORD}'" for role in ROLES))
        execute(server, "create database books owner own")
    wallet = Wallet(f"postgresql://own:{PASSWORD}@127.0.0.1:{old.port}/books", tmp_path / "data")
    load_or_create_master_key(wallet.folder)
    wallet.run("migrate", "--web-role", "web", "--worker-role", "work")
    wallet.run("cell", "add", "east")
    wallet.open_merchant("Shop", "--cell", "east")
    wallet.credit("Shop", "USDT", "100")

    move = ("cell", "move", "east", f"postgresql://127.0.0.1:{new.port}/books")
    assert "who may replicate (REPLICATION)" in wallet.refuse(*move)
    execute(old, "alter role own replication", "grant pg_read_all_stats, pg_signal_backend to own")
    execute(old, "alter role own set statement_timeout = '5s'")
    assert "pg_create_subscription" in wallet.refuse(*move)
    execute(new, "grant pg_create_subscription to own")
    # PostgreSQL's own copy would be ended by what our sessions replace.
    assert "the sessions of own begin with statement_timeout = 5000 ms" in wallet.refuse(*move)
    execute(old, "alter role own set statement_timeout = 0")
    moved = wallet.run(*move, "--json")
    assert "The old copy is the schema east at home's own database." in moved.stderr
    assert PASSWORD not in moved.stdout + moved.stderr
    assert json.loads(moved.stdout)["entries"] == 1
    wallet.credit("Shop", "USDT", "5")
    wallet.run("cell", "move", "east", "--drop-old")
    assert [book["entries"] for book in wallet.ask("book", "verify")["books"]] == [2]
    with psycopg.connect(new.address.replace("/wallet", "/books"), user="web", password=PASSWORD) as web:
        assert web.execute("select count(*) from east.book").fetchone() == (1,)
