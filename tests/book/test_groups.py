"""Groups on the database, without a writer: what is claimed, what stays out, and what a look-up finds."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from structlog.contextvars import bound_contextvars, get_contextvars
from tests.book.accounting import swap, withdraw
from tests.book.groups import commit, judge, make_batch, open_connection
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run
from tests.waits import eventually

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import columns, store
from merchant_wallet.book import commands as c
from merchant_wallet.book.batch import Batch, Mode
from merchant_wallet.book.connection import StatementFailed
from merchant_wallet.book.drafts import read_drafts
from merchant_wallet.book.nonce_partitions import ensure_nonce_partitions
from merchant_wallet.book.outcomes import Transferred, Withdrawal
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft
from merchant_wallet.book.writer import Writer

DIVISION_BY_ZERO = "22012"
CHECK_VIOLATED = "23514"
MODES = pytest.mark.parametrize("mode", [Mode.READ, Mode.LOCKED], ids=lambda mode: mode.name.lower())

_TABLES = (
    "book",
    "account",
    "nonce",
    "entry",
    "posting",
    "sub_user",
    "withdrawal",
    "withdrawal_step",
    "callback",
)


async def _rows_of(shop: Shop) -> list[object]:
    """Everything that a group may write of one book."""
    rows: list[object] = []
    for table in _TABLES:
        query = f"select array_agg(t::text order by t::text) from {table} t where merchant_id = %s"
        rows += await shop.rows(query, shop.merchant_id)
    return rows


def _credit(shop: Shop, mc_order_id: str = "c1", nonce: str = "n1") -> c.Submission:
    return c.Submission(shop.credit(mc_order_id), nonce)


async def _write_spoilt(
    shop: Shop, asked: c.Command, spoil: Callable[[Draft], None], mode: Mode = Mode.READ
) -> str:
    """Judge a command, change the draft, and try to write it. Returns the SQLSTATE of the refusal."""
    batch = make_batch(shop.merchant_id, asked, mode=mode)
    async with open_connection(shop.url) as connection:
        await judge(connection, [batch])
        before = await _rows_of(shop)
        spoil(batch.judged)
        with pytest.raises(StatementFailed) as failure:
            await commit(connection, [batch])
    assert await _rows_of(shop) == before
    return failure.value.sqlstate


@MODES
def test_an_account_that_the_book_does_not_have_stops_the_group(database_url: str, mode: Mode) -> None:
    def add_account(draft: Draft) -> None:
        draft.balances[999] = 1
        draft.changes.touched.add(999)

    async def scenario() -> None:
        shop = await open_shop(database_url)
        assert await _write_spoilt(shop, shop.credit("c1"), add_account, mode) == DIVISION_BY_ZERO

    run(scenario())


def test_a_wallet_below_zero_is_refused_by_the_database_itself(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)

        def overdraw(draft: Draft) -> None:
            draft.balances[shop.alice_id] = -1

        assert await _write_spoilt(shop, shop.credit("c1"), overdraw) == CHECK_VIOLATED

    run(scenario())


async def _open_order(shop: Shop) -> Withdrawal:
    """An order that waits for approval. Funds come from an adjustment."""
    writer = Writer(shop.url)
    await shop.ask(writer, c.Adjust(USDT, 200 * COIN, "funds", "ann", None))
    order = await shop.ask(writer, withdraw("w1"))
    await writer.close()
    assert isinstance(order, Withdrawal)
    return order


def test_an_order_that_took_another_step_meanwhile_is_not_moved(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        order_id = (await _open_order(shop)).order_id

        def take_a_step(draft: Draft) -> None:
            order = draft.withdrawals[order_id]
            draft.put_withdrawal(msgspec.structs.replace(order, step_no=order.step_no + 1))

        assert await _write_spoilt(shop, c.Cancel(order_id, "ann"), take_a_step) == DIVISION_BY_ZERO
        await shop.verify()

    run(scenario())


def test_a_group_of_many_books_is_one_transaction_and_moves_each_version_once(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(5)]
        versions = await _versions(shops)
        group = [make_batch(shop.merchant_id, _credit(shop), c.ReadBalances()) for shop in shops]
        async with open_connection(database_url) as connection:
            await judge(connection, group)
            assert await commit(connection, group) == {shop.merchant_id for shop in shops}
        ((group_id,),) = await shops[0].rows("select distinct group_id from nonce where nonce = 'n1'")
        assert await _versions(shops) == [group_id] * len(shops)
        assert group_id not in versions
        for shop in shops:
            assert await shop.alice_units() == COIN
            await shop.verify()

    run(scenario())


async def _versions(shops: list[Shop]) -> list[uuid.UUID]:
    found = dict(await shops[0].rows("select merchant_id, version from book"))
    return [found[shop.merchant_id] for shop in shops]


async def _move_version(shop: Shop) -> None:
    await shop.rows("update book set version = gen_random_uuid() where merchant_id = %s", shop.merchant_id)


async def _use_nonce(shop: Shop, ago_days: int = 0) -> None:
    day = (await shop.rows("select last_ms from book where merchant_id = %s", shop.merchant_id))[0][
        0
    ] // DAY_MS
    async with await connect(shop.url) as connection:
        await ensure_nonce_partitions(connection, day)
    await shop.rows(
        "insert into nonce values (%s, 'n1', %s, %s)", shop.merchant_id, day - ago_days, uuid.uuid4()
    )


async def _use_nonce_yesterday(shop: Shop) -> None:
    await _use_nonce(shop, 1)


async def _use_order_id(shop: Shop) -> None:
    await shop.rows(
        "update entry set mc_order_id = 'c1', kind = 'merchant_to_user' where merchant_id = %s"
        " and entry_id = (select min(entry_id) from entry where merchant_id = %s)",
        shop.merchant_id,
        shop.merchant_id,
    )


KEEPS_OUT = [_move_version, _use_nonce, _use_nonce_yesterday, _use_order_id]


@pytest.mark.parametrize("change", KEEPS_OUT, ids=lambda change: change.__name__.strip("_"))
def test_a_book_that_is_not_as_it_was_judged_stays_out_and_its_neighbours_are_committed(
    database_url: str, change: Callable[[Shop], Awaitable[None]]
) -> None:
    """The change is made by SQL, so that it alone and not the version is seen by the claim."""

    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        changed = shops[1]
        group = [make_batch(shop.merchant_id, _credit(shop)) for shop in shops]
        async with open_connection(database_url) as connection:
            await judge(connection, group)
            for batch in group:
                # As if judged on the cache: the claim looks the names up.
                batch.names_read = False
            await change(changed)
            before = await _rows_of(changed)
            assert await commit(connection, group) == {shops[0].merchant_id, shops[2].merchant_id}
        assert await _rows_of(changed) == before
        assert [await shop.alice_units() for shop in shops] == [COIN, 0, COIN]

    run(scenario())


def test_a_withdrawal_whose_name_is_known_stays_out(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        await _open_order(shop)
        await shop.rows("update account set balance = balance + 100000000 where account_id = 1")
        group = [make_batch(each.merchant_id, withdraw("w1")) for each in (shop, other)]
        async with open_connection(database_url) as connection:
            await read_drafts(connection, group, 0)
            for batch in group:
                # What the cache would give: no look-up of the name.
                batch.judged.withdrawals.clear()
                batch.judged.order_id_by_mc.clear()
                batch.names_read = False
                (outcome,) = apply_batch(batch.judged, batch.submissions)
                assert isinstance(outcome, Withdrawal)
            before = await _rows_of(shop)
            assert await commit(connection, group) == {other.merchant_id}
        assert await _rows_of(shop) == before

    run(scenario())


def test_the_same_name_of_another_kind_or_book_keeps_nothing_out(database_url: str) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        writer = Writer(database_url)
        assert isinstance(await shop.ask(writer, shop.credit("7"), "n7"), Transferred)
        await writer.close()
        group = [
            make_batch(shop.merchant_id, c.Submission(shop.debit("7"), "7")),
            make_batch(other.merchant_id, c.Submission(other.credit("7"), "n7")),
        ]
        async with open_connection(database_url) as connection:
            await judge(connection, group)
            for batch in group:
                batch.names_read = False
            assert await commit(connection, group) == {shop.merchant_id, other.merchant_id}
        for each in (shop, other):
            await each.verify()

    run(scenario())


def test_a_book_that_another_transaction_holds_stays_out_and_nobody_waits(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        group = [make_batch(shop.merchant_id, _credit(shop)) for shop in shops]
        async with open_connection(database_url) as connection, await connect(database_url) as holder:
            await judge(connection, group)
            async with holder.transaction():
                held = shops[0].merchant_id
                await holder.execute("select from book where merchant_id = %s for no key update", [held])
                # If it waited, the holder would never let go, and the lock's time-out would fail the group.
                assert await commit(connection, group) == {shop.merchant_id for shop in shops[1:]}
            assert await commit(connection, group[:1]) == {held}
        for shop in shops:
            await shop.verify()

    run(scenario())


def test_a_refusal_alone_uses_its_nonce_and_a_batch_without_one_leaves_the_groups_own(
    database_url: str,
) -> None:
    async def scenario() -> None:
        shop, other = await open_shop(database_url), await open_shop(database_url, "Other")
        group = [
            make_batch(shop.merchant_id, c.Submission(shop.debit("d1"), "n1")),
            make_batch(other.merchant_id, other.debit("d1")),
        ]
        async with open_connection(database_url) as connection:
            await judge(connection, group)
            assert all(isinstance(batch.outcomes[0], Refusal) for batch in group)
            await commit(connection, group)
        last = (
            "select nonce from nonce n join book b on b.merchant_id = n.merchant_id"
            " where b.merchant_id = %s and b.version = n.group_id"
        )
        assert await shop.rows(last, shop.merchant_id) == [("n1",)]
        ((own,),) = await other.rows(last, other.merchant_id)
        assert own.startswith("!")

    run(scenario())


def test_a_look_up_finds_the_books_that_the_group_wrote_and_no_others(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        group = [make_batch(shop.merchant_id, _credit(shop)) for shop in shops]
        group_id = uuid.uuid4().hex
        async with open_connection(database_url) as connection:
            await judge(connection, group)
            await _move_version(shops[1])
            written = await store.commit_group(connection, group, group_id)
            assert written == {shops[0].merchant_id, shops[2].merchant_id}
            assert await store.find_committed(connection, group, group_id) == written
            # Also after other groups have marked the books.
            more = [make_batch(shop.merchant_id, _credit(shop, "c2", "n2")) for shop in shops]
            await judge(connection, more)
            await commit(connection, more)
            assert await store.find_committed(connection, group, group_id) == written
            assert await store.find_committed(connection, group, uuid.uuid4().hex) == frozenset()

    run(scenario())


def test_a_group_that_was_looked_up_in_vain_is_never_done(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        group = [make_batch(shop.merchant_id, _credit(shop)) for shop in shops]
        group_id = uuid.uuid4().hex
        async with open_connection(database_url) as late, open_connection(database_url) as other:
            await judge(late, group)
            assert await store.find_committed(other, group, group_id) == frozenset()
            before = [await _rows_of(shop) for shop in shops]
            assert await store.commit_group(late, group, group_id) == frozenset()
            assert [await _rows_of(shop) for shop in shops] == before

    run(scenario())


def test_a_look_up_waits_for_a_group_that_still_runs(database_url: str) -> None:
    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(2)]
        group = [make_batch(shop.merchant_id, _credit(shop)) for shop in shops]
        group_id = uuid.uuid4().hex
        name = columns.name_group
        async with await connect(database_url) as running, open_connection(database_url) as connection:
            await judge(connection, group)
            async with running.transaction():
                # What a group does: the version and the nonce.
                for batch in group:
                    me = batch.merchant_id
                    await running.execute(
                        "update book set version = %s where merchant_id = %s",
                        [group_id, me],
                    )
                    await running.execute(
                        "insert into nonce values (%s, %s, %s, %s)",
                        [me, name(batch.judged, group_id), batch.judged.day, group_id],
                    )
                asked = asyncio.create_task(store.find_committed(connection, group, group_id))
                query = (
                    "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
                    " and datname = current_database()"
                )
                await eventually(lambda: shops[0].rows(query))
                assert not asked.done()
            assert await asked == {shop.merchant_id for shop in shops}

    run(scenario())


@MODES
def test_every_kind_of_change_is_written_for_many_books_at_once(database_url: str, mode: Mode) -> None:
    """Registrations, transfers, orders with steps and callbacks: the second group goes on from the first."""

    async def scenario() -> None:
        shops = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        orders = {}
        for shop in shops:
            orders[shop] = (await _open_order(shop)).order_id
            await shop.rows(
                "insert into rate (merchant_id, kfb_usdt_e8, kfb_usdt_set_ms) values (%s, 14000000, 1)",
                shop.merchant_id,
            )
        async with open_connection(database_url) as connection:
            for turn in range(2):
                for shop in shops:
                    await shop.issue(*_new_addresses(shop, turn))
                group = [_make_busy_batch(shop, turn, orders[shop], mode) for shop in shops]
                parts = [group] if mode is Mode.READ else [[batch] for batch in group]
                for part in parts:
                    await judge(connection, part)
                    refused = [o for batch in part for o in batch.outcomes if isinstance(o, Refusal)]
                    assert refused == []
                    assert await commit(connection, part) == {batch.merchant_id for batch in part}
        for shop in shops:
            report = await shop.verify()
            assert report.entries == 4 + 2 * 4 + 1
        told = await shops[0].rows("select merchant_id, order_id from callback order by 1")
        assert told == [(shop.merchant_id, order_id) for shop, order_id in orders.items()]

    run(scenario())


def _new_addresses(shop: Shop, turn: int) -> tuple[bytes, bytes]:
    number = 10 * shop.merchant_id + turn
    return b"E" + number.to_bytes(19), b"T" + number.to_bytes(19)


def _make_busy_batch(shop: Shop, turn: int, order_id: int, mode: Mode) -> Batch:
    return make_batch(
        shop.merchant_id,
        c.Register(f"new{turn}", KFB, 5 + turn, *_new_addresses(shop, turn)),
        shop.credit(f"c{turn}"),
        swap(f"x{turn}", "100", KFB, USDT),
        withdraw(f"w-{turn}", "20"),
        c.ReadSubUser(ALICE) if turn else c.Cancel(order_id, "ann"),
        mode=mode,
    )


def test_a_group_runs_in_no_requests_context_whoever_sent_its_first_command(database_url: str) -> None:
    """Otherwise the log lines about a group would have the id of its first request."""
    seen: list[dict[str, object]] = []

    def clock() -> int:
        seen.append(dict(get_contextvars()))
        return now_ms()

    async def scenario() -> None:
        shop = await open_shop(database_url)
        writer = Writer(database_url, clock=clock)
        with bound_contextvars(request_id="req_1"):
            await writer.submit(shop.merchant_id, _credit(shop))
        await writer.close()

    run(scenario())
    assert seen
    assert all(bound == {} for bound in seen)
