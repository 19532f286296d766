"""What holds for every command: the settings' version is checked first, then the nonce, then its rule."""

import pytest
from tests.book.accounting import credit, debit, given, registration, swap, withdraw
from tests.book.ledger import Ledger, blank_changes, submit
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.book import commands
from merchant_wallet.book.commands import Command, ReadBalances, Submission
from merchant_wallet.book.outcomes import INSUFFICIENT, NONCE_USED, ORDER_ID_TAKEN, STALE, Adjusted, Exchanged
from merchant_wallet.book.rules import RULES


def every_command() -> set[type[Command]]:
    """All kinds of commands."""
    kinds = [kind for kind in vars(commands).values() if isinstance(kind, type)]
    return {kind for kind in kinds if issubclass(kind, Command) and kind is not Command}


def test_every_command_has_a_rule() -> None:
    assert set(RULES) == every_command()


@pytest.mark.parametrize("version", [0, 2])
def test_a_stale_submission_is_not_judged_and_claims_nothing(version: int) -> None:
    ledger = given("merchant:USDT 10")
    (outcome,), draft = ledger.judge([Submission(swap("x1", "10"), "n1", version)])
    assert outcome is STALE
    assert draft.changes == blank_changes()
    assert draft.used_nonces == set()


def test_a_stale_neighbour_leaves_the_others_alone() -> None:
    ledger = given("merchant:USDT 10")
    stale, done = ledger.run(
        [Submission(swap("x1", "1"), "n1", 2), Submission(swap("x1", "2"), "n1", 1)],
    )
    assert stale is STALE
    assert isinstance(done, Exchanged)
    assert ledger.nonces == {"n1"}


def test_a_nonce_passes_once_in_a_batch_and_never_again() -> None:
    ledger = given()
    first, second = ledger.run([Submission(ReadBalances(), "n1"), Submission(swap("x1", "1"), "n1")])
    assert first not in (NONCE_USED, STALE)
    assert second is NONCE_USED
    assert ledger.ask(Submission(ReadBalances(), "n1")) is NONCE_USED


def test_a_used_nonce_refuses_even_a_known_order() -> None:
    ledger = given("merchant:USDT 10")
    ledger.ask(Submission(swap("x1", "1"), "n1"))
    assert ledger.ask(Submission(swap("x1", "1"), "n1")) is NONCE_USED


def test_a_refused_command_has_claimed_its_nonce() -> None:
    ledger = given()
    assert ledger.ask(Submission(swap("x1", "1"), "n1")) == INSUFFICIENT
    assert ledger.ask(Submission(swap("x1", "1"), "n1")) is NONCE_USED


def test_a_submission_without_version_and_nonce_is_judged_by_its_rule_alone() -> None:
    ledger = given()
    ledger.settings_version = 99
    outcome = ledger.ask(commands.Adjust("KFB", 1, "a gift", "ann", None))
    assert isinstance(outcome, Adjusted)
    assert ledger.nonces == set()


def test_each_command_of_a_batch_sees_the_one_before() -> None:
    ledger = Ledger()
    batch: list[Command] = [
        registration("anna", 0),
        commands.Adjust("KFB", 10, "a gift", "ann", "anna"),
        debit("d1", "anna", "0.00001"),
        debit("d2", "anna", "0.000001"),
        swap("x1", "0.00001", "KFB", "USDT"),
        withdraw("w1", "0.000001", fee_rate_e8=0, fee_minimum_units=0),
    ]
    *done, refused, last_but_one, last = ledger.run([Submission(command) for command in batch])
    assert INSUFFICIENT not in done
    assert refused == INSUFFICIENT
    assert isinstance(last_but_one, Exchanged)
    assert last not in (INSUFFICIENT, STALE)
    assert [entry.kind for entry in ledger.entries] == [
        "register",
        "adjust",
        "user_to_merchant",
        "exchange",
        "withdraw",
    ]


@each_row(
    ("first", "other"),
    [
        (debit("o1", "anna", "1"), debit("o1", "anna", "2")),
        (credit("o1", "anna", "1"), credit("o1", "anna", "2")),
        (swap("o1", "1"), swap("o1", "2")),
        (withdraw("o1", "10"), withdraw("o1", "11")),
    ],
    ids=["debit", "credit", "exchange", "withdrawal"],
)
def test_an_order_id_is_known_at_once_within_its_own_batch(first: Command, other: Command) -> None:
    ledger = given("merchant:USDT 100; merchant:KFB 100; anna 100")
    before = len(ledger.entries)
    done, again, refused, later = ledger.run(submit(first, first, other, first))
    assert done == again == later
    assert not isinstance(done, Refusal)
    assert refused == ORDER_ID_TAKEN
    assert len(ledger.entries) == before + 1
