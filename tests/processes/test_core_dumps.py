"""A process that holds a key leaves no core dump, and no other process of its user can read its memory."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.crash.service import PROGRAM, Service
from tests.folders import make_folder
from tests.processes.test_up import ask_balance, insist_nothing_left
from tests.waits import wait_until

from merchant_wallet.postgres.privileges import Account, become, can_read

IS_ROOT = os.geteuid() == 0
NOBODY = Account(65534, 65534)


def core_limits(pid: int) -> list[str]:
    """The soft and the hard limit of a core dump's size."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line for line in lines if line.startswith("Max core file size")).split()[4:6]


def owners(pids: set[int]) -> set[int]:
    """The users of those that still run: PostgreSQL ends workers of its own at any time."""
    found = set()
    for pid in pids:
        with suppress(FileNotFoundError):
            found.add(Path(f"/proc/{pid}").stat().st_uid)
    return found


def _uid(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))


def _is_dumpable(pid: int) -> bool:
    """Whether the process's own user may read its memory. If not, root owns the file (proc(5))."""
    assert _uid(pid) != 0, "root's files look the same either way"
    return Path(f"/proc/{pid}/mem").stat().st_uid == _uid(pid)


def _ordinary() -> "tuple[Account | None, bool]":
    """An account other than root, and whether it needs an extra right to reach this Python."""
    if not IS_ROOT:
        return None, False
    return NOBODY, not can_read(NOBODY, [Path(sys.executable), Path(sys.executable).resolve()])


@pytest.fixture
def ordinary() -> Iterator[Service]:
    """A service that an ordinary user runs in a new folder."""
    parent = make_folder("merchant-wallet-crash-")
    account, keep_search = _ordinary()
    if account:
        os.chown(parent, account.uid, account.gid)
    made = Service(parent / "data", "mk_nobody", "no secret")
    try:
        yield made.start(before=become(account, keep_search=keep_search) if account else None)
    finally:
        made.end()
        shutil.rmtree(parent)


def test_a_service_of_an_ordinary_user_leaves_no_core_dump_and_keeps_its_memory_to_itself(
    ordinary: Service,
) -> None:
    pids = ordinary.look()
    if IS_ROOT:
        assert owners(pids) == {NOBODY.uid}
    for pid in (ordinary.pid, ordinary.side("serve"), ordinary.side("work")):
        assert core_limits(pid) == ["0", "0"]
        assert not _is_dumpable(pid)
    assert ask_balance(ordinary)["code"] == 40100
    assert ordinary.stop() == 0
    insist_nothing_left(ordinary)


def test_a_command_leaves_no_core_dump_and_keeps_its_memory_to_itself() -> None:
    account, keep_search = _ordinary()
    # It has the merchant's secret in memory while it waits for the rest of the body.
    waiting = subprocess.Popen(
        [str(PROGRAM), "sign", "--path", "/merchant/getMerchantBalance"],
        env={**os.environ, "MERCHANT_APP_SECRET": "x" * 32},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=become(account, keep_search=keep_search) if account else None,
        cwd="/",
    )
    try:
        wait_until(lambda: core_limits(waiting.pid) == ["0", "0"], "core dumps are forbidden")
        wait_until(lambda: not _is_dumpable(waiting.pid), "the memory is its own")
    finally:
        waiting.communicate(b"")
