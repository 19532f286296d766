"""What somebody can do who may write to the store and knows the recipient: nothing of theirs is restored."""

import errno
import gc
import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.postgres.backups.place import Place, make_key
from tests.rows import each_row

from merchant_wallet.base.db import connect_sync
from merchant_wallet.postgres.backups.base import Manifest
from merchant_wallet.postgres.backups.catalogue import DATA, BaseBackup, read_catalogue
from merchant_wallet.postgres.backups.encryption import BackupKey, Reader
from merchant_wallet.postgres.backups.errors import BackupError
from merchant_wallet.postgres.backups.fetching import HISTORY_BYTES, Fetcher, Say
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES, Completed, Fork, WalPart
from merchant_wallet.postgres.backups.stores import FolderStore
from merchant_wallet.postgres.programs import Programs

SYSTEM = "7"
COMPLETED = Completed(1, 40, 300, 1000)
FOLDER = f"{SYSTEM}/base/20260101T000000Z"
BASE = BaseBackup(SYSTEM, "20260101T000000Z", COMPLETED, 0)
PART = WalPart(1, 0, 100)
FORK = Fork(2, 1, COMPLETED.end)


def seal_unsigned(key: BackupKey, name: str, content: bytes) -> bytes:
    """An object that anybody makes who knows the recipient."""
    sealed = io.BytesIO()
    key.seal_stream(name, io.BytesIO(content), sealed)
    return sealed.getvalue()


def describe(packed: bytes, archive_bytes: int) -> bytes:
    """A manifest that fits."""
    return msgspec.json.encode(Manifest(hashlib.sha256(packed).hexdigest(), archive_bytes))


