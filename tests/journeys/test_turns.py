"""Merchants take turns: a single call is answered among the first of another merchant's crowd."""

import io
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection

import pytest
from tests.journeys.client import write_json
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.api.gate import Caller, Gate
from merchant_wallet.api.scheduler import CALLBACKS_PER_ROUND
from merchant_wallet.api.wire import Fields
from merchant_wallet.merchants.records import Merchant
from merchant_wallet.observability.logs import AccessLog

OPERATION = "getMerchantBalance"
PAGE = "/healthz"
CROWD = 200
SOURCES = 20


class RecordingGate(Gate):
    """A service's gate. It records whose requests are begun, in order."""

    def __init__(self, gate: Gate) -> None:
        self.__dict__.update(gate.__dict__)
        self.begun: list[int] = []

    def authenticate(self, merchant: Merchant, path: str, fields: Fields, source: str) -> Caller:
        self.begun.append(merchant.merchant_id)
        return super().authenticate(merchant, path, fields, source)


class RecordingAccessLog(AccessLog):
    """Records whose requests are answered, in order."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), enabled=False)
        self.answered: list[str] = []

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
        assert code == 200
        self.answered.append(app_key)


@contextmanager
def recording(platform: Platform) -> Iterator[tuple[list[int], list[str]]]:
    """Whose requests are begun, and whose are answered."""
    dependencies = platform.web.dependencies
    gate, access_log = RecordingGate(dependencies.gate), RecordingAccessLog()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependencies, "gate", gate)
        patch.setattr(dependencies, "access_log", access_log)
        yield gate.begun, access_log.answered


def connect(platform: Platform, source: str) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", platform.port, timeout=60, source_address=(source, 0))


def ask_for_page(connection: HTTPConnection) -> None:
    """Afterwards the server of the pages reads this connection's requests."""
    connection.request("GET", PAGE)
    read(connection)


def send(merchant: Shop, connection: HTTPConnection) -> None:
    """Send a call, and leave its answer unread."""
    client, path = merchant.client, f"/merchant/{OPERATION}"
    fields = client.common()
    body = write_json({**fields, "sign": client.sign(path, fields)})
    connection.request("POST", path, body, {"Content-Type": "application/json"})


def read(connection: HTTPConnection) -> None:
    response = connection.getresponse()
    assert response.status == 200
    response.read()


@pytest.mark.parametrize("begins_with_page", [False, True])
def test_one_call_is_begun_and_answered_among_the_first_of_a_crowd(
    shop: Shop, platform: Platform, begins_with_page: bool
) -> None:
    other = platform.open_merchant()
    sources = [f"127.0.1.{1 + number % SOURCES}" for number in range(CROWD)]
    with ExitStack() as stack:
        crowd = [stack.enter_context(closing(connect(platform, source))) for source in sources]
        ours = stack.enter_context(closing(connect(platform, "127.0.0.1")))
        for merchant, connection in [*((other, theirs) for theirs in crowd), (shop, ours)]:
            if begins_with_page:
                ask_for_page(connection)
            # Opens the connection. Afterwards the merchant is cached.
            send(merchant, connection)
            read(connection)
        with recording(platform) as (begun, answered):
            with platform.holding_loop():
                for connection in crowd:
                    send(other, connection)
                send(shop, ours)
            for connection in [*crowd, ours]:
                read(connection)
    assert len(begun) == len(answered) == CROWD + 1
    assert begun.index(shop.merchant_id) == 1
    assert answered.index(shop.client.app_key) < 2 * CALLBACKS_PER_ROUND
