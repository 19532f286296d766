"""An operator's reference names one entry of a book: a credit, a debit or a fee withdrawal."""

import msgspec
from tests.book.accounting import expect, given, units
from tests.book.ledger import submit
from tests.crash.shop import ALICE, COIN, open_shop, run
from tests.rows import each_row

from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book.commands import Adjust, Command, WithdrawFees
from merchant_wallet.book.outcomes import ORDER_ID_TAKEN, REFERENCE_TAKEN, Adjusted
from merchant_wallet.book.rules.operators import BAD_REFERENCE, NO_REASON, NOTHING_TO_MOVE
from merchant_wallet.book.writer import Writer

OPENING = "merchant:KFB 100; merchant:USDT 100; anna 100; fees:KFB 7"
CREDIT = Adjust(KFB, units("5"), "deposit", "cli:ann", None, "bank 4711")
COINS = msgspec.structs.replace(CREDIT, currency=USDT)
UNIT = msgspec.structs.replace(CREDIT, signed_units=1)
OF_ANNA = msgspec.structs.replace(CREDIT, ext_user_id="anna")
TAKEN_FROM_ANNA = msgspec.structs.replace(OF_ANNA, signed_units=-units("5"))
FEES = WithdrawFees(KFB, units("2"), "to treasury", "cli:ann", "bank 4711")
ALL_FEES = msgspec.structs.replace(FEES, amount_units=None)


@each_row("command", [CREDIT, UNIT, OF_ANNA, TAKEN_FROM_ANNA, FEES, ALL_FEES])
def test_a_reference_that_is_said_twice_moves_once_and_says_so(command: Command) -> None:
    ledger = given(OPENING)
    first = ledger.ask(command)
    assert isinstance(first, Adjusted)
    assert not first.repeated
    assert first.entry_id == ledger.entries[-1].entry_id
    count = len(ledger.entries)
    again = msgspec.structs.replace(first, repeated=True)
    assert ledger.ask(command) == again
    # The same from a colleague is a repeat.
    assert ledger.ask(msgspec.structs.replace(command, actor="cli:bob")) == again
    assert len(ledger.entries) == count
    assert ledger.entries[-1].mc_order_id == "bank 4711"


def test_a_reference_is_found_within_the_same_batch_too() -> None:
    ledger = given(OPENING)
    answers = ledger.run(submit(CREDIT, CREDIT, FEES))
    first = answers[0]
    assert isinstance(first, Adjusted)
    assert answers == [first, msgspec.structs.replace(first, repeated=True), REFERENCE_TAKEN]


@each_row(
    ("first", "second"),
    [
        (CREDIT, msgspec.structs.replace(CREDIT, signed_units=units("5") + 1)),
        (CREDIT, msgspec.structs.replace(CREDIT, signed_units=-units("5"))),
        (CREDIT, msgspec.structs.replace(CREDIT, currency=USDT)),
        (CREDIT, msgspec.structs.replace(CREDIT, ext_user_id="anna")),
        (CREDIT, msgspec.structs.replace(CREDIT, ext_user_id="nobody")),
        (COINS, msgspec.structs.replace(COINS, ext_user_id="nobody")),
        (CREDIT, msgspec.structs.replace(CREDIT, reason="another deposit")),
        (CREDIT, FEES),
        (FEES, CREDIT),
        (FEES, Adjust(KFB, -units("2"), "to treasury", "cli:ann", None, "bank 4711")),
        (FEES, msgspec.structs.replace(FEES, amount_units=units("3"))),
        (FEES, msgspec.structs.replace(FEES, currency=USDT)),
        (FEES, msgspec.structs.replace(FEES, reason="to the bank")),
        (FEES, ALL_FEES),
        (ALL_FEES, msgspec.structs.replace(FEES, amount_units=units("7"))),
    ],
)
def test_the_same_reference_with_other_values_is_refused(first: Command, second: Command) -> None:
    ledger = given(OPENING)
    assert isinstance(ledger.ask(first), Adjusted)
    expect(ledger, second, REFERENCE_TAKEN)


PROPOSED = msgspec.structs.replace(CREDIT, name="proposal-7", proposed_by="operator:bob")


@each_row(
    "other",
    [
        msgspec.structs.replace(PROPOSED, actor="cli:eve"),
        msgspec.structs.replace(PROPOSED, proposed_by="operator:eve"),
        msgspec.structs.replace(PROPOSED, reason="another deposit"),
        msgspec.structs.replace(PROPOSED, signed_units=-units("5")),
    ],
    ids=["actor", "proposer", "reason", "direction"],
)
def test_what_two_people_decided_is_repeated_by_exactly_the_same(other: Adjust) -> None:
    ledger = given(OPENING)
    first = ledger.ask(PROPOSED)
    assert isinstance(first, Adjusted)
    assert ledger.ask(PROPOSED) == msgspec.structs.replace(first, repeated=True)
    expect(ledger, other, ORDER_ID_TAKEN)


def test_another_reference_moves_again() -> None:
    ledger = given(OPENING)
    ledger.ask(CREDIT)
    other = msgspec.structs.replace(CREDIT, name="bank 4712")
    after = "merchant:KFB 110; merchant:USDT 100; anna 100; fees:KFB 7"
    expect(ledger, other, {"repeated": False}, "adjust: adjustment:KFB > merchant:KFB 5", after)


@each_row("name", ["", "x" * 65, "a\nb", "a\u202eb", "\0"])
@each_row("command", [CREDIT, FEES])
def test_a_reference_is_a_short_printable_text(command: Command, name: str) -> None:
    expect(given(OPENING), msgspec.structs.replace(command, name=name), BAD_REFERENCE)


@each_row("name", ["x", "x" * 64])
@each_row("command", [CREDIT, FEES])
def test_the_shortest_and_the_longest_reference_are_taken(command: Command, name: str) -> None:
    assert isinstance(given(OPENING).ask(msgspec.structs.replace(command, name=name)), Adjusted)


def test_a_refusal_uses_no_reference_up() -> None:
    ledger = given(OPENING)
    expect(ledger, msgspec.structs.replace(CREDIT, reason=" "), NO_REASON)
    expect(ledger, msgspec.structs.replace(ALL_FEES, currency=USDT), NOTHING_TO_MOVE)
    assert isinstance(ledger.ask(CREDIT), Adjusted)


def test_references_are_read_back_from_the_database(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_shop(database_url)
        # Each uses a writer with an empty cache.
        answers = []
        credit = Adjust(KFB, 3 * COIN, "r", "cli:ann", ALICE, "bank 1")
        taken = WithdrawFees(KFB, 3 * COIN, "r", "cli:ann", "bank 1")
        for command in (credit, credit, taken):
            writer = Writer(database_url)
            answers.append(await shop.ask(writer, command))
            await writer.close()
        first = answers[0]
        assert isinstance(first, Adjusted)
        assert answers == [first, msgspec.structs.replace(first, repeated=True), REFERENCE_TAKEN]
        assert await shop.alice_units() == 3 * COIN
        await shop.verify()

    run(scenario())
