"""kill -9 under load: what was answered is stored, nothing is stored twice, the book is sound."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator

from tests.crash.client import CUT_SHORT, Client
from tests.crash.service import Service
from tests.crash.shop import run, verify_sound
from tests.waits import wait_until

from merchant_wallet.base.db import connect

KILLED_AFTER = 100
AFTERWARDS = 200

Kill = Callable[[], Awaitable[None]]


class Orders:
    """The ids of as many orders as it takes until a kill is done or cuts a request short, and of more."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.named: list[str] = []
        self.is_killed = False

    def __iter__(self) -> Iterator[str]:
        left = AFTERWARDS
        while left:
            left -= self.is_killed or CUT_SHORT in self._client.heard
            self.named.append(f"order-{len(self.named)}")
            yield self.named[-1]


async def _load_and_kill(service: Service, kill: Kill) -> tuple[Client, list[str]]:
    """Credit alice, and kill in the middle. Returns the client with all answers so far, and the orders."""
    client = Client(service.url, service.app_key, service.secret)
    orders = Orders(client)
    await client.learn_address()
    load = asyncio.create_task(client.credit_all(orders, until_answered=False))
    await client.until_answered(KILLED_AFTER)
    await kill()
    await load
    assert KILLED_AFTER <= len(client.answers) < len(orders.named)
    return client, orders.named


async def _insist_truth(service: Service, client: Client, orders: list[str]) -> None:
    """Repeat every order: each answer equals the first one, and the book has exactly those."""
    before = {order: list(entries) for order, entries in client.answers.items()}
    await client.credit_all(orders)
    assert client.answers.keys() == set(orders)
    assert all(len(set(entries)) == 1 for entries in client.answers.values())
    assert all(client.answers[order][: len(entries)] == entries for order, entries in before.items())
    async with await connect(service.database_url()) as connection:
        found = await (
            await connection.execute("select mc_order_id, entry_id from entry where mc_order_id is not null")
        ).fetchall()
        balances = await (
            await connection.execute("select balance from account where kind = 'subuser'")
        ).fetchall()
        merchants = await (await connection.execute("select merchant_id from merchant")).fetchall()
        for (merchant_id,) in merchants:
            await verify_sound(connection, merchant_id)
    assert dict(found) == {order: entries[0] for order, entries in client.answers.items()}
    assert len(found) == len(orders)
    assert balances == [(len(orders),)]


def _continue_on(service: Service, client: Client) -> Client:
    client.host, client.port = "127.0.0.1", service.port
    return client


def test_a_service_killed_under_load_keeps_every_answer_it_gave(service: Service) -> None:
    service.start()

    async def kill() -> None:
        await asyncio.to_thread(service.kill)

    client, orders = run(_load_and_kill(service, kill))
    service.start()
    run(_insist_truth(service, _continue_on(service, client), orders))
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")


def test_a_service_and_its_database_killed_at_once_keep_every_answer_they_gave(service: Service) -> None:
    service.start()

    async def kill() -> None:
        await asyncio.to_thread(service.kill, database=True)

    client, orders = run(_load_and_kill(service, kill))
    service.start()
    run(_insist_truth(service, _continue_on(service, client), orders))
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")


def test_a_database_killed_under_load_comes_back_by_itself_and_keeps_every_answer(service: Service) -> None:
    service.start()

    async def scenario() -> None:
        client = Client(service.url, service.app_key, service.secret)
        orders = Orders(client)
        await client.learn_address()
        # The merchant's program continues all the time: refused, cut short, answered. Maybe nobody is
        # refused, since waiting requests are answered when the database is back.
        load = asyncio.create_task(client.credit_all(orders))
        await client.until_answered(KILLED_AFTER)
        killed = service.postmaster()
        os.kill(killed, signal.SIGKILL)
        orders.is_killed = True
        await load
        assert set(client.heard) <= {200, 50300, -1}
        assert service.postmaster() != killed
        await _insist_truth(service, client, orders.named)

    run(scenario())
    assert service.process is not None
    assert service.process.poll() is None
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")


def test_a_web_side_killed_under_load_is_started_again_on_its_port(service: Service) -> None:
    service.start()

    async def scenario() -> None:
        client = Client(service.url, service.app_key, service.secret)
        orders = Orders(client)
        await client.learn_address()
        load = asyncio.create_task(client.credit_all(orders))
        await client.until_answered(KILLED_AFTER)
        os.kill(service.side("serve"), signal.SIGKILL)
        orders.is_killed = True
        await load
        assert set(client.heard) <= {200, 50300, -1}
        assert -1 in client.heard
        await _insist_truth(service, client, orders.named)

    run(scenario())
    # The line that says it is ready was read before. The client kept the port that it knew.
    assert service.said.count(f"ready: {service.url}") == 1
    assert service.stop() == 0
    wait_until(lambda: not service.leavings(), "nothing is left running")
