"""`wrk` with `walk.lua` against a small server: no request is sent twice, codes are counted, and a run can
be watched.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from bench.merchants import LARGE, BenchMerchant, MerchantSet, SubUser, write_merchants
from bench.rows import LoadGenerator, Plan, Row
from bench.service import RunningService
from bench.signed_requests import DEBIT, RequestWriter
from bench.wrk import WrkRun, choose_threads
from tests.tools import require_tool

CONNECTIONS = 4
REQUESTS = 50
SECONDS = 60
"""Never reached: the run ends when all requests are sent."""


class RecordingHandler(BaseHTTPRequestHandler):
    """Records every body and refuses one that it has seen."""

    protocol_version = "HTTP/1.1"
    seen: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = 40103 if body in self.seen else 40900 if body.endswith(b"7") else 200
        self.seen.append(body)
        answer = b'{"code":%d,"msg":"","data":null}' % code
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """No log lines in the tests' output."""


class QuietServer(ThreadingHTTPServer):
    """Ignores the connections that wrk cuts when its run ends."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    RecordingHandler.seen = []
    running = QuietServer(("127.0.0.1", 0), RecordingHandler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


def write_slices(path: Path) -> None:
    for piece in range(choose_threads(CONNECTIONS)):
        bodies = [f"slice {piece} request {number}".encode() for number in range(REQUESTS)]
        requests = [b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies]
        Path(f"{path}.{piece}").write_bytes(b"".join(b"%05d%b" % (len(r), r) for r in requests))


def test_each_request_is_sent_at_most_once_and_every_code_is_counted(
    server: ThreadingHTTPServer, tmp_path: Path
) -> None:
    program = str(require_tool("wrk"))
    write_slices(tmp_path / "slice")
    address = f"http://127.0.0.1:{server.server_port}"
    result = WrkRun(program, address, tmp_path / "slice", CONNECTIONS, SECONDS).wait()
    assert result.used_up
    assert (
        len(set(RecordingHandler.seen))
        == len(RecordingHandler.seen)
        >= result.answered
        >= REQUESTS - CONNECTIONS
    )
    # When the run ends, the server has seen some requests whose answers came too late to be counted.
    assert set(result.refusals) == {"40900"}
    assert result.refusals["40900"] <= sum(body.endswith(b"7") for body in RecordingHandler.seen)


def test_a_run_is_watched_until_its_requests_are_used_up(server: ThreadingHTTPServer, tmp_path: Path) -> None:
    program = str(require_tool("wrk"))
    sub_user = SubUser(1, "u0", "0x52908400098527886E0F7030069857D2E4169EE7", "52" * 20, "41" * 20)
    write_merchants(
        MerchantSet({LARGE: [BenchMerchant(1001, "mk", "secret", {}, [sub_user], [])]}),
        tmp_path / "merchants.json",
    )
    service = RunningService(f"http://127.0.0.1:{server.server_port}", os.getpid())
    seen_running: list[bool] = []
    rows: list[Row] = []

    def watch(is_running: Callable[[], bool]) -> None:
        seen_running.append(is_running())
        while is_running():
            time.sleep(0.01)

    request_writer = RequestWriter(tmp_path / "merchants.json", tmp_path, 1)
    try:
        plan = Plan("watched", LARGE, DEBIT, CONNECTIONS, SECONDS)
        row = LoadGenerator(program, request_writer, rows.append).measure_watched(
            service, plan, 2 * REQUESTS, watch
        )
    finally:
        request_writer.close()
    assert seen_running == [True]
    assert rows == [row]
    assert (row.used_up, row.failures) == (True, 0)
    assert len(RecordingHandler.seen) >= row.answers >= REQUESTS - CONNECTIONS
