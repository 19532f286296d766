"""WAL of a real server in a store: what is stored when, what a restore gives, and what is refused."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.folders import copy_folder
from tests.postgres.backups.place import Place
from tests.rows import each_row

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.backups import recovery
from merchant_wallet.postgres.backups.base import create_base
from merchant_wallet.postgres.backups.encryption import Reader
from merchant_wallet.postgres.backups.errors import BackupError, StoreAway
from merchant_wallet.postgres.backups.names import SESSION, parse_session
from merchant_wallet.postgres.backups.queries import SLOT
from merchant_wallet.postgres.backups.recovery import choose_base, restore
from merchant_wallet.postgres.backups.shipping import CHECK_MS, Shipper, WrongStore, forget_slot
from merchant_wallet.postgres.backups.stores import FolderStore


def test_what_is_stored_after_a_base_back_up_is_restored_with_it(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int); insert into kept values (1)")
    place.back_up()
    place.execute("insert into kept values (2)")
    place.ship()
    place.execute("insert into kept values (3)")
    passwords = {path.name: path.read_text() for path in place.data.glob("postgres*.password")}
    restored = place.restore("restored")
    place.server.stop()
    place.start(restored)

    assert place.read() == [1, 2]
    assert all((restored / name).read_text() != text for name, text in passwords.items())
    # The new timeline is stored after the old one.
    place.execute("insert into kept values (4)")
    place.ship()
    again = place.restore("again")
    place.server.stop()
    place.start(again)
    assert place.read() == [1, 2, 4]


def test_a_base_back_up_is_enough_though_only_the_beginning_of_its_wal_was_stored(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int); insert into kept values (1)")
    shipped: list[int] = []

    def ship_once(done: int, total: int) -> None:
        if not shipped:
            # The record of the back-up's end is written later, into the same segment.
            shipped.append(place.ship())

    create_base(place.server.backup_url, place.store, place.key, ship_once)
    [base] = place.catalogue.bases
    newest = max(each.part for each in place.catalogue.wal)
    assert base.completed.start < newest.end < base.completed.end
    restored = place.restore("restored")
    place.server.stop()
    place.start(restored)
    assert place.read() == [1]


def test_a_full_segment_takes_the_place_of_its_parts(place: Place) -> None:
    place.ship()
    for number in range(3):
        place.execute(f"create table kept{number} (n int)")
        assert place.ship() > 0
    assert len([each for each in place.catalogue.wal if not each.part.is_whole]) > 1
    place.execute("create table large as select repeat('x', 1000) t from generate_series(1, 40000)")
    place.ship()

    wal = [each.part for each in place.catalogue.wal]
    newest = max(part.segment for part in wal)
    assert all(part.is_whole for part in wal if part.segment != newest)
    assert [before.end for before in wal[:-1]] == [after.start for after in wal[1:]]


def test_a_restore_goes_on_when_parts_become_a_whole_segment_meanwhile(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int)")
    place.back_up()
    place.execute("insert into kept values (1)")
    place.ship()
    listed = place.catalogue
    place.execute("insert into kept values (2)")
    place.execute("create table large as select repeat('x', 1000) t from generate_series(1, 40000)")
    place.ship()
    assert {each.object for each in listed.wal} - {each.object for each in place.catalogue.wal}
    target = place.root / "restored"
    base = choose_base(listed, None, None)
    restore(target, place.store, place.key, listed, base, None, lambda _: None)
    place.server.stop()
    place.start(target)
    assert place.read() == [1, 2]


def test_wal_is_kept_until_the_store_has_confirmed_it(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int)")
    with pytest.raises(StoreAway):
        place.ship(FolderStore(place.root / "not mounted"))
    question = "select restart_lsn, pg_current_wal_flush_lsn() from pg_replication_slots where slot_name = %s"
    with connect_sync(place.server.backup_url) as connection:
        [(kept, flushed)] = connection.execute(question, (SLOT,)).fetchall()
        assert kept < flushed
    place.ship()
    with connect_sync(place.server.backup_url) as connection:
        [(now_kept, _)] = connection.execute(question, (SLOT,)).fetchall()
    assert now_kept >= flushed


def test_the_session_says_up_to_when_everything_is_stored(place: Place) -> None:
    begun_ms = now_ms()
    question = "select application_name from pg_stat_activity where starts_with(application_name, %s)"
    with connect_sync(place.server.backup_url) as connection:
        shipper = Shipper(connection, place.data / "postgres", place.store, place.key, now_ms)
        shipper.open()
        shipper.ship()
        with connect_sync(place.server.web_url) as other:
            [(told,)] = other.execute(question, (SESSION,)).fetchall()
    stored = parse_session(told)
    assert stored is not None
    assert begun_ms <= stored.stored_ms <= now_ms()
    assert (stored.restorable_ms, stored.base_ms) == (0, 0)


def remove_segment(place: Place) -> None:
    """Another program removes a whole segment."""
    *_, name = [each.object.name for each in place.catalogue.wal if each.part.is_whole]
    place.store.delete([name])


def remove_part(place: Place) -> None:
    """Another program removes a part of a segment."""
    *_, name = [each.object.name for each in place.catalogue.wal if not each.part.is_whole]
    place.store.delete([name])


def start_without_store(place: Place) -> None:
    """The server runs without a store for a while."""
    with connect_sync(place.server.backup_url) as connection:
        forget_slot(connection)
    fill_segments(place, "unstored")
    place.execute("checkpoint")


def fill_segments(place: Place, table: str) -> None:
    """More WAL than two segments have."""
    place.execute(f"create table {table} as select repeat('x', 1000) t from generate_series(1, 40000)")


@pytest.mark.extended
@each_row("lose", [remove_segment, remove_part])
def test_what_is_missing_in_the_store_is_stored_again_while_the_server_has_it(
    place: Place, lose: Callable[[Place], None]
) -> None:
    if not place.store.list_objects():
        place.back_up()
    shift_ms = 0
    with connect_sync(place.server.backup_url) as connection:
        folder = place.data / "postgres"
        shipper = Shipper(connection, folder, place.store, place.key, lambda: now_ms() + shift_ms)
        shipper.open()
        fill_segments(place, f"stored_{lose.__name__}")
        shipper.ship()
        lose(place)
        place.execute(f"create table later_{lose.__name__} (n int)")
        shipper.ship()
        [base] = place.catalogue.bases
        assert place.catalogue.find_end(base).hole is not None

        shift_ms = CHECK_MS
        shipper.ship()
        end = place.catalogue.find_end(base)
        assert (end.hole, end.position) == (None, max(each.part.end for each in place.catalogue.wal))
        [(told,)] = connection.execute("show application_name").fetchall()
    stored = parse_session(told)
    assert stored is not None
    assert stored.restorable_ms == stored.stored_ms


def remove_old_segment(place: Place) -> None:
    """Another program removes a segment that the server has no more."""
    fill_segments(place, "more")
    place.ship()
    place.execute("checkpoint")
    [base] = place.catalogue.bases
    whole = [each for each in place.catalogue.wal if each.part.is_whole]
    place.store.delete([next(each.object.name for each in whole if each.part.start > base.completed.end)])


@pytest.mark.extended
@each_row("lose", [remove_old_segment, start_without_store])
def test_wal_that_is_missing_in_the_store_is_seen(place: Place, lose: Callable[[Place], None]) -> None:
    if not place.store.list_objects():
        place.back_up()
    fill_segments(place, f"stored_{lose.__name__}")
    place.ship()
    stored = place.ship_and_tell()
    assert (stored.restorable_ms, stored.base_ms > 0) == (stored.stored_ms, True)

    lose(place)
    place.execute(f"create table later_{lose.__name__} (n int)")
    broken = place.ship_and_tell()
    assert 0 < broken.restorable_ms <= stored.restorable_ms < broken.stored_ms
    [base] = place.catalogue.bases
    end = place.catalogue.find_end(base)
    assert end.hole is not None
    assert end.until_ms == broken.restorable_ms

    # Only a new base back-up mends it.
    place.store.delete([each.name for each in place.store.list_objects(base.folder)])
    place.back_up()
    mended = place.ship_and_tell()
    assert mended.restorable_ms == mended.stored_ms


def test_an_older_copy_of_the_server_writes_nothing_into_its_store(place: Place) -> None:
    place.server.stop()
    copy_folder(place.data, place.root / "copy")
    place.start(place.data)
    place.execute("create table kept (n int)")
    place.ship()
    before = place.store.list_objects()
    place.server.stop()
    place.start(place.root / "copy")

    with pytest.raises(WrongStore, match=r"this folder is an older copy.*has made \d+/wal/"):
        place.ship()
    assert place.store.list_objects() == before


def test_the_second_of_two_servers_restored_from_one_back_up_is_refused(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int)")
    place.back_up()
    place.ship()
    first = place.restore("first")
    place.execute("insert into kept values (1)")
    place.ship()
    second = place.restore("second")
    place.server.stop()
    place.start(first)
    place.ship()
    place.server.stop()
    place.start(second)

    with pytest.raises(WrongStore, match=r"Another server has stored timeline 2.*has made \d+/history/2\."):
        place.ship()


def test_without_a_store_wal_is_no_longer_kept(place: Place) -> None:
    place.ship()
    with connect_sync(place.server.backup_url) as connection:
        forget_slot(connection)
        forget_slot(connection)
        assert connection.execute("select * from pg_replication_slots").fetchall() == []


class BadStore(FolderStore):
    """A store that is away for one object at first."""

    def __init__(self, root: Path, away: str) -> None:
        super().__init__(root)
        self.away = away
        self.read_names: list[str] = []

    @contextmanager
    def read(self, name: str) -> Iterator[Reader]:
        """See `Store`."""
        if name == self.away:
            raise StoreAway("The store is away.")
        self.read_names.append(name)
        with super().read(name) as source:
            yield source


@pytest.mark.extended
def test_a_restore_that_was_interrupted_goes_on(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int); insert into kept values (1)")
    place.back_up()
    fill_segments(place, "large")
    place.ship()
    place.execute("insert into kept values (2)")
    place.ship()
    [base] = place.catalogue.bases
    needed = [each.object.name for each in place.catalogue.list_needed(base)]
    last = needed[-1]
    bad = BadStore(place.root / "store", last)
    target, said = place.root / "restored", list[str]()
    with pytest.raises(StoreAway, match="run the same command again, and it goes on"):
        restore(target, bad, place.key, place.catalogue, base, None, said.append)
    assert (target / "postgres.restoring/PG_VERSION").exists()
    assert f"{base.folder}/data.age" in bad.read_names
    fetched = {name for name in bad.read_names if "/wal/" in name}

    bad.away, bad.read_names = "", []
    restore(target, bad, place.key, place.catalogue, base, None, said.append)
    assert f"{base.folder}/data.age" not in bad.read_names
    again = {name for name in bad.read_names if "/wal/" in name}
    assert last in again
    assert fetched | again == {*needed}
    # Whole segments are not fetched twice.
    assert all("-" in name for name in fetched & again)
    left = (recovery.DRAFT, recovery.SPOOL, recovery.TOKEN)
    assert not any((target / name).exists() for name in left)
    place.server.stop()
    place.start(target)
    assert place.read() == [1, 2]


@pytest.mark.extended
def test_a_restore_says_what_room_it_needs_and_begins_only_if_there_is_so_much(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ship()
    place.back_up()
    place.ship()
    usage = shutil.disk_usage(place.root)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10_000_000))
        needs = r"needs about \d{2,3} MB in .*/restored, which has 10 MB: make room"
        with pytest.raises(BackupError, match=needs):
            place.restore("restored")
    assert [path.name for path in (place.root / "restored").iterdir()] == ["up.lock"]


@pytest.mark.extended
def test_a_replay_that_can_not_copy_its_wal_is_no_end_of_the_wal(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ship()
    place.back_up()
    fill_segments(place, "large")
    place.ship()
    settings = recovery._Replay._settings

    def without_cp(replay: recovery._Replay, timeline: int, to_ms: int | None) -> dict[str, str]:
        made = settings(replay, timeline, to_ms)
        return {**made, "restore_command": made["restore_command"].replace("cp ", "false ")}

    monkeypatch.setattr(recovery._Replay, "_settings", without_cp)
    with pytest.raises(BackupError, match="could not replay the back-up"):
        place.restore("restored")


def test_a_damaged_object_is_named_and_nothing_is_restored(place: Place) -> None:
    place.ship()
    name = place.back_up()
    place.ship()
    [data] = [each.name for each in place.store.list_objects() if each.name.endswith("data.age")]
    path = place.root / "store" / data
    path.write_bytes(path.read_bytes()[:-200_000])

    with pytest.raises(BackupError, match=rf"base/{name}/data.age is damaged"):
        place.restore("restored")
    assert [path.name for path in (place.root / "restored").iterdir()] == ["up.lock"]


def test_a_folder_with_a_server_or_with_a_database_is_refused(place: Place) -> None:
    place.ship()
    place.back_up()
    with pytest.raises(BackupError, match="Stop it first, or restore into another folder"):
        place.restore("data")
    place.server.stop()
    with pytest.raises(BackupError, match=r"mv .*/data/postgres .*/data/postgres.before"):
        place.restore("data")
    place.start(place.data)


def test_the_role_of_back_ups_reads_no_table(place: Place) -> None:
    place.execute("create table kept (n int)")
    with connect_sync(place.server.backup_url) as connection:
        found = connection.execute(
            "select has_table_privilege('kept', 'select'), rolsuper, rolcreaterole,"
            " pg_has_role('wallet', 'member')"
            " from pg_roles where rolname = current_user"
        ).fetchone()
    assert found == (False, False, False, False)
