"""A shop, and web processes on one database that are started and stopped as systemd would."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.crash.client import Client
from tests.crash.shop import ALICE, FUNDS, MASTER_KEY, Shop, issue_first, open_merchant
from tests.roles import as_web
from tests.waits import TIMEOUT_S

from merchant_wallet.base.currencies import KFB
from merchant_wallet.book.commands import Adjust, Register
from merchant_wallet.book.outcomes import SubUserFound
from merchant_wallet.book.writer import Writer

PROGRAM = Path(sys.executable).with_name("merchant-wallet")


class WebProcess:
    """`merchant-wallet serve` as a process."""

    def __init__(self, url: str, folder: Path, *arguments: str, **settings: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.program = PROGRAM
        self.inherits = False
        self._arguments = arguments
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("WALLET_")},
            "WALLET_DATABASE_URL": as_web(url),
            "WALLET_SANDBOX": "true",
            "WALLET_DATA": str(folder),
            "WALLET_MASTER_KEY": MASTER_KEY.hex(),
            "WALLET_RATE_LIMIT": "0",
            "WALLET_PORT": "0",
            "WALLET_LOG_LEVEL": "warning",
            "WALLET_SOURCE_CONNECTIONS": "0",
            **settings,
        }
        self.address = ""
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The pid of `serve`."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_started(self) -> bool:
        """Whether its process was started."""
        return self._process is not None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rpartition(":")[2])

    def start(self) -> "WebProcess":
        """Start, and wait for the line that says it is ready. A second start takes the same port."""
        with (self.folder / "serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [str(self.program), "serve", *self._arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                close_fds=not self.inherits,
            )
        watchdog = threading.Timer(TIMEOUT_S, self._process.kill)
        watchdog.start()
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        watchdog.cancel()
        assert line.startswith("ready: "), self.errors()
        self.address = line.removeprefix("ready: ").strip()
        assert self.read_line().startswith("mode: ")
        self.environment["WALLET_PORT"] = str(self.port)
        return self

    def read_line(self) -> str:
        """The next line that it prints, after the first two."""
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def errors(self) -> str:
        """Its standard error output."""
        return (self.folder / "serve.log").read_text()

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end; returns the exit status."""
        assert self._process is not None
        status = self._process.wait(TIMEOUT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    def stop(self) -> int:
        """Ask it to stop and wait."""
        self.ask_to_stop()
        return self.wait()

    def end(self) -> None:
        """Leave nothing running, whatever a test did."""
        if self._process is not None and self._process.stdout is not None:
            self._process.kill()
            self._process.wait(TIMEOUT_S)
            self._process.stdout.close()


async def furnish(url: str) -> tuple[Shop, Client]:
    """A merchant with a million KFB and alice, and its client without an address to call yet."""
    opened = await open_merchant(url)
    issued = await issue_first(url, opened.merchant)
    shop = Shop(url, opened.merchant.merchant_id)
    writer = Writer(url)
    await shop.ask(writer, Adjust(KFB, FUNDS, "opening balance", "test", None))
    registered = await shop.ask(writer, Register(ALICE, KFB, *issued))
    await writer.close()
    assert isinstance(registered, SubUserFound)
    shop.alice_id = registered.user_id
    return shop, Client("http://127.0.0.1:1", opened.merchant.app_key, opened.app_secret)
