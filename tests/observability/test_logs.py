"""Log lines: what a traceback shows, and what a failing log sink does to the service."""

import asyncio
import io

import pytest
import structlog

from merchant_wallet.observability import logs


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


@pytest.mark.parametrize("path", ["/w/the-token", "//w/the-token", "/pay/w/the-token", "/w/w/the-token"])
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
