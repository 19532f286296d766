"""What a batch writes, the next one reads back. The database refuses what would not fit."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from tests.crash.shop import ALICE, COIN, Shop, eventually, open_shop, run

from merchant_wallet.base.clock import now_ms
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.book import commands as c
from merchant_wallet.book import store
from merchant_wallet.book.chart import MERCHANT_ID_OF
from merchant_wallet.book.connection import PipelineConnection, StatementFailed
from merchant_wallet.book.outcomes import Outcome, Transferred, Withdrawal
from merchant_wallet.book.read_set import read_set_of
from merchant_wallet.book.rules import apply_batch
from merchant_wallet.book.state import Draft, Rate
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates

RATE_E8 = 7 * 10**8
BACK_E8 = 14 * 10**6


@asynccontextmanager
async def _open_connection(shop: Shop) -> AsyncIterator[PipelineConnection]:
    """A connection that rolls back at the end."""
    connection = await PipelineConnection.open(shop.url, store.STATEMENTS)
    try:
        yield connection
    finally:
        await connection.close()


async def _read(shop: Shop, *asked: c.Command) -> Draft:
    """The draft for a batch of these commands."""
    read_set = read_set_of([c.Submission(command) for command in asked])
    async with _open_connection(shop) as connection:
        return await store.open_draft(connection, shop.merchant_id, read_set, now_ms())


async def _set_rates(shop: Shop) -> None:
    async with await connect(shop.url) as connection:
        await rates.set_rate(connection, rates.USDT_TO_KFB, RATE_E8, at_ms=1, max_age_ms=2**40)
        await rates.set_rate(connection, rates.KFB_TO_USDT, BACK_E8, at_ms=2)


def _withdraw(mc_order_id: str, amount_units: int = 20 * COIN, approval_limit_units: int = 0) -> c.Command:
    address, url = "0x52908400098527886E0F7030069857D2E4169EE7", "https://shop.example/n?a=1&b={2}"
    return c.CreateWithdrawal(
        mc_order_id, amount_units, "ERC20", address, url, 0, COIN, approval_limit_units, None, True, 1000
    )


async def _ask_all(shop: Shop, *asked: c.Command) -> list[Outcome]:
    """Send commands one after the other, each in its own batch."""
    book = Writer(shop.url)
    answers = [await shop.ask(book, command) for command in asked]
    await book.close()
    return answers


AWKWARD = "NULL\"\\{},'$1 é𝄞"


def test_each_kind_of_order_is_answered_in_a_later_batch_as_it_was_at_first(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        kinds: list[c.Command] = [
            shop.credit(AWKWARD, 100 * COIN),
            c.UserToMerchant(AWKWARD, ALICE, KFB, 3 * COIN, 10**6, False),
            c.UserToMerchant("free", ALICE, KFB, 2 * COIN, 0, False),
            c.Exchange(AWKWARD, KFB, USDT, 700 * COIN, None, None),
            _withdraw("w\\1"),
        ]
        first = await _ask_all(shop, *kinds)
        assert not any(isinstance(answer, Refusal) for answer in first)
        before = await _count_entries(shop)
        assert await _ask_all(shop, *kinds) == first
        # All of them in one batch too, which reads them together.
        book = Writer(shop.url)
        assert await shop.gather(book, kinds) == first
        await book.close()
        assert await _count_entries(shop) == before
        debit = first[1]
        assert isinstance(debit, Transferred)
        assert (debit.amount_units, debit.fee_units, debit.rate_e8) == (3 * COIN, 30_000, 10**6)
        await shop.verify()

    run(scenario())


async def _count_entries(shop: Shop) -> int:
    ((count,),) = await shop.rows("select count(*) from entry")
    return int(count)


def test_one_order_id_may_name_an_order_of_each_kind(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        answers = await _ask_all(
            shop,
            shop.credit("7"),
            shop.debit("7"),
            c.Exchange("7", KFB, USDT, 700 * COIN, None, None),
            _withdraw("7", 2 * COIN),
        )
        assert not any(isinstance(answer, Refusal) for answer in answers)

    run(scenario())


def test_a_sub_user_is_read_alike_by_its_own_id_and_by_either_address(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await shop.rows(
            "update sub_user set paused = true, limit_debit_units = 5, limit_day_units = 6, pin_hash = 'h'"
        )
        ((evm, tron),) = await shop.rows("select evm_address, tron_address from sub_user")
        by_ext = (await _read(shop, c.ReadSubUser(ALICE))).sub_users
        for address in (evm, tron):
            by_address = await _read(shop, c.MerchantToUser("x", address, KFB, 1))
            assert by_address.sub_users == by_ext
            assert by_address.user_id_by_address[address] == shop.alice_id
        alice = by_ext[shop.alice_id]
        limits = (alice.paused, alice.limit_debit_units, alice.limit_day_units, alice.has_pin)
        assert limits == (True, 5, 6, True)

    run(scenario())


def test_a_batch_sees_only_what_it_names(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _ask_all(shop, shop.credit("c1"), shop.credit("c2"))
        draft = await _read(shop, shop.debit("c1"))
        assert set(draft.balances) == {MERCHANT_ID_OF[KFB], shop.alice_id}
        # The same order ids with another kind.
        assert draft.earlier_transfers == {}
        draft = await _read(shop, shop.credit("c1"), shop.credit("c3"))
        assert [key[1] for key in draft.earlier_transfers] == ["c1"]

    run(scenario())


def test_another_merchants_rows_are_never_read(database_url: str) -> None:
    async def scenario() -> None:
        mine, other = await open_shop(database_url), await open_shop(database_url, "Other")
        (order,) = await _ask_all(other, _withdraw("w1"))
        assert isinstance(order, Refusal)  # No USDT: only the look-ups below matter.
        await _ask_all(other, other.credit("c1"))
        asked = c.MerchantToUser("c1", other.alice_address, KFB, COIN)
        draft = await _read(mine, asked)
        assert draft.sub_users == {}
        assert draft.earlier_transfers == {}
        (refused,) = await _ask_all(mine, asked)
        assert isinstance(refused, Refusal)
        assert refused.code == 40402

    run(scenario())


def test_an_order_keeps_every_field_through_every_step_of_its_life(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        _, created = await _ask_all(
            shop, c.Exchange(None, KFB, USDT, 7000 * COIN, None, None), _withdraw("w1")
        )
        assert isinstance(created, Withdrawal)
        steps: list[c.Command] = [
            c.Approve(created.order_id, "ann"),
            c.TakeUp(created.order_id),
            c.Fail(created.order_id, "reverted"),
            c.Refund(created.order_id),
        ]
        seen = created
        for step in steps:
            (moved,) = await _ask_all(shop, step)
            assert isinstance(moved, Withdrawal)
            draft = await _read(shop, c.ReadWithdrawal(created.order_id, "w1"))
            assert draft.withdrawals[created.order_id] == moved != seen
            seen = moved
        assert seen.status == 6
        ((approved_by,),) = await shop.rows("select approved_by from withdrawal")
        assert approved_by == "ann"
        await shop.verify()

    run(scenario())


def test_a_whole_life_within_one_batch_is_written_as_one_order(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        await _ask_all(shop, c.Exchange(None, KFB, USDT, 7000 * COIN, None, None))
        (created,) = await _ask_all(shop, _withdraw("w0", 2 * COIN, 10 * COIN))
        assert isinstance(created, Withdrawal)
        next_id = created.order_id + 1
        book = Writer(shop.url)
        answers = await shop.gather(
            book, [_withdraw("w1", 2 * COIN, 10 * COIN), c.TakeUp(next_id), c.Settle(next_id, "0xfeed")]
        )
        await book.close()
        assert [answer.status for answer in answers if isinstance(answer, Withdrawal)] == [0, 1, 2]
        draft = await _read(shop, c.ReadWithdrawal(next_id, "w1"))
        assert draft.withdrawals[next_id] == answers[2]
        await shop.verify()

    run(scenario())


def test_a_merchants_own_rate_overrides_the_platforms_one_direction_at_a_time(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        asked = c.Exchange(None, KFB, USDT, COIN, None, None)
        platform = {(USDT, KFB): Rate(RATE_E8, False, 1, 2**40), (KFB, USDT): Rate(BACK_E8, False, 2, None)}
        assert (await _read(shop, asked)).rates == platform
        async with await connect(shop.url) as connection:
            await rates.set_rate(connection, rates.KFB_TO_USDT, 10**6, shop.merchant_id, at_ms=3)
            assert (await _read(shop, asked)).rates == {**platform, (KFB, USDT): Rate(10**6, False, 3, None)}
            await rates.pause(connection, rates.USDT_TO_KFB, shop.merchant_id, at_ms=4)
            assert (await _read(shop, asked)).rates[USDT, KFB] == Rate(RATE_E8, True, 1, 2**40)

    run(scenario())


def test_the_batchs_draft_and_the_operators_view_agree_on_every_rate(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        asked = c.Exchange(None, KFB, USDT, COIN, None, None)
        lines = [None, (10**6, False), (10**6, True), (None, True)]
        async with await connect(shop.url) as connection:
            for platform in lines:
                for own in lines:
                    await shop.rows("delete from rate")
                    for scope, line in ((0, platform), (shop.merchant_id, own)):
                        if line is not None:
                            columns = "merchant_id, kfb_usdt_e8, kfb_usdt_paused, kfb_usdt_set_ms"
                            await shop.rows(
                                f"insert into rate ({columns}) values (%s, %s, %s, %s)", scope, *line, scope
                            )
                    mine = (await _read(shop, asked)).rates.get((KFB, USDT))
                    theirs = (await rates.read_effective(connection, shop.merchant_id))[rates.KFB_TO_USDT]
                    usable = mine is not None and not mine.paused
                    assert usable == (theirs.rate_e8 is not None and not theirs.paused)
                    if usable and mine is not None:
                        assert (mine.rate_e8, mine.set_ms) == (theirs.rate_e8, theirs.set_ms)

    run(scenario())


async def _write_spoilt(
    shop: Shop, asked: c.Command, spoil: Callable[[Draft], None], seen_more: int = 0
) -> str:
    """Judge a command, change the draft, and try to write it. Returns the SQLSTATE of the refusal."""
    submissions = [c.Submission(asked)]
    async with _open_connection(shop) as connection:
        draft = await store.open_draft(connection, shop.merchant_id, read_set_of(submissions), now_ms())
        seen_count = draft.entry_count + seen_more
        apply_batch(draft, submissions)
        spoil(draft)
        with pytest.raises(StatementFailed) as failure:
            await store.commit_draft(connection, draft, "!spoilt", seen_count)
    return failure.value.sqlstate


DIVISION_BY_ZERO = "22012"
CHECK_VIOLATED = "23514"


def test_a_draft_of_another_head_than_the_books_is_not_written(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        for seen_more in (-1, 1):
            asked = shop.credit("c1")
            assert await _write_spoilt(shop, asked, lambda draft: None, seen_more) == DIVISION_BY_ZERO
        assert await shop.orders() == {}
        await shop.verify()

    run(scenario())


def test_an_account_that_the_book_does_not_have_stops_the_batch(database_url: str) -> None:
    def add_account(draft: Draft) -> None:
        draft.balances[999] = 1
        draft.changes.touched.add(999)

    async def scenario() -> None:
        shop = await open_shop(database_url)
        assert await _write_spoilt(shop, shop.credit("c1"), add_account) == DIVISION_BY_ZERO
        assert await shop.alice_units() == 0

    run(scenario())


def test_a_wallet_below_zero_is_refused_by_the_database_itself(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)

        def overdraw(draft: Draft) -> None:
            draft.balances[shop.alice_id] = -1

        assert await _write_spoilt(shop, shop.credit("c1"), overdraw) == CHECK_VIOLATED

    run(scenario())


def test_an_order_that_took_another_step_meanwhile_is_not_moved(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _set_rates(shop)
        _, made = await _ask_all(shop, c.Exchange(None, KFB, USDT, 7000 * COIN, None, None), _withdraw("w1"))
        assert isinstance(made, Withdrawal)

        def take_a_step(draft: Draft) -> None:
            order = draft.withdrawals[made.order_id]
            draft.put_withdrawal(msgspec.structs.replace(order, step_no=order.step_no + 1))

        cancel = c.Cancel(made.order_id, "ann")
        assert await _write_spoilt(shop, cancel, take_a_step) == DIVISION_BY_ZERO
        await shop.verify()

    run(scenario())


def test_whether_a_batch_was_committed_is_asked_under_the_books_lock(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        async with await connect(shop.url) as holder, _open_connection(shop) as connection:
            async with holder.transaction():
                await holder.execute("update book set settings_version = settings_version + 1")
                claim = "insert into nonce select merchant_id, '!mine', last_ms / 86400000 from book"
                await holder.execute(claim)
                asked = asyncio.create_task(
                    store.was_committed(connection, shop.merchant_id, "!mine", now_ms())
                )
                await _until_waiting(shop)
                assert not asked.done()
            assert await asked
            assert not await store.was_committed(connection, shop.merchant_id, "!other", now_ms())

    run(scenario())


async def _until_waiting(shop: Shop) -> None:
    query = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    await eventually(lambda: shop.rows(query))


def test_a_book_that_is_not_there_is_said_to_be_missing(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        with pytest.raises(store.BookMissing):
            await _read(Shop(shop.url, shop.merchant_id + 1), c.ReadBalances())

    run(scenario())
