"""`migrate` of a newer version while the programs of this one run."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.cli.conftest import Wallet
from tests.cli.test_lifecycle import begin, running
from tests.crash.shop import run
from tests.waits import eventually

from merchant_wallet.base.db import connect
from merchant_wallet.postgres import migrate as migrations
from merchant_wallet.postgres.migration_files import MIGRATIONS, read_migrations
from merchant_wallet.processes import migrations as both
from merchant_wallet.processes.instances import list_live

NEWEST = read_migrations()[-1].version
EXPAND = f"{NEWEST + 1:04}_note_home"
CONTRACT = f"{NEWEST + 2:04}_bank_home"


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The commands of this test are those of a version with an expansion and a contraction more."""
    folder = shutil.copytree(MIGRATIONS, tmp_path / "migrations")
    (folder / f"{EXPAND}.sql").write_text(
        "-- kind: expand\nalter table hot_wallet add column if not exists note text;"
    )
    (folder / f"{CONTRACT}.sql").write_text(
        "-- kind: contract\nalter table hot_wallet drop column if exists note;"
    )
    monkeypatch.setattr(both, "migrate", partial(migrations.migrate, folder=folder))
    monkeypatch.setattr(migrations, "list_pending", partial(migrations.list_pending, folder=folder))
    return folder


@contextmanager
def _running(wallet: Wallet, side: str) -> Iterator[None]:
    with running(wallet, side) as program:
        assert program.read_line().startswith("ready")
        run(_wait_for(wallet, side))
        yield


async def _wait_for(wallet: Wallet, side: str) -> None:
    async with await connect(wallet.url) as home:

        async def is_there() -> bool:
            named = {"serve": "web", "work": "worker"}[side]
            return named in [instance.side for instance in await list_live(home)]

        await eventually(is_there)


@pytest.mark.new_database
@pytest.mark.usefixtures("newer")
def test_what_running_programs_need_is_kept_until_they_are_gone(wallet: Wallet) -> None:
    with _running(wallet, "work"):
        found = wallet.ask("migrate")
        assert (found["applied"], found["left"]) == ([EXPAND], [CONTRACT])
        said = wallet.run("migrate").stderr
        assert "older programs run: worker 0." in said
        assert "Run `merchant-wallet migrate` again" in said
        # A program of this version starts on the expanded schema.
        with _running(wallet, "serve"):
            pass
    found = wallet.ask("migrate")
    assert (found["applied"], "left" in found) == ([CONTRACT], False)
    with begin(wallet, "work") as program:
        assert program.read_line() == ""
        assert program.wait() == 2


@pytest.mark.usefixtures("newer")
def test_the_way_back_can_be_kept_open(wallet: Wallet) -> None:
    found = wallet.ask("migrate", "--expand-only")
    assert (found["applied"], found["left"]) == ([EXPAND], [CONTRACT])
    assert "Left for later, --expand-only" in wallet.run("migrate", "--expand-only").stderr
    assert wallet.ask("migrate")["applied"] == [CONTRACT]
