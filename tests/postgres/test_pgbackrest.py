"""The printed settings of pgBackRest, tried: Debian's PostgreSQL 15 is backed up and restored to a moment."""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from tests.clusters import Cluster
from tests.crash.shop import Shop, open_shop
from tests.folders import make_folder
from tests.tools import require_tool
from tests.waits import wait_until

from merchant_wallet.base.clock import now_ms
from merchant_wallet.book.writer import Writer
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.privileges import become

pytestmark = pytest.mark.extended

CONFIGURATION = Path(__file__).parents[2] / "deploy/pgbackrest.conf"
ARCHIVING = """
archive_mode = on
archive_command = '"{program}" --config={file} --stanza=wallet archive-push %p'
archive_timeout = 60
unix_socket_directories = '{sockets}'
"""


class BackedUpCluster(Cluster):
    """A PostgreSQL 15 whose WAL pgBackRest archives."""

    def __init__(self, root: Path, name: str, programs: Path, pgbackrest: Path) -> None:
        super().__init__(root, name, programs)
        self.pgbackrest_program = pgbackrest

    def prepare(self) -> None:
        """Create the cluster, and write both files of settings."""
        self.initialize()
        root = self.folder.root
        text = CONFIGURATION.read_text()
        for before, after in (
            ("/var/lib/pgbackrest", "repository"),
            ("/var/spool/pgbackrest", "spool"),
            ("/var/log/pgbackrest", "log"),
        ):
            assert before in text
            text = text.replace(before, str(root / after))
            (root / after).mkdir()
            self._give(root / after)
        for before, after in (
            ("/var/lib/postgresql/15/main", str(self.folder.cluster)),
            ("/var/run/postgresql", str(self.sockets)),
            ("PASSPHRASE", "a-long-passphrase"),
        ):
            assert before in text
            text = text.replace(before, after)
        # Its own locks, so that tests may run side by side.
        locks = root / "lock"
        locks.mkdir()
        self._give(locks)
        self.file = root / "pgbackrest.conf"
        # It writes its own path into `restore_command`, as it is.
        program = f'cmd="{self.pgbackrest_program}"'
        self.file.write_text(text.replace("[global]", f"[global]\nlock-path={locks}\n{program}"))
        self._give(self.file)
        with (self.folder.cluster / "postgresql.conf").open("a") as settings:
            settings.write(
                ARCHIVING.format(program=self.pgbackrest_program, file=self.file, sockets=self.sockets)
            )

    def pgbackrest(self, *words: str) -> str:
        """Run pgBackRest as the server's user. Returns what it printed."""
        account = self.programs.account
        done = subprocess.run(
            [
                self.pgbackrest_program,
                f"--config={self.file}",
                "--stanza=wallet",
                "--log-level-console=info",
                *words,
            ],
            preexec_fn=become(account, keep_search=self.programs.keep_search) if account else None,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def _remove(root: Path) -> bool:
    shutil.rmtree(root, ignore_errors=True)
    return not root.exists()


@pytest.fixture
def cluster() -> Iterator[BackedUpCluster]:
    programs, pgbackrest = require_tool("postgresql-15").parent, require_tool("pgbackrest")
    root = make_folder("wallet-pgbackrest-")
    made = BackedUpCluster(root, "a", programs, pgbackrest)
    try:
        made.prepare()
        made.start()
        yield made
    finally:
        if made.process is not None:
            made.kill()
        wait_until(partial(_remove, root), "the folder is removed, in which a push of WAL may still write")


async def credit(shop: Shop, orders: list[str]) -> None:
    """Transfers to alice, each answered."""
    writer = Writer(shop.url)
    assert not [
        each for each in await shop.gather(writer, map(shop.credit, orders)) if isinstance(each, Exception)
    ]
    await writer.close()


def test_a_service_is_restored_to_a_moment_with_the_printed_settings(cluster: BackedUpCluster) -> None:
    cluster.pgbackrest("stanza-create")
    cluster.pgbackrest("check")
    cluster.execute("create database wallet")
    url = cluster.url("wallet")
    migrate(url, lambda _: None)
    shop = asyncio.run(open_shop(url))
    asyncio.run(credit(shop, ["before the back-up"]))
    cluster.pgbackrest("backup", "--type=full")
    # pgBackRest counts in seconds: a back-up must have ended in one before the moment's.
    time.sleep(1.1)
    asyncio.run(credit(shop, [f"in time {number}" for number in range(200)]))
    moment_ms = now_ms() + 1
    time.sleep(0.05)
    asyncio.run(credit(shop, [f"too late {number}" for number in range(200)]))
    cluster.execute("select pg_switch_wal()")
    cluster.pgbackrest("check")

    # The disaster, and the documents' command.
    cluster.kill()
    shutil.rmtree(cluster.folder.cluster)
    cluster.folder.cluster.mkdir(mode=0o700)
    account = cluster.programs.account
    if account:
        os.chown(cluster.folder.cluster, account.uid, account.gid)
    target = datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    cluster.pgbackrest("restore", "--type=time", f"--target={target}", "--target-action=promote")
    cluster.start()
    cluster.until("select not pg_is_in_recovery()")

    orders = asyncio.run(shop.orders())
    assert {"before the back-up", *(f"in time {number}" for number in range(200))} == orders.keys()
    assert asyncio.run(shop.verify()).entries == 2 + len(orders)
    assert "full backup" in cluster.pgbackrest("info")
