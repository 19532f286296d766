"""The exact form of what the rules write. Facts and causes must stay readable for ever."""

import json
from typing import Any

import msgspec
from tests.book.accounting import arrived, credit, debit, expect, given, order_of, units, withdraw
from tests.book.ledger import START_MS, Ledger, submit
from tests.rows import each_row

from merchant_wallet.base.currencies import USDT
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book.commands import (
    Adjust,
    Cancel,
    Command,
    CreditDeposit,
    DepositKey,
    Expire,
    Fail,
    Refund,
    Settle,
    TakeUp,
    WithdrawFees,
)
from merchant_wallet.book.outcomes import DEPOSIT_ELSEWHERE, Credited

RATE_E8 = 2 * 10**6
LATE_MS = START_MS + 2 * DAY_MS


def facts_of(ledger: Ledger, command: Command, now_ms: int = START_MS) -> tuple[str, int, dict[str, Any]]:
    """The kind, the rate and the facts of the one entry that a command makes."""
    before = len(ledger.entries)
    ledger.ask(command, now_ms)
    (entry,) = ledger.entries[before:]
    return entry.kind, entry.rate_e8, json.loads(entry.facts)


def test_an_orders_entry_names_all_that_a_payer_compares() -> None:
    ledger = given("merchant:USDT 100")
    second = units("5000")
    kind, rate_e8, facts = facts_of(ledger, withdraw(fee_rate_e8=RATE_E8, second_limit_units=second))
    assert (kind, rate_e8) == ("withdraw", RATE_E8)
    assert facts == {
        "address": "0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
        "arrival": units("98"),
        "chain": "ERC20",
        "deadline": START_MS + 86_400_000,
        "fee": units("2"),
        "notifyUrl": "https://shop.example/n",
        "secondLimit": second,
    }


@each_row("kind", ["cancel", "expire", "refund"])
def test_the_entry_that_releases_a_hold_names_its_order(kind: str) -> None:
    ledger = given("merchant:USDT 100")
    limit_units = units("100") if kind == "refund" else 0
    order_id = order_of(ledger.ask(withdraw(approval_limit_units=limit_units))).order_id
    ways: dict[str, list[Command]] = {
        "cancel": [Cancel(order_id, "operator:ann")],
        "expire": [Expire(order_id)],
        "refund": [TakeUp(order_id), Fail(order_id, "reverted"), Refund(order_id)],
    }
    *before, last = ways[kind]
    for command in before:
        ledger.ask(command)
    assert facts_of(ledger, last, LATE_MS) == (kind, 0, {"orderId": order_id})


def test_a_settlement_names_its_order_and_transfer() -> None:
    ledger = given("merchant:USDT 100")
    order_id = order_of(ledger.ask(withdraw())).order_id
    ledger.ask(TakeUp(order_id))
    made = facts_of(ledger, Settle(order_id, "0xfeed"))
    assert made == ("settle", 0, {"orderId": order_id, "txHash": "0xfeed"})


def test_each_step_of_an_order_says_why_it_was_taken() -> None:
    ledger = given("merchant:USDT 300")
    paid, failed = (order_of(ledger.ask(withdraw(name))).order_id for name in ("w1", "w2"))
    expired = order_of(ledger.ask(withdraw("w3", approval_limit_units=0))).order_id
    for command in (TakeUp(paid), Settle(paid, "0xfeed"), TakeUp(failed), Fail(failed, "reverted")):
        ledger.ask(command)
    ledger.ask(Refund(failed))
    ledger.ask(Expire(expired), LATE_MS)
    causes = {paid: list[str](), failed: list[str](), expired: list[str]()}
    for step in ledger.steps:
        causes[step.order_id].append(step.cause)
    assert list(causes.values()) == [
        ["created by the merchant", "taken up by the payer", "transfer final on the chain"],
        ["created by the merchant", "taken up by the payer", "reverted", "returned in full"],
        ["created by the merchant", "not approved before the deadline"],
    ]


