"""The database enforces two people too: no row can contradict the rule."""

import asyncio
from collections.abc import Iterator

import pytest
from psycopg import errors
from tests.book.fake_writer import COIN, FakeWriter, on
from tests.crash.shop import open_shop, run

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import USDT
from merchant_wallet.book import commands as c
from merchant_wallet.book.actors import person_of
from merchant_wallet.book.outcomes import Outcome, Withdrawal
from merchant_wallet.book.rules.approvals import SAME_PERSON
from merchant_wallet.book.verification.verify import verify_book
from merchant_wallet.book.writer import Writer

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"


@pytest.fixture
def fake_writer(database_url: str) -> Iterator[FakeWriter]:
    fake_writer = FakeWriter(database_url)
    try:
        fake_writer.fund(1000 * COIN)
        yield fake_writer
    finally:
        fake_writer.close()


@pytest.mark.parametrize(
    "change",
    [
        "approved_ms = 1, approved_by = 'ann'",
        "approved_ms = 1, approved_by = null, first_approved_by = 'ann'",
        "approved_ms = 1, approved_by = 'limit', first_approved_by = 'ann'",
        "approved_ms = 1, approved_by = 'cli:ann', first_approved_by = 'operator:Ann'",
        "approved_by = 'ann', first_approved_by = 'ann'",
        "first_approved_by = ''",
        "first_approved_by = 'ann', first_approved_ms = 4, first_eligible_ms = 5",
        "first_approved_ms = 4",
        "approved_eligible_ms = 4",
    ],
)
def test_the_database_takes_no_large_order_that_two_people_did_not_approve(
    fake_writer: FakeWriter, change: str
) -> None:
    order_id = fake_writer.withdraw("w1", 11 * COIN, second_limit_units=10 * COIN)
    with pytest.raises(errors.CheckViolation):
        fake_writer.run(f"update withdrawal set {change} where order_id = {order_id}")
    fake_writer.run(
        "update withdrawal set approved_ms = 1, approved_by = 'cli:bob', first_approved_by = 'operator:ann'"
        f" where order_id = {order_id}"
    )


def test_the_database_takes_no_first_of_two_for_an_order_that_needs_one(fake_writer: FakeWriter) -> None:
    order_id = fake_writer.withdraw("w1", 10 * COIN, second_limit_units=10 * COIN)
    for more in ("", ", second_limit_units = null"):
        with pytest.raises(errors.CheckViolation):
            fake_writer.run(
                f"update withdrawal set first_approved_by = 'ann'{more} where order_id = {order_id}"
            )


@pytest.mark.parametrize(
    "actor", ["cli:ann", "operator:Ann", "ann", "", "operator:", "a:b:c", "cli:ann@shop.example"]
)
def test_the_database_knows_the_same_person_behind_an_actor(fake_writer: FakeWriter, actor: str) -> None:
    row = fake_writer.run("select person_of(%s)", (actor,)).fetchone()
    assert row == (person_of(actor),)


def test_an_approved_large_order_verifies(fake_writer: FakeWriter) -> None:
    order_id = fake_writer.withdraw("w1", 11 * COIN, second_limit_units=10 * COIN)
    fake_writer.move(c.Approve(order_id, "ann"), c.Approve(order_id, "bob"), c.TakeUp(order_id))
    waiting = fake_writer.withdraw("w2", 11 * COIN, second_limit_units=10 * COIN)
    fake_writer.move(c.Approve(waiting, "ann"))
    assert on(fake_writer.url, lambda conn: verify_book(conn, conn, fake_writer.merchant_id)).ok


def test_of_one_person_who_asks_many_times_at_once_one_yes_counts(database_url: str) -> None:
    async def scenario() -> list[Outcome]:
        shop = await open_shop(database_url)
        writers = [Writer(database_url), Writer(database_url)]
        await shop.ask(writers[0], c.Adjust(USDT, 500 * COIN, "opening", "test", None))
        order = await shop.ask(
            writers[0],
            c.CreateWithdrawal(
                "w1", 11 * COIN, "ERC20", ADDRESS, "https://a.example", 0, COIN, 0, None, True, 10**9, 1
            ),
        )
        assert isinstance(order, Withdrawal)
        doors = ["cli:ann", "operator:ann"] * 4
        asked = [shop.ask(writers[i % 2], c.Approve(order.order_id, door)) for i, door in enumerate(doors)]
        answers = await asyncio.gather(*asked)
        assert await shop.rows("select approved_ms, approved_by from withdrawal") == [(None, None)]
        second = await shop.ask(writers[1], c.Approve(order.order_id, "operator:bob"))
        assert isinstance(second, Withdrawal)
        assert second.approved_by == "operator:bob"
        for writer in writers:
            await writer.close()
        await shop.verify()
        return answers

    answers = run(scenario())
    assert [type(answer) for answer in answers].count(Withdrawal) == 1
    assert [answer for answer in answers if isinstance(answer, Refusal)] == [SAME_PERSON] * 7
