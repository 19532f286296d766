"""The data folder: its file names, its lock, and the runtime file of its server.

Rules: secrets have mode 0600 from the moment they exist. A stored pid is trusted only after a look at the
process itself, since another process may have that pid now.
"""

import contextlib
import fcntl
import json
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote

from merchant_wallet.base.atomic_files import READABLE, replace_file
from merchant_wallet.base.file_ownership import follow_owner
from merchant_wallet.postgres.privileges import Account

NAME = "wallet"  # The name of the database, and of the role that owns all tables.
WEB_ROLE = "wallet_web"
WORKER_ROLE = "wallet_worker"
SIDE_ROLES = (WEB_ROLE, WORKER_ROLE)
BACKUP_ROLE = "wallet_backup"
LOGIN_ROLES = (*SIDE_ROLES, BACKUP_ROLE)
"""The roles beside the owner's, each with a password of its own."""
PORT = 5432  # Part of the socket's file name only: nothing listens on the network.
SOCKET_PREFIX = "merchant-wallet-"
# A socket's path may have 107 bytes. The socket's own name and the folder's random part need the rest.
SOCKET_BASE_BYTES = 60
# Above every pid that Linux uses.
_NO_PID = 2**22 + 1


class PostgresError(Exception):
    """The own PostgreSQL can't be created, started or stopped. The text says what to do."""


class AlreadyRunning(PostgresError):
    """Another live process has this data folder. `pid` is its number, 0 if it could not be read."""

    def __init__(self, data_dir: Path, pid: int) -> None:
        super().__init__(
            f"the folder {data_dir} is in use by process {pid or 'unknown'}: stop that one first"
        )
        self.pid = pid


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The file names in a data folder. `root` is absolute."""

    root: Path

    @property
    def cluster(self) -> Path:
        """What PostgreSQL calls its data directory."""
        return self.root / "postgres"

    def password(self, role: str = NAME) -> Path:
        """The file with a role's password."""
        part = role.removeprefix(NAME).replace("_", ".")
        return self.root / f"postgres{part}.password"

    def has_login_roles(self) -> bool:
        """Whether the roles of web, worker and back-ups were created."""
        return all(self.password(role).exists() for role in LOGIN_ROLES)

    @property
    def log(self) -> Path:
        """PostgreSQL's log."""
        return self.root / "postgres.log"

    @property
    def lock(self) -> Path:
        """The lock that the one live `up` holds."""
        return self.root / "up.lock"

    @property
    def runtime(self) -> Path:
        """Where the running server is, for commands that connect to it."""
        return self.root / "runtime.json"

    def url(self, socket_dir: Path, role: str = NAME) -> str:
        """The libpq URL of a role. It contains the password."""
        secret = self.password(role).read_text().strip()
        return f"postgresql://{role}:{secret}@/{NAME}?host={quote(str(socket_dir), safe='')}&port={PORT}"

    def postmaster_lines(self) -> list[str]:
        """The lines of `postmaster.pid`: pid, folder, start, port, socket folder, address, memory, status."""
        try:
            return (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def live_pid(self) -> int | None:
        """The pid of a server that is running on this folder."""
        lines = self.postmaster_lines()
        pid = int(lines[0]) if lines and lines[0].isdecimal() else 0
        return pid if is_postmaster(pid, self.cluster) else None

    def log_size(self) -> int:
        """The size of the log, which is where its next line begins."""
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, offset: int) -> str:
        """The log's text from `offset` on. Of a long text only the end."""
        if not self.log.exists():
            return ""
        return self.log.read_bytes()[offset:].decode(errors="replace")[-4000:].strip()


def read_system(root: Path) -> str | None:
    """The system identifier of a folder's cluster, which names its back-ups. None without a cluster."""
    try:
        with (root / "postgres/global/pg_control").open("rb") as control:
            return str(int.from_bytes(control.read(8), sys.byteorder))
    except OSError:
        return None