@each_row(
    ("command", "more"),
    [
        (Adjust(USDT, 1, "top-up", "cli:ann", None), {}),
        (
            Adjust(USDT, 1, "top-up", "cli:ann", None, "7", proposed_by="cli:bob"),
            {"proposedBy": "cli:bob"},
        ),
        (WithdrawFees(USDT, 1, "top-up", "cli:ann"), {}),
        (WithdrawFees(USDT, None, "top-up", "cli:ann"), {}),
        (WithdrawFees(USDT, 1, "top-up", "cli:ann", "bank 1"), {}),
        (WithdrawFees(USDT, None, "top-up", "cli:ann", "bank 1"), {"all": True}),
    ],
)
def test_an_operators_entry_names_who_and_why(command: Command, more: dict[str, object]) -> None:
    ledger = given("fees:USDT 5")
    kind = "adjust" if isinstance(command, Adjust) else "fee_withdraw"
    assert facts_of(ledger, command) == (kind, 0, {"actor": "cli:ann", "reason": "top-up", **more})


def test_a_deposits_entry_names_its_transfer_and_the_rate() -> None:
    ledger = given()
    asked = arrived(ledger, "anna", "10", "TRC20")
    kind, rate_e8, facts = facts_of(ledger, asked)
    assert (kind, rate_e8) == ("deposit", 7 * 10**8)
    address = ledger.deposits[asked.key].address.hex()
    assert facts == {"address": address, "chain": "TRC20", "logIndex": 0, "told": False, "txHash": "0xa1"}
    credited = ledger.ask(asked)
    assert isinstance(credited, Credited)
    assert credited.entry_id == ledger.entries[-1].entry_id


def in_block(ledger: Ledger, index: int, block_hash: str, released_by: str | None = None) -> CreditDeposit:
    """A further transfer of one transaction, seen in this block."""
    first = arrived(ledger, "ulla", "1", tx_hash=f"0xa{index}")
    deposit = ledger.deposits.pop(first.key)
    key = DepositKey("ERC20", "0xfeed", index)
    ledger.deposits[key] = msgspec.structs.replace(
        deposit, key=key, block_hash=block_hash, released_by=released_by
    )
    return msgspec.structs.replace(first, key=key)


def test_a_transaction_is_credited_from_the_block_of_its_first_credit_unless_released() -> None:
    ledger = given()
    first, same = in_block(ledger, 0, "aa"), in_block(ledger, 1, "aa")
    other, released = in_block(ledger, 2, "bb"), in_block(ledger, 3, "bb", "cli:ann")
    posted = "deposit: chain:ERC20:USDT > ulla 1"
    expect(ledger, released, {}, posted, "chain:ERC20:USDT -1; ulla 1")
    # A released credit does not decide from which block the transaction is credited.
    expect(ledger, first, {}, posted, "chain:ERC20:USDT -2; ulla 2")
    expect(ledger, other, DEPOSIT_ELSEWHERE)
    expect(ledger, same, {}, posted, "chain:ERC20:USDT -3; ulla 3")
    assert ledger.settled_hashes == {("ERC20", "0xfeed"): "aa"}


def test_within_one_batch_a_transaction_is_credited_from_one_block_too() -> None:
    ledger = given()
    released, first = in_block(ledger, 0, "bb", "cli:ann"), in_block(ledger, 1, "aa")
    other, same = in_block(ledger, 2, "bb"), in_block(ledger, 3, "aa")
    answers = ledger.run(submit(released, first, other, same))
    assert [answer == DEPOSIT_ELSEWHERE for answer in answers] == [False, False, True, False]
    assert ledger.settled_hashes == {("ERC20", "0xfeed"): "aa"}


def test_a_credit_to_a_sub_user_has_no_rate() -> None:
    ledger = given("merchant:KFB 5")
    ledger.ask(credit("o1", "anna", "5"))
    entry = ledger.entries[-1]
    assert (entry.kind, entry.rate_e8, entry.facts) == ("merchant_to_user", 0, "")


def test_fees_of_a_debit_are_posted_in_its_currency() -> None:
    ledger = given("anna 100")
    expect(
        ledger,
        debit("o1", "anna", "10", fee="0.01"),
        {"fee_units": units("0.1"), "rate_e8": 10**6},
        "user_to_merchant: anna > merchant:KFB 9.9; anna > fees:KFB 0.1",
        "anna 90; merchant:KFB 9.9; fees:KFB 0.1",
    )
