"""Log lines: what a traceback shows, and what a failing log sink does to the service."""

import ast
import asyncio
import io
import json
import logging
import re
from datetime import datetime
from pathlib import Path

import pytest
import structlog
from structlog.contextvars import bound_contextvars
from tests.rows import each_row

from merchant_wallet.observability import logs
from merchant_wallet.observability.log_keys import ABOUT, ALWAYS, DETAILS, OF_REQUESTS


class FullDisk(io.StringIO):
    """A stream whose disk is full while `full` is set."""

    full = False

    def write(self, text: str) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return super().write(text)


@pytest.fixture(autouse=True)
def _own_configuration() -> object:
    yield
    structlog.reset_defaults()


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_traceback_shows_no_local_variable(form: str) -> None:
    stream = io.StringIO()
    logs.set_up("info", form, stream)

    def sign(secret: str) -> None:
        raise RuntimeError("no")

    try:
        sign("APPSECRET1234")
    except RuntimeError:
        structlog.get_logger().exception("failed")
    assert "RuntimeError" in stream.getvalue()
    assert "secret)" not in stream.getvalue()
    assert stream.getvalue().count("APPSECRET1234") <= 1, "the source line alone may show it"


def test_a_full_disk_costs_lines_and_says_how_many_once_it_has_room() -> None:
    disk = FullDisk()
    sink = logs.LogStream(disk)
    sink.write("first\n")
    disk.full = True
    for _ in range(3):
        sink.write("lost\n")
    disk.full = False
    sink.write("last\n")
    assert disk.getvalue() == 'first\n{"event":"log lines lost","writes":3}\nlast\n'


def test_request_lines_go_on_after_a_write_that_failed() -> None:
    disk = FullDisk()

    async def scenario() -> None:
        access_log = logs.AccessLog(disk, enabled=True)
        access_log.start()
        disk.full = True
        access_log.write("req_1", "/merchant/x", 200, "key", "::1", 0.001)
        await asyncio.sleep(2 * logs.FLUSH_INTERVAL_S)
        disk.full = False
        access_log.write("req_2", "/merchant/x", 200, 'k"ey', "::1", 0.001)
        await access_log.stop()

    asyncio.run(scenario())
    assert "req_1" not in disk.getvalue()
    assert "req_2" in disk.getvalue()


def read_lines(stream: io.StringIO) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert all(list(line)[:3] == list(ALWAYS) for line in lines), lines
    return lines


def test_every_line_says_first_when_how_grave_and_what() -> None:
    stream = io.StringIO()
    logs.set_up("debug", "json", stream)
    structlog.get_logger().warning("deposit held", merchant_id=7)
    with bound_contextvars(request_id="req_1", merchant_id=8):
        structlog.get_logger().info("not available", merchant_id=9)
    logging.getLogger("some.library").error("out of %s", "luck")
    logging.getLogger("httpx").info("GET https://node.example/a-secret-key")
    first, second, third = read_lines(stream)
    assert (first["level"], first["event"], first["merchant_id"]) == ("warning", "deposit held", 7)
    assert (second["request_id"], second["merchant_id"]) == ("req_1", 9), "the line's own word is better"
    assert (third["level"], third["event"], third["logger"]) == ("error", "out of luck", "some.library")


def test_a_requests_line_has_the_same_keys_whatever_the_request() -> None:
    stream = io.StringIO()

    async def note() -> None:
        access_log = logs.AccessLog(stream, enabled=True)
        access_log.start()
        access_log.write("req_1", "/merchant/exchange", 200, 'k"ey', "::1", 0.0015, 1001)
        access_log.write_other("req_2", '/a"b', 404, "10.0.0.1")
        await access_log.stop()

    asyncio.run(note())
    first, second = read_lines(stream)
    assert list(first) == list(second)
    assert set(first) <= {*ALWAYS, *ABOUT, *OF_REQUESTS}
    assert (first["level"], first["merchant_id"], first["took_ms"]) == ("info", 1001, 1.5)
    assert (second["merchant_id"], second["path"]) == (None, '/a"b')
    written = datetime.fromisoformat(str(first["timestamp"])).timestamp() * 1000
    assert round(written) == first["at_ms"]


CALLS = {"debug", "info", "warning", "error", "critical", "exception"}
BINDS = {"log_failure", "bind_contextvars", "bound_contextvars", "write_log", "say"}
TRANSLATED = "sentences.py"
"""There `say` translates."""
SPEAKS = re.compile(rf"\blog\.|\basked\.|log_fields|{'|'.join(BINDS)}")
"""A module without any of it gives no keys."""
SPELLED_ELSEWHERE = {"exc_info"}
"""`exc_info` becomes `exception`."""


def list_keys(code: str) -> set[str]:
    """The keys that a module's calls give to log lines, also in the dicts that they unpack."""
    tree = ast.parse(code)
    keys: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            owner = getattr(getattr(function, "value", None), "id", "")
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if (owner in ("log", "asked") and name in CALLS | {"bind"}) or name in BINDS:
                keys |= {word.arg for word in node.keywords if word.arg is not None}
        if isinstance(node, ast.FunctionDef) and "log_fields" in node.name:
            keys |= {str(key.value) for key in ast.walk(node) if isinstance(key, ast.Constant) and key.value}
    return keys


def test_every_key_of_the_code_is_documented_and_the_other_way_round() -> None:
    root = Path(logs.__file__).parents[1]
    codes = [path.read_text("utf-8") for path in root.rglob("*.py") if path.name != TRANSLATED]
    used = set().union(*(list_keys(code) for code in codes if SPEAKS.search(code))) - SPELLED_ELSEWHERE
    used = {key for key in used if re.fullmatch(r"[a-z_]+", key) and len(key) < 25}
    known = {*ALWAYS, *ABOUT, *DETAILS.split(), *OF_REQUESTS}
    assert used - known == set()
    everything = " ".join(codes)
    assert [key for key in DETAILS.split() if not re.search(rf'{key}=|"{key}"', everything)] == []


@each_row("path", ["/w/the-token", "//w/the-token", "/pay/w/the-token", "/w/w/the-token"])
def test_the_token_of_a_link_to_a_wallet_is_in_no_line_whoever_notes_the_request(path: str) -> None:
    stream = io.StringIO()

    async def note() -> None:
        access_log = logs.AccessLog(stream, enabled=True)
        access_log.start()
        access_log.write_other("req_1", path, 40400, "10.0.0.1")
        await access_log.stop()

    asyncio.run(note())
    assert "the-token" not in stream.getvalue()
    assert "/w/" in stream.getvalue()
