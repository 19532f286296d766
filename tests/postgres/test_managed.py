"""PostgreSQL at a provider: its administrator may create roles and databases, and is no superuser. Texts have
another order there.

What the operators' page prints is typed in as this administrator. Danish sorts `aa` after `z`, so what begins
with `a` is no range of an index in that order.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.cli.conftest import Wallet
from tests.clusters import Cluster, lone_cluster
from tests.docs.operators_book import PAGE, list_blocks
from tests.other_postgres import FROM_DEBIAN, FROM_NPM
from tests.tools import require_tool

from merchant_wallet.base.config import load_or_create_master_key
from merchant_wallet.postgres import WEB_ROLE, WORKER_ROLE

NEWEST = 18
DANISH = ("--locale-provider=icu", "--icu-locale=da-DK")
CODE_POINTS = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")
"""The wheel is built without ICU."""
SIDES = ("migrate", "--web-role", WEB_ROLE, "--worker-role", WORKER_ROLE)
ADDRESS = "0x" + "aa" * 20


@pytest.fixture(params=[*FROM_DEBIAN, *FROM_NPM, NEWEST])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A server with an administrator as providers make one."""
    is_newest = request.param == NEWEST
    programs = None if is_newest else require_tool(f"postgresql-{request.param}").parent
    with lone_cluster(programs, *(CODE_POINTS if is_newest else DANISH)) as made:
        made.execute("create role administrator login createrole createdb")
        yield made


def write_roles(folder: Path) -> list[str]:
    """The statements that the operators' page writes into its file of roles."""
    (block,) = [
        one for one in list_blocks(PAGE.read_text(encoding="utf-8")) if "add_role wallet " in one.text
    ]
    text = block.text.replace("/etc/merchant-wallet", str(folder))
    subprocess.run(["/bin/sh", "-ec", text], check=True, env=os.environ)
    return [line for line in (folder / "roles.sql").read_text().splitlines() if line]


def type_in(cluster: Cluster, statements: list[str], database: str = "postgres") -> None:
    """As the administrator."""
    url = make_conninfo(cluster.url(database), user="administrator")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def open_wallet(cluster: Cluster, folder: Path, database: str = "wallet") -> Wallet:
    wallet = Wallet(cluster.url(database).replace("postgres@", "wallet@", 1), folder)
    load_or_create_master_key(wallet.folder)
    return wallet


def test_what_the_page_prints_is_enough_for_an_administrator_who_is_no_superuser(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WALLET_DATABASE_URL", raising=False)
    type_in(cluster, write_roles(tmp_path / "etc"))
    assert (
        cluster.execute(
            "select count(*) from pg_auth_members m where pg_get_userbyid(m.roleid) = 'wallet'"
            " and m.grantor = (select oid from pg_roles where rolname = 'administrator')"
        )
        == 0
    )
    wallet = open_wallet(cluster, tmp_path / "data")
    wallet.run(*SIDES)
    wallet.run("cell", "add", "east")
    wallet.open_merchant("Shop", "--cell", "east")
    wallet.credit("Shop", "USDT", "100")
    assert wallet.ask("book", "verify")["ok"] is True
    checks = {check["name"]: check for check in wallet.look("doctor")["checks"]}
    for name in ("texts", "roles", "session settings", "cell east"):
        assert (checks[name]["ok"], checks[name]["hint"]) == (True, None), checks[name]


def test_a_database_that_another_role_owns_says_what_to_type(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WALLET_DATABASE_URL", raising=False)
    roles = [line for line in write_roles(tmp_path / "etc") if line.startswith("create role")]
    type_in(cluster, [*roles, "create database made"])
    wallet = open_wallet(cluster, tmp_path / "data", "made")
    told = wallet.refuse(*SIDES, status=2)
    assert "`grant create on schema public to wallet`" in told
    type_in(cluster, ["grant create on schema public to wallet"], "made")
    wallet.run(*SIDES)
    told = wallet.refuse("cell", "add", "east")
    assert "`grant create on database made to wallet`" in told
    type_in(cluster, ["grant create on database made to wallet"], "made")
    wallet.run("cell", "add", "east")
    texts = {check["name"]: check for check in wallet.look("doctor")["checks"]}["texts"]
    assert (texts["ok"], texts["hint"]) == (True, None), "searched texts have the order of bytes"


def test_searches_find_beginnings_in_any_order_of_texts(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WALLET_DATABASE_URL", raising=False)
    cluster.execute("create role wallet login createdb")
    cluster.execute("create database danish owner wallet")
    wallet = open_wallet(cluster, tmp_path / "data", "danish")
    wallet.run("migrate")
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "100")
    wallet.order(shop, "5", mc_order_id="order-aarhus", address=ADDRESS)
    for beginning, kind in {"order-a": "order", ADDRESS[:7]: "address"}.items():
        assert [one["kind"] for one in wallet.ask("find", beginning)["found"]] == [kind], beginning
