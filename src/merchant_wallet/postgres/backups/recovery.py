"""Restores a base back-up and the WAL after it into a data folder that has no database.

Rules:
- Everything is done beside the final place, which gets the database in one step, when it is whole.
- PostgreSQL replays the WAL to its end, or to a moment. It begins a new timeline, so what is stored later
  never mixes with what was stored before.
- The roles get new passwords, since no password is in a back-up.
- No session can connect meanwhile.
"""

import gzip
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.base.config import DATA_DIR_MODE
from merchant_wallet.base.counted import count_of
from merchant_wallet.postgres.backups import catalogue
from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue, StoredWal
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError, ObjectGone
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES
from merchant_wallet.postgres.backups.stores import Store
from merchant_wallet.postgres.cluster import renew_passwords
from merchant_wallet.postgres.data_folder import (
    AlreadyRunning,
    DataFolder,
    make_socket_dir,
    remove_socket_dir,
    take_lock,
)
from merchant_wallet.postgres.programs import Programs, choose_programs, open_log
from merchant_wallet.postgres.server import make_server_settings

POLL_S: Final = 0.1
STOP_TIMEOUT_S: Final = 60.0
LIST_TRIES: Final = 20
COPY_BYTES: Final = 2**20
DRAFT: Final = "postgres.restoring"
SPOOL: Final = "postgres.wal"
_LAST_COMMIT = re.compile(r"last completed transaction was at log time (\S+ \S+)\+00")
_NOT_REACHED: Final = "recovery ended before configured recovery target was reached"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore gave. `last_commit_ms` is None if nothing was committed after the base back-up."""

    base: BaseBackup
    timeline: int
    last_commit_ms: int | None


def choose_base(found: Catalogue, name: str | None, to_ms: int | None) -> BaseBackup:
    """The base back-up to begin with: a named one, or the newest that ended before a moment.

    Raises BackupError.
    """
    named = [base for base in found.bases if name in (None, base.name)]
    if not named:
        raise BackupError(
            f"There is no back-up {name}: `backup list` shows them."
            if name
            else "There is no base back-up in the store: `merchant-wallet backup create` makes one."
        )
    early = [base for base in named if to_ms is None or base.completed.ended_ms <= to_ms]
    if not early:
        ended = datetime.fromtimestamp(named[0].completed.ended_ms / 1000, UTC).isoformat()
        raise BackupError(
            f"The oldest back-up that fits ended at {ended}: no earlier moment can be restored."
        )
    return early[-1]


def restore(
    data_dir: Path,
    store: Store,
    key: BackupKey,
    found: Catalogue,
    base: BaseBackup,
    to_ms: int | None,
    say: Say,
) -> Restored:
    """Restore into a data folder. Raises BackupError, StoreAway, PostgresError, OSError."""
    folder = DataFolder(data_dir.absolute().resolve())
    folder.root.mkdir(mode=DATA_DIR_MODE, parents=True, exist_ok=True)
    with _locked(folder):
        programs = choose_programs(folder)
        draft, spool = folder.root / DRAFT, folder.root / SPOOL
        try:
            for path in (draft, spool):
                shutil.rmtree(path, ignore_errors=True)
                path.mkdir(mode=0o700)
                _give(path, programs)
            fetcher = Fetcher(store, key, programs, say)
            fetcher.fetch_base(base, draft)
            _check_files(draft, folder, programs)
            end = fetcher.fetch_wal(found, base, draft / "pg_wal", spool).find_end(base)
            last_commit_ms = _Replay(folder, programs, draft, spool, say).run(end.timeline, to_ms)
            renew_passwords(draft, folder, programs)
            draft.rename(folder.cluster)
            sync_folder(folder.root)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            shutil.rmtree(spool, ignore_errors=True)
    return Restored(base, end.timeline, last_commit_ms)


@contextmanager
def _locked(folder: DataFolder) -> Iterator[None]:
    """The folder's lock. Raises BackupError if a server runs there, or if there is a database already."""
    try:
        lock = take_lock(folder)
    except AlreadyRunning as error:
        raise BackupError(
            f"An `up` or another restore uses {folder.root} (process {error.pid}). Stop it first, "
            "or restore into another folder."
        ) from error
    with lock:
        pid = folder.live_pid()
        if pid is not None:
            raise BackupError(
                f"The database in {folder.root} still runs (process {pid}), though its `up` is gone. "
                "Start `up` and stop it, or restore into another folder."
            )
        if folder.cluster.exists():
            raise BackupError(
                f"There is a database in {folder.root}. Keep it, it may be newer than the back-up: "
                f"mv {folder.cluster} {folder.cluster}.before, then restore again."
            )
        yield


