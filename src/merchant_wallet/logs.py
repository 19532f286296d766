"""Logs: structured lines on standard error, and one line for each request.

Rules: a line of a request bears the request's id; no line holds a secret, a signature or a body. The
request lines are the hot path's: they are formatted by hand, gathered, and written a few times a second.
"""

import asyncio
import itertools
import logging
import secrets
import sys
import time
from typing import Any, TextIO

import msgspec
import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FLUSH_INTERVAL_S = 0.25


def set_up(level: str, log_format: str | None, stream: TextIO | None = None) -> None:
    """Make structlog write lines of at least this level; without a format, console on a terminal, else
    JSON."""
    target = stream or sys.stderr
    rendered = log_format or ("console" if target.isatty() else "json")
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if rendered == "console" else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if rendered == "json" else _keep,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=True,
    )


def _keep(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event


class RequestIds:
    """Ids for requests: unique for this start of this process, in order."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def next(self) -> str:
        """The next id."""
        return f"req_{self._prefix}_{next(self._count):x}"


class AccessLog:
    """One line per request, gathered and written every quarter of a second, and at the end."""

    def __init__(self, stream: TextIO, *, enabled: bool) -> None:
        self._stream = stream
        self._enabled = enabled
        self._lines: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write lines as they gather."""
        if self._enabled:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def write(self, request_id: str, path: str, code: int, app_key: str, source: str, took_s: float) -> None:
        """Note a request. The key comes from the caller, so it is quoted as JSON; the rest is ours."""
        if self._enabled:
            key = msgspec.json.encode(app_key).decode()
            self._lines.append(
                f'{{"event":"request","request_id":"{request_id}","path":"{path}","code":{code},"app_key":{key},'
                f'"source":"{source}","took_ms":{took_s * 1000:.1f},"at_ms":{time.time() * 1000:.0f}}}\n'
            )

    async def stop(self) -> None:
        """Write what has gathered and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._flush()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_INTERVAL_S)
            if self._lines:
                await asyncio.to_thread(self._flush)

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._stream.write("".join(lines))
            self._stream.flush()
