"""Start, find, take over and stop the server.

Rules: the process that starts or takes over a server holds the folder's lock until it has stopped it. A
server is ready when its `postmaster.pid` says so. It is asked to stop twice: first a fast shutdown, then an
immediate one.
"""

import atexit
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from merchant_wallet.base.config import DATA_DIR_MODE
from merchant_wallet.base.connection_limits import OWN_CONNECTIONS
from merchant_wallet.postgres.cluster import create_cluster, create_login_roles
from merchant_wallet.postgres.data_folder import (
    BACKUP_ROLE,
    NAME,
    PORT,
    WEB_ROLE,
    WORKER_ROLE,
    DataFolder,
    PostgresError,
    clear_socket_dir,
    disown_reused_pid,
    is_postmaster,
    make_socket_dir,
    open_socket_dir,
    read_runtime,
    remove_recorded_socket_dir,
    remove_socket_dir,
    require_private,
    take_lock,
    write_runtime,
)
from merchant_wallet.postgres.programs import Programs, choose_programs, open_log, require_same_version

START_TIMEOUT_S = 300.0  # Long, since after a crash up to max_wal_size is replayed.
STOP_TIMEOUT_S = 30.0
QUIT_TIMEOUT_S = 15.0  # PostgreSQL itself kills sessions that do not end 5 s after SIGQUIT.
ORPHANS_TIMEOUT_S = 10.0
POLL_S = 0.02

Progress = Callable[[str], None]
IsAlive = Callable[[], bool]


class RunningPostgres:
    """A server that this process is responsible for: `pid`, `stop`, and a URL for each role.

    When this process ends normally, the server is stopped too.
    """

    def __init__(
        self,
        folder: DataFolder,
        pid: int,
        socket_dir: Path,
        lock: IO[str],
        is_alive: IsAlive,
        progress: Progress,
        overrides: Mapping[str, str],
    ) -> None:
        self.url = folder.url(socket_dir)
        self.web_url = folder.url(socket_dir, WEB_ROLE)
        self.worker_url = folder.url(socket_dir, WORKER_ROLE)
        self.backup_url = folder.url(socket_dir, BACKUP_ROLE)
        self.pid = pid
        self._folder = folder
        self._socket_dir = socket_dir
        self._lock = lock
        self._is_alive = is_alive
        self._progress = progress
        self._overrides = overrides
        self._group: int | None = None
        self._log_offset = folder.log_size()
        self._owner_pid = os.getpid()
        atexit.register(self._stop_at_exit)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End all sessions, stop the server and release the folder. A second call does nothing.

        Raises `PostgresError` if the server is alive after `timeout_s` and an immediate shutdown.
        """
        if self._lock.closed:
            return
        _stop_postmaster(self.pid, self._is_alive, timeout_s, self._progress)
        atexit.unregister(self._stop_at_exit)
        remove_socket_dir(self._socket_dir)
        self._folder.runtime.unlink(missing_ok=True)
        self._lock.close()

    def open_to(self, group: int) -> None:
        """Let the members of a group connect from now on. They still need a role's password."""
        self._group = group
        open_socket_dir(self._socket_dir, group)

    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self._is_alive()

    def is_ready(self) -> bool:
        """Whether the server takes connections, as its `postmaster.pid` says."""
        return _says_ready(self._folder, self.pid)

    def last_log_lines(self) -> str:
        """PostgreSQL's log since its last start. Of a long text only the end."""
        return self._folder.log_since(self._log_offset)

    def restart(self) -> None:
        """Start the server again after it ended, on the same socket. Does not wait for it.

        Raises PostgresError, OSError.
        """
        programs = choose_programs(self._folder)
        clear_socket_dir(self._socket_dir, programs.account)
        if self._group is not None:
            open_socket_dir(self._socket_dir, self._group)
        disown_reused_pid(self._folder)
        self._log_offset = self._folder.log_size()
        child = _popen(self._folder, programs, {**make_server_settings(self._socket_dir), **self._overrides})
        self.pid, self._is_alive = child.pid, _is_running(child)
        write_runtime(self._folder, child.pid, self._socket_dir)

    def _stop_at_exit(self) -> None:
        # A forked child inherits this hook, but must not stop the server.
        if os.getpid() == self._owner_pid:
            self.stop()


