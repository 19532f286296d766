"""One request to a good or bad endpoint: there is always a result, in time, and no more is read than
needed.
"""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.callbacks.conftest import make_client
from tests.callbacks.receiver import Behaviour, Receiver, answer, hang, open_receiver, raw

from merchant_wallet.base.outbound import Outbound
from merchant_wallet.base.setting_types import LOOPBACK
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.client import MAX_BYTES, CallbackClient
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.target_policy import TargetPolicy

PAYLOAD = Payload(b'{"eventId":"evt_1_2"}', ((b"webhook-id", b"evt_1_2"),))
OK_HEAD = b"HTTP/1.1 200 OK\r\n"


def send(
    behave: Behaviour, url: str = "http://shop.test:{port}/n?a=1", timeout_s: float = 10.0
) -> tuple[Answer, Receiver]:
    """The result of sending a payload to an endpoint that behaves like this."""

    async def scenario() -> tuple[Answer, Receiver]:
        async with open_receiver() as receiver:
            receiver.behave = behave
            sender = make_client(timeout_s)
            return await sender.send(url.format(port=receiver.port), PAYLOAD), receiver

    return asyncio.run(scenario())


def test_a_request_arrives_under_the_urls_host_name_and_its_answer_comes_back() -> None:
    got, receiver = send(answer(body=b" Success\n"))
    assert (got.http_status, got.body, got.error, got.address) == (200, b" Success\n", None, "127.0.0.1")
    (request,) = receiver.received
    assert request.line == "POST /n?a=1 HTTP/1.1"
    assert request.headers["host"] == f"shop.test:{receiver.port}"
    assert request.headers["webhook-id"] == "evt_1_2"
    assert request.body == PAYLOAD.body


def test_a_redirect_is_not_followed() -> None:
    got, receiver = send(answer(302, b"", "Location: http://shop.test/elsewhere\r\n"))
    assert (got.http_status, got.error) == (302, None)
    assert len(receiver.received) == 1


def test_a_chunked_answer_is_put_together() -> None:
    got, _ = send(
        raw(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"4\r\nsucc\r\n", b"3\r\ness\r\n0\r\n\r\n")
    )
    assert (got.body, got.error) == (b"success", None)


def test_an_answer_that_ends_with_the_connection_is_whole() -> None:
    got, _ = send(raw(OK_HEAD + b"\r\nsuccess"))
    assert (got.body, got.error) == (b"success", None)


def test_an_endpoint_that_never_answers_costs_no_more_than_the_time_allowed() -> None:
    got, _ = send(hang, timeout_s=0.2)
    assert (got.http_status, got.error) == (None, "no complete answer within 0.2 s")
    assert 200 <= got.latency_ms < 5000


