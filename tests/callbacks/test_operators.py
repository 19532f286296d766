"""What an operator decides about callbacks: pause, resume, send again."""

from tests.callbacks.conftest import START_MS, InMall, Mall
from tests.callbacks.receiver import hang

from merchant_wallet.callbacks import outbox


def test_a_paused_merchant_is_told_nothing_until_resumed(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop, other = await mall.open_merchant("Shop"), await mall.open_merchant("Other")
        paused, told = await mall.cancelled(shop), await mall.cancelled(other)
        messenger = mall.messenger()
        merchant_id = shop.merchant.merchant_id
        assert await outbox.pause_merchant(mall.connection, merchant_id, "test", mall.clock())
        assert not await outbox.pause_merchant(mall.connection, merchant_id, "test", mall.clock())
        await mall.deliver(messenger)
        assert mall.receiver.events == [told]
        assert await outbox.list_pauses(mall.connection) == [(merchant_id, START_MS, "test")]
        assert await outbox.resume_merchant(mall.connection, merchant_id)
        assert not await outbox.resume_merchant(mall.connection, merchant_id)
        await mall.deliver(messenger)
        assert mall.receiver.events == [told, paused]

    in_mall(scenario)


def test_a_paused_callback_holds_back_the_later_ones_of_its_order(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        order = await mall.failed(shop)
        merchant_id, failed = shop.merchant.merchant_id, f"evt_{order.order_id}_3"
        messenger = mall.messenger()
        assert await outbox.pause(mall.connection, merchant_id, failed)
        assert not await outbox.pause(mall.connection, merchant_id, failed)
        assert await mall.deliver(messenger) == 0
        assert await outbox.resume(mall.connection, merchant_id, failed)
        assert not await outbox.resume(mall.connection, merchant_id, failed)
        assert await mall.deliver(messenger) == 2

    in_mall(scenario)


def test_a_callback_that_was_delivered_can_be_sent_again_and_its_notify_time_stays(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        event = await mall.cancelled(shop)
        messenger = mall.messenger()
        await mall.deliver(messenger)
        mall.clock.advance_s(60)
        assert await outbox.send_again(mall.connection, shop.merchant.merchant_id, event)
        assert not await outbox.send_again(mall.connection, shop.merchant.merchant_id, "evt_1_2")
        await mall.deliver(messenger)
        assert mall.receiver.events == [event, event]
        assert await mall.rows("select notified_ms from withdrawal") == [(START_MS,)]
        assert await mall.rows("select state, delivered_ms from callback") == [("delivered", START_MS)]

    in_mall(scenario)


def test_one_that_is_under_way_is_not_sent_twice_when_sent_again(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        event = await mall.cancelled(shop)
        mall.receiver.behave = hang
        slow = mall.messenger(timeout_s=0.5)
        await slow.start_due()
        assert await outbox.send_again(mall.connection, shop.merchant.merchant_id, event)
        assert await mall.deliver(mall.messenger()) == 0
        await slow.finish()
        assert await mall.rows("select state, retry_no from callback") == [("due", 1)]

    in_mall(scenario)


def test_parked_callbacks_of_a_merchant_are_sent_again_together(in_mall: InMall) -> None:
    async def scenario(mall: Mall) -> None:
        shop = await mall.open_merchant()
        for _ in range(3):
            await mall.cancelled(shop)
        await mall.rows("update callback set state = 'parked', retry_no = 11")
        assert [(kept.state, kept.callbacks) for kept in await outbox.count_undelivered(mall.connection)] == [
            ("parked", 3)
        ]
        assert await outbox.send_parked_again(mall.connection, shop.merchant.merchant_id) == 3
        assert await mall.deliver(mall.messenger()) == 3
        assert await outbox.count_undelivered(mall.connection) == []

    in_mall(scenario)