def start(
    data_dir: Path, progress: Progress, *, overrides: Mapping[str, str] | None = None
) -> RunningPostgres:
    """Start the folder's PostgreSQL, or take over the one that a killed `up` left running.

    The first start creates the database. `overrides` are server settings that replace ours (for tests).
    Raises `AlreadyRunning` if another process has the folder, `PostgresError` for all other problems.
    """
    folder = DataFolder(data_dir.absolute().resolve())
    folder.root.mkdir(mode=DATA_DIR_MODE, parents=True, exist_ok=True)
    lock = take_lock(folder)
    try:
        programs = choose_programs(folder)
        require_same_version(folder, programs)
        pid = folder.live_pid()
        taken = _take_over(folder, pid, lock, progress, overrides or {}) if pid else None
        return taken or _launch(folder, programs, lock, progress, overrides or {})
    except BaseException:
        lock.close()
        raise


def has_cluster(data_dir: Path) -> bool:
    """Whether the folder has a database."""
    return DataFolder(data_dir.absolute().resolve()).cluster.exists()


def locate(data_dir: Path, role: str = NAME) -> str | None:
    """The URL of the PostgreSQL that an `up` runs in this folder. None if none runs.

    Raises `PostgresError` if this user may not read the folder's secrets, or if the socket's folder is not
    the server's own.
    """
    folder = DataFolder(data_dir.absolute().resolve())
    try:
        noted = read_runtime(folder)
        if noted is None or not is_postmaster(noted[0], folder.cluster):
            return None
        if noted[1].exists():
            require_private(noted[1], folder.cluster.stat().st_uid)
        return folder.url(noted[1], role)
    except PermissionError as error:
        raise PostgresError(f"{error.filename} cannot be read: use the user that runs `up`") from error


def _take_over(
    folder: DataFolder, pid: int, lock: IO[str], progress: Progress, overrides: Mapping[str, str]
) -> RunningPostgres | None:
    """Take over a server that outlived its `up`. None if it had to be stopped because its socket is gone."""
    progress(f"taking over the PostgreSQL that is still running (process {pid})")

    def is_alive() -> bool:
        return is_postmaster(pid, folder.cluster)

    _wait_ready(folder, pid, is_alive, folder.log_size())
    socket_dir = Path(folder.postmaster_lines()[4])
    if socket_dir.exists():
        require_private(socket_dir, folder.cluster.stat().st_uid)
    if not (socket_dir / f".s.PGSQL.{PORT}").exists():
        progress("its socket was removed: it is stopped and started anew")
        _stop_postmaster(pid, is_alive, STOP_TIMEOUT_S, progress)
        return None
    write_runtime(folder, pid, socket_dir)
    return RunningPostgres(folder, pid, socket_dir, lock, is_alive, progress, overrides)


def _launch(
    folder: DataFolder, programs: Programs, lock: IO[str], progress: Progress, overrides: Mapping[str, str]
) -> RunningPostgres:
    remove_recorded_socket_dir(folder)
    socket_dir = make_socket_dir(programs.account)
    try:
        if not folder.cluster.exists():
            progress(f"making the database in {folder.cluster}")
            create_cluster(folder, programs, socket_dir)
        disown_reused_pid(folder)
        if not folder.has_login_roles():
            progress("making the database roles of the web side, the worker side and back-ups")
            create_login_roles(folder, programs)
        progress("starting PostgreSQL")
        child = _spawn(folder, programs, {**make_server_settings(socket_dir), **overrides})
    except BaseException:
        remove_socket_dir(socket_dir)
        raise
    write_runtime(folder, child.pid, socket_dir)
    return RunningPostgres(folder, child.pid, socket_dir, lock, _is_running(child), progress, overrides)


def _is_running(child: subprocess.Popen[bytes]) -> IsAlive:
    return lambda: child.poll() is None


