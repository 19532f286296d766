"""Restores a base back-up and the WAL after it into a data folder that has no database.

Rules:
- Everything is done beside the final place, which gets the database in one step, when it is whole.
- PostgreSQL reads nothing before all of it was authenticated (`fetching`). Its settings come from this
  program, never from the back-up: a setting may name a command.
- PostgreSQL replays the WAL to its end, or to a moment. It begins a new timeline, so what is stored later
  never mixes with what was stored before.
- The roles get new passwords, since no password is in a back-up.
- No session can connect meanwhile.
- The room that is needed is compared with what the disk has, before anything is fetched.
- If the store is away, or a person interrupts, what was fetched stays for the next attempt. It is used only
  if the token beside it names the same base back-up and manifest. After a replay has begun, its WAL alone is.
"""

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from merchant_wallet.base.atomic_files import sync_folder
from merchant_wallet.base.config import DATA_DIR_MODE
from merchant_wallet.base.moments import format_moment
from merchant_wallet.postgres.backups.base import Manifest
from merchant_wallet.postgres.backups.catalogue import BaseBackup, Catalogue, WalEnd
from merchant_wallet.postgres.backups.encryption import BackupKey
from merchant_wallet.postgres.backups.errors import BackupError, StoreAway
from merchant_wallet.postgres.backups.fetching import LEFT_OUT, MEGABYTE, PART, Fetcher, Say
from merchant_wallet.postgres.backups.names import SEGMENT_BYTES
from merchant_wallet.postgres.backups.stores import Store
from merchant_wallet.postgres.cluster import give, renew_passwords, write_settings
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
DRAFT: Final = "postgres.restoring"
SPOOL: Final = "postgres.wal"
TOKEN: Final = "postgres.fetched"
"""The file that says of which base back-up the two folders are, and then whether its files are whole."""
FETCHED: Final = "fetched"
SPARE_SEGMENTS: Final = 4
"""WAL that the replay itself has and writes, at least."""
KEPT: Final = "What was fetched is kept: run the same command again, and it goes on."
_LAST_COMMIT = re.compile(r"last completed transaction was at log time (\S+ \S+)\+00")
_DISK_FULL: Final = "No space left on device"
_NOT_REACHED: Final = "recovery ended before configured recovery target was reached"


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore gave. `last_commit_ms` is None if nothing was committed after the base back-up."""

    base: BaseBackup
    end: WalEnd
    last_commit_ms: int | None


def choose_base(found: Catalogue, name: str | None, to_ms: int | None) -> BaseBackup:
    """The base back-up to begin with: a named one, or the newest that ended before a moment.

    Raises BackupError, also if the moment lies behind a hole.
    """
    named = [base for base in found.sort_bases() if name in (None, base.name)]
    if not named:
        raise BackupError(
            f"There is no back-up {name}: `backup list` shows them."
            if name
            else "There is no base back-up in the store: `merchant-wallet backup create` makes one."
        )
    early = [base for base in named if to_ms is None or base.completed.ended_ms <= to_ms]
    if not early:
        first_ms = min(base.completed.ended_ms for base in named)
        ended = datetime.fromtimestamp(first_ms / 1000, UTC).isoformat()
        raise BackupError(
            f"The oldest back-up that fits ended at {ended}: no earlier moment can be restored."
        )
    base = early[-1]
    end = found.find_end(base)
    if to_ms is not None and end.hole is not None and to_ms > end.until_ms:
        raise BackupError(
            f"From the back-up {base.name} no moment after {format_moment(end.until_ms)} can be restored: "
            f"{end.hole}. Give an earlier moment, or another back-up."
        )
    return base


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
        draft, spool, token = (folder.root / name for name in (DRAFT, SPOOL, TOKEN))
        fetcher = Fetcher(store, key, programs, say)
        manifest = fetcher.read_manifest(base)
        wanted = f"{base.folder}/{base.completed.name} {manifest.sha256}"
        known, _, state = _read(token).partition("\n")
        is_same = known == wanted
        is_fetched = is_same and state == FETCHED
        if not is_same:
            _remove(draft, spool, token)
        _require_room(folder.root, found, base, None if is_fetched else manifest, spool, say)
        is_kept = False
        try:
            if not is_same:
                _begin_folder(spool, programs)
                token.write_text(wanted)
            if not is_fetched:
                _begin_folder(draft, programs)
                fetcher.fetch_base(base, manifest, draft)
                token.write_text(f"{wanted}\n{FETCHED}")
            _check_files(draft, folder, programs)
            write_settings(draft, programs)
            reach = found.find_end(base)
            end = fetcher.fetch_wal(found, base, draft / "pg_wal", spool).find_end(base)
            if (end.timeline, end.position) < (reach.timeline, reach.position):
                raise BackupError(
                    "WAL was removed from the store meanwhile: restore again to see what is left."
                )
            # The replay changes these files.
            token.write_text(wanted)
            last_commit_ms = _Replay(folder, programs, draft, spool, say).run(end.timeline, to_ms)
            renew_passwords(draft, folder, programs)
            draft.rename(folder.cluster)
            sync_folder(folder.root)
        except StoreAway as error:
            is_kept = True
            raise StoreAway(f"{error} {KEPT}") from error
        except KeyboardInterrupt:
            is_kept = True
            raise
        finally:
            if not is_kept:
                _remove(draft, spool, token)
    return Restored(base, end, last_commit_ms)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _begin_folder(path: Path, programs: Programs) -> None:
    """An empty folder of the server's user."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700)
    give(path, programs)


def _remove(draft: Path, spool: Path, token: Path) -> None:
    token.unlink(missing_ok=True)
    for folder in (draft, spool):
        shutil.rmtree(folder, ignore_errors=True)


def _require_room(
    root: Path, found: Catalogue, base: BaseBackup, manifest: Manifest | None, spool: Path, say: Say
) -> None:
    """Raises BackupError if the disk has no room for what is still to be fetched, which is said."""
    segments = {stored.part.segment for stored in found.list_needed(base)}
    left = sum(not (spool / segment).exists() for segment in segments) + SPARE_SEGMENTS
    needed_bytes = left * SEGMENT_BYTES + (0 if manifest is None else manifest.archive_bytes)
    free_bytes = shutil.disk_usage(root).free
    room = f"about {needed_bytes // MEGABYTE} MB in {root}, which has {free_bytes // MEGABYTE} MB"
    if needed_bytes > free_bytes:
        raise BackupError(f"The restore needs {room}: make room, or name another folder.")
    say(f"restoring needs {room}, and the replay up to the length of its WAL more")


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
    left_out = [f"--ignore={name}" for name in sorted(LEFT_OUT)]
    programs.run("pg_verifybackup", ["--no-parse-wal", "--quiet", *left_out, str(draft)], folder)


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
        give(signal_file, self._programs)
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
        # A file that is not there ends the WAL. One that can't be copied, since the disk is full, must not:
        # PostgreSQL stops if the status is above 125.
        find = f"""f='{spool}/%f'; [ -e "$f" ] || f="$f{PART}"; [ -e "$f" ] || exit 1"""
        settings = {
            "restore_command": f"""{find}; cp "$f" '%p' || exit 200""",
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
        if _DISK_FULL in said:
            return f"{self._folder.root} is full: make room, or name another folder, and restore again."
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
