"""The connections of both clients: when they are kept, and what odd servers do to them."""

import asyncio
import gc
import inspect
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, Final

import h11
import pytest
from client.tests.conftest import AT_ONCE, Caller

from merchant_wallet_client import (
    AsyncMerchantWallet,
    BadArgumentError,
    MerchantWallet,
    NoAnswerError,
    Timeouts,
)
from merchant_wallet_client.async_http_transport import Connection
from merchant_wallet_client.errors import PathUnknownError
from merchant_wallet_client.sending import UnusableAnswer, read_origin
from merchant_wallet_client.testing import FakeWallet

BODY: Final = b'{"code":40301,"msg":"not now","data":null}'
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PLAIN: Final = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
TIMEOUT_S: Final = 60
Script = list[bytes]
"""What a server sends for one request, piece by piece. The piece CLOSE ends the connection."""
CLOSE: Final = b""
WHOLE: Final[dict[str, tuple[Script, int]]] = {
    "plain": ([PLAIN], 1),
    "chunked": ([CHUNKED], 1),
    "in many packets": ([bytes([byte]) for byte in PLAIN], 1),
    "chunks in many packets": ([bytes([byte]) for byte in CHUNKED], 1),
    "after 100 Continue": ([b"HTTP/1.1 100 Continue\r\n\r\n", PLAIN], 1),
    "connection: close": ([PLAIN.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)], 2),
    "HTTP/1.0 without a length": ([b"HTTP/1.0 200 OK\r\n\r\n" + BODY, CLOSE], 2),
    "closed after the answer": ([PLAIN, CLOSE], 2),
}
"""Answers that count, each with the number of connections that two calls need."""
NO_ANSWER: Final[dict[str, Script]] = {
    "closed": [CLOSE],
    "closed in the head": [HEAD, CLOSE],
    "closed in the body": [PLAIN[:-1], CLOSE],
    "closed in a chunk": [CHUNKED[:-9], CLOSE],
    "closed before the last chunk": [CHUNKED[:-5], CLOSE],
    "no HTTP": [b"220 mail.example ESMTP\r\n\r\n", CLOSE],
    "another protocol": [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"],
    "nothing in it": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "a redirect": [b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"],
    "too long": [HEAD + b"Content-Length: 1048577\r\n\r\n" + b" " * 1_048_577],
    "endless": [
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        b"100000\r\n" + b" " * 0x100000 + b"\r\n1\r\n \r\n",
    ],
}
"""What is no answer. No connection is used again after it, except after a whole HTTP answer."""


class RawServer:
    """Sends `script` for each request, whatever is in it. `connections` counts those that were opened."""

    def __init__(self, script: Script, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.script = script
        self.connections = self.ended = self.requests = self.most_at_once = 0
        self.waits_for = 0
        self.hangs_up = False
        self._changed = threading.Condition()
        self._at_once = 0
        self._listener = socket.create_server(
            ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family
        )
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._open: list[socket.socket] = []

    def close(self) -> None:
        # Closing alone does not wake the thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            # It may be closed already.
            with each, suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def repair(self, wallet: object) -> None:
        """Send whole answers from now on."""
        self.script = [PLAIN]

    def pass_by(self, wallet: object) -> None:
        """Wait for nothing."""

    def wait_for_end(self, wallet: object) -> None:
        """Wait until every connection that was opened is closed."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.ended == self.connections, TIMEOUT_S)

    def _serve(self, connection: socket.socket) -> None:
        # A client that wants no more of this has gone.
        with connection, suppress(OSError):
            while not self.hangs_up and _read_request(connection) and self._answer(connection):
                pass
        with self._changed:
            self.ended += 1
            self._changed.notify_all()

    def _answer(self, connection: socket.socket) -> bool:
        """Send the script. False: the connection ends."""
        self._count_request()
        for piece in self.script:
            if piece == CLOSE:
                return False
            connection.sendall(piece)
        with self._changed:
            self._at_once -= 1
        return True

    def _count_request(self) -> None:
        """Count a request, and wait until `waits_for` have come."""
        with self._changed:
            self.requests += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.requests >= self.waits_for, TIMEOUT_S)


def _read_request(connection: socket.socket) -> bool:
    came = b""
    while True:
        head, end, body = came.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        if end and len(body) >= length:
            return True
        part = connection.recv(65_536)
        if not part:
            return False
        came += part


@contextmanager
def serving(script: Script, family: socket.AddressFamily = socket.AF_INET) -> Iterator[RawServer]:
    server = RawServer(script, family)
    try:
        yield server
    finally:
        server.close()


Client = Callable[..., Any]


@pytest.fixture(params=[MerchantWallet, AsyncMerchantWallet])
def client(request: pytest.FixtureRequest) -> Client:
    """`client(url, *acts)`: what came of each act on one client, an exception too."""

    def run_sync(url: str, *acts: Callable[[Any], Any], **options: Any) -> list[Any]:
        with MerchantWallet(url, "key", "secret", retries=AT_ONCE, **options) as wallet:
            return [_catch(act, wallet) for act in acts]

    def run_async(url: str, *acts: Callable[[Any], Any], **options: Any) -> list[Any]:
        async def run() -> list[Any]:
            async with AsyncMerchantWallet(url, "key", "secret", retries=AT_ONCE, **options) as wallet:
                return [await _catch_async(act, wallet) for act in acts]

        return asyncio.run(run())

    return run_sync if request.param is MerchantWallet else run_async


def _catch(act: Callable[[Any], Any], wallet: Any) -> Any:
    try:
        return act(wallet)
    except NoAnswerError as error:
        return error


async def _catch_async(act: Callable[[Any], Any], wallet: Any) -> Any:
    try:
        came = act(wallet)
        return await came if inspect.isawaitable(came) else came
    except NoAnswerError as error:
        return error


def send(wallet: Any) -> Any:
    return wallet.send(wallet.prepare("getMerchantBalance", {}))


def test_an_answer_counts_however_it_is_sent(client: Client) -> None:
    for name, (script, connections) in WHOLE.items():
        with serving(script) as server:
            # No event loop runs while the server closes.
            wait = server.wait_for_end if script[-1] == CLOSE else server.pass_by
            first, _, second = client(server.url, send, wait, send)
            assert (first.code, second.code) == (40301, 40301), name
            assert (server.requests, server.connections) == (2, connections), name


def test_what_is_no_whole_answer_is_none_and_nothing_of_it_comes_to_the_next_call(client: Client) -> None:
    for name, script in NO_ANSWER.items():
        with serving(script) as server:
            first, _, second = client(server.url, send, server.repair, send)
            assert isinstance(first, NoAnswerError), name
            assert second.code == 40301, name
            assert server.requests == 2, f"{name}: each is sent once"


def test_an_early_hint_is_not_the_answer(client: Client) -> None:
    hinted = [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", PLAIN.replace(b"40301", b"40302")]
    with serving(hinted) as server:
        assert [answer.code for answer in client(server.url, send, send)] == [40302, 40302]
        assert server.connections == 1


def test_what_a_server_sends_unasked_is_no_answer(client: Client) -> None:
    with serving([PLAIN + PLAIN.replace(b"40301", b"40302")]) as server:
        answers = client(server.url, send, send, send)
        assert [answer.code for answer in answers] == [40301] * 3


def test_calls_beyond_the_limit_wait_and_are_signed_when_their_turn_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("http_transport", "async_http_transport"):
        monkeypatch.setattr(f"merchant_wallet_client.{module}.MAX_CONNECTIONS", 2)
    with serving([PLAIN]) as server, MerchantWallet(server.url, "key", "secret") as wallet:
        server.waits_for = 2
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda _: send(wallet), range(8)))
        assert {answer.code for answer in answers} == {40301}
        assert (server.requests, server.connections, server.most_at_once) == (8, 2, 2)

    async def ask(url: str) -> list[Any]:
        async with AsyncMerchantWallet(url, "key", "secret") as many:
            return list(await asyncio.gather(*[send(many) for _ in range(8)]))

    with serving([PLAIN]) as server:
        server.waits_for = 2
        assert {answer.code for answer in asyncio.run(ask(server.url))} == {40301}
        assert (server.requests, server.connections, server.most_at_once) == (8, 2, 2)


def test_threads_share_a_client_and_each_gets_its_own_answer(fake: FakeWallet) -> None:
    with MerchantWallet(fake.base_url, fake.app_key, fake.secret) as wallet, ThreadPoolExecutor(8) as threads:
        names = [f"user{number}" for number in range(40)]
        found = list(threads.map(lambda name: wallet.get_merchant_customer(ext_user_id=name), names))
    assert [customer.ext_user_id for customer in found] == names


# The connection of the first loop is kept open until nobody knows it any more. Python warns of that.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_async_client_works_in_a_second_event_loop(fake: FakeWallet) -> None:
    wallet = AsyncMerchantWallet(fake.base_url, fake.app_key, fake.secret)
    for _ in range(2):
        assert asyncio.run(wallet.get_merchant_balance()).usdt_balance == Decimal(1000)
    asyncio.run(wallet.close())
    del wallet
    gc.collect()


def test_two_running_event_loops_share_an_async_client() -> None:
    async def ask_here_and_there(url: str) -> list[Any]:
        async with AsyncMerchantWallet(url, "key", "secret") as wallet:
            here = await send(wallet)
            there = await asyncio.to_thread(lambda: asyncio.run(send(wallet)))
            return [here, there, await send(wallet)]

    with serving([PLAIN.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)]) as server:
        answers = asyncio.run(ask_here_and_there(server.url))
        assert [answer.code for answer in answers] == [40301] * 3


def test_a_server_that_hangs_up_before_the_request_is_not_waited_for(client: Client) -> None:
    with serving([PLAIN]) as server:
        server.hangs_up = True
        [came] = client(server.url, send)
        assert isinstance(came, NoAnswerError)
        assert server.requests == 0

    async def ask_a_dead_one() -> None:
        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(loop), sock=ours)
        theirs.close()
        # In a few turns the loop reads the end of the connection, for which nobody waits.
        for _ in range(10):
            await asyncio.sleep(0)
        head = h11.Request(method="POST", target="/", headers=[("Host", "a"), ("Content-Length", "0")])
        with pytest.raises(UnusableAnswer, match="was closed"):
            await connection.exchange(head, b"", TIMEOUT_S)

    asyncio.run(ask_a_dead_one())


def test_a_closed_client_says_so() -> None:
    async def ask_closed() -> None:
        wallet = AsyncMerchantWallet("http://127.0.0.1:9", "key", "secret")
        await wallet.close()
        await wallet.get_merchant_balance()

    with pytest.raises(RuntimeError, match="the client is closed"):
        asyncio.run(ask_closed())
    closed = MerchantWallet("http://127.0.0.1:9", "key", "secret")
    closed.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        closed.get_merchant_balance()


def test_a_silent_server_is_given_up(client: Client) -> None:
    with serving([]) as server:
        [came] = client(server.url, send, timeouts=Timeouts(answer_s=0.05))
        assert isinstance(came, NoAnswerError)
        assert server.requests == 1


def test_an_answer_that_drips_is_given_up(client: Client) -> None:
    with serving([HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 100_000]) as server:
        [came] = client(server.url, send, timeouts=Timeouts(answer_s=0.05))
        assert isinstance(came, NoAnswerError)


def test_a_base_url_may_have_an_ipv6_address(client: Client) -> None:
    with serving([PLAIN], socket.AF_INET6) as server:
        [answer] = client(f"http://[::1]:{server.port}", send)
        assert answer.code == 40301


def test_a_path_that_nobody_has_is_asked_for_as_it_is(call: Caller) -> None:
    for operation in ("get balance", "余额", "a%20b", "#?"):
        with pytest.raises(PathUnknownError):
            call("call", operation, {})


@pytest.mark.parametrize(
    "url", ["https://", "ftp://a", "https://a:x", "https://a:70000", "https://a?b", "https://[a"]
)
def test_a_base_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(BadArgumentError):
        read_origin(url)
