"""What a group writes, the next one reads back. The database refuses what would not fit."""

from tests.book.groups import judge, make_batch, open_connection, read_draft
from tests.book.ledger import START_MS
from tests.crash.shop import ALICE, COIN, Shop, open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import commands as c
from merchant_wallet.book.batch import Mode
from merchant_wallet.book.chart import MERCHANT_ID_OF
from merchant_wallet.book.drafts import read_drafts
from merchant_wallet.book.outcomes import Outcome, Transferred, Withdrawal
from merchant_wallet.book.state import Draft, Rate
from merchant_wallet.book.writer import Writer
from merchant_wallet.exchange import rates

RATE_E8 = 7 * 10**8
BACK_E8 = 14 * 10**6


async def _read(shop: Shop, *asked: c.Command) -> Draft:
    """The draft for a batch of these commands."""
    return await read_draft(shop.url, shop.merchant_id, *asked)


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


def test_a_credit_leaves_what_a_sub_user_was_debited_that_day(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url, at_ms=START_MS)
        await shop.rows("update sub_user set limit_day_units = %s", 5 * COIN)
        book = Writer(shop.url, clock=lambda: START_MS)
        for command in (shop.credit("c1", 9 * COIN), shop.debit("d1", 3 * COIN), shop.credit("c2")):
            assert isinstance(await shop.ask(book, command), Transferred)
        await book.close()
        kept = (await _read(shop, c.ReadSubUser(ALICE))).sub_users[shop.alice_id]
        assert (kept.day, kept.day_debited) == (START_MS // DAY_MS, 3 * COIN)

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


def test_the_drafts_of_many_books_are_read_together_and_none_has_rows_of_another(database_url: str) -> None:
    async def scenario() -> None:
        mine, other, quiet = [await open_shop(database_url, f"Shop {n}") for n in range(3)]
        await _set_rates(mine)
        async with await connect(mine.url) as connection:
            await rates.set_rate(connection, rates.KFB_TO_USDT, 10**6, other.merchant_id, at_ms=3)
        swap = c.Exchange("x1", KFB, USDT, 700 * COIN, None, None)
        first, _ = await _ask_all(mine, mine.credit("c1", 3 * COIN), swap)
        # Both have these order ids, and a sub-user of the same name.
        await _ask_all(other, other.debit("d1"), other.credit("x1"), swap)
        asked = [
            make_batch(mine.merchant_id, mine.credit("c1", 3 * COIN), swap, c.ReadSubUser(ALICE)),
            make_batch(other.merchant_id, other.credit("c1"), swap, c.ReadSubUser(ALICE)),
            make_batch(quiet.merchant_id, c.ReadBalances()),
        ]
        async with open_connection(mine.url) as connection:
            await judge(connection, asked)
        drafts = [batch.judged for batch in asked]
        assert asked[0].outcomes[0] == first
        assert [set(draft.sub_users) for draft in drafts] == [{mine.alice_id}, {other.alice_id}, set()]
        assert [set(draft.earlier_exchanges) for draft in drafts] == [{"x1"}, {"x1"}, set()]
        assert drafts[0].earlier_exchanges["x1"].entry_id != drafts[1].earlier_exchanges["x1"].entry_id
        found = [draft.rates[KFB, USDT].rate_e8 for draft in drafts[:2]]
        assert found == [BACK_E8, 10**6]
        alone = [await _read(mine, *[each.command for each in asked[0].submissions])]
        assert alone[0].head == drafts[0].head._replace(
            counter=alone[0].counter,
            entry_count=alone[0].entry_count,
            head_hash=alone[0].head_hash,
            last_ms=alone[0].now_ms,
        )

    run(scenario())


def test_a_batch_in_each_mode_reads_the_same_draft(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        await _ask_all(shop, shop.credit("c1"))
        drafts = []
        for mode in (Mode.READ, Mode.LOCKED):
            batch = make_batch(shop.merchant_id, shop.credit("c1"), c.ReadSubUser(ALICE), mode=mode)
            async with open_connection(shop.url) as connection:
                await read_drafts(connection, [batch], 0)
            drafts.append(batch.judged)
        assert drafts[0] == drafts[1]
        assert drafts[0].earlier_transfers

    run(scenario())


def test_a_book_that_is_not_there_has_no_draft_and_spoils_no_neighbour(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        asked = [make_batch(shop.merchant_id + more, c.ReadBalances()) for more in (1, 0)]
        async with open_connection(shop.url) as connection:
            await read_drafts(connection, asked, 0)
        assert asked[0].draft is None
        assert asked[1].judged.merchant_id == shop.merchant_id

    run(scenario())
