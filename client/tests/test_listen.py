"""`listen` against a stream that a test writes: verified, shown, forwarded, reported, opened again."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typer.testing import CliRunner

from merchant_wallet_client.cli import listening
from merchant_wallet_client.cli.program import app
from merchant_wallet_client.testing import FakeWallet
from merchant_wallet_client.testing.answering import FakeCallback, Keys, write_refusal, write_success
from merchant_wallet_client.wire import read_object


class Sandbox:
    """The control interface of a sandbox: each opened stream sends the next part. And a shop's receiver."""

    def __init__(self, fake: FakeWallet) -> None:
        self.fake = fake
        self.parts: queue.Queue[bytes | tuple[int, bytes]] = queue.Queue()
        self.opened: list[dict[str, Any]] = []
        self.accepted: list[str] = []
        self.received: list[bytes] = []
        self.replies: queue.Queue[tuple[int, bytes]] = queue.Queue()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def send(self, *callbacks: FakeCallback, before: bytes = b"\n") -> None:
        """The next stream: these callbacks, then its end."""
        lines = [
            json.dumps(
                {
                    "eventId": each.headers["webhook-id"],
                    "url": each.url,
                    "headers": dict(each.headers),
                    "body": each.body.decode(),
                }
            )
            for each in callbacks
        ]
        self.parts.put(before + "".join(f"{line}\n" for line in lines).encode())

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        sandbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/paid":
                    sandbox.received.append(body)
                    self._reply(*sandbox.replies.get_nowait(), "text/plain")
                elif self.path == listening.ACCEPT_PATH:
                    self._accept(read_object(body.decode()))
                else:
                    sandbox.opened.append(read_object(body.decode()))
                    self._stream()

            def _accept(self, fields: dict[str, Any]) -> None:
                sandbox.accepted.append(fields["event"])
                keys = Keys(sandbox.fake.app_key, sandbox.fake.secret, "", "HMAC")
                data = {"eventId": str(fields["event"])}
                answer = write_success(keys, self.path, fields["nonceStr"], data)
                self._reply(200, answer, "application/json")

            def _stream(self) -> None:
                part = sandbox.parts.get(timeout=10)
                if isinstance(part, tuple):
                    self._reply(*part, "application/json")
                else:
                    self._reply(200, part, "application/x-ndjson")

            def _reply(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """No log."""

        return Handler


@pytest.fixture
def sandbox(fake: FakeWallet, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    made = Sandbox(fake)
    yield made
    made.close()


def listen(sandbox: Sandbox, *words: str, status: int = 0) -> tuple[str, str]:
    """Run the command. Returns what it said."""
    env = {
        "MERCHANT_WALLET_URL": sandbox.base_url,
        "MERCHANT_WALLET_APP_KEY": sandbox.fake.app_key,
        "MERCHANT_WALLET_SECRET": sandbox.fake.secret,
        "MERCHANT_WALLET_CALLBACK_SECRET": sandbox.fake.callback_secret,
    }
    result = CliRunner().invoke(app, ["listen", *words], env=env)
    assert result.exit_code == status, result.output + repr(result.exception)
    return result.stdout, result.stderr


def test_callbacks_are_verified_and_shown(sandbox: Sandbox) -> None:
    first, second = sandbox.fake.deposit("10", ext_user_id="alice"), sandbox.fake.deposit("20")
    sandbox.send(first, second)
    said, _ = listen(sandbox, "--limit", "2")
    documents = [json.loads(line) for line in said.splitlines()]
    assert [(each["verified"], each["accepted"]) for each in documents] == [(True, False), (True, False)]
    assert documents[0]["what"] == "deposit of 10 USDT on TRC20 to alice"
    assert documents[1]["body"] == second.body.decode()


def test_what_becomes_of_a_callback_that_is_only_shown_is_said_once(sandbox: Sandbox) -> None:
    sandbox.send(sandbox.fake.deposit("10"), sandbox.fake.deposit("20"))
    said, noted = listen(sandbox, "--limit", "2", "--text")
    assert [line.endswith("(only shown)") for line in said.splitlines()] == [True, True]
    assert noted.count("--forward") == 1


def test_what_is_not_genuine_is_shown_and_not_forwarded(sandbox: Sandbox) -> None:
    came = sandbox.fake.deposit("10")
    sandbox.send(came._replace(body=came.body.replace(b'"10"', b'"99"')))
    said, _ = listen(sandbox, "--limit", "1", "--text", "--forward", f"{sandbox.base_url}/paid")
    assert "NOT GENUINE" in said
    assert sandbox.received == []


def test_what_the_receiver_accepts_is_reported_and_not_forwarded_again(sandbox: Sandbox) -> None:
    came, other = sandbox.fake.deposit("10"), sandbox.fake.deposit("20")
    sandbox.send(came, came, other)
    sandbox.replies.put((200, b" Success\n"))
    sandbox.replies.put((200, b"success"))
    said, _ = listen(sandbox, "--limit", "2", "--text", "--forward", f"{sandbox.base_url}/paid")
    assert sandbox.received == [came.body, other.body]
    assert sandbox.accepted == [came.headers["webhook-id"], other.headers["webhook-id"]]
    assert "accepted" in said


def test_what_the_receiver_does_not_accept_is_forwarded_when_it_comes_again(sandbox: Sandbox) -> None:
    came = sandbox.fake.deposit("10")
    sandbox.send(came, came)
    sandbox.replies.put((500, b"success"))
    sandbox.replies.put((200, b"success"))
    said, _ = listen(sandbox, "--limit", "2", "--no-accept", "--forward", f"{sandbox.base_url}/paid")
    assert [json.loads(line)["accepted"] for line in said.splitlines()] == [False, True]
    assert sandbox.accepted == []


def test_a_receiver_that_is_away_is_told(sandbox: Sandbox) -> None:
    sandbox.send(sandbox.fake.deposit("10"))
    said, _ = listen(sandbox, "--limit", "1", "--text", "--forward", "http://127.0.0.1:9/paid")
    assert "ConnectError" in said


def test_a_stream_that_ends_is_opened_again_behind_the_last_event(sandbox: Sandbox) -> None:
    first, second = sandbox.fake.deposit("10"), sandbox.fake.deposit("20")
    sandbox.send(first)
    sandbox.parts.put(write_refusal(50300, "busy"))
    sandbox.send(second)
    listen(sandbox, "--limit", "2")
    assert [sent.get("after") for sent in sandbox.opened] == [
        None,
        first.headers["webhook-id"],
        first.headers["webhook-id"],
    ]
    assert len({sent["nonceStr"] for sent in sandbox.opened}) == 3


def test_an_event_that_is_not_known_any_more_is_left_out(sandbox: Sandbox) -> None:
    sandbox.parts.put(write_refusal(40401, "after: no attempt"))
    sandbox.send(sandbox.fake.deposit("10"))
    _, noted = listen(sandbox, "--limit", "1", "--after", "evt_1")
    assert "evt_1 is not known any more" in noted
    assert [sent.get("after") for sent in sandbox.opened] == ["evt_1", None]


def test_another_refusal_ends_it(sandbox: Sandbox) -> None:
    sandbox.parts.put(write_refusal(40300, "this merchant is suspended"))
    _, noted = listen(sandbox, status=1)
    assert "40300 MERCHANT_SUSPENDED" in noted


def test_a_line_that_is_no_attempt_ends_it_with_a_sentence(sandbox: Sandbox) -> None:
    sandbox.parts.put(b'{"eventId":1}\n')
    _, noted = listen(sandbox, status=2)
    assert "no line of a stream of callbacks" in noted
