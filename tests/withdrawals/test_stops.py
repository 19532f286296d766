"""Stopping a chain's payouts: nothing new is signed, and signed transfers go on to their end."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.waits import wait_until_blocked
from tests.withdrawals.test_nonces import finish

from merchant_wallet.approvals.changes import ChangeRefused
from merchant_wallet.audit.records import Author
from merchant_wallet.base.db import connect
from merchant_wallet.hot_wallet.stops import list_stops, read_stopped, resume_payouts, stop_payouts
from merchant_wallet.withdrawals.acts import stop_chains
from merchant_wallet.withdrawals.payouts import list_blocked

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop


def test_a_stop_holds_new_payouts_of_its_chain_and_lets_signed_ones_end(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        payer, signed, stops = shop.payer(chains=shop.fakes()), await shop.order(), shop.connection
        await shop.turn(payer)
        now = shop.clock.now_ms
        assert await stop_payouts(stops, "ERC20", "operator", "books differ", now)
        seen = await read_stopped(stops, "ERC20")
        assert await stop_payouts(stops, "ERC20", "reconcile", "custody is short", now + 1)
        assert not await stop_payouts(stops, "ERC20", "operator", "another cause", now + 2)
        waiting = await shop.order()
        assert await finish(shop, payer, signed) == [2]
        assert [(stop.actor, stop.cause) for stop in await list_stops(stops)] == [
            ("operator", "books differ"),
            ("reconcile", "custody is short"),
        ]
        await resume_payouts(stops, "ERC20", seen)
        assert await finish(shop, payer, waiting) == [0]
        last = await read_stopped(stops, "ERC20")
        await resume_payouts(stops, "ERC20", last)
        with pytest.raises(ChangeRefused):
            await resume_payouts(stops, "ERC20", last)
        assert await finish(shop, payer, waiting) == [2]

    in_shop(scenario)


def test_a_stop_in_the_last_moment_keeps_what_was_just_signed_from_being_sent(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        chain.may_build.clear()
        payer = shop.payer(chain)
        await payer.start_due()
        await chain.building.wait()
        await stop_payouts(shop.connection, "ERC20", "operator", "now", shop.clock.now_ms)
        chain.may_build.set()
        await payer.finish()
        assert (await shop.status(order), chain.broadcasts) == (1, [])
        assert [waiting.kind for waiting in await list_blocked(shop.connection)] == ["stopped"]
        # The reservation stays: the signer has signed with it, and signs with nothing else.
        assert await shop.rows("select count(*) from payout_reservation") == [(1,)]

    in_shop(scenario)


def test_an_emergency_stop_waits_for_a_stop_of_one_chain_and_not_that_one_for_it(database_url: str) -> None:
    async def scenario() -> None:
        ann, chains = Author("operator:ann", "192.0.2.1", 1), ["ERC20", "TRC20"]
        async with await connect(database_url) as one, await connect(database_url) as all_chains:
            async with one.transaction():
                await stop_payouts(one, "TRC20", ann.actor, "the node lies", 1)
                task = asyncio.create_task(stop_chains(all_chains, ann, chains, "stop everything"))
                await wait_until_blocked(one, all_chains.info.backend_pid, task)
                # The log is free: it records the stop of TRC20, which the emergency stop waits for.
                await one.execute("set local lock_timeout = '10s'")
                await ann.record(one, "wallet.freeze", "wallet TRC20")
            assert await task == ["ERC20"]
            logged = await (await one.execute("select subject from audit_entry order by audit_no")).fetchall()
        assert logged == [("wallet TRC20",), ("wallet ERC20",)]

    asyncio.run(scenario())
