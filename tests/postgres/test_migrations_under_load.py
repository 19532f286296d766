"""Each migration after the baseline, on full tables, while others write.

The load is what any program does: it locks the tables that a group of commands locks, as INSERT and UPDATE
do, adds rows with the first release's columns, and reads. It also runs beside a session that stays in a
transaction. There are enough rows to exceed the limit of time if a migration writes a table anew.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psycopg
import pytest

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.migrate import migrate
from merchant_wallet.postgres.migration_files import (
    BASELINE_VERSION,
    MIGRATIONS,
    Migration,
    read_migrations,
)

HOT: Final = ("book", "account", "entry", "posting", "nonce", "withdrawal", "callback")
BOOKS: Final = 20
ROWS: Final = 300_000
BLOCKED_MS: Final = 200
"""No statement of the service may wait longer for a migration."""
FILL: Final = """
insert into merchant (merchant_id, name, app_key, currency_mode, created_ms)
select m, 'shop ' || m, 'mk_' || m, 'USDT', 0 from generate_series(1, {books}) m;
insert into book (merchant_id, id_range, head_hash, last_ms)
select m, m, sha256('x'), 0 from generate_series(1, {books}) m;
insert into account (merchant_id, account_id, kind, currency, balance)
select m, a, 'subuser', 'USDT', 1000 from generate_series(1, {books}) m, generate_series(1, 500) a;
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
select 1 + n % {books}, n, 'user_to_merchant', 'order-' || n, 1700000000000 + n, sha256('x')
  from generate_series(1, {rows}) n;
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount,
                     source_balance, target_balance)
select 1 + n % {books}, n, 1, 1 + n % 500, 501, 'USDT', 1, 1, 1 from generate_series(1, {rows}) n;
analyze;
"""
WRITE: Final = """
lock table {hot} in row exclusive mode;
update book set entry_count = entry_count + 1 where merchant_id = {merchant_id};
insert into entry (merchant_id, entry_id, kind, mc_order_id, at_ms, hash)
values ({merchant_id}, {entry_id}, 'user_to_merchant', 'load-{entry_id}', 1800000000000, sha256('x'));
insert into posting (merchant_id, entry_id, posting_no, source_id, target_id, currency, amount,
                     source_balance, target_balance)
values ({merchant_id}, {entry_id}, 1, 1, 2, 'USDT', 1, 1, 1);
"""


@dataclass
class Load:
    """Sessions that write and read all the time. `waits_ms` is what each had to wait for its locks."""

    url: str
    first_id: int
    """So that the loads of two migrations write different entries."""
    waits_ms: list[float] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    failures: list[psycopg.Error] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._write, args=(number,)) for number in range(1, 5)]
        threads += [threading.Thread(target=self._read), threading.Thread(target=self._read_long)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int) -> None:
        with connect_sync(self.url) as connection:
            entry_id = number * 1_000_000_000 + self.first_id
            while not self._stop.wait(0.002):
                entry_id += 1
                text = WRITE.format(hot=", ".join(HOT), merchant_id=number, entry_id=entry_id)
                if self._run(connection, text):
                    self.written.append(entry_id)

    def _read(self) -> None:
        with connect_sync(self.url) as connection:
            while not self._stop.wait(0.005):
                self._run(connection, "".join(f"select * from {table} limit 1;" for table in HOT))

    def _read_long(self) -> None:
        """A report, or a dump: it keeps each table open for half a second, and begins again."""
        with connect_sync(self.url) as connection:
            while not self._stop.wait(0.2):
                with suppress(psycopg.Error), connection.transaction():
                    connection.execute("".join(f"select * from {table} limit 1;" for table in HOT).encode())
                    self._stop.wait(0.5)

    def _run(self, connection: psycopg.Connection, text: str) -> bool:
        began_s = time.perf_counter()
        try:
            connection.execute(text.encode())
        except psycopg.Error as error:
            self.failures.append(error)
            return False
        finally:
            self.waits_ms.append((time.perf_counter() - began_s) * 1000)
        return True


@pytest.fixture(scope="module")
def released_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The migrations of the first release: the baseline."""
    folder = tmp_path_factory.mktemp("released")
    _add(folder, read_migrations()[0])
    return folder


def _add(folder: Path, migration: Migration) -> None:
    shutil.copy(MIGRATIONS / f"{migration.name}.sql", folder)


def _quiet(_: str) -> None:
    return None


def test_every_migration_after_the_baseline_lets_the_load_go_on(
    empty_database_url: str, released_folder: Path, tmp_path: Path
) -> None:
    url, folder = empty_database_url, shutil.copytree(released_folder, tmp_path / "migrations")
    migrate(url, _quiet, folder)
    with connect_sync(url) as connection:
        connection.execute(FILL.format(books=BOOKS, rows=ROWS).encode())
    longest_ms: dict[str, float] = {}
    written = 0
    for migration in read_migrations():
        if migration.version == BASELINE_VERSION:
            continue
        _add(folder, migration)
        load = Load(url, migration.version * 1_000_000)
        with load.running():
            assert migrate(url, _quiet, folder) == [migration.name]
        assert load.failures == [], migration.name
        longest_ms[migration.name] = max(load.waits_ms)
        written += len(load.written)
    print({name: f"{waited:.0f} ms" for name, waited in longest_ms.items()})
    with connect_sync(url) as connection:
        counted = connection.execute("select count(*) from entry where mc_order_id like 'load-%'").fetchone()
    assert counted == (written,), "every acknowledged row is there once"
    assert {name for name, waited in longest_ms.items() if waited > BLOCKED_MS} == set()