def is_postmaster(pid: int, cluster: Path) -> bool:
    """Whether `pid` is alive and is the PostgreSQL server of exactly this folder."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        named = arguments[arguments.index(b"-D") + 1]
        return os.path.basename(arguments[0]) == b"postgres" and os.path.samefile(named, os.fsencode(cluster))
    except (OSError, ValueError, IndexError):
        # No such process, or one that was started in another way: not ours.
        return False


def take_lock(folder: DataFolder) -> IO[str]:
    """Lock the folder until the file is closed, and write this pid into it for the next process."""
    file = os.fdopen(os.open(folder.lock, os.O_RDWR | os.O_CREAT, 0o644), "r+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = file.read().strip()
        file.close()
        raise AlreadyRunning(folder.root, int(holder) if holder.isdecimal() else 0) from None
    os.fchmod(file.fileno(), 0o644)  # If the server's user can read this file, it may enter this folder too.
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def write_runtime(folder: DataFolder, pid: int, socket_dir: Path) -> None:
    """Write the runtime file, whole or not at all."""
    content = json.dumps({"pid": pid, "socket_dir": str(socket_dir)})
    replace_file(folder.runtime, content.encode(), mode=READABLE)


def read_runtime(folder: DataFolder) -> tuple[int, Path] | None:
    """The pid and socket folder in the runtime file. They may be outdated."""
    try:
        noted = json.loads(folder.runtime.read_text())
    except FileNotFoundError:
        return None
    return int(noted["pid"]), Path(noted["socket_dir"])


def disown_reused_pid(folder: DataFolder) -> None:
    """Remove the pid from `postmaster.pid` if it now belongs to a process that is not this folder's server.

    PostgreSQL would take that process for its predecessor and refuse to start. Only the number is changed.
    The line with the shared memory stays: PostgreSQL uses it to find sessions that outlived a killed server.
    """
    lines = folder.postmaster_lines()
    if lines and lines[0].isdecimal() and Path(f"/proc/{lines[0]}").exists():
        note = folder.cluster / "postmaster.pid"
        note.write_text("\n".join([str(_NO_PID), *lines[1:]]) + "\n")


def write_secret(path: Path, text: str) -> None:
    """Write `text` to a file that only this user can read, and sync it to disk."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        follow_owner(file.fileno(), path.parent)
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def make_socket_dir(account: Account | None) -> Path:
    """Create a private folder with a short name. The data folder's own path may be too long for a socket."""
    usual = tempfile.gettempdir()
    base = usual if len(os.fsencode(usual)) <= SOCKET_BASE_BYTES and "," not in usual else "/tmp"
    if account and not os.stat(base).st_mode & 0o001:
        base = "/tmp"
    path = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir=base))
    if account:
        os.chown(path, account.uid, account.gid)
    return path


def open_socket_dir(path: Path, group: int) -> None:
    """Let a group enter the folder and connect. A new server's socket belongs to the group too."""
    os.chown(path, -1, group)
    path.chmod(0o2710)
    socket = path / f".s.PGSQL.{PORT}"
    if socket.exists():
        os.chown(socket, -1, group)
        socket.chmod(0o770)


def clear_socket_dir(path: Path, account: Account | None) -> None:
    """Prepare the private folder for the next server: remove a dead server's socket, create a missing folder.

    Raises PostgresError if somebody else created something with that name, or could put a socket there.
    """
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        require_private(path, account.uid if account else os.geteuid())
        _remove_socket(path)
        return
    if account:
        os.chown(path, account.uid, account.gid)


def require_private(path: Path, uid: int) -> None:
    """Raise PostgresError unless this is a real folder of that user, and nobody else can write to it.

    Temporary folders are cleaned up, and then any local user may create one with the same name. Anyone who
    can write there can replace the server's socket with one of their own.
    """
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o022:
        raise PostgresError(
            f"{path} is not a private folder of the database server's user {uid}:"
            " see who made it, and remove it"
        )


def _remove_socket(path: Path) -> None:
    # Use the folder's descriptor: a link that somebody put in its place must not lead elsewhere.
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def remove_socket_dir(path: Path) -> None:
    """Remove the private folder and the socket that a killed server left in it.

    If something else has that name, somebody else created it, and it stays.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _remove_socket(path)
        path.rmdir()


def remove_recorded_socket_dir(folder: DataFolder) -> None:
    """Remove what the last server left when it was killed."""
    if (noted := read_runtime(folder)) and noted[1].name.startswith(SOCKET_PREFIX):
        remove_socket_dir(noted[1])
    folder.runtime.unlink(missing_ok=True)