def _spawn(folder: DataFolder, programs: Programs, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the server and wait until it takes connections.

    After `kill -9` the last server's sessions may live for a moment, and PostgreSQL refuses to start beside
    them. Only then it is tried again.
    """
    deadline = time.monotonic() + ORPHANS_TIMEOUT_S
    while True:
        before = folder.log_size()
        child = _popen(folder, programs, settings)
        try:
            _wait_ready(folder, child.pid, _is_running(child), before)
            return child
        except BaseException as error:
            _end(child)
            if "still in use" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(10 * POLL_S)


def _popen(folder: DataFolder, programs: Programs, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    chosen = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with open_log(folder) as output:
        return programs.popen("postgres", ["-D", str(folder.cluster), *chosen], output, subprocess.DEVNULL)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGQUIT)
    child.wait()


def _wait_ready(folder: DataFolder, pid: int, is_alive: IsAlive, log_offset: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        if _says_ready(folder, pid):
            return
        if not is_alive():
            raise PostgresError(f"PostgreSQL did not start:\n{folder.log_since(log_offset)}")
        if time.monotonic() > deadline:
            raise PostgresError(f"PostgreSQL was not ready after {START_TIMEOUT_S:.0f} s; see {folder.log}")
        time.sleep(POLL_S)


def _says_ready(folder: DataFolder, pid: int) -> bool:
    lines = folder.postmaster_lines()
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _stop_postmaster(pid: int, is_alive: IsAlive, timeout_s: float, progress: Progress) -> None:
    if _ends(pid, is_alive, signal.SIGINT, timeout_s):
        return
    progress(f"PostgreSQL did not stop within {timeout_s:g} s: asking for an immediate shutdown")
    if not _ends(pid, is_alive, signal.SIGQUIT, QUIT_TIMEOUT_S):
        raise PostgresError(f"PostgreSQL (process {pid}) does not stop")


def _ends(pid: int, is_alive: IsAlive, asked: signal.Signals, timeout_s: float) -> bool:
    """Send the signal if the server is alive, and return whether it ends in time."""
    deadline = time.monotonic() + timeout_s
    if is_alive():
        os.kill(pid, asked)
    while is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def make_server_settings(socket_dir: Path) -> dict[str, str]:
    """PostgreSQL's settings: first durability, then memory, then maintenance of tables that mostly grow."""
    return {
        "listen_addresses": "",
        "unix_socket_directories": str(socket_dir),
        # The folder around the socket decides who can connect: its owner, or one group besides.
        "unix_socket_permissions": "0770",
        "port": str(PORT),
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": str(OWN_CONNECTIONS),
        "shared_buffers": f"{_shared_buffers_mb()}MB",
        "huge_pages": "try",
        "wal_buffers": "16MB",
        "max_wal_size": "4GB",
        # The slot of back-ups keeps what is not stored yet. A store that is away for long must not fill the
        # disk: then a new base back-up is needed.
        "max_slot_wal_keep_size": "16GB",
        "checkpoint_timeout": "15min",
        "jit": "off",
        "autovacuum": "on",
        # Until a young database's tables are analyzed, its plans are bad.
        "autovacuum_naptime": "15s",
        # The work between two pauses of VACUUM and ANALYZE. The snapshot of ANALYZE keeps all older versions
        # of the books' rows, and each transaction passes them. With the default, 200, ANALYZE of a large
        # table takes three times as long.
        "autovacuum_vacuum_cost_limit": "2000",
        # Journals grow and are not updated. Without this, their pages would be frozen late and all at once.
        "autovacuum_vacuum_insert_scale_factor": "0.05",
        "autovacuum_analyze_scale_factor": "0.05",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_line_prefix": "%m [%p] ",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }


def _shared_buffers_mb() -> int:
    """512 MB, but at most a quarter of the memory of this machine or its container."""
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()).isdecimal():
        memory_bytes = min(memory_bytes, int(text))
    return max(16, min(512, memory_bytes // 4 // 2**20))
