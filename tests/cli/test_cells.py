"""`cell`: add cells, place merchants in them, look at them, drain them."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.cli.conftest import Wallet
from tests.clusters import Cluster, lone_cluster
from tests.held_jobs import begin_job

from merchant_wallet.base.db import connect_sync, place
from merchant_wallet.merchants.cells import adding, carrying, inspection
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE
from merchant_wallet.postgres.jobs import scope_of_cell
from merchant_wallet.postgres.migrate import find_pending, migrate
from merchant_wallet.postgres.migration_files import MIGRATIONS, read_migrations
from merchant_wallet.processes import migrations

KILLED = 9


@pytest.fixture(scope="module", autouse=True)
def _looks_are_short() -> Iterator[None]:
    """No test counts how fast a cell grows, which takes `cell list` a second for each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection, "SAMPLE_S", 0.01)
        yield


def count(url: str, schema: str, table: str) -> int:
    with connect_sync(place(url, None, schema)) as connection:
        row = connection.execute(f"select count(*) from {table}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def owner_of(cluster: Cluster, wallet: Wallet) -> str:
    """The URL of another server's database, as the user that owns the wallet's tables."""
    owner = str(conninfo_to_dict(wallet.url)["user"])
    cluster.execute(f"create role {owner} superuser login")
    for role in (WEB_ROLE, WORKER_ROLE):
        cluster.execute(f"create role {role} login")
    return make_conninfo(cluster.url(), user=owner)


def test_a_cell_beside_home_takes_merchants_and_their_money(wallet: Wallet) -> None:
    added = wallet.ask("cell", "add", "east")
    assert added == {"name": "east", "schema": "east", "address": None, "added": True}
    merchant_id = wallet.open_merchant("Shop", "--cell", "east")
    wallet.credit("Shop", "USDT", "100")
    assert count(wallet.url, "east", "entry") == 1
    assert count(wallet.url, "public", "entry") == 0
    [main, east] = wallet.ask("cell", "list")["cells"]
    assert (main["name"], main["merchants"], main["books"]) == ("main", 0, 0)
    assert (east["name"], east["merchants"], east["books"], east["entries"]) == ("east", 1, 1, 1)
    assert east["reachable"]
    assert east["mirrorAgeMs"] < 60_000
    entries = wallet.ask("audit", "list")["entries"]
    assert [entry["action"] for entry in entries if entry["action"].startswith("cell.")] == ["cell.add"]
    assert merchant_id > 0


def test_a_cell_on_another_server_is_stored_without_its_password(wallet: Wallet) -> None:
    with lone_cluster() as cluster:
        url = make_conninfo(owner_of(cluster, wallet), password="secret")
        added = wallet.ask("cell", "add", "west", url, "--schema", "books")
        assert added["added"]
        assert "secret" not in str(added)
        assert conninfo_to_dict(added["address"]).keys().isdisjoint({"user", "password"})
        wallet.open_merchant("Shop", "--cell", "west")
        wallet.credit("Shop", "USDT", "100")
        assert count(url, "books", "entry") == 1
        assert wallet.ask("cell", "list")["cells"][1]["reachable"]
        cluster.kill()
        west = wallet.ask("cell", "list")["cells"][1]
        assert (west["reachable"], west["books"]) == (False, None)
        assert west["cause"]


def test_a_merchant_is_created_while_its_cell_is_away_and_opened_when_it_is_back(wallet: Wallet) -> None:
    with lone_cluster() as cluster:
        wallet.run("cell", "add", "west", owner_of(cluster, wallet))
        cluster.kill()
        made = wallet.run("merchant", "create", "Shop", "--cell", "west")
        assert "does not answer now" in made.stderr
        cluster.start()
        wallet.run("merchant", "set", "Shop", "--rate-limit", "7")
        wallet.credit("Shop", "USDT", "100")


def test_the_same_cell_is_added_once_and_another_place_is_refused(wallet: Wallet) -> None:
    assert wallet.ask("cell", "add", "east")["added"]
    assert not wallet.ask("cell", "add", "east")["added"]
    assert "at another place" in wallet.refuse("cell", "add", "east", "--schema", "other")
    assert "is in use" in wallet.refuse("cell", "add", "two", "--schema", "east")


@pytest.mark.parametrize("name", ["home", "East", "1st", "x" * 32, "public'"])
def test_a_bad_name_is_refused_with_the_rule(wallet: Wallet, name: str) -> None:
    assert "NAME has at most 31" in wallet.refuse("cell", "add", name)


def test_a_schema_with_other_tables_is_left_alone(wallet: Wallet) -> None:
    with psycopg.connect(wallet.url, autocommit=True) as connection:
        connection.execute("create schema east")
        connection.execute("create table east.mine (x int)")
    assert "is in use" in wallet.refuse("cell", "add", "east")


def test_an_empty_schema_of_the_administrator_is_taken(wallet: Wallet) -> None:
    with psycopg.connect(wallet.url, autocommit=True) as connection:
        connection.execute("create schema east")
    assert wallet.ask("cell", "add", "east")["added"]


def test_new_merchants_go_to_the_cell_with_the_fewest_and_to_none_that_is_drained(wallet: Wallet) -> None:
    wallet.open_merchant("First")
    wallet.run("cell", "add", "east")
    wallet.open_merchant("Second")
    assert [cell["merchants"] for cell in wallet.ask("cell", "list")["cells"]] == [1, 1]
    assert wallet.ask("cell", "drain", "east") == {"name": "east", "state": "draining"}
    assert "was not open" in wallet.refuse("cell", "drain", "east")
    for name in ("Third", "Fourth"):
        wallet.open_merchant(name)
    assert [cell["merchants"] for cell in wallet.ask("cell", "list")["cells"]] == [3, 1]
    assert "is draining" in wallet.refuse("merchant", "create", "Fifth", "--cell", "east")
    assert wallet.ask("cell", "drain", "east", "--undo")["state"] == "open"
    wallet.open_merchant("Fifth", "--cell", "east")
    assert "There is no cell west" in wallet.refuse("merchant", "create", "Sixth", "--cell", "west")
    assert "There is no cell west" in wallet.refuse("cell", "drain", "west")


def test_another_user_for_a_cell_is_named_by_the_setting(wallet: Wallet) -> None:
    wallet.run("cell", "add", "east")
    wallet.variables["WALLET_CELL_URLS"] = "east=postgresql://nobody@127.0.0.1:1/none"
    east = wallet.ask("cell", "list")["cells"][1]
    assert not east["reachable"]
    wallet.variables["WALLET_CELL_URLS"] = "east"
    assert "WALLET_CELL_URLS" in wallet.refuse("cell", "list", status=2)


def _die(*_: object, **__: object) -> None:
    os._exit(KILLED)


def test_an_added_cell_whose_command_was_killed_anywhere_is_added_by_the_same_command(
    wallet: Wallet,
) -> None:
    steps = ("_mark", "migrate", "grant", "ensure_nonce_partitions", "mirror", "insert_cell", "finish")
    cells = {step: step.strip("_") for step in steps}

    def run(step: str) -> None:
        setattr(adding, step, _die)
        wallet.run("cell", "add", cells[step])

    # Each cell gets the id that the killed command before had in mind.
    for step in steps:
        process = get_context("fork").Process(target=run, args=(step,))
        process.start()
        process.join(60)
        assert process.exitcode == KILLED, step
        if step != "finish":
            assert [cell["name"] for cell in wallet.ask("cell", "list")["cells"]] == ["main"], step
    for step in steps:
        assert wallet.ask("cell", "add", cells[step])["added"] is (step != "finish"), step
    assert all(cell["reachable"] for cell in wallet.ask("cell", "list")["cells"])
    for step in steps:
        wallet.open_merchant(f"Shop {step}", "--cell", cells[step])
        wallet.credit(f"Shop {step}", "USDT", "100")


@pytest.mark.parametrize("name", ["find_and_carry", "open_book"])
def test_a_merchant_whose_command_was_killed_before_its_cell_knew_it_is_opened_later(
    wallet: Wallet, name: str
) -> None:
    wallet.run("cell", "add", "east")

    def run() -> None:
        setattr(carrying, name, _die)
        wallet.run("merchant", "create", "Shop", "--cell", "east")

    process = get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == KILLED
    assert [merchant["name"] for merchant in wallet.ask("merchant", "list")["merchants"]] == ["Shop"]
    # Whoever reads the merchant for a request carries it first. Here it is a change.
    wallet.run("merchant", "set", "Shop", "--rate-limit", "7")
    wallet.credit("Shop", "USDT", "100")
    assert count(wallet.url, "east", "book") == 1


def test_every_cell_is_migrated_and_one_that_is_away_is_named(
    wallet: Wallet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lone_cluster() as cluster:
        wallet.run("cell", "add", "east")
        wallet.run("cell", "add", "west", owner_of(cluster, wallet))
        assert wallet.ask("migrate")["cells"] == {"east": [], "west": []}
        newer = f"{read_migrations()[-1].version + 1:04}_newer_cell"
        folder = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
        (folder / f"{newer}.sql").write_text("-- kind: expand\ncreate table newer (x int)")
        monkeypatch.setattr(migrations, "migrate", partial(migrate, folder=folder))
        monkeypatch.setattr(migrations, "find_pending", partial(find_pending, folder=folder))
        cluster.kill()
        found = wallet.ask("migrate", status=1)
        assert found["cells"] == {"east": [newer], "west": None}
        said = wallet.run("migrate", status=1).stderr
        assert "Cell west was not migrated" in said
        assert "Run the same command again" in said
        cluster.start()
        with connect_sync(wallet.url) as session:
            begin_job(session, scope_of_cell(2, "west"))
            assert wallet.ask("migrate", status=1)["cells"] == {"east": [], "west": None}
            said = wallet.run("migrate", status=1).stderr
            assert "Cell west was not migrated: another job has these books, archive (cell west)" in said
        assert wallet.ask("migrate")["cells"] == {"east": [], "west": [newer]}


def test_lists_over_all_merchants_name_the_cell_that_is_away(wallet: Wallet) -> None:
    with lone_cluster() as cluster:
        wallet.open_merchant("Shop")
        wallet.credit("Shop", "USDT", "100")
        wallet.run("cell", "add", "west", owner_of(cluster, wallet))
        wallet.open_merchant("Far Shop", "--cell", "west")
        wallet.credit("Far Shop", "USDT", "100")
        verified = wallet.ask("book", "verify")["books"]
        assert [(book["ok"], book["entries"]) for book in verified] == [(True, 1), (True, 1)]
        lists = ("withdrawals list", "callbacks list", "deposits list", "fees list")
        for words in lists:
            assert wallet.ask(*words.split())["awayCells"] == []
        cluster.kill()
        for words in lists:
            assert wallet.ask(*words.split())["awayCells"] == ["west"]
            assert "Cell west is away, its merchants are left out" in wallet.run(*words.split()).stderr
        for words in ("book show", "book statement", "sub-users list"):
            assert "cell west is away" in wallet.refuse(*words.split(), "Far Shop", status=2)
        assert "cell west is away" in wallet.refuse("book", "verify", status=2)
        assert wallet.ask("book", "verify", "Shop")["ok"]


def check(wallet: Wallet, name: str, status: int = 0) -> dict[str, Any]:
    """What doctor says of a cell."""
    checks: list[dict[str, Any]] = wallet.ask("doctor", status=status)["checks"]
    [found] = [line for line in checks if line["name"] == f"cell {name}"]
    return found


def test_doctor_says_of_each_cell_whether_it_is_well(wallet: Wallet) -> None:
    with lone_cluster() as cluster:
        wallet.run("cell", "add", "east")
        wallet.run("cell", "add", "west", owner_of(cluster, wallet))
        wallet.open_merchant("Near", "--cell", "main")
        wallet.credit("Near", "USDT", "100")
        wallet.open_merchant("Shop", "--cell", "east")
        assert check(wallet, "east")["text"].startswith("answers; all migrations applied; 1 merchant,")
        owner = conninfo_to_dict(wallet.url)["user"]
        cluster.execute(f"alter role {owner} nologin")
        refused = check(wallet, "west", status=1)
        assert "refuses the sign-in" in refused["text"]
        assert "whether that role may log in" in refused["advice"]
        cluster.kill()
        west = check(wallet, "west", status=1)
        assert west["text"].startswith("away: The database can't be reached: ")
        assert "WALLET_CELL_URLS" in west["advice"]
        assert check(wallet, "east", status=1)["ok"]


WRONG = (
    (
        "east",
        "cell_state",
        "update {} set version = 2",
        "closed or moved; home knows version 1",
        "accept-rollback",
    ),
    ("east", "cell_state", "update {} set is_open = false", "closed, or it has moved", "WALLET_CELL_URLS"),
    ("east", "schema_migration", "delete from {}", "missing migrations", "migrate"),
    ("east", "reference_state", "update {} set checked_ms = 0", "copies of rates are", "start `work`"),
    # What follows stays.
    ("public", "merchant", "update {} set settings_version = 9", "changes of 1 merchant", "start `work`"),
    (
        "public",
        "cell",
        "update {} set admin_address = 'host=/nowhere', unfollowed_cause = 'Citus names x.',"
        " unfollowed_ms = 1 where name = 'east'",
        "not where Citus says: Citus names x.",
        "`merchant-wallet cell follow east`",
    ),
    (
        "public",
        "cell",
        "update {} set unfollowed_cause = null, unfollowed_ms = null",
        "the coordinator of Citus is away",
        "start it",
    ),
)
"""A change of a table in a schema, and what doctor says of it, with its advice."""


def test_doctor_names_what_is_wrong_with_a_cell(wallet: Wallet) -> None:
    wallet.run("cell", "add", "east")
    wallet.open_merchant("Shop", "--cell", "east")
    for schema, table, change, text, advice in WRONG:
        with connect_sync(place(wallet.url, None, schema)) as connection:
            connection.execute(f"create temporary table kept as table {table}".encode())
            connection.execute(change.format(table).encode())
            found = check(wallet, "east", status=1)
            assert text in found["text"]
            assert advice in found["advice"]
            if schema != "public":
                connection.execute(f"delete from {table}".encode())
                connection.execute(f"insert into {table} table kept".encode())


def test_doctor_finds_a_cell_without_partitions_and_an_address_that_leads_elsewhere(wallet: Wallet) -> None:
    wallet.run("cell", "add", "east")
    with connect_sync(place(wallet.url, None, "east")) as connection:
        [(last,)] = connection.execute(
            b"select max(inhrelid::regclass::text) from pg_inherits where inhparent = 'nonce'::regclass"
        ).fetchall()
        connection.execute(f"drop table {last}".encode())
    assert check(wallet, "east", status=1)["text"] == "no partition for tomorrow's nonces"
    elsewhere = urlsplit(wallet.url)._replace(path="/postgres").geturl()
    wallet.variables["WALLET_CELL_URLS"] = f"east={elsewhere}"
    assert check(wallet, "east", status=1)["text"] == "there is no cell in schema east"


def test_a_server_without_citus_is_refused(wallet: Wallet) -> None:
    with lone_cluster() as cluster:
        url = owner_of(cluster, wallet)
        assert "no extension citus" in wallet.refuse("cell", "add", "far", url, "--citus")
        # Without the option the same command goes on.
        assert wallet.ask("cell", "add", "far", url)["added"]
    assert "no cell far that was added with --citus" in wallet.refuse("cell", "follow", "far")
    assert "needs the URL" in wallet.refuse("cell", "add", "near", "--citus")
