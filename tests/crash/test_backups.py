"""The drill: a service under load is backed up, lost, and restored; what was answered in time is there."""

import asyncio
import itertools
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.crash.client import Client
from tests.crash.service import Service, alive, is_side, kill_all, read_command
from tests.forked_commands import ForkedCommand
from tests.waits import wait_until

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.backups.names import SESSION, parse_session
from merchant_wallet.postgres.jobs import EVERYTHING, Kind, hold_alone

ORDERS_BETWEEN = 100
PAUSE_S = 0.2
LOST_MACHINES = 2


class BackedUpService(Service):
    """A service with a store beside its data folder."""

    store: Path
    key_file: Path

    def environment(self) -> dict[str, str]:
        """With the settings of the store."""
        told = {"WALLET_BACKUP_URL": str(self.store), "WALLET_BACKUP_KEY_FILE": str(self.key_file)}
        return {**super().environment(), **told}


@pytest.fixture
def backed_up(service: Service) -> Iterator[BackedUpService]:
    """A service that is not started yet, with an empty store and a key. At the end none of it runs."""
    made = BackedUpService(service.data, service.app_key, service.secret)
    made.store, made.key_file = service.data.parent / "store", service.data.parent / "backup.key"
    made.store.mkdir()
    tell(made, "backup", "key", str(made.key_file), data=None)
    yield made
    made.end()


def tell(service: Service, *words: str, data: Path | None) -> dict[str, Any]:
    """The document of an operator's command that must succeed."""
    status, said, errors = ask(service, *words, data=data)
    assert status == 0, (words, errors)
    found: dict[str, Any] = json.loads(said)
    return found


def ask(service: Service, *words: str, data: Path | None) -> tuple[int, str, str]:
    """The exit status of an operator's command, its document, and what it says beside it."""
    where = [] if data is None else ["--data", str(data)]
    with ForkedCommand(*words, "--json", *where, environment=service.environment()) as command:
        return command.finish()


def read_stored_ms(service: Service) -> int:
    """Up to which moment everything is stored, as the session's name says. 0 while nothing stores."""
    with connect_sync(service.database_url()) as connection:
        question = "select application_name from pg_stat_activity where starts_with(application_name, %s)"
        row = connection.execute(question, (SESSION,)).fetchone()
    stored = None if row is None else parse_session(row[0])
    return 0 if stored is None else stored.stored_ms


def until_stored(service: Service) -> None:
    """Wait until everything that is committed now is in the store."""
    begun_ms = now_ms()
    wait_until(lambda: read_stored_ms(service) > begun_ms, "the WAL is stored")


def find_shipper(service: Service) -> int:
    """The process that stores WAL."""
    for pid in service.look():
        if b"merchant_wallet.processes.wal_shipping" in read_command(pid):
            return pid
    raise AssertionError("no process stores WAL")


def read_orders(service: Service) -> set[str]:
    """The order ids in the database."""
    with connect_sync(service.database_url()) as connection:
        return {row[0] for row in connection.execute("select mc_order_id from entry where mc_order_id > ''")}


@contextmanager
def load(service: Service) -> Iterator[Client]:
    """Transfers over HTTP, as many as are answered, until the end of the block or of the service."""
    client = Client(service.url, service.app_key, service.secret)
    asyncio.run(client.learn_address())
    stopping, begun = threading.Event(), now_ms()

    def name_orders() -> Iterator[str]:
        for number in itertools.count():
            if stopping.is_set():
                return
            yield f"{begun} {number}"

    sending = client.credit_all(name_orders(), until_answered=False, pause_s=PAUSE_S)
    thread = threading.Thread(target=lambda: asyncio.run(sending))
    thread.start()
    try:
        yield client
    finally:
        stopping.set()
        thread.join()


def until_more(client: Client, count: int = ORDERS_BETWEEN) -> None:
    """Wait until that many more orders were answered."""
    wanted = len(client.answers) + count
    wait_until(lambda: len(client.answers) >= wanted, "orders are answered")


def say_moment(at_ms: int) -> str:
    """A moment as it is typed."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def test_wal_is_stored_while_the_start_waits_to_migrate(backed_up: BackedUpService) -> None:
    backed_up.start()
    url = backed_up.database_url()
    with connect_sync(url) as connection:
        newest = "(select max(version) from schema_migration)"
        connection.execute(f"delete from schema_migration where version = {newest}".encode())
    with hold_alone(url, Kind.ARCHIVE, EVERYTHING, "a test"):
        # The database lives on, and its next `up` takes it over.
        backed_up.kill_up()
        wait_until(lambda: read_stored_ms(backed_up) == 0, "nothing is stored")
        backed_up.process = subprocess.Popen(
            backed_up.command(),
            env=backed_up.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until_stored(backed_up)
            assert not any(is_side(pid, "work") for pid in backed_up.look())
        finally:
            backed_up.process.terminate()
            backed_up.process.wait()


def lose_database(service: Service) -> None:
    """Kill everything, and lose the database's files. What is beside them stays, as the manual says."""
    service.kill(database=True)
    wait_until(lambda: not alive(service.seen), "nothing of the service runs")
    shutil.rmtree(service.data / "postgres")


