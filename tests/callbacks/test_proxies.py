"""Callbacks through a company's proxy, and to endpoints with a company's certificates."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.authority import Authority, use_small_store
from tests.callbacks.receiver import Receiver, open_receiver
from tests.forward_proxy import ForwardProxy, open_proxy
from tests.rows import each_row

from merchant_wallet.base.outbound import Outbound, read_no_proxy
from merchant_wallet.base.setting_types import LOOPBACK
from merchant_wallet.base.version import read_version
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.callbacks.client import CallbackClient
from merchant_wallet.callbacks.payloads import Payload
from merchant_wallet.callbacks.target_policy import TargetPolicy

PAYLOAD = Payload(b'{"eventId":"evt_1_2"}', ((b"webhook-id", b"evt_1_2"),))
HOST = "shop.test"


@pytest.fixture(autouse=True)
def _small_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_small_store(monkeypatch, tmp_path)


class Names:
    """A name resolver that can be told another address meanwhile."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.addresses


class Network:
    """An endpoint behind a proxy, with certificates of one authority."""

    def __init__(self, company: Authority, receiver: Receiver, squid: ForwardProxy) -> None:
        self.company = company
        self.receiver = receiver
        self.squid = squid
        self.names = Names("127.0.0.1")

    @property
    def outbound(self) -> Outbound:
        return Outbound(self.company.file, (("callbacks", self.squid.proxy()),))

    async def send(
        self,
        outbound: Outbound | None = None,
        *,
        proxy_names: bool = False,
        unknown_names: bool = False,
        scheme: str = "https",
        host: str = HOST,
    ) -> Answer:
        policy = TargetPolicy(self.names, LOOPBACK, http_allowed=True)
        client = CallbackClient(
            policy,
            outbound or self.outbound,
            proxy_names=proxy_names,
            unknown_names=unknown_names,
            timeout_s=10.0,
        )
        return await client.send(f"{scheme}://{host}:{self.receiver.port}/n", PAYLOAD)


@asynccontextmanager
async def open_network(
    folder: Path, *, is_modern: bool = True, is_tls: bool = True
) -> AsyncIterator[Network]:
    """An endpoint and a proxy that listen until the block ends."""
    company = Authority(folder, is_modern=is_modern)
    async with open_receiver(company.serve(HOST) if is_tls else None) as receiver, open_proxy() as squid:
        yield Network(company, receiver, squid)


def run(scenario: Callable[[Network], Awaitable[None]], folder: Path, **given: bool) -> None:
    """Run a scenario in a network of its own."""

    async def enter() -> None:
        async with open_network(folder, **given) as network:
            await scenario(network)

    asyncio.run(enter())


def test_the_proxy_gets_the_address_that_was_judged_and_the_certificate_is_for_the_name(
    tmp_path: Path,
) -> None:
    async def scenario(network: Network) -> None:
        got = await network.send()
        assert (got.http_status, got.error, got.address) == (200, None, "127.0.0.1")
        assert network.squid.asked == [f"127.0.0.1:{network.receiver.port}"]
        (request,) = network.receiver.received
        assert request.headers["host"] == f"{HOST}:{network.receiver.port}"

    run(scenario, tmp_path)


