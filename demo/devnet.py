"""Two local chains for the story with real blocks: `python -m devnet` as a child process.

Rules: it runs in its own session, so that Ctrl-C reaches only the demo. It is stopped after the service,
which uses its nodes. It prints settings, and hashes of transactions when asked to pay.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from demo.deployment import Failure

REPOSITORY: Final = Path(__file__).parents[1]
BLOCK_TIME_S: Final = 0.5
START_TIMEOUT_S: Final = 180.0
"""The first time, the nodes' programs are installed."""
ORDER_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 20.0
WORDS_SHOWN: Final = 1000


class Devnet:
    """Both chains, from `start` to `stop`. `log` is the file for their standard error."""

    def __init__(self, log: Path) -> None:
        self.settings: Mapping[str, str] = {}
        self._log = log
        self._child: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._heard: queue.Queue[str | None] = queue.Queue()

    def start(self) -> None:
        """Start both chains. Then `settings` holds the service's settings for them. Raises Failure."""
        with self._log.open("w") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "devnet", "--json", "--block-time", str(BLOCK_TIME_S)],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, args=(self._child,), daemon=True)
        self._listener.start()
        self.settings = json.loads(self._wait_line(START_TIMEOUT_S))["settings"]

    def fund(self, address: str) -> str:
        """Give an address a million USDT and coins for fees. Returns the hash of the USDT's transaction."""
        return self._order(f"fund {address}")

    def send(self, address: str, amount: str) -> str:
        """Pay USDT to an address. Returns the transaction's hash. Raises Failure."""
        return self._order(f"send {address} {amount}")

    def stop(self) -> None:
        """Stop both chains."""
        if self._child is None or self._listener is None:
            return
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            # The whole session: the nodes, or their installer.
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._listener.join()
        if self._child.stdin is not None:
            self._child.stdin.close()

    def _order(self, words: str) -> str:
        assert self._child is not None, "started before it is told to do something"
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(f"{words}\n")
            self._child.stdin.flush()
        except OSError as error:
            raise Failure(f"the development chains have ended.{self._last_words()}") from error
        return self._wait_line(ORDER_TIMEOUT_S)

    def _listen(self, child: "subprocess.Popen[str]") -> None:
        assert child.stdout is not None
        with child.stdout:
            for line in child.stdout:
                self._heard.put(line.strip())
        self._heard.put(None)

    def _wait_line(self, timeout_s: float) -> str:
        try:
            line = self._heard.get(timeout=timeout_s)
        except queue.Empty:
            raise Failure(
                f"the development chains said nothing for {timeout_s:g} s.{self._last_words()}"
            ) from None
        if line is None:
            raise Failure(f"the development chains have ended.{self._last_words()}")
        return line

    def _last_words(self) -> str:
        said = self._log.read_text(errors="replace")[-WORDS_SHOWN:].strip() if self._log.exists() else ""
        return f" Their last words:\n{said}" if said else " They said nothing."
