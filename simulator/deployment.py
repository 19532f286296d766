"""The deployment: `merchant-wallet up` on two database servers, and the command line beside it.

Rules:
- Nothing of the service is imported. What the world knows of it came through its doors.
- Requests, home's and the apart cell's database are reached through borders.
- `up` that ended is started again by `keep_running`, as systemd would do it.
"""

import asyncio
import json
import os
import secrets
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from simulator.border import Border
from simulator.failure import Broken, Contradiction
from simulator.postgres_server import PostgresServer, find_free_port

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 60.0
COMMAND_TIMEOUT_S: Final = 90.0
APART: Final = "west"
"""The cell on a server of its own."""
NICE: Final = ("nice", "-n", "5")
"""Commands are many, and each takes half a second of a processor: the service comes first."""
PROGRAM: Final = Path(sys.executable).with_name("merchant-wallet")


@dataclass(frozen=True)
class Ran:
    """A command that has ended: its arguments, its exit status, and what it printed."""

    arguments: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.status == 0

    def read(self) -> Any:
        """Its JSON document. Raises Broken."""
        try:
            return json.loads(self.output)
        except ValueError as error:
            raise Broken(f"{self.line} printed no JSON: {self.output[:500]}{self.errors[-500:]}") from error

    @property
    def line(self) -> str:
        """The command as a person types it."""
        return " ".join(("merchant-wallet", *self.arguments))


@dataclass
class Deployment:
    """The service and its servers in one folder."""

    folder: Path
    processes: int = 1
    home: PostgresServer = field(init=False)
    apart: PostgresServer = field(init=False)
    borders: dict[str, Border] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Root runs the servers as another user, who must pass through this folder.
        self.folder.chmod(0o711)
        # Home never stores a cell's password: the service reaches both servers with the same one.
        password = secrets.token_urlsafe(24)
        self.home = PostgresServer(self.folder, "home", password)
        self.apart = PostgresServer(self.folder, APART, password)
        self.port = find_free_port()
        self.log = self.folder / "up.log"
        self._up: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._ready = asyncio.Event()

    @property
    def url(self) -> str:
        """Where merchants call: through the border."""
        return f"http://127.0.0.1:{self.borders['requests'].port}"

    @property
    def pid(self) -> int | None:
        """The pid of `up` while it runs."""
        return self._up.pid if self._up is not None and self._up.returncode is None else None

    async def create(self) -> None:
        """Make both servers, start the service, and add the apart cell. Raises Broken, Contradiction."""
        await asyncio.gather(self.home.create(), self.apart.create())
        for name, port in (
            ("requests", self.port),
            ("home", self.home.port),
            (APART, self.apart.port),
        ):
            self.borders[name] = Border(name, port)
            await self.borders[name].open()
        self._wanted.set()
        self._keeper = asyncio.create_task(self._keep_running())
        await self.wait_ready()
        url = self.apart.url(self.borders[APART].port)
        added = await self.command("cell", "add", APART, url, "--json")
        if not added.ok:
            raise Broken(f"the cell was not added: {added.errors}")

    async def wait_ready(self) -> None:
        """Wait until `up` has said that it is ready. Raises Contradiction."""
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._ready.wait()
        except TimeoutError:
            raise Contradiction(f"the service was not ready after {START_TIMEOUT_S:g} s") from None

    async def restart(self, processes: int | None = None) -> None:
        """Stop `up` in order and start it again, with another number of web processes if one is given.

        Raises Contradiction.
        """
        self.processes = processes or self.processes
        self._wanted.clear()
        self._ready.clear()
        await self._stop_up()
        self._wanted.set()
        await self.wait_ready()

    async def close(self) -> None:
        """Stop everything."""
        self._wanted.clear()
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        await self._stop_up()
        for border in self.borders.values():
            await border.close()
        await asyncio.gather(self.home.stop(), self.apart.stop())

    async def command(self, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S) -> Ran:
        """Run a command to its end, or to its time-out, which is the status 124 as with timeout(1)."""
        command = await asyncio.create_subprocess_exec(
            *NICE,
            str(PROGRAM),
            *arguments,
            env=self._environment(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd="/",
        )
        try:
            async with asyncio.timeout(timeout_s):
                output, errors = await command.communicate()
        except TimeoutError:
            command.kill()
            await command.wait()
            return Ran(arguments, 124, "", f"it took longer than {timeout_s:g} s and was killed")
        except asyncio.CancelledError:
            command.kill()
            await command.wait()
            raise
        return Ran(arguments, command.returncode or 0, output.decode(), errors.decode())

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WALLET_")}
        return {
            **kept,
            "WALLET_DATA": str(self.folder / "data"),
            "WALLET_DATABASE_URL": self.home.url(self.borders["home"].port),
            "WALLET_SANDBOX": "true",
            "WALLET_RATE_LIMIT": "0",
            "WALLET_LOG_FORMAT": "json",
            "PYTHONUNBUFFERED": "1",
        }

    async def _keep_running(self) -> None:
        while True:
            await self._wanted.wait()
            await self._run_up()
            # A pause, as systemd's RestartSec. It starts nothing while a restart is stopping the former one.
            await asyncio.sleep(0.2)

    async def _run_up(self) -> None:
        arguments = ("up", "--port", str(self.port), "--processes", str(self.processes))
        with self.log.open("ab") as log:
            self._up = await asyncio.create_subprocess_exec(
                str(PROGRAM),
                *arguments,
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
        assert self._up.stdout is not None
        while line := await self._up.stdout.readline():
            if line.startswith(b"ready: "):
                self._ready.set()
        await self._up.wait()
        self._ready.clear()

    async def _stop_up(self) -> None:
        up = self._up
        if up is None or up.returncode is not None:
            return
        up.send_signal(signal.SIGCONT)
        up.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await up.wait()
        except TimeoutError:
            # The database and the folder are needed no longer than it lives.
            up.kill()
            await up.wait()
            raise Contradiction(f"the service did not stop in {STOP_TIMEOUT_S:g} s") from None
