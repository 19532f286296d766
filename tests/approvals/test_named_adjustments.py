"""A named adjustment is made once, and its name stands for it for ever."""

import msgspec
from tests.book.accounting import expect, given, units
from tests.book.ledger import submit
from tests.crash.shop import ALICE, COIN, FUNDS, open_shop, run
from tests.rows import each_row

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import ORDER_ID_TAKEN, REFERENCE_TAKEN, Adjusted
from merchant_wallet.book.rules.operators import NO_REASON, SAME_PERSON
from merchant_wallet.book.writer import Writer

NAMED = Adjust(KFB, units("5"), "goodwill", "operator:bob", "anna", "proposal-7", "operator:ann")
POSTED = "adjust: adjustment:KFB > anna 5"


def repeat(outcome: Adjusted) -> Adjusted:
    """The answer to a repeat."""
    return msgspec.structs.replace(outcome, repeated=True)


def test_a_repeat_of_the_name_gives_the_first_outcome_and_moves_nothing() -> None:
    ledger = given("anna 1")
    first = expect(ledger, NAMED, {"amount_units": units("5")}, POSTED, "anna 6")
    assert isinstance(first, Adjusted)
    assert first.balance_units == units("6")
    for _ in range(2):
        assert ledger.ask(NAMED) == repeat(first)
    assert ledger.entries[-1].mc_order_id == "proposal-7"
    assert [entry.kind for entry in ledger.entries].count("adjust") == 1


def test_without_a_name_it_is_made_as_often_as_it_is_asked() -> None:
    ledger = given("anna 1")
    plain = msgspec.structs.replace(NAMED, name=None)
    expect(ledger, plain, {}, POSTED, "anna 6")
    expect(ledger, plain, {}, POSTED, "anna 11")


def test_the_name_is_found_within_the_same_batch_too() -> None:
    ledger = given("anna 1")
    first, second = ledger.run(submit(NAMED, NAMED))
    assert isinstance(first, Adjusted)
    assert second == repeat(first)
    assert [entry.kind for entry in ledger.entries].count("adjust") == 1


@each_row(
    "change",
    [
        {"signed_units": units("5") + 1},
        {"signed_units": -units("5")},
        {"currency": USDT},
        {"ext_user_id": None},
        {"ext_user_id": "nobody"},
        {"reason": "ill will"},
        {"actor": "operator:eve"},
        {"proposed_by": "operator:eve"},
    ],
)
def test_the_same_name_with_other_values_is_refused(change: dict[str, object]) -> None:
    ledger = given("anna 100; merchant:USDT 100; merchant:KFB 100")
    ledger.ask(NAMED)
    expect(ledger, msgspec.structs.replace(NAMED, **change), ORDER_ID_TAKEN)


def test_a_proposals_name_is_no_reference_of_another_entry() -> None:
    ledger = given("anna 100; merchant:USDT 100; merchant:KFB 100")
    ledger.ask(NAMED)
    expect(ledger, msgspec.structs.replace(NAMED, proposed_by=None), REFERENCE_TAKEN)


def test_a_refusal_stores_nothing_under_the_name() -> None:
    ledger = given("anna 1")
    expect(ledger, msgspec.structs.replace(NAMED, reason=" "), NO_REASON)
    expect(ledger, msgspec.structs.replace(NAMED, actor="cli:Ann"), SAME_PERSON)
    expect(ledger, NAMED, {}, POSTED, "anna 6")


def test_a_name_is_read_back_from_the_database_as_it_was_answered(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        for signed in (3 * COIN, -COIN):
            command = Adjust(KFB, signed, "r", "operator:bob", ALICE, f"proposal-{signed}", "operator:ann")
            answers = []
            for _ in range(2):
                writer = Writer(database_url)
                both = await shop.gather(writer, [command, command])
                answers += both
                await writer.close()
            assert isinstance(answers[0], Adjusted)
            assert answers == [answers[0], *[repeat(answers[0])] * 3]
        assert await shop.alice_units() == 2 * COIN
        writer = Writer(database_url)
        merchants = Adjust(KFB, -FUNDS, "all of it", "operator:bob", None, "proposal-9")
        first, second = [await shop.ask(writer, merchants) for _ in range(2)]
        await writer.close()
        assert isinstance(first, Adjusted)
        assert second == repeat(first)
        assert first.balance_units == 0
        await shop.verify()

    run(scenario())
