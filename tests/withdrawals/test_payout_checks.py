"""What the payer compares: the order with the journal, and the chain's record with the order."""

import msgspec
import pytest
from tests.rows import each_row

from merchant_wallet.base.addresses import to_tron
from merchant_wallet.book.chart import HOLD_ID, MERCHANT_USDT_ID
from merchant_wallet.book.journal import FIRST_HASH, compute_chain_hash, encode_canonical
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.rules.withdrawals import encode_order_facts
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.chains.protocol import FinalRecord, Transfer, TransferLog
from merchant_wallet.withdrawals.payout_checks import (
    find_journal_mismatch,
    find_transfer_mismatch,
    plan_payout,
)

ORDER = Withdrawal(
    order_id=8_589_934_593,
    mc_order_id="10001",
    amount_units=12_500_000,
    fee_units=500_000,
    rate_e8=0,
    chain="TRC20",
    address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
    notify_url="https://example.com/n",
    status=1,
    step_no=1,
    approved_ms=1,
    deadline_ms=2,
    created_ms=1,
    finished_ms=None,
    notified_ms=None,
    tx_hash=None,
    second_limit_units=100_000_000_000,
    approved_by="limit",
)


def entry_of(order: Withdrawal, previous_hash: bytes = FIRST_HASH) -> Entry:
    """The entry that the book writes for an order."""
    postings = (Posting(MERCHANT_USDT_ID, HOLD_ID, "USDT", order.amount_units, 0, order.amount_units),)
    named = (
        order.order_id,
        "withdraw",
        order.mc_order_id,
        order.created_ms,
        order.rate_e8,
        encode_order_facts(order),
        postings,
    )
    return Entry(*named, compute_chain_hash(previous_hash, encode_canonical(1001, *named)))


def test_an_order_that_the_journal_confirms_has_no_fault() -> None:
    assert find_journal_mismatch(1001, ORDER, entry_of(ORDER), None) is None
    assert find_journal_mismatch(1001, ORDER, entry_of(ORDER, b"h" * 32), b"h" * 32) is None


@each_row(
    "change",
    [
        {"mc_order_id": "10002"},
        {"amount_units": 12_500_001},
        {"amount_units": 12_500_001, "fee_units": 500_001},
        {"fee_units": 499_999},
        {"rate_e8": 1},
        {"chain": "ERC20"},
        {"address": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"},
        {"notify_url": "https://example.com/m"},
        {"deadline_ms": 3},
        {"created_ms": 2},
        {"second_limit_units": None},
        {"second_limit_units": 100_000_000_001},
        {"approved_by": None},
    ],
)
def test_an_order_that_was_changed_in_any_way_has_a_fault(change: dict[str, object]) -> None:
    assert find_journal_mismatch(1001, msgspec.structs.replace(ORDER, **change), entry_of(ORDER), None)


def test_an_entry_that_was_changed_along_with_its_order_does_not_match_its_hash() -> None:
    forged_order = msgspec.structs.replace(ORDER, amount_units=99_000_000)
    forged = msgspec.structs.replace(entry_of(forged_order), hash=entry_of(ORDER).hash)
    assert (
        find_journal_mismatch(1001, forged_order, forged, None)
        == "the order's journal entry does not match its hash"
    )


def test_another_books_entry_or_place_in_the_chain_does_not_do() -> None:
    assert find_journal_mismatch(1002, ORDER, entry_of(ORDER), None)
    assert find_journal_mismatch(1001, ORDER, entry_of(ORDER), b"h" * 32)


def test_an_order_without_an_entry_or_with_one_of_another_kind_has_a_fault() -> None:
    assert find_journal_mismatch(1001, ORDER, None, None)
    assert find_journal_mismatch(1001, ORDER, msgspec.structs.replace(entry_of(ORDER), kind="adjust"), None)


@each_row(
    "change", [{"chain": "ERC20"}, {"token": "KFB"}, {"recipient": b"r" * 20}, {"amount_units": 11_999_999}]
)
def test_a_chains_record_must_be_exactly_the_transfer_that_was_ordered(change: dict[str, object]) -> None:
    ordered = plan_payout(ORDER).transfer
    assert find_transfer_mismatch(ordered, FinalRecord(msgspec.structs.replace(ordered), "hash")) is None
    fault = find_transfer_mismatch(ordered, FinalRecord(msgspec.structs.replace(ordered, **change), "hash"))
    assert fault is not None
    assert fault.endswith("instead of 12 USDT on TRC20 to TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC")


def test_a_record_with_several_transfers_is_never_the_order_and_each_is_named() -> None:
    ordered, wallet, issuer = plan_payout(ORDER).transfer, bytes(range(20)), bytes(range(20, 40))
    transfer_logs = (TransferLog(wallet, issuer, 500), TransferLog(wallet, ordered.recipient, 12_000_000))
    # Even if the recipient got the whole amount.
    fault = find_transfer_mismatch(ordered, FinalRecord(ordered, "the hash", transfer_logs))
    assert fault == (
        f"the chain moved 0.0005 USDT from {to_tron(wallet)} to {to_tron(issuer)} "
        f"and 12 USDT from {to_tron(wallet)} to TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC "
        "on TRC20 (2 transfers in the hash) "
        "instead of 12 USDT on TRC20 to TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
    )


def test_the_recipient_gets_the_amount_less_the_fee() -> None:
    payout = plan_payout(ORDER)
    assert payout.payout_id == ORDER.order_id
    assert (payout.transfer.chain, payout.transfer.amount_units) == ("TRC20", 12_000_000)
    assert isinstance(payout.transfer, Transfer)


def test_an_address_of_the_other_chain_can_not_be_paid() -> None:
    with pytest.raises(ValueError, match="EVM"):
        plan_payout(msgspec.structs.replace(ORDER, chain="ERC20"))
