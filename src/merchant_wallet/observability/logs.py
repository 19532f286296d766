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
from typing import Any, TextIO, cast

import msgspec
import structlog

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FLUSH_INTERVAL_S = 0.25
MAX_GATHERED = 100_000
"""Lines kept for a reader that is slow; further ones are dropped rather than kept in memory."""


def set_up(level: str, log_format: str | None, stream: TextIO | None = None) -> None:
    """Make structlog write lines of at least this level; without a format, console on a terminal, else
    JSON."""
    target = stream or sys.stderr
    rendered = log_format or ("console" if target.isatty() else "json")
    renderer: Any = (
        # No local variables in a traceback: they hold secrets and passwords.
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if rendered == "console"
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if rendered == "json" else _keep,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, LogStream(target))),
        cache_logger_on_first_use=True,
    )


class LogStream:
    """A stream that a full disk or a reader that went away can't turn into a failure of what is logged about.

    What can't be written is counted, and the count is written once the stream takes lines again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost = 0

    def write(self, text: str) -> None:
        """Write, or count what could not be written."""
        try:
            if self.lost:
                self._stream.write(f'{{"event":"log lines lost","writes":{self.lost}}}\n')
                self.lost = 0
            self._stream.write(text)
        except (OSError, ValueError):
            self.lost += 1

    def flush(self) -> None:
        """Flush, or count that as a loss."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self.lost += 1


def _keep(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event


def hide_link(path: str) -> str:
    """A path for the log: what stands behind `/w/` opens a wallet."""
    head, found, _ = path.partition("/w/")
    return f"{head}/w/\u2026" if found else path


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
        self._stream = LogStream(stream)
        self._enabled = enabled
        self._lines: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write lines as they gather."""
        if self._enabled:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def write(self, request_id: str, path: str, code: int, app_key: str, source: str, took_s: float) -> None:
        """Note a request. The key comes from the caller, so it is quoted as JSON; the rest is ours."""
        if self._enabled and len(self._lines) < MAX_GATHERED:
            key = msgspec.json.encode(app_key).decode()
            self._lines.append(
                f'{{"event":"request","request_id":"{request_id}","path":"{path}","code":{code},"app_key":{key},'
                f'"source":"{source}","took_ms":{took_s * 1000:.1f},"at_ms":{time.time() * 1000:.0f}}}\n'
            )

    def write_other(self, request_id: str, path: str, code: int, source: str, took_s: float = 0.0) -> None:
        """Note a request for no operation. Any text may stand in its path; the line is JSON made by hand."""
        self.write(request_id, msgspec.json.encode(hide_link(path)).decode()[1:-1], code, "", source, took_s)

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
