"""Keeps the own PostgreSQL running: starts it again after it ended by itself.

Rules:
- The server comes back on the same socket, so the URL stays the same.
- The first restart is immediate. Later ones wait, each twice as long as the one before, up to half a minute.
- Restarts never end: a full disk or a missing file may be repaired at any time.
- `check` never waits and never raises, so its caller can watch other processes too.
"""

import time
from collections.abc import Callable

import structlog

from merchant_wallet.base.restarts import Backoff
from merchant_wallet.postgres.data_folder import PostgresError
from merchant_wallet.postgres.server import RunningPostgres

log = structlog.get_logger(__name__)


class PostgresSupervisor:
    """Watches one server; `check` is called several times a second."""

    def __init__(self, server: RunningPostgres, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._monotonic = monotonic
        self._backoff = Backoff(immediate_first=True)
        self._started_s = monotonic()
        self._ended_s: float | None = None
        self._due_s: float | None = None

    def check(self) -> None:
        """Notice that the server ended or is ready again. Start it when its pause is over."""
        if self._due_s is not None:
            if self._monotonic() >= self._due_s:
                self._restart()
        elif not self._server.is_alive():
            self._schedule_restart(self._server.last_log_lines())
        elif self._ended_s is not None and self._server.is_ready():
            away_s = round(self._monotonic() - self._ended_s, 1)
            log.info("PostgreSQL is ready again", pid=self._server.pid, away_s=away_s)
            self._ended_s = None

    def _restart(self) -> None:
        self._due_s = None
        self._started_s = self._monotonic()
        try:
            self._server.restart()
        except (PostgresError, OSError) as error:
            self._schedule_restart(str(error))

    def _schedule_restart(self, said: str) -> None:
        now_s = self._monotonic()
        if self._ended_s is None:
            self._ended_s = now_s
        pause_s = self._backoff.next_pause_s(now_s - self._started_s)
        self._due_s = now_s + pause_s
        log.error("PostgreSQL ended by itself and is started again", pause_s=pause_s, said=said)