def test_a_service_under_load_is_restored_to_a_moment_with_all_that_was_answered_before_it(
    backed_up: BackedUpService,
) -> None:
    backed_up.start()
    with load(backed_up) as client:
        made = tell(backed_up, "backup", "create", data=backed_up.data)
        until_more(client)
        in_time, moment_ms = set(client.answers), now_ms()
        until_more(client)
        until_stored(backed_up)
    assert str(backed_up.data / "master.key") in made["keepApart"]

    # The rehearsal, beside the live service.
    to = ("--to", say_moment(moment_ms))
    early = tell(backed_up, "backup", "verify", *to, data=backed_up.data)
    assert early["ok"]
    assert 0 < early["comparedWithLive"]["lostEntries"] <= len(read_orders(backed_up)) - len(in_time)

    # The disaster.
    lose_database(backed_up)
    done = tell(backed_up, "backup", "restore", *to, data=backed_up.data)
    assert done["lastCommitMs"] <= moment_ms
    assert done["missing"] == []
    backed_up.start()
    orders = read_orders(backed_up)
    assert in_time <= orders
    assert not client.answers.keys() <= orders


@pytest.mark.extended
def test_back_ups_go_on_over_a_restore_and_over_lost_machines(backed_up: BackedUpService) -> None:
    backed_up.start()
    tell(backed_up, "backup", "create", data=backed_up.data)
    # A process that dies, and a store that is away for a while, cost nothing but time.
    kill_all({find_shipper(backed_up)})
    until_stored(backed_up)
    backed_up.store.rename(backed_up.store.with_name("away"))
    wait_until(lambda: "WAL is not being stored" in backed_up.errors(), "the log says that the store is away")
    backed_up.store.with_name("away").rename(backed_up.store)
    until_stored(backed_up)
    for turn in range(LOST_MACHINES):
        with load(backed_up) as client:
            until_more(client)
            in_time = set(client.answers)
            until_stored(backed_up)
            until_more(client)
            lose_database(backed_up)
        restored = backed_up.data.parent / f"machine {turn}"
        restored.mkdir()
        shutil.copy(backed_up.data / "master.key", restored)
        done = tell(backed_up, "backup", "restore", data=restored)
        assert (done["timeline"], done["authenticated"]) == (turn + 1, True)
        assert str(restored / "checkpoint.key") in done["missing"]
        shutil.copy(backed_up.data / "checkpoint.key", restored)
        shutil.copytree(backed_up.data / "checkpoints", restored / "checkpoints")

        backed_up.data = restored
        backed_up.start()
        assert in_time <= read_orders(backed_up)
        until_stored(backed_up)
        found = tell(backed_up, "backup", "verify", data=restored)
        assert (found["ok"], found["comparedWithLive"]["lostEntries"]) == (True, 0)
        assert found["timeline"] == turn + 2

    listed = tell(backed_up, "backup", "list", data=backed_up.data)["backups"]
    assert [each["timeline"] for each in listed] == [1]
    tell(backed_up, "backup", "create", data=backed_up.data)
    assert tell(backed_up, "backup", "prune", "--keep", "1", data=backed_up.data)["removedObjects"] > 0
    assert tell(backed_up, "backup", "verify", data=backed_up.data)["ok"]


@pytest.mark.extended
def test_a_hole_fails_the_rehearsal_and_a_restore_asks(backed_up: BackedUpService) -> None:
    backed_up.start()
    tell(backed_up, "backup", "create", data=backed_up.data)
    with load(backed_up) as client:
        until_more(client)
        in_time = set(client.answers)
        until_stored(backed_up)
        first = {path.name for path in backed_up.store.glob("*/wal/*")}
        until_more(client)
        until_stored(backed_up)
        second = {path.name for path in backed_up.store.glob("*/wal/*")} - first
        until_more(client)
        until_stored(backed_up)
    whole = tell(backed_up, "backup", "verify", data=backed_up.data)
    assert (whole["ok"], whole["hole"]) == (True, None)
    listed = tell(backed_up, "audit", "list", "--action", "backup.verified", data=backed_up.data)
    assert [entry["subject"] for entry in listed["entries"]] == [f"backup {whole['backup']}"]

    # While it is stopped, some WAL is removed from the store.
    backed_up.end()
    [lost, *_] = sorted(second)
    [path] = backed_up.store.glob(f"*/wal/{lost}")
    path.unlink()
    status, said, errors = ask(backed_up, "backup", "verify", "--max-missing", "0", data=backed_up.data)
    found = json.loads(said)
    assert (status, found["ok"], found["missingSeconds"] > 0) == (1, False, True)
    assert "can't be restored" in errors
    assert "are allowed (--max-missing)" in errors
    assert tell(backed_up, "backup", "verify", "--max-missing", "off", data=backed_up.data)["ok"]

    (backed_up.data / "postgres").rename(backed_up.data / "postgres.before")
    status, _, errors = ask(backed_up, "backup", "restore", data=backed_up.data)
    assert (status, "give --up-to-hole. Nothing was done" in errors) == (1, True)
    done = tell(backed_up, "backup", "restore", "--up-to-hole", data=backed_up.data)
    assert done["hole"]["laterObjects"] > 0
    backed_up.start()
    orders = read_orders(backed_up)
    assert in_time <= orders
    assert not client.answers.keys() <= orders