@pytest.mark.parametrize(
    "behave",
    [
        raw(OK_HEAD + b"Content-Length: 7\r\n\r\n", b"succes"),
        raw(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\nsu"),
    ],
)
def test_an_answer_that_breaks_off_is_no_whole_one(behave: Behaviour) -> None:
    got, _ = send(behave)
    assert got.http_status in (200, 500)
    assert got.error is not None


def test_a_slow_answer_is_cut_at_the_time_allowed_and_what_came_is_kept() -> None:
    async def drip(request: object, writer: asyncio.StreamWriter) -> None:
        writer.write(OK_HEAD + b"Content-Length: 100000\r\n\r\n")
        while True:
            writer.write(b"s")
            await asyncio.sleep(0.01)

    got, _ = send(drip, timeout_s=0.3)
    assert got.http_status == 200
    assert got.body.startswith(b"s")
    assert got.error == "no complete answer within 0.3 s"


def test_an_endless_answer_is_cut_at_what_is_read_of_one() -> None:
    got, _ = send(raw(OK_HEAD + b"\r\n", again=b"success " * 100))
    assert (got.http_status, len(got.body), got.error) == (
        200,
        MAX_BYTES,
        "the answer is longer than 4096 bytes",
    )


def test_an_answer_of_exactly_what_is_read_is_whole() -> None:
    got, _ = send(answer(body=b"x" * MAX_BYTES))
    assert (len(got.body), got.error) == (MAX_BYTES, None)


@pytest.mark.parametrize(
    "behave",
    [
        raw(OK_HEAD, again=b"X-More: and more\r\n" * 100),
        raw(OK_HEAD + b"X-Long: ", again=b"long" * 1000),
        raw(b"success\r\n\r\n"),
        raw(b"\x00\xff" * 100 + b"\r\n\r\n"),
        raw(b""),
    ],
    ids=["endless headers", "an endless header", "plain text", "garbage", "nothing"],
)
def test_what_is_no_http_answer_is_an_error_that_says_so(behave: Behaviour) -> None:
    got, _ = send(behave)
    assert got.http_status is None
    assert got.error is not None
    assert got.error.isprintable()


def test_endless_promises_of_an_answer_are_cut_too() -> None:
    got, _ = send(raw(again=b"HTTP/1.1 100 Continue\r\n\r\n"), timeout_s=0.3)
    assert (got.http_status, got.error) == (None, "no complete answer within 0.3 s")


def test_nobody_listening_is_an_error() -> None:
    got, _ = send(hang, url="http://shop.test:1/n")
    assert (got.address, got.http_status) == ("127.0.0.1", None)
    assert got.error == "no connection: Connection refused"


def test_a_forbidden_address_is_never_connected_to() -> None:
    async def scenario() -> tuple[Answer, Receiver]:
        async with open_receiver() as receiver:
            sender = CallbackClient(TargetPolicy(_names("127.0.0.1"), http_allowed=True))
            return await sender.send(receiver.url(), PAYLOAD), receiver

    got, receiver = asyncio.run(scenario())
    assert (got.address, got.error) == (None, "not sent: 127.0.0.1 is not a public address")
    assert receiver.received == []


def _names(*turns: str) -> Callable[[str, int], Awaitable[Sequence[str]]]:
    """A name resolver with another answer each time. The last answer stays."""
    said = list(turns)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [said.pop(0) if len(said) > 1 else said[0]]

    return resolve


def test_a_name_that_changes_its_mind_after_it_was_judged_changes_nothing() -> None:
    async def scenario() -> tuple[list[Answer], Receiver]:
        async with open_receiver() as receiver:
            policy = TargetPolicy(_names("127.0.0.1", "10.0.0.1"), LOOPBACK, http_allowed=True)
            sender = CallbackClient(policy)
            return [await sender.send(receiver.url(), PAYLOAD) for _ in range(2)], receiver

    (first, second), receiver = asyncio.run(scenario())
    assert first.http_status == 200
    assert second.error == "not sent: 10.0.0.1 is not a public address"
    assert len(receiver.received) == 1


def test_another_of_the_hosts_addresses_is_tried_when_one_takes_no_connection() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async def scenario() -> Answer:
        async with open_receiver() as receiver:
            sender = CallbackClient(TargetPolicy(resolve, LOOPBACK, http_allowed=True))
            return await sender.send(receiver.url(), PAYLOAD)

    got = asyncio.run(scenario())
    assert (got.address, got.http_status) == ("127.0.0.1", 200)


def make_certificate(folder: Path, *names: x509.GeneralName) -> Path:
    """A self-signed certificate for these names. Key and certificate are in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    today = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = folder / "test.pem"
    path.write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain) + made.public_bytes(encoding)
    )
    return path


def send_secretly(path: Path, host: str, authority: Path | None) -> tuple[Answer, list[str | None], int]:
    """Send over TLS. Returns the result, the names that the client asked for (SNI), and the number of
    requests.
    """
    asked: list[str | None] = []

    async def scenario() -> tuple[Answer, list[str | None], int]:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(path)
        tls.sni_callback = lambda _, name, __: asked.append(name)
        async with open_receiver(tls) as receiver:
            sender = CallbackClient(TargetPolicy(_names("127.0.0.1"), LOOPBACK), Outbound(authority))
            got = await sender.send(f"https://{host}:{receiver.port}/n", PAYLOAD)
            return got, asked, len(receiver.received)

    return asyncio.run(scenario())


def test_the_certificate_is_judged_by_the_urls_name_though_the_connection_goes_to_an_address(
    tmp_path: Path,
) -> None:
    path = make_certificate(tmp_path, x509.DNSName("shop.test"))
    got, asked, requests = send_secretly(path, "shop.test", path)
    assert (got.http_status, got.body, asked, requests) == (200, b"success", ["shop.test"], 1)


def test_a_certificate_of_another_name_gets_no_request(tmp_path: Path) -> None:
    # The certificate has the address but not the name, and the name is what counts.
    path = make_certificate(
        tmp_path, x509.DNSName("other.test"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    )
    got, _, requests = send_secretly(path, "shop.test", path)
    assert (got.http_status, requests) == (None, 0)
    assert got.error is not None
    assert "certificate" in got.error.lower()


def test_an_untrusted_certificate_gets_no_request(tmp_path: Path) -> None:
    got, _, requests = send_secretly(make_certificate(tmp_path, x509.DNSName("shop.test")), "shop.test", None)
    assert (got.http_status, requests) == (None, 0)
    assert got.error is not None
