"""A cell as a distributed schema of a real Citus, with the program connected to the schema's worker node."""

import asyncio
import os
import re
from collections.abc import Iterator

import psycopg
import pytest
from tests.cells.citus_layout import COORDINATOR, NO_CITUS, citus_layout
from tests.cells.layout import Layout
from tests.cells.test_borders import list_cell_queries
from tests.crash.shop import COIN, Shop, open_shop, run
from tests.plans import number_parameters

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.db import connect, connect_sync
from merchant_wallet.book.commands import Adjust, Cancel, CreateWithdrawal, Submission
from merchant_wallet.book.outcomes import Transferred, Withdrawal
from merchant_wallet.callbacks import outbox
from merchant_wallet.callbacks.answers import Answer
from merchant_wallet.merchants.cells.writers import CellWriters
from merchant_wallet.reporting import figures, rollup
from merchant_wallet.reporting.cells import reach_one
from merchant_wallet.sub_users import pins, sessions

pytestmark = pytest.mark.skipif(not COORDINATOR, reason=NO_CITUS)

PIN = "493817"


@pytest.fixture
def on_citus(database_url: str) -> Iterator[Layout]:
    """Home on the run's PostgreSQL, and a cell on Citus."""
    with citus_layout(database_url) as layout:
        yield layout


async def _transfer(writers: CellWriters, shop: Shop, name: str) -> object:
    """A transfer to alice."""
    return await writers.submit(shop.merchant_id, Submission(shop.credit(name), os.urandom(8).hex()))


async def _cancel_order(writers: CellWriters, shop: Shop, name: str) -> int:
    """An order that is cancelled at once. Returns its id."""
    order = CreateWithdrawal(
        mc_order_id=name,
        amount_units=COIN,
        chain="TRC20",
        address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
        notify_url="https://example.com/notify",
        fee_rate_e8=0,
        fee_minimum_units=0,
        approval_limit_units=0,
        daily_limit_units=None,
        allowed=True,
        deadline_after_ms=3_600_000,
    )
    funds = Adjust("USDT", COIN, "funds", "test", None)
    await writers.submit(shop.merchant_id, Submission(funds))
    created = await writers.submit(shop.merchant_id, Submission(order, os.urandom(8).hex()))
    assert isinstance(created, Withdrawal), created
    await writers.submit(shop.merchant_id, Submission(Cancel(created.order_id, "test")))
    return created.order_id


def test_every_query_of_a_cell_is_planned_and_executed(on_citus: Layout) -> None:
    with connect_sync(on_citus.far_url) as connection:
        executed = 0
        for _, query in list_cell_queries():
            text, executed = number_parameters(query.text), executed + 1
            highest = max(map(int, re.findall(r"\$(\d+)", text)), default=0)
            nulls = f"({', '.join(['null'] * highest)})" if highest else ""
            with connection.transaction(force_rollback=True):
                connection.execute(f"prepare query_{executed} as {text}".encode())
                try:
                    connection.execute(f"execute query_{executed}{nulls}".encode())
                except psycopg.IntegrityError:
                    # The nulls were refused by the table itself, so the statement got there.
                    continue
        assert executed > 150


def test_groups_of_several_books_commit_each_transfer_once(on_citus: Layout) -> None:
    async def scenario() -> None:
        shops = [on_citus.send_away(await open_shop(on_citus.url, f"Shop {n}")) for n in range(4)]
        async with on_citus.open_writers() as writers:
            names = [f"t{number}" for number in range(50)]
            # From now on the directory knows the books' cell.
            for shop in shops:
                await _transfer(writers, shop, "t0")
            outcomes = await asyncio.gather(
                *[_transfer(writers, shop, name) for name in names for shop in shops]
            )
            assert all(isinstance(outcome, Transferred) for outcome in outcomes)
        for shop in shops:
            assert await shop.alice_units() == 50 * COIN
            assert set(await shop.orders()) == set(names)
        async with await connect(on_citus.far_url) as connection:
            groups = await connection.execute("select count(distinct group_id), count(*) from nonce")
            count, nonces = (await groups.fetchall())[0]
            assert nonces >= 200
            assert count < nonces / 2

    run(scenario())


def test_a_callback_is_claimed_once_and_its_answer_is_recorded(on_citus: Layout) -> None:
    async def scenario() -> None:
        shop = on_citus.send_away(await open_shop(on_citus.url))
        async with on_citus.open_writers() as writers:
            for name in ("first", "second"):
                await _cancel_order(writers, shop, name)
        async with await connect(on_citus.far_url) as one, await connect(on_citus.far_url) as other:
            assert await outbox.list_waiting(one, after=0, limit=10) == [(shop.merchant_id, False)]
            now = now_ms()
            due = await outbox.peek_due(one, [shop.merchant_id], now, each=5, limit=10)
            keys = [waiting.key for waiting in due]
            until_ms = now + 30_000
            claims = await asyncio.gather(
                outbox.claim(one, keys, claimed_by="one", now_ms=now, until_ms=until_ms),
                outbox.claim(other, keys, claimed_by="other", now_ms=now, until_ms=until_ms),
            )
            claimed = [claim for each in claims for claim in each]
            assert sorted(claim.key for claim in claimed) == sorted(keys)
            assert len(await outbox.read_events(one, claimed)) == 2
            await outbox.record_success(one, claimed[0], Answer(5, http_status=200), now)
            assert await outbox.record_failure(one, claimed[1], Answer(5, error="no answer"), now + 1)
            rows = await one.execute("select state, retry_no from callback order by state")
            assert await rows.fetchall() == [("delivered", 0), ("due", 1)]
            rows = await one.execute("select attempt_no, latency_ms from callback_attempt")
            assert await rows.fetchall() == [(1, 5), (1, 5)]
            rows = await one.execute("select notified_ms from withdrawal where notified_ms is not null")
            assert await rows.fetchall() == [(now,)]

    run(scenario())


def test_the_rollup_counts_each_entry_once(on_citus: Layout) -> None:
    async def scenario() -> None:
        shops = [on_citus.send_away(await open_shop(on_citus.url, f"Shop {n}")) for n in range(2)]
        async with on_citus.open_writers() as writers:
            for name in ("a", "b"):
                await asyncio.gather(*[_transfer(writers, shop, name) for shop in shops])
        async with await connect(on_citus.far_url) as connection:
            added = [await rollup.advance_all(connection, now_ms(), batch=3, pause_s=0) for _ in range(2)]
            assert added == [8, 0]
            for shop in (shops[0].merchant_id, None):
                volume = await figures.sum_volume(reach_one(connection), 0, shop)
                told = {line.kind: (line.entries, line.amount_units) for line in volume}
                books = 1 if shop else 2
                assert told["merchant_to_user"] == (2 * books, 2 * COIN * books)

    run(scenario())


def test_a_sub_user_has_a_pin_and_sessions(on_citus: Layout) -> None:
    async def scenario() -> None:
        shop = on_citus.send_away(await open_shop(on_citus.url))
        async with await connect(on_citus.far_url) as connection:
            await connection.execute(
                "update sub_user set pin_hash = %s, pin_set_ms = 1", (pins._HASHER.hash(PIN),)
            )
            await pins.check(connection, shop.merchant_id, shop.alice_id, PIN, now_ms())
            now = now_ms()
            token = await sessions.open_session(
                connection, shop.merchant_id, shop.alice_id, now, frame=False, link_ms=now
            )
            assert await sessions.read_session(connection, token, now + 120_000) is not None
            rows = await connection.execute("select pin_failures, count(*) over () from sub_user")
            assert await rows.fetchall() == [(0, 1)]

    run(scenario())