def _check_files(draft: Path, folder: DataFolder, programs: Programs) -> None:
    """Compare every file with the checksums that PostgreSQL made while it sent them."""
    programs.run("pg_verifybackup", ["--no-parse-wal", "--quiet", str(draft)], folder)


def _give(path: Path, programs: Programs) -> None:
    if programs.account:
        os.chown(path, programs.account.uid, programs.account.gid, follow_symlinks=False)


class Fetcher:
    """Gets objects from a store, for the user of the server."""

    def __init__(self, store: Store, key: BackupKey, programs: Programs, say: Say) -> None:
        self._store = store
        self._key = key
        self._programs = programs
        self._say = say

    def fetch_base(self, base: BaseBackup, target: Path) -> None:
        """Unpack the files of a base back-up into an empty folder."""
        complete = f"{base.folder}/{base.completed.name}"
        with self._store.read(complete) as source:
            self._key.open(complete, source.read())
        name = f"{base.folder}/{catalogue.DATA}"
        with self._decrypted(name) as stream:
            with tarfile.open(fileobj=stream, mode="r|gz") as archive:
                for done, member in enumerate(archive):
                    self._unpack(archive, member, target)
                    self._say(f"unpacking the back-up: {count_of(done, 'file')}")
            # Only the end of the stream shows that nothing was cut.
            while stream.read(COPY_BYTES):
                pass

    def _unpack(self, archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
        path = target / member.name
        if os.path.isabs(member.name) or ".." in Path(member.name).parts:
            raise BackupError(
                f"The back-up contains the file name {member.name}: it was not made by `backup`."
            )
        if member.isdir():
            path.mkdir(mode=0o700, exist_ok=True)
        elif member.isreg():
            source = archive.extractfile(member)
            assert source is not None
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                shutil.copyfileobj(source, file, COPY_BYTES)
        else:
            raise BackupError(
                f"The back-up contains {member.name}, which is no file: make a table space of it."
            )
        _give(path, self._programs)

    @contextmanager
    def _decrypted(self, name: str) -> Iterator[IO[bytes]]:
        """The content of an object as a stream. A damaged object raises at the end of the block."""
        read_end, write_end = os.pipe()
        failures: list[Exception] = []

        def decrypt() -> None:
            with os.fdopen(write_end, "wb") as target:
                try:
                    with self._store.read(name) as source:
                        self._key.open_stream(name, source, target)
                except Exception as error:
                    failures.append(error)

        thread = threading.Thread(target=decrypt, daemon=True)
        thread.start()
        try:
            with os.fdopen(read_end, "rb") as stream:
                yield stream
        except (tarfile.TarError, EOFError, OSError) as error:
            thread.join()
            raise failures[0] if failures else BackupError(f"{name} is damaged: {error}") from error
        thread.join()
        if failures:
            raise failures[0]

    def fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> Catalogue:
        """Get all WAL that the replay may ask for, as PostgreSQL's segments. Returns what the store has.

        `base_wal` is the folder of the WAL in the base back-up. The store may have only a part of its last
        segment, and PostgreSQL prefers a file that it is given to the one in the back-up. Both go into one.
        A running `up` replaces the parts of a segment by the whole one. Then the store is listed again.
        """
        for _ in range(LIST_TRIES):
            try:
                self._fetch_wal(found, base, base_wal, target)
            except ObjectGone:
                found = catalogue.read_catalogue(self._store, found.system)
            else:
                return found
        raise BackupError("The store's WAL changes faster than it can be read: try again later.")

    def _fetch_wal(self, found: Catalogue, base: BaseBackup, base_wal: Path, target: Path) -> None:
        needed = found.list_needed(base)
        for done, stored in enumerate(needed):
            self._say(f"fetching WAL: {done} of {len(needed)} objects")
            path, in_base = (folder / stored.part.segment for folder in (target, base_wal))
            if not stored.part.is_whole and not path.exists() and in_base.exists():
                self._write(path, in_base.read_bytes(), 0)
            self._add_part(stored, target)
        for fork in found.forks:
            name = f"{found.system}/{catalogue.HISTORY}/{fork.name}"
            self._write(target / f"{fork.timeline:08X}.history", self._open(name), 0)

    def _add_part(self, stored: StoredWal, target: Path) -> None:
        try:
            content = gzip.decompress(self._open(stored.object.name))
        except (OSError, EOFError) as error:
            raise BackupError(f"{stored.object.name} is damaged: {error}.") from error
        if len(content) != stored.part.end - stored.part.start:
            raise BackupError(f"{stored.object.name} does not contain what its name says.")
        self._write(target / stored.part.segment, content, stored.part.start % SEGMENT_BYTES, SEGMENT_BYTES)

    def _open(self, name: str) -> bytes:
        with self._store.read(name) as source:
            return self._key.open(name, source.read())

    def _write(self, path: Path, content: bytes, offset: int, size: int = 0) -> None:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            if size:
                # What was not stored yet is zero, which PostgreSQL takes for the end of the WAL.
                file.truncate(size)
            file.seek(offset)
            file.write(content)
        _give(path, self._programs)


class _Replay:
    """One run of a server that replays WAL, until it has begun its new timeline."""

    def __init__(self, folder: DataFolder, programs: Programs, draft: Path, spool: Path, say: Say) -> None:
        self._folder = folder
        self._programs = programs
        self._draft = draft
        self._spool = spool
        self._say = say
        self._log_offset = folder.log_size()

    def run(self, timeline: int, to_ms: int | None) -> int | None:
        """Replay, promote, stop. Returns the moment of the last commit."""
        signal_file = self._draft / "recovery.signal"
        signal_file.touch(mode=0o600)
        _give(signal_file, self._programs)
        socket_dir = make_socket_dir(self._programs.account)
        try:
            child = self._start({**make_server_settings(socket_dir), **self._settings(timeline, to_ms)})
            try:
                self._wait(child)
            finally:
                _stop(child)
        finally:
            remove_socket_dir(socket_dir)
        return self._read_last_commit()

    def _settings(self, timeline: int, to_ms: int | None) -> dict[str, str]:
        spool = str(self._spool).replace("%", "%%").replace("'", "'\\''")
        settings = {
            "restore_command": f"cp '{spool}/%f' '%p'",
            "recovery_target_timeline": str(timeline),
            "recovery_target_action": "promote",
            "hot_standby": "off",
        }
        if to_ms is not None:
            moment = datetime.fromtimestamp(to_ms / 1000, UTC)
            settings["recovery_target_time"] = moment.strftime("%Y-%m-%d %H:%M:%S.%f+00")
        return settings

    def _start(self, settings: dict[str, str]) -> "subprocess.Popen[bytes]":
        chosen = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open_log(self._folder) as output:
            return self._programs.popen(
                "postgres", ["-D", str(self._draft), *chosen], output, subprocess.DEVNULL
            )

    def _wait(self, child: "subprocess.Popen[bytes]") -> None:
        while not self._is_ready(child.pid):
            if child.poll() is not None:
                raise BackupError(self._explain(self._folder.log_since(self._log_offset)))
            restored = self._folder.log_since(self._log_offset).rfind("restored log file")
            self._say("replaying WAL" if restored < 0 else f"replaying WAL: {self._last_segment()}")
            time.sleep(POLL_S)

    def _last_segment(self) -> str:
        lines = self._folder.log_since(self._log_offset).splitlines()
        found = [line for line in lines if "restored log file" in line]
        return found[-1].partition('"')[2].partition('"')[0]

    def _is_ready(self, pid: int) -> bool:
        try:
            lines = (self._draft / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _explain(self, said: str) -> str:
        if _NOT_REACHED not in said:
            return f"PostgreSQL could not replay the back-up:\n{said}"
        last = _LAST_COMMIT.findall(said)
        ends = f"The last commit in it was at {last[-1].replace(' ', 'T')}Z. " if last else ""
        return (
            f"The back-up has no commit after that moment. {ends}"
            "Leave out --to to restore everything, or give an earlier moment."
        )

    def _read_last_commit(self) -> int | None:
        found = _LAST_COMMIT.findall(self._folder.log_since(self._log_offset))
        return int(datetime.fromisoformat(f"{found[-1]}+00:00").timestamp() * 1000) if found else None


def _stop(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    try:
        child.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGQUIT)
        child.wait()