def test_an_internal_address_is_refused_before_the_proxy_hears_of_it(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        for proxy_names in (False, True):
            network.names = Names("10.0.0.1")
            got = await network.send(proxy_names=proxy_names)
            assert got.error == "not sent: 10.0.0.1 is not a public address"
        assert network.squid.asked == []

    run(scenario, tmp_path)


def test_a_name_that_changes_after_it_was_judged_leads_nowhere_else(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        # The proxy would find an internal address. It is never asked for the name.
        network.squid.hosts = {HOST: "10.0.0.1"}
        assert (await network.send()).http_status == 200
        assert network.names.asked == 1

    run(scenario, tmp_path)


def test_a_proxy_that_wants_names_gets_the_name_after_its_addresses_were_judged(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        network.squid.hosts = {HOST: "127.0.0.1"}
        assert (await network.send(proxy_names=True)).http_status == 200
        assert network.squid.asked == [f"{HOST}:{network.receiver.port}"]
        assert network.names.asked == 1

    run(scenario, tmp_path)


def test_a_name_that_is_unknown_here_is_the_proxys_if_the_operator_says_so(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        network.squid.hosts = {HOST: "127.0.0.1"}
        network.names = Names()
        for proxy_names in (False, True):
            assert "can't be found" in str((await network.send(proxy_names=proxy_names)).error)
        assert network.squid.asked == []
        got = await network.send(unknown_names=True)
        assert (got.http_status, got.error, got.address) == (200, None, None)
        assert network.squid.asked == [f"{HOST}:{network.receiver.port}"]
        # What is known here is judged here as ever.
        network.names = Names("10.0.0.1")
        assert (await network.send(unknown_names=True)).error == "not sent: 10.0.0.1 is not a public address"
        network.names = Names("127.0.0.1")
        assert (await network.send(unknown_names=True)).address == "127.0.0.1"
        assert network.squid.asked[1:] == [f"127.0.0.1:{network.receiver.port}"]

    run(scenario, tmp_path)


def test_an_unknown_name_goes_nowhere_without_a_proxy_a_certificate_or_a_name_of_the_internet(
    tmp_path: Path,
) -> None:
    async def scenario(network: Network) -> None:
        network.names = Names()
        for exempt in (Outbound(), network.outbound._replace(no_proxy=read_no_proxy(HOST))):
            assert "can't be found" in str((await network.send(exempt, unknown_names=True)).error)
        for scheme, host in (("http", HOST), ("https", "vault")):
            got = await network.send(unknown_names=True, scheme=scheme, host=host)
            assert got.error == "not sent: a proxy looks up names of the Internet alone, for https"
        assert network.squid.asked == []

    run(scenario, tmp_path)


def test_where_the_proxys_own_look_up_leads_another_hosts_certificate_gets_no_request(
    tmp_path: Path,
) -> None:
    async def scenario(network: Network) -> None:
        inside = network.company.serve("inside.test")
        async with open_receiver(inside) as internal:
            # The proxy's look-up was poisoned: the name leads to an internal server, at its own port.
            network.squid.ports = {HOST: internal.port}
            network.squid.hosts = {HOST: "127.0.0.1"}
            got = await network.send(proxy_names=True)
            assert got.http_status is None
            assert got.error is not None
            assert "the certificate is not trusted: Hostname mismatch" in got.error
            assert internal.received == []

    run(scenario, tmp_path)


def test_what_is_exempt_by_name_or_address_is_reached_directly(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        for exempt in (HOST, "127.0.0.0/8"):
            outbound = network.outbound._replace(no_proxy=read_no_proxy(exempt))
            assert (await network.send(outbound)).http_status == 200
        assert network.squid.asked == []

    run(scenario, tmp_path)


def test_the_proxys_credentials_are_sent_to_it_alone(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        network.squid.wants_credentials = True
        assert (await network.send()).http_status == 200
        assert "proxy-authorization" not in network.receiver.received[0].headers
        wrong = network.squid.proxy()._replace(password="wrong")
        got = await network.send(Outbound(network.company.file, (("all", wrong),)))
        assert got.error == "the platform's proxy answers 407: it wants other credentials"
        assert len(network.receiver.received) == 1

    run(scenario, tmp_path)


@each_row(
    ("refusal", "error"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "answers 403: it does not allow this address or port"),
        (b"HTTP/1.0 503 No\r\nX: 1\r\n\r\n", "answers 503: it could not reach the address"),
        (b"HTTP/1.1 418 Teapot\r\n\r\n", "answers 418"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "gives no answer that can be read"),
        (b"HTTP/1.1 200 OK", "gives no answer that can be read"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "gives no answer that can be read"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK", "sends something of its own after its answer"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_an_error_that_says_so(
    refusal: bytes, error: str, tmp_path: Path
) -> None:
    async def scenario(network: Network) -> None:
        network.squid.refusal = refusal
        got = await network.send()
        assert (got.http_status, got.error) == (None, f"the platform's proxy {error}")

    run(scenario, tmp_path)


def test_a_proxy_that_is_away_is_not_taken_for_the_endpoint(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        network.squid.port = 1
        got = await network.send()
        assert got.http_status is None
        assert str(got.error).startswith("the platform's proxy can't be reached: ")

    run(scenario, tmp_path)


def test_another_address_of_the_host_is_tried_when_the_proxy_can_not_reach_one(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        network.names = Names("127.0.0.9", "127.0.0.1")
        network.squid.unreachable = {"127.0.0.9"}
        got = await network.send()
        assert (got.address, got.http_status) == ("127.0.0.1", 200)

    run(scenario, tmp_path)


def test_a_proxy_may_be_reached_over_tls_itself(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        async with open_proxy(network.company.serve("127.0.0.1")) as secure:
            outbound = network.outbound._replace(proxies=(("all", secure.proxy(is_encrypted=True)),))
            assert (await network.send(outbound)).http_status == 200
            assert secure.asked == [f"127.0.0.1:{network.receiver.port}"]
            got = await network.send(outbound._replace(ca_file=Authority(tmp_path, "Another CA").file))
            why = "unable to get local issuer certificate"
            assert got.error == f"the certificate of the platform's proxy is not trusted: {why}"

    run(scenario, tmp_path)


def test_plain_http_of_a_sandbox_goes_through_a_tunnel_too(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        assert (await network.send(scheme="http")).http_status == 200
        assert network.squid.asked == [f"127.0.0.1:{network.receiver.port}"]

    run(scenario, tmp_path, is_tls=False)


def test_a_certificate_of_an_older_form_is_accepted_and_the_attempt_says_so(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        got = await network.send(Outbound(network.company.file))
        assert (got.http_status, got.body, got.error) == (200, b"success", None)
        assert got.remark == ("the certificate breaks a rule of RFC 5280: Missing Authority Key Identifier")
        assert len(network.receiver.received) == 1

    run(scenario, tmp_path, is_modern=False)


def test_a_certificate_of_the_usual_form_is_not_remarked_on(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        assert (await network.send(Outbound(network.company.file))).remark is None

    run(scenario, tmp_path)


def test_an_endpoint_that_hides_its_intermediate_certificate_is_told(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        got = await network.send(Outbound(Authority(tmp_path, "Another CA").file))
        assert got.error == (
            "the certificate is not trusted: unable to get local issuer certificate"
            " (does the server send its intermediate certificates?)"
        )
        assert network.receiver.received == []

    run(scenario, tmp_path)


def test_a_file_of_certificates_that_is_gone_is_an_error_of_the_attempt(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        path = tmp_path / "none.pem"
        got = await network.send(Outbound(path))
        why = "which can't be read: No such file or directory"
        assert got.error == f"not sent: WALLET_CA_FILE names {path}, {why}"

    run(scenario, tmp_path)


def test_a_request_says_who_sends_it_and_where_that_is_explained(tmp_path: Path) -> None:
    async def scenario(network: Network) -> None:
        policy = TargetPolicy(network.names, LOOPBACK, http_allowed=True)
        client = CallbackClient(policy, page="https://pay.example/docs/callbacks/")
        await client.send(network.receiver.url(), PAYLOAD)
        (request,) = network.receiver.received
        version = read_version()
        agent = f"merchant-wallet/{version} (+https://pay.example/docs/callbacks/)"
        assert request.headers["user-agent"] == agent
        assert request.headers["accept"] == "*/*"

    run(scenario, tmp_path, is_tls=False)
