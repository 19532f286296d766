"""Logs: structured lines on standard error, and one line for each request.

Rules:
- Every line has `timestamp`, `level` and `event`, in this order. What a line is about is bound where the
  work on it begins (`structlog.contextvars`): `request_id`, `merchant_id`, `order_id`, `worker`, `cell`.
  So lines of deeper code have it too.
- What works for several requests, such as the writer's groups, runs in a context of its own. Otherwise its
  lines would have the id of the request that came first.
- No line holds a secret, a signature or a body.
- The request lines are on the hot path: they are formatted without structlog, buffered, and written a few
  times a second.
"""

import asyncio
import itertools
import logging
import secrets
import sys
import time
from functools import lru_cache
from typing import Any, TextIO, cast

import msgspec
import structlog

from merchant_wallet.base.clock import now_ms

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FLUSH_INTERVAL_S = 0.25
MAX_GATHERED = 100_000
"""The most buffered lines. If the reader is slower, more are dropped, to bound the memory."""


def set_up(level: str, log_format: str | None, stream: TextIO | None = None) -> None:
    """Make structlog write lines of at least this level. Without a format: console on a terminal, else
    JSON.
    """
    target = stream or sys.stderr
    rendered = log_format or ("console" if target.isatty() else "json")
    renderer: Any = (
        # No local variables in a traceback: they may hold secrets and passwords.
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if rendered == "console"
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if rendered == "json" else _keep,
            _put_first,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, LogStream(target))),
        cache_logger_on_first_use=True,
    )
    _take_library_lines()


class LibraryLines(logging.Handler):
    """Lines of libraries, which use Python's `logging`, in the form of ours. Warnings and worse."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        logger = structlog.get_logger(record.name)
        level = max(record.levelno, logging.WARNING)
        logger.log(level, record.getMessage(), logger=record.name, exc_info=record.exc_info)


def _take_library_lines() -> None:
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, LibraryLines):
            return
    # Below this level httpx would log the URLs of nodes, which may contain a key.
    root.addHandler(LibraryLines(logging.WARNING))


class LogStream:
    """A stream whose errors (a full disk, a closed reader) never reach the code that logs.

    Lines that can't be written are counted. The count is written when the stream accepts lines again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost = 0

    def write(self, text: str) -> None:
        """Write, or count the loss."""
        try:
            if self.lost:
                self._stream.write(f'{{"event":"log lines lost","writes":{self.lost}}}\n')
                self.lost = 0
            self._stream.write(text)
        except (OSError, ValueError):
            self.lost += 1

    def flush(self) -> None:
        """Flush, or count the loss."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            self.lost += 1


def _put_first(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {**{key: event[key] for key in ("timestamp", "level", "event")}, **event}


def _keep(logger: Any, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event


def hide_link(path: str) -> str:
    """A path for the log: the text after `/w/` opens a wallet, so it is removed."""
    head, found, _ = path.partition("/w/")
    return f"{head}/w/\u2026" if found else path


@lru_cache(maxsize=1024)
def _quote(app_key: str) -> str:
    return msgspec.json.encode(app_key).decode()


class RequestIds:
    """Request ids: unique for this start of this process, in order."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count(1)

    def next(self) -> str:
        """The next id."""
        return f"req_{self._prefix}_{next(self._count):x}"


class AccessLog:
    """One line per request, buffered and written every quarter of a second, and at the end."""

    def __init__(self, stream: TextIO, *, enabled: bool) -> None:
        self._stream = LogStream(stream)
        self._enabled = enabled
        self._lines: list[str] = []
        self._second, self._second_text = 0, ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start writing buffered lines."""
        if self._enabled:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def write(
        self,
        request_id: str,
        path: str,
        code: int,
        app_key: str,
        source: str,
        took_s: float,
        merchant_id: int | None = None,
    ) -> None:
        """Log a request of an operation. The key comes from the client, so it is quoted as JSON.

        `merchant_id` is the merchant that signed it, if the signature was right.
        """
        if self._enabled and len(self._lines) < MAX_GATHERED:
            at_ms = now_ms()
            second = at_ms // 1000
            if second != self._second:
                self._second = second
                self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._lines.append(
                f'{{"timestamp":"{self._second_text}.{at_ms % 1000:03d}Z","level":"info","event":"request",'
                f'"request_id":"{request_id}","merchant_id":{merchant_id or "null"},"path":"{path}",'
                f'"code":{code},"app_key":{_quote(app_key)},"source":"{source}",'
                f'"took_ms":{took_s * 1000:.1f},"at_ms":{at_ms}}}\n'
            )

    def write_other(
        self,
        request_id: str,
        path: str,
        code: int,
        source: str,
        took_s: float = 0.0,
        merchant_id: int | None = None,
    ) -> None:
        """Log any other request. Its path may be any text, so it is quoted as JSON."""
        quoted = msgspec.json.encode(hide_link(path)).decode()[1:-1]
        self.write(request_id, quoted, code, "", source, took_s, merchant_id)

    async def stop(self) -> None:
        """Write what is buffered and stop."""
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
