"""The read set of each command. No rule may read more."""

import msgspec
from tests.book.accounting import (
    USERS,
    addresses,
    arrived,
    credit,
    debit,
    given,
    order_of,
    registration,
    swap,
    units,
    withdraw,
)
from tests.book.ledger import Ledger
from tests.book.rules.test_apply import every_command
from tests.rows import each_row

from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.book import commands as c
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.read_set import ReadSet, read_set_of

ORDER_ID = 77
KEY = c.DepositKey("TRC20", "a1", 0)
RELEASE = ReadSet(withdrawal_ids={ORDER_ID}, stoppable_ids={ORDER_ID}, accounts={1, 3})
NAMED: list[tuple[Command, ReadSet]] = [
    (
        debit("d1", "anna", "1"),
        ReadSet(
            ext_user_ids={"anna"},
            accounts={2},
            order_names={("d1", "user_to_merchant")},
        ),
    ),
    (
        debit("d2", "anna", "1", "0.01"),
        ReadSet(
            ext_user_ids={"anna"},
            accounts={2, 5},
            order_names={("d2", "user_to_merchant")},
        ),
    ),
    (
        credit("c1", "ulla", "1", USDT),
        ReadSet(
            addresses={addresses("ulla")[0]},
            accounts={1},
            order_names={("c1", "merchant_to_user")},
        ),
    ),
    (
        swap("x1", "1"),
        ReadSet(accounts={1, 2, 6, 7}, rates=True, order_names={("x1", "exchange")}),
    ),
    (swap(None, "1"), ReadSet(accounts={1, 2, 6, 7}, rates=True)),
    (withdraw("w1"), ReadSet(accounts={1, 3}, withdrawal_names={"w1"})),
    (c.QuoteWithdrawal(1, 0, 0), ReadSet()),
    (c.ReadWithdrawal(ORDER_ID, "w1"), ReadSet(withdrawal_ids={ORDER_ID})),
    (c.Approve(ORDER_ID, "ann"), ReadSet(withdrawal_ids={ORDER_ID})),
    (c.TakeUp(ORDER_ID), ReadSet(withdrawal_ids={ORDER_ID}, stoppable_ids={ORDER_ID})),
    (c.Cancel(ORDER_ID, "ann"), RELEASE),
    (c.Expire(ORDER_ID), RELEASE),
    (c.Settle(ORDER_ID, "0x"), ReadSet(withdrawal_ids={ORDER_ID}, accounts={3, 4, 8, 9, 12})),
    (c.Fail(ORDER_ID, "reverted"), ReadSet(withdrawal_ids={ORDER_ID})),
    (c.Refund(ORDER_ID), RELEASE),
    (c.ReadBalances(), ReadSet(accounts={1, 2})),
    (c.ReadSubUser("anna"), ReadSet(ext_user_ids={"anna"})),
    (registration("carl", 9), ReadSet(ext_user_ids={"carl"})),
    (c.Adjust(KFB, 1, "a gift", "ann", "anna"), ReadSet(ext_user_ids={"anna"}, accounts={2, 11})),
    (
        c.CreditDeposit(KEY, addresses("anna")[1], 1, False),
        ReadSet(deposits={KEY}, addresses={addresses("anna")[1]}, accounts={1, 6, 7, 9}, rates=True),
    ),
    (c.WithdrawFees(USDT, None, "monthly", "ann"), ReadSet(accounts={4, 10})),
    # An operator's reference is unique over both kinds.
    (
        c.Adjust(KFB, 1, "a gift", "ann", None, "r1"),
        ReadSet(accounts={2, 11}, order_names={("r1", "adjust"), ("r1", "fee_withdraw")}),
    ),
    (
        c.WithdrawFees(USDT, None, "monthly", "ann", "r1"),
        ReadSet(accounts={4, 10}, order_names={("r1", "adjust"), ("r1", "fee_withdraw")}),
    ),
]


def test_every_command_is_listed_here() -> None:
    # It refuses where there is no adjustment to find, and reads what `Adjust` reads.
    values = (KFB, 1, "a gift", "ann", "anna")
    found, made = c.FindAdjustment(*values), c.Adjust(*values)
    assert read_set_of([Submission(found)]) == read_set_of([Submission(made)])
    assert {type(command) for command, _ in NAMED} | {type(found)} == every_command()


@each_row(("command", "read_set"), NAMED, ids=lambda value: type(value).__name__)
def test_a_command_names_what_its_rule_looks_at(command: Command, read_set: ReadSet) -> None:
    assert read_set_of([Submission(command)]) == read_set


STATUS = {c.Settle: 1, c.Fail: 1, c.Refund: 3}


def waiting_for(command: Command) -> Ledger:
    """A book with money everywhere. This command finds the order and the deposit that it needs."""
    ledger = given("merchant:USDT 1000; merchant:KFB 1000; hold:USDT 200; fees:USDT 5; anna 10; ulla 10")
    arrived(ledger, "anna", "0.000001", KEY.chain, KEY.tx_hash)
    order = order_of(ledger.ask(withdraw("w0")))
    unapproved = isinstance(command, c.Approve | c.Expire)
    ledger.withdrawals = {
        ORDER_ID: msgspec.structs.replace(
            order,
            order_id=ORDER_ID,
            mc_order_id="w1" if isinstance(command, c.ReadWithdrawal) else "w0",
            status=STATUS.get(type(command), 0),
            approved_ms=None if unapproved else order.created_ms,
            deadline_ms=order.created_ms - 1 if isinstance(command, c.Expire) else order.deadline_ms,
        )
    }
    return ledger


@each_row("command", [row[0] for row in NAMED], ids=lambda command: type(command).__name__)
def test_a_rule_that_succeeds_has_looked_at_nothing_that_was_not_named(command: Command) -> None:
    """What was not read is missing from the draft, so a rule that reads it fails."""
    ledger = waiting_for(command)
    (outcome,), draft = ledger.judge([Submission(command)])
    assert not isinstance(outcome, Refusal), outcome
    opened = set(draft.changes.registered)
    assert (
        draft.balances.keys()
        <= read_set_of([Submission(command)]).accounts | ledger.sub_users.keys() | opened
    )


def test_a_batch_names_what_all_its_commands_name_and_each_nonce() -> None:
    batch = [
        Submission(debit("d1", "anna", "1", "0.01"), "n1"),
        Submission(withdraw("w1"), "n2"),
        Submission(c.TakeUp(ORDER_ID)),
    ]
    assert read_set_of(batch) == ReadSet(
        nonces={"n1", "n2"},
        ext_user_ids={"anna"},
        accounts={1, 2, 3, 5},
        order_names={("d1", "user_to_merchant")},
        withdrawal_ids={ORDER_ID},
        withdrawal_names={"w1"},
        stoppable_ids={ORDER_ID},
    )


def test_a_nonce_and_the_same_order_id_of_two_kinds_are_different_names() -> None:
    batch = [Submission(debit("7", "anna", "1"), "7"), Submission(credit("7", "ulla", "1", USDT), "8")]
    names = list(read_set_of([*batch, Submission(withdraw("w1"))]).list_names())
    assert len(names) == len(set(names)) == 5


def test_a_draft_of_the_ledger_holds_nothing_that_was_not_named() -> None:
    ledger = given("anna 5")
    draft = ledger.open(ReadSet(), ledger.last_ms)
    assert (draft.balances, draft.sub_users, draft.rates, draft.used_nonces) == ({}, {}, {}, set())
    assert units("5") in ledger.balances.values()
    assert len(ledger.sub_users) == len(USERS)
