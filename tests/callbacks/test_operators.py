"""An operator's decisions about callbacks: pause, resume, send again."""

from tests.callbacks.conftest import START_MS, CallbackScene, InScene
from tests.callbacks.receiver import hang

from merchant_wallet.callbacks import outbox
from merchant_wallet.reporting.callbacks import count_by_state
from merchant_wallet.reporting.cells import reach_one


async def undelivered(scene: CallbackScene) -> dict[str, int]:
    """The number of undelivered callbacks by state."""
    counts = await count_by_state(reach_one(scene.connection))
    return {one.state: one.callbacks for one in counts if one.callbacks}


def test_a_paused_merchant_gets_nothing_until_resumed(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop, other = await scene.open_merchant("Shop"), await scene.open_merchant("Other")
        paused, told = await scene.cancelled(shop), await scene.cancelled(other)
        sender = scene.sender()
        merchant_id = shop.merchant.merchant_id
        assert await outbox.pause_merchant(scene.connection, merchant_id, "test", scene.clock())
        assert not await outbox.pause_merchant(scene.connection, merchant_id, "test", scene.clock())
        await scene.deliver(sender)
        assert scene.receiver.events == [told]
        assert await outbox.list_pauses(scene.connection) == [(merchant_id, START_MS, "test")]
        assert await outbox.resume_merchant(scene.connection, merchant_id)
        assert not await outbox.resume_merchant(scene.connection, merchant_id)
        await scene.deliver(sender)
        assert scene.receiver.events == [told, paused]

    in_scene(scenario)


def test_a_paused_callback_holds_back_the_later_ones_of_its_order(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        order = await scene.failed(shop)
        merchant_id, failed = shop.merchant.merchant_id, f"evt_{order.order_id}_3"
        sender = scene.sender()
        assert await outbox.pause(scene.connection, merchant_id, failed)
        assert not await outbox.pause(scene.connection, merchant_id, failed)
        assert await scene.deliver(sender) == 0
        assert await outbox.resume(scene.connection, merchant_id, failed)
        assert not await outbox.resume(scene.connection, merchant_id, failed)
        assert await scene.deliver(sender) == 2

    in_scene(scenario)


def test_a_callback_that_was_delivered_can_be_sent_again_and_its_notify_time_stays(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        event = await scene.cancelled(shop)
        sender = scene.sender()
        await scene.deliver(sender)
        scene.clock.advance_s(60)
        assert await outbox.send_again(scene.connection, shop.merchant.merchant_id, event)
        assert not await outbox.send_again(scene.connection, shop.merchant.merchant_id, "evt_1_2")
        await scene.deliver(sender)
        assert scene.receiver.events == [event, event]
        assert await scene.rows("select notified_ms from withdrawal") == [(START_MS,)]
        assert await scene.rows("select state, delivered_ms from callback") == [("delivered", START_MS)]

    in_scene(scenario)


def test_one_that_is_under_way_is_not_sent_twice_when_sent_again(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        event = await scene.cancelled(shop)
        scene.receiver.behave = hang
        slow = scene.sender(timeout_s=0.5)
        await slow.start_due()
        assert await outbox.send_again(scene.connection, shop.merchant.merchant_id, event)
        assert await scene.deliver(scene.sender()) == 0
        await slow.finish()
        assert await scene.rows("select state, retry_no from callback") == [("due", 1)]

    in_scene(scenario)


def test_all_dead_letters_of_a_merchant_are_sent_again(in_scene: InScene) -> None:
    async def scenario(scene: CallbackScene) -> None:
        shop = await scene.open_merchant()
        for _ in range(3):
            await scene.cancelled(shop)
        await scene.rows("update callback set state = 'dead_letter', retry_no = 11")
        assert await undelivered(scene) == {"dead_letter": 3}
        assert await outbox.send_dead_letters_again(scene.connection, shop.merchant.merchant_id) == 3
        assert await scene.deliver(scene.sender()) == 3
        assert await undelivered(scene) == {}

    in_scene(scenario)
