"""People are told once of what waits in a cell, although its server stands still or is down for hours."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from tests.callbacks.conftest import CallbackScene, make_client, run_scene
from tests.cells.layout import Layout, far_cluster
from tests.clusters import Cluster
from tests.notifications.scene import SITE, NotifierScene
from tests.notifications.test_notifier import HOUR_S, MINUTE_S

from merchant_wallet.base.chains import CODES
from merchant_wallet.base.db import connect_sync
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.merchants.store import NewMerchant
from merchant_wallet.notifications.contacts import WEBHOOK
from merchant_wallet.notifications.transports import WebhookTransport
from merchant_wallet.notifications.worker import Notifier, ReadInbox
from merchant_wallet.processes.notifications import make_reader
from merchant_wallet.web import cells
from merchant_wallet.web.cells import CellPools

TRIES = 60
APPROVAL = "Withdrawal {} on TRC20 waits for approval"
STOP = "Payouts on TRC20 are stopped by zoe, on the command line"
GAS = "The hot wallet on TRC20 holds too little coin for the network fee of 1 order"


@contextmanager
def killed(cluster: Cluster) -> Iterator[None]:
    """The server is down, and starts again."""
    cluster.kill()
    yield
    cluster.start()


WAYS: dict[str, Callable[[Cluster], AbstractContextManager[None]]] = {
    "stands still": lambda cluster: cluster.silent(),
    "is down": killed,
}


class AwayScene(NotifierScene):
    """The scene of notifications, with an apart cell."""

    layout: Layout
    pools: CellPools
    read: ReadInbox

    async def notifier_of_cells(self) -> Notifier:
        """A notifier that reads every cell as the service does."""
        self.pools = CellPools(self.layout.make_directory(), 1)
        self.callbacks.closing.push_async_callback(self.pools.close)
        self.read = make_reader(self.pools, CODES, self.callbacks.clock)
        transport = WebhookTransport(make_client(30.0), self.callbacks.keyring, SITE)
        clock = self.callbacks.clock
        made = Notifier(self.callbacks.connect, self.read, {WEBHOOK: transport}, clock=clock)
        self.callbacks.closing.push_async_callback(made.close)
        return made

    def far(self, statement: str) -> None:
        """Run a statement in the apart cell."""
        with connect_sync(self.layout.far_url) as connection:
            connection.execute(statement.encode())

    async def until_back(self) -> None:
        """Wait until the cell can be read again."""
        for _ in range(TRIES):
            if not (await self.read(self.callbacks.connection, None)).away:
                return
            await asyncio.sleep(0.5)
        raise AssertionError("the cell does not come back")

    async def let_wait(self) -> None:
        """The orders that wait for approval may do so for days."""
        await self.callbacks.rows("update withdrawal set deadline_ms = created_ms + %s", 10 * DAY_MS)

    async def lacks_gas(self, shop: NewMerchant, order_id: int, *, lacks: bool) -> None:
        """The payout of an order waits for gas, or no more."""
        await self.callbacks.rows("delete from payout")
        if lacks:
            await self.callbacks.rows(
                "insert into payout (merchant_id, order_id, chain, fence, claimed_by, claimed_until_ms,"
                " obstacle_kind, obstacle_cause, obstacle_ms)"
                " values (%s, %s, 'TRC20', 1, 'w', 0, 'fuel', 'no TRX', 5)",
                shop.merchant.merchant_id,
                order_id,
            )


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPEN_S", "ANSWER_S"):
        monkeypatch.setattr(cells, name, 0.5)


@pytest.mark.parametrize("way", WAYS)
def test_nobody_is_told_twice_or_forgotten_because_a_cell_was_away(database_url: str, way: str) -> None:
    async def story(scene: AwayScene, cluster: Cluster) -> None:
        callbacks, clock = scene.callbacks, scene.callbacks.clock
        near, far = await callbacks.open_merchant("Near"), await callbacks.open_merchant("Far")
        near_order, far_order = await callbacks.taken_up(near), await callbacks.order(far)
        await callbacks.cancelled(far)
        await callbacks.rows("update callback set state = 'dead_letter'")
        await scene.let_wait()
        scene.layout.move_book(far.merchant.merchant_id)
        ann = await scene.operator("ann", "approval", "obstacle", "stop")
        ben = await scene.operator("ben", "approval")
        await scene.operator("mia", "callback", role="merchant", merchant_id=far.merchant.merchant_id)
        await scene.escalate({"approval": 30 * MINUTE_S}, ann, ben)
        await scene.lacks_gas(near, near_order.order_id, lacks=True)
        notifier = await scene.notifier_of_cells()

        async def pass_(seconds: int) -> dict[str, list[list[str]]]:
            """What is told in this time, by person."""
            before = {name: len(scene.texts(name)) for name in ("ann", "ben", "mia")}
            clock.advance_s(seconds)
            await scene.turn(notifier)
            return {name: scene.texts(name)[n:] for name, n in before.items() if scene.texts(name)[n:]}

        waits = APPROVAL.format(far_order.mc_order_id)
        assert await pass_(0) == {"ann": [[GAS, waits]], "mia": [["1 callback is parked"]]}
        with WAYS[way](cluster):
            # What only home has is known all the same: gone, forgotten after minutes, and told anew.
            await scene.lacks_gas(near, near_order.order_id, lacks=False)
            assert await pass_(MINUTE_S) == {}
            assert await pass_(HOUR_S) == {}
            await scene.lacks_gas(near, near_order.order_id, lacks=True)
            await scene.stop()
            assert await pass_(0) == {"ann": [[STOP, GAS]]}
            other = await callbacks.order(near)
            await scene.let_wait()
            assert await pass_(HOUR_S) == {"ann": [[APPROVAL.format(other.mc_order_id)]]}
            assert await pass_(HOUR_S) == {"ben": [[APPROVAL.format(other.mc_order_id)]]}
        await scene.until_back()
        assert await pass_(10 * MINUTE_S) == {"ben": [[waits]]}, (
            "nobody has acted: it is the next person's turn"
        )
        assert await pass_(HOUR_S) == {}
        scene.far("update withdrawal set approved_ms = 1, approved_by = 'test' where status = 0")
        scene.far("update callback set state = 'due'")
        assert await pass_(HOUR_S) == {}
        assert await pass_(HOUR_S) == {}
        scene.far("update callback set state = 'dead_letter'")
        assert await pass_(0) == {"mia": [["1 callback is parked"]]}, "it came back after hours"

    play(database_url, story)


def test_what_came_back_while_its_cell_was_away_is_not_told_again(database_url: str) -> None:
    async def story(scene: AwayScene, cluster: Cluster) -> None:
        callbacks, clock = scene.callbacks, scene.callbacks.clock
        far = await callbacks.open_merchant("Far")
        await callbacks.cancelled(far)
        await callbacks.rows("update callback set state = 'dead_letter'")
        scene.layout.move_book(far.merchant.merchant_id)
        await scene.operator("ann", "callback")
        notifier = await scene.notifier_of_cells()
        assert await scene.turn(notifier) == 1
        scene.far("update callback set state = 'due'")
        clock.advance_s(MINUTE_S)
        assert await scene.turn(notifier) == 0, "gone for a moment"
        scene.far("update callback set state = 'dead_letter'")
        with killed(cluster):
            for _ in range(3):
                clock.advance_s(HOUR_S)
                assert await scene.turn(notifier) == 0
        await scene.until_back()
        assert await scene.turn(notifier) == 0, "it was seen to be gone for a moment alone"

    play(database_url, story)


def play(database_url: str, story: Callable[[AwayScene, Cluster], Awaitable[None]]) -> None:
    """Run a story with an apart cell on a server of its own."""
    with far_cluster(database_url) as (layout, cluster):

        async def scenario(callbacks: CallbackScene) -> None:
            scene = AwayScene(callbacks)
            scene.layout = layout
            await story(scene, cluster)

        asyncio.run(run_scene(layout.url, scenario))