def pack(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    """An archive of these members. Files have this content."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def name_member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    """A member of an archive."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def forge(place: Place, files: Mapping[str, str]) -> None:
    """Replace the base back-up by one with other files, made without the installation's key."""
    [base] = place.catalogue.bases
    data, opened = f"{base.folder}/{DATA}", io.BytesIO()
    with place.store.read(data) as source:
        place.key.open_stream(data, source, opened)
    opened.seek(0)
    packed = io.BytesIO()
    with tarfile.open(fileobj=opened, mode="r:gz") as old, tarfile.open(fileobj=packed, mode="w") as new:
        for member in old:
            content = old.extractfile(member).read() if member.isreg() else b""  # type: ignore[union-attr] # A file.
            if member.name in files:
                content = files[member.name].encode()
                member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    forged = gzip.compress(packed.getvalue(), 1)
    for name, content in (
        (data, forged),
        (f"{base.folder}/{base.completed.name}", describe(forged, len(packed.getvalue()))),
    ):
        place.store.put(name, seal_unsigned(place.key, name, content))


def test_a_forged_back_up_is_refused_and_brings_no_settings_even_if_a_person_accepts_it(place: Place) -> None:
    place.ship()
    place.execute("create table kept (n int); insert into kept values (1)")
    place.back_up()
    marks = place.root / "marks"
    marks.mkdir()
    marks.chmod(0o777)
    forge(
        place,
        {
            "postgresql.auto.conf": f"recovery_end_command = 'touch {marks}/auto'\n",
            "postgresql.conf": f"archive_cleanup_command = 'touch {marks}/conf'\n",
            "pg_hba.conf": "local all all trust\n",
        },
    )

    said = r"complete.*has no signature: somebody else.*`--unauthenticated` restores"
    with pytest.raises(BackupError, match=said):
        place.restore("refused")
    assert not (place.root / "refused/postgres").exists()
    restored = place.restore("accepted", place.key.without_authentication())
    place.server.stop()
    place.start(restored)
    assert place.read() == [1]
    assert list(marks.iterdir()) == []
    socket = conninfo_to_dict(place.server.url)
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        connect_sync(f"postgresql:///postgres?host={socket['host']}&port={socket['port']}&user=postgres")


class Counting(FolderStore):
    """A folder that counts what is read of its objects."""

    read_bytes = 0

    @contextmanager
    def read(self, name: str) -> Iterator[Reader]:
        with super().read(name) as source:
            counted = Counted(source)
            try:
                yield counted
            finally:
                self.read_bytes += counted.read_bytes


class Counted:
    """Counts what is read of a source."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self.read_bytes = 0

    def read(self, size: int = -1, /) -> bytes:
        found = self._source.read(size)
        self.read_bytes += len(found)
        return found


class Forged:
    """A store that somebody fills, and what the installation makes of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.key = make_key()
        self.store = FolderStore(root / "store")
        self.target, self.wal = root / "target", root / "wal"
        for path in (root / "store", self.target, self.wal):
            path.mkdir()

    def put(self, name: str, content: bytes) -> None:
        """Store an object that the installation has signed."""
        self.store.put(name, self.key.seal(name, content))

    def put_base(self, archive: bytes, manifest: Manifest | None = None) -> None:
        """Store a base back-up that the installation has signed."""
        packed, data = gzip.compress(archive), f"{FOLDER}/{DATA}"
        self.store.put(data, seal_unsigned(self.key, data, packed))
        made = manifest or Manifest(hashlib.sha256(packed).hexdigest(), len(archive))
        self.put(f"{FOLDER}/{COMPLETED.name}", msgspec.json.encode(made))

    def fetch_base(self, key: BackupKey | None = None, say: Say = lambda _: None) -> list[str]:
        """Unpack the base back-up. Returns what is there then."""
        fetcher = self._make_fetcher(key, say)
        fetcher.fetch_base(BASE, fetcher.read_manifest(BASE), self.target)
        return sorted(path.name for path in self.target.iterdir())

    def fetch_wal(self, key: BackupKey | None = None, base: BaseBackup = BASE) -> list[str]:
        """Get all WAL. Returns what is there then."""
        found = read_catalogue(self.store, SYSTEM)
        self._make_fetcher(key).fetch_wal(found, base, self.target / "pg_wal", self.wal)
        return sorted(path.name for path in self.wal.iterdir())

    def _make_fetcher(self, key: BackupKey | None, say: Say = lambda _: None) -> Fetcher:
        return Fetcher(self.store, key or self.key, Programs(Path(), None, keep_search=False), say)


@pytest.fixture
def forged(tmp_path: Path) -> Forged:
    return Forged(tmp_path)


@each_row(
    "member",
    [
        name_member("base/../../out"),
        name_member("/tmp/out"),
        name_member("pg_tblspc/1", tarfile.SYMTYPE, "/tmp"),
        name_member("hard", tarfile.LNKTYPE, "/etc/passwd"),
        name_member("pipe", tarfile.FIFOTYPE),
        name_member("tablespace_map"),
        name_member("long" * 50),
    ],
)
def test_an_archive_leads_to_no_other_place_though_it_is_signed(
    forged: Forged, member: tarfile.TarInfo
) -> None:
    forged.put_base(pack(member, content=b"1 /tmp\n"))
    with pytest.raises(BackupError, match="The back-up"):
        forged.fetch_base()
    assert list(forged.target.iterdir()) == []


def test_what_tells_a_server_what_to_do_is_never_unpacked(forged: Forged) -> None:
    commands = ("postgresql.conf", "./postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf", "standby.signal")
    others = ("recovery.signal", "postmaster.opts", "PG_VERSION")
    forged.put_base(pack(*map(name_member, (*commands, *others)), content=b"18\n"))
    assert forged.fetch_base() == ["PG_VERSION"]


def test_an_archive_is_what_its_signed_manifest_says(forged: Forged) -> None:
    archive = pack(name_member("PG_VERSION"), content=b"18\n")
    forged.put_base(archive)
    data = f"{FOLDER}/{DATA}"
    forged.store.put(data, seal_unsigned(forged.key, data, gzip.compress(archive, 1) + bytes(8)))
    with pytest.raises(BackupError, match="not what its manifest says"):
        forged.fetch_base()


def test_what_follows_an_archive_is_read_no_further_than_its_manifest_says(forged: Forged) -> None:
    archive = pack(name_member("PG_VERSION"), content=b"18\n")
    forged.put_base(archive)
    data = f"{FOLDER}/{DATA}"
    forged.store.put(data, seal_unsigned(forged.key, data, gzip.compress(archive) + bytes(20 * 2**20)))
    forged.store = counting = Counting(forged.root / "store")
    with pytest.raises(BackupError, match="longer than its manifest says"):
        forged.fetch_base()
    assert counting.read_bytes < 4 * 2**20


def test_members_of_an_archive_are_forgotten_when_they_are_unpacked(forged: Forged) -> None:
    kept = []

    def say(text: str) -> None:
        kept.append(sum(isinstance(each, tarfile.TarInfo) for each in gc.get_objects()))

    before = sum(isinstance(each, tarfile.TarInfo) for each in gc.get_objects())
    names = [f"{number}" for number in range(6)]
    forged.put_base(pack(*[name_member(name, tarfile.DIRTYPE) for name in names]))
    forged.fetch_base(say=say)
    assert len(kept) == len(names)
    assert kept[-1] - before <= 3


def test_a_folder_comes_once_in_an_archive(forged: Forged) -> None:
    forged.put_base(pack(*[name_member("base", tarfile.DIRTYPE)] * 2))
    with pytest.raises(BackupError, match="File exists"):
        forged.fetch_base()


@each_row(
    ("fault", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk quota is used up"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_a_disk_that_takes_nothing_is_not_taken_for_a_damaged_back_up(
    forged: Forged, monkeypatch: pytest.MonkeyPatch, fault: int, said: str
) -> None:
    open_file = os.open

    def open_on_bad_disk(path: str | Path, *arguments: int, **more: int) -> int:
        if not {forged.target, forged.wal} & {*Path(path).parents}:
            return open_file(path, *arguments, **more)
        if fault == errno.ENOSPC and Path(path).name == "PG_VERSION":
            return open_file("/dev/full", os.O_WRONLY)
        raise OSError(fault, os.strerror(fault), str(path))

    forged.put_base(pack(name_member("PG_VERSION"), content=b"18\n"))
    forged.put(f"{SYSTEM}/wal/{PART.name}", gzip.compress(bytes(100)))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_on_bad_disk)
        for fetch in (forged.fetch_base, forged.fetch_wal):
            with pytest.raises(BackupError, match=said) as refused:
                fetch()
            assert "damaged" not in str(refused.value)
            assert "another back-up" not in str(refused.value)


def test_an_archive_grows_no_longer_than_its_manifest_says(forged: Forged) -> None:
    archive = pack(name_member("PG_VERSION"), content=bytes(100_000))
    forged.put_base(archive, Manifest(hashlib.sha256(gzip.compress(archive)).hexdigest(), 99_999))
    with pytest.raises(BackupError, match="longer than its manifest says"):
        forged.fetch_base()
    assert list(forged.target.iterdir()) == []


def test_a_back_up_without_signatures_is_restored_only_if_a_person_accepts_it(
    forged: Forged,
) -> None:
    archive = pack(name_member("PG_VERSION"), content=b"18\n")
    packed = gzip.compress(archive)
    wal = f"{SYSTEM}/wal/{PART.name}"
    for name, content in (
        (f"{FOLDER}/{DATA}", packed),
        (f"{FOLDER}/{COMPLETED.name}", describe(packed, len(archive))),
        (wal, gzip.compress(bytes(100))),
    ):
        forged.store.put(name, seal_unsigned(forged.key, name, content))
    for fetch in (forged.fetch_base, forged.fetch_wal):
        with pytest.raises(BackupError, match="has no signature"):
            fetch()
    accepting = forged.key.without_authentication()
    assert forged.fetch_base(accepting) == ["PG_VERSION"]
    assert forged.fetch_wal(accepting) == [f"{PART.segment}.part"]


def test_wal_of_another_installation_is_refused(forged: Forged) -> None:
    name = f"{SYSTEM}/wal/{PART.name}"
    other = forged.key.with_signing_key(os.urandom(32))
    forged.store.put(name, other.seal(name, gzip.compress(bytes(100))))
    with pytest.raises(BackupError, match="signed with another master key") as refused:
        forged.fetch_wal()
    assert f"{name} " in str(refused.value)
    assert "Remove this object from the store" in str(refused.value)
    assert "--unauthenticated" not in str(refused.value)


def test_wal_of_another_timeline_takes_no_place_here(forged: Forged) -> None:
    other = f"{SYSTEM}/wal/{PART._replace(timeline=2).name}"
    forged.store.put(f"{SYSTEM}/wal/{PART.name}", forged.key.seal(other, gzip.compress(bytes(100))))
    with pytest.raises(BackupError, match="contains another object"):
        forged.fetch_wal()


@each_row(
    ("name", "content", "said"),
    [
        (f"wal/{PART.name}", gzip.compress(bytes(4 * SEGMENT_BYTES)), "not contain what its name says"),
        (f"wal/{PART.name}", gzip.compress(bytes(99)), "not contain what its name says"),
        (f"wal/{PART.name}", gzip.compress(bytes(100))[:-1], "not contain what its name says"),
        (f"wal/{PART.name}", b"no archive", "is damaged"),
        (f"wal/{PART.name}", bytes(SEGMENT_BYTES + 2**16 + 1), "has more than"),
        (f"history/{FORK.name}", bytes(HISTORY_BYTES + 1), "has more than"),
        (
            f"history/{FORK.name}",
            b"1\t0/33\tno recovery target specified\n",
            "not contain what its name says",
        ),
        (f"history/{FORK.name}", b"", "not contain what its name says"),
    ],
)
def test_an_object_unpacks_to_what_its_name_says_and_to_no_more(
    forged: Forged, name: str, content: bytes, said: str
) -> None:
    forged.store.delete(each.name for each in forged.store.list_objects())
    forged.put(f"{SYSTEM}/{name}", content)
    with pytest.raises(BackupError, match=said):
        forged.fetch_wal()
    assert list(forged.wal.iterdir()) == []


def test_what_is_not_followed_is_not_opened(forged: Forged) -> None:
    forged.put(f"{SYSTEM}/wal/{PART._replace(end=400).name}", gzip.compress(bytes(400)))
    for name in (f"wal/{PART._replace(timeline=3).name}", f"history/{Fork(3, 2, 50).name}"):
        forged.store.put(f"{SYSTEM}/{name}", b"of before there were signatures")
    assert forged.fetch_wal() == [f"{PART.segment}.part", "00000003.history"]
    # PostgreSQL sees that the number is taken.
    assert (forged.wal / "00000003.history").read_text() == "2\t0/32\tnot followed\n"


def test_of_two_beginnings_of_a_timeline_the_one_that_is_followed_counts(forged: Forged) -> None:
    text = "1\t0/12C\tno recovery target specified\n"
    forged.put(f"{SYSTEM}/history/{FORK.name}", text.encode())
    for other in (FORK._replace(position=1), FORK._replace(position=2**40)):
        forged.store.put(f"{SYSTEM}/history/{other.name}", b"forged")
    assert forged.fetch_wal() == ["00000002.history"]
    assert (forged.wal / "00000002.history").read_text() == text


def test_the_history_of_a_base_back_ups_own_timeline_is_in_it(forged: Forged) -> None:
    text = "1\t0/10\tno recovery target specified\n"
    base = replace(BASE, completed=COMPLETED._replace(timeline=2))
    forged.store.put(f"{SYSTEM}/history/{FORK._replace(position=16).name}", b"forged")
    (forged.target / "pg_wal").mkdir()
    (forged.target / "pg_wal/00000002.history").write_text(text)
    assert "00000002.history" in forged.fetch_wal(base=base)
    assert (forged.wal / "00000002.history").read_text() == text


def test_links_and_pipes_in_the_store_are_no_objects(forged: Forged, tmp_path: Path) -> None:
    forged.put(f"{SYSTEM}/wal/{PART.name}", gzip.compress(bytes(100)))
    folder = tmp_path / "store" / SYSTEM / "wal"
    os.mkfifo(folder / PART._replace(end=200).name)
    (folder / PART._replace(end=300).name).symlink_to("/etc/passwd")
    assert forged.fetch_wal() == [f"{PART.segment}.part"]
