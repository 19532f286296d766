"""A merchant's tests in a sandbox: the control actions, and what must hold whatever a test did."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.journeys.client import Answer, Client, hmac_sign, md5_sign, string_to_sign, write_json
from tests.journeys.conftest import Shop
from tests.waits import wait_until

from merchant_wallet.audit.verify import verify as verify_log
from merchant_wallet.base import db
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.processes.custody_readers import CustodyReaders
from merchant_wallet.processes.reconciliation import Reconciler


def control(client: Client, action: str, /, **fields: Any) -> Answer:
    """Call a control action, and check the signature of a success."""
    path = f"/sandbox/{action}"
    sent = {**client.common(), **fields}
    sent.setdefault("sign", client.sign(path, sent))
    answer = client.post(path, sent)
    if answer.code == 200:
        bound = {**answer.data, "code": answer.code, "nonceStr": sent["nonceStr"]}
        signed = string_to_sign(path, bound)
        expected = md5_sign(client.secret, answer.data) if client.method == "MD5" else None
        assert answer["sign"] == (expected or hmac_sign(client.secret, signed))
    return answer


def act(shop: Shop, action: str, /, **fields: Any) -> Answer:
    """A control action that must succeed."""
    answer = control(shop.client, action, **fields)
    assert answer.code == 200, answer.text
    return answer


def query(shop: Shop, order: Answer) -> Answer:
    return shop.client.do("queryOrder", orderId=order["orderId"], mcOrderId=str(order["mcOrderId"]))


def wait_for(shop: Shop, order: Answer, status: str) -> None:
    wait_until(lambda: query(shop, order)["txnStatus"] == status, f"status {status}")


@contextmanager
def listening(client: Client, **fields: Any) -> Iterator[Iterator[dict[str, Any] | None]]:
    """The lines of a stream of callbacks. None is a heartbeat."""
    path = "/sandbox/listenCallbacks"
    sent = {**client.common(), **fields}
    sent["sign"] = client.sign(path, sent)
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=20)
    try:
        connection.request("POST", path, write_json(sent), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.getheader("content-type") == "application/x-ndjson", response.read()
        yield (json.loads(line) if line.strip() else None for line in iter(response.readline, b""))
    finally:
        connection.close()


def next_event(lines: Iterator[dict[str, Any] | None]) -> dict[str, Any]:
    """The next line that is no heartbeat."""
    return next(line for line in lines if line is not None)


def require_sound(shop: Shop) -> None:
    """The merchant's book is sound, the audit log too, and the sandbox's chains explain every balance."""
    platform, merchant_id = shop.platform, shop.merchant_id
    report = platform.operate(lambda conn: verify_book(conn, conn, merchant_id))
    assert report.ok, report.violation
    assert platform.operate(verify_log).ok

    async def reconcile() -> dict[str, Any]:
        connect = partial(db.connect, platform.url)
        readers = CustodyReaders(platform.base, connect)
        reconciler = Reconciler(connect, readers.open, cells=platform.base.cells)
        try:
            return await reconciler.reconcile()
        finally:
            await reconciler.close()
            await readers.close()

    document = platform.run(reconcile)
    assert document["sound"], document
