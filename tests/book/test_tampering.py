"""Every way to tamper with a book, and the violation that must be reported."""

from collections.abc import Iterator

import msgspec
import pytest
from tests.book.fake_writer import COIN, FakeWriter, on, write_history
from tests.book.restorable_book import RestorableBook
from tests.conftest import TEMPLATE, SharedPostgres

from merchant_wallet.book.commands import CreditDeposit
from merchant_wallet.book.outcomes import Credited
from merchant_wallet.book.verification.verify import BookReport, verify_book
from merchant_wallet.book.verification.violations import RULES, Violation


@pytest.fixture(scope="module")
def one_book(postgres: SharedPostgres) -> Iterator[RestorableBook]:
    """A book in which everything has happened. After all tests it is sound again."""
    with postgres.database(TEMPLATE) as url:
        fake_writer = FakeWriter(url)
        try:
            yield RestorableBook(fake_writer, write_history(fake_writer))
            assert verify(fake_writer).ok
        finally:
            fake_writer.close()


@pytest.fixture
def book(one_book: RestorableBook) -> Iterator[RestorableBook]:
    """The same book for each test, with every row as the history left it."""
    yield one_book
    one_book.restore()


def verify(fake_writer: FakeWriter) -> BookReport:
    return on(fake_writer.url, lambda conn: verify_book(conn, conn, fake_writer.merchant_id))


def find_violation(fake_writer: FakeWriter) -> Violation:
    violation = verify(fake_writer).violation
    assert violation is not None
    return violation


PAYOUT = "insert into payout (merchant_id, order_id, chain, phase, fence, claimed_until_ms)"
CREDITED_BY = "from deposit_credit c where c.tx_hash = d.tx_hash and c.entry_id = {}"

TAMPERINGS = [
    # What is done to the row, the entry that it belongs to, the rule that must be reported.
    ("update posting set amount = amount + 1 where entry_id = {}", "debit", "balance"),
    ("update posting set source_balance = source_balance - 1 where entry_id = {}", "credit", "balance"),
    ("update posting set target_balance = target_balance + 1 where entry_id = {}", "credit", "balance"),
    ("update posting set target_id = 11 where entry_id = {} and posting_no = 2", "debit", "hash"),
    ("update posting set source_id = 999 where entry_id = {}", "credit", "posting"),
    ("update posting set posting_no = 3 where entry_id = {} and posting_no = 2", "debit", "posting"),
    ("delete from posting where entry_id = {} and posting_no = 2", "debit", "hash"),
    ("delete from posting where entry_id = {}", "exchange", "hash"),
    ("delete from entry where entry_id = {}", "debit", "id"),
    ("delete from entry where entry_id = {}", "fund", "id"),
    ("update entry set hash = sha256(hash) where entry_id = {}", "exchange", "hash"),
    ("update entry set at_ms = at_ms + 1 where entry_id = {}", "exchange", "hash"),
    ("update entry set at_ms = 0 where entry_id = {}", "exchange", "time"),
    ("update entry set rate_e8 = 0 where entry_id = {}", "debit", "hash"),
    ("update entry set mc_order_id = 'other' where entry_id = {}", "debit", "hash"),
    ("update entry set kind = 'merchant_to_user' where entry_id = {}", "debit", "hash"),
    ("update entry set facts = '' where entry_id = {}", "adjust", "hash"),
    ("update withdrawal set address = lower(address) where order_id = {}", "paid", "order"),
    ("update withdrawal set chain = 'TRC20' where order_id = {}", "waiting", "order"),
    ("update withdrawal set amount = amount + 1 where order_id = {}", "waiting", "order"),
    ("update withdrawal set fee = fee - 1 where order_id = {}", "waiting", "order"),
    ("update withdrawal set rate_e8 = 0 where order_id = {}", "waiting", "order"),
    ("update withdrawal set mc_order_id = 'w9' where order_id = {}", "waiting", "order"),
    ("update withdrawal set notify_url = 'https://a.example' where order_id = {}", "waiting", "order"),
    ("update withdrawal set deadline_ms = deadline_ms + 1 where order_id = {}", "waiting", "order"),
    ("update withdrawal set created_ms = created_ms - 1 where order_id = {}", "waiting", "order"),
    ("delete from withdrawal where order_id = {}", "cancelled", "order"),
    ("update withdrawal set status = 1, step_no = 1 where order_id = {}", "waiting", "step"),
    ("update withdrawal set finished_ms = null where order_id = {}", "cancelled", "step"),
    ("update withdrawal set approved_ms = null where order_id = {}", "running", "step"),
    ("update withdrawal set approved_by = null where order_id = {}", "paid", "approval"),
    ("update withdrawal set approved_by = 'eve' where order_id = {}", "waiting", "approval"),
    ("update withdrawal set first_approved_by = 'eve' where order_id = {}", "paid", "approval"),
    ("update withdrawal set first_approved_by = null where order_id = {}", "running", "approval"),
    ("update withdrawal set first_approved_by = 'cli:Bob' where order_id = {}", "running", "approval"),
    ("update withdrawal set approved_by = 'limit' where order_id = {}", "running", "approval"),
    (
        "insert into operator_wait select 'bob', approved_ms, approved_ms + 1, 'reset' from withdrawal"
        " where order_id = {}",
        "running",
        "approval",
    ),
    (
        "insert into operator_wait select 'ann', first_approved_ms, first_approved_ms + 1, 'created'"
        " from withdrawal where order_id = {}",
        "running",
        "approval",
    ),
    ("update withdrawal set second_limit_units = null where order_id = {}", "waiting", "order"),
    ("update withdrawal set second_limit_units = amount where order_id = {}", "running", "order"),
    ("delete from withdrawal_step where order_id = {} and step_no = 1", "failed", "step"),
    ("delete from withdrawal_step where order_id = {}", "waiting", "step"),
    ("update withdrawal_step set at_ms = 0 where order_id = {} and step_no = 0", "paid", "step"),
    ("update withdrawal set tx_hash = '0xbad' where order_id = {}", "paid", "release"),
    ("delete from callback where order_id = {} and status = 3", "failed", "callback"),
    ("update callback set status = 5 where order_id = {}", "cancelled", "callback"),
    ("update callback set created_ms = 1 where order_id = {}", "cancelled", "callback"),
    ("update sub_user set evm_address = sha256('x')::bytea where user_id = {}", "anna", "sub-user"),
    ("update sub_user set ext_user_id = 'eve' where user_id = {}", "anna", "sub-user"),
    ("update sub_user set address_index = 77 where user_id = {}", "anna", "sub-user"),
    ("delete from sub_user where user_id = {}", "bert", "sub-user"),
    ("delete from deposit_credit where entry_id = {}", "deposit", "deposit"),
    ("update deposit_credit set rate_e8 = 1 where entry_id = {}", "deposit", "deposit"),
    ("update deposit_credit set amount = amount + 1 where entry_id = {}", "deposit", "deposit"),
    ("update deposit_credit set currency = 'USDT' where entry_id = {}", "deposit", "deposit"),
    ("update deposit_credit set entry_id = 5 where entry_id = {}", "own deposit", "deposit"),
    ("update deposit_credit set block_hash = 'other' where entry_id = {}", "deposit", "deposit"),
    ("update deposit_credit set block_hash = null where entry_id = {}", "deposit", "deposit"),
    (f"update deposit d set amount = 1 {CREDITED_BY}", "deposit", "deposit"),
    (f"update deposit d set status = 'pending' {CREDITED_BY}", "deposit", "deposit"),
    (f"update deposit d set address = sha256('x')::bytea {CREDITED_BY}", "deposit", "deposit"),
    (f"update deposit d set user_id = null {CREDITED_BY}", "deposit", "deposit"),
    (f"update deposit d set log_index = 9 {CREDITED_BY}", "deposit", "deposit"),
    (f"delete from deposit d {CREDITED_BY.replace('from', 'using')}", "deposit", "deposit"),
    ("delete from callback where order_id = {}", "own deposit", "callback"),
    ("update callback set event_id = 'e' where order_id = {}", "own deposit", "callback"),
    ("update callback set event_type = 'withdrawal' where order_id = {}", "own deposit", "callback"),
    (
        "insert into callback (merchant_id, order_id, status, event_id, created_ms, event_type)"
        " values (1001, {}, 0, 'e', 1, 'deposit')",
        "deposit",
        "callback",
    ),
]


@pytest.mark.parametrize(("statement", "name", "rule"), TAMPERINGS)
def test_a_row_that_was_tampered_with_is_named(
    book: RestorableBook, statement: str, name: str, rule: str
) -> None:
    book.fake_writer.tamper(statement.format(book.named[name]))
    violation = find_violation(book.fake_writer)
    assert violation.rule == rule, violation
    place = book.named["settle"] if rule == "release" else book.named[name]
    assert place in (violation.entry_id, violation.order_id), violation


BOOK_TAMPERINGS = [
    ("update account set balance = balance + 1 where account_id = 1", "account"),
    ("update account set balance = balance + 1 where kind = 'subuser' and balance > 0", "account"),
    ("update account set day_debited = 0 where day_debited > 0", "account"),
    ("update account set currency = 'USDT' where kind = 'subuser'", "account"),
    ("delete from account where account_id = 9", "account"),
    (
        "insert into account (merchant_id, account_id, kind, currency) values (1001, 5000, 'subuser', 'KFB')",
        "account",
    ),
    ("update book set entry_count = entry_count + 1", "book"),
    ("update book set id_counter = id_counter + 1", "book"),
    ("update book set head_hash = sha256(head_hash)", "book"),
    ("update book set withdrawn_units = 0", "book"),
    ("update book set withdrawn_day = withdrawn_day + 1", "book"),
    ("update book set last_ms = 0", "book"),
    ("update book set next_range = 8", "book"),
    ("delete from book", "book"),
    ("update id_range set merchant_id = 5", "id"),
    ("delete from wallet_address where address < '\\x50'", "wallet"),
    (
        "update wallet_address set user_id = (select max(user_id) from sub_user) where address < '\\x50'",
        "wallet",
    ),
    ("update wallet_address set user_id = (select max(user_id) from sub_user)", "deposit"),
    ("insert into wallet_address select 1001, sha256('x')::bytea, min(user_id) from sub_user", "wallet"),
    ("delete from issued_address where address < '\\x50'", "wallet"),
    (f"{PAYOUT} values (1001, 5, 'ERC20', 'queued', 0, 0)", "payout"),
    (
        f"{PAYOUT} select 1001, max(order_id), 'TRC20', 'closed', 0, 0 from withdrawal where status = 2",
        "payout",
    ),
    (
        f"{PAYOUT} select 1001, max(order_id), 'ERC20', 'closed', 0, 0 from withdrawal where status = 1",
        "payout",
    ),
    ("update deposit set status = 'pending' where user_id is null", "deposit"),
    ("update deposit_credit set entry_id = entry_id + 1000", "deposit"),
    ("delete from credited_transaction", "deposit"),
    ("update credited_transaction set block_hash = 'other'", "deposit"),
    ("delete from merchant_address", "deposit"),
    ("delete from issued_address where address in (select address from merchant_address)", "deposit"),
    (
        "with d as (insert into deposit select 1001, chain, 'x', 0, 1, 'b', sender, address, null, 1,"
        " 'credited', 1, 1 from deposit limit 1)"
        " insert into deposit_credit values (1001, 'TRC20', 'x', 0, 5, 'USDT', 1, 0)",
        "orphan",
    ),
    (
        "insert into deposit select 1001, chain, 'x', 0, 1, 'b', sender, address, user_id, 1, 'credited',"
        " 1, 1 from deposit limit 1",
        "deposit",
    ),
    ("insert into posting values (1001, 3, 1, 1, 2, 'USDT', 1, 0, 0)", "orphan"),
    ("insert into posting values (1001, 9000000000000000, 1, 1, 2, 'USDT', 1, 0, 0)", "orphan"),
    ("insert into withdrawal_step values (1001, 5, 0, default, null, 0, 1, 'x')", "orphan"),
    ("insert into callback values (1001, 5, 2, 'e', 1)", "orphan"),
    (
        "insert into withdrawal values (1001, 5, 'o', 2, 1, 0, 'ERC20', 'a', 'u', 0, 0, null, null, 0, 0)",
        "orphan",
    ),
    ("insert into sub_user values (1001, 5, 'e', 'e', 9, '\\x00', '\\x01', false, 0, 0, null, 0)", "orphan"),
]


@pytest.mark.parametrize(("statement", "rule"), BOOK_TAMPERINGS)
def test_a_book_that_was_tampered_with_is_named(book: RestorableBook, statement: str, rule: str) -> None:
    book.fake_writer.tamper(statement)
    violation = find_violation(book.fake_writer)
    assert violation.rule == rule, violation


def test_every_rule_but_those_that_follow_from_others_has_its_tampering() -> None:
    covered = {rule for _, _, rule in TAMPERINGS} | {rule for _, rule in BOOK_TAMPERINGS}
    forged = {"shape", "facts", "floor", "hold", "checkpoint", "reference"}
    # Postings move money between two accounts, so with right balances the sum is always 0. The archive has
    # tests of its own, with files.
    assert set(RULES) - covered - forged == {"sum", "archive"}


FORGERIES = [
    # With all hashes computed again, so that only the meaning of the entries shows the change.
    ("update entry set rate_e8 = 2 where entry_id = {}", "debit", "shape"),
    ("update entry set rate_e8 = rate_e8 + 1000 where entry_id = {}", "exchange", "shape"),
    ("update entry set mc_order_id = null where entry_id = {}", "credit", "shape"),
    ("update entry set mc_order_id = 'm' where entry_id = {}", "cancel", "shape"),
    ("update entry set kind = 'exchange' where entry_id = {}", "free debit", "shape"),
    ('update entry set facts = \'{{"actor":"ann"}}\' where entry_id = {}', "adjust", "facts"),
    ("update entry set facts = replace(facts, 'a correction', ' ') where entry_id = {}", "adjust", "facts"),
    ("update entry set facts = 'x' where entry_id = {}", "settle", "facts"),
    ("update entry set facts = 'x' where entry_id = {}", "anna", "facts"),
    ("update entry set facts = replace(facts, 'KFB', 'EUR') where entry_id = {}", "anna", "facts"),
    ("update entry set facts = replace(facts, 'anna', 'evil') where entry_id = {}", "anna", "sub-user"),
    ("update entry set facts = 'x' where entry_id = {}", "paid", "facts"),
    ("update entry set facts = replace(facts, '0x', '0X') where entry_id = {}", "paid", "order"),
    ("update entry set kind = 'refund' where entry_id = {}", "cancel", "release"),
    ("update entry set kind = 'cancel' where entry_id = {}", "settle", "shape"),
    ("update entry set facts = replace(facts, '0xfeed', '0xbad') where entry_id = {}", "settle", "release"),
    ("update entry set at_ms = at_ms + 1 where entry_id = {}", "cancel", "release"),
    ("update posting set source_id = 999 where entry_id = {}", "credit", "posting"),
]


@pytest.mark.parametrize(("statement", "name", "rule"), FORGERIES)
def test_an_entry_forged_with_its_hash_is_named(
    book: RestorableBook, statement: str, name: str, rule: str
) -> None:
    book.fake_writer.tamper(statement.format(book.named[name]))
    book.fake_writer.rechain()
    violation = find_violation(book.fake_writer)
    assert (violation.rule, violation.entry_id) == (rule, book.named[name]), violation


def test_a_reference_that_names_two_entries_is_named(fake_writer: FakeWriter) -> None:
    named = write_history(fake_writer)
    # The database would refuse it.
    fake_writer.run("drop index entry_reference")
    fake_writer.tamper("update entry set mc_order_id = 'proposal-1' where entry_id = %s", (named["fees"],))
    fake_writer.rechain()
    violation = find_violation(fake_writer)
    assert (violation.rule, violation.entry_id) == ("reference", named["fees"])


def test_a_hold_that_is_released_twice_is_named(book: RestorableBook) -> None:
    fake_writer, named = book.fake_writer, book.named
    fake_writer.tamper(
        "update entry set facts = (select facts from entry where entry_id = %s) where entry_id = %s",
        (named["cancel"], named["refund"]),
    )
    fake_writer.rechain()
    violation = find_violation(fake_writer)
    assert (violation.rule, violation.entry_id, violation.order_id) == (
        "release",
        named["refund"],
        named["cancelled"],
    )


def test_an_order_that_ended_without_its_entry_is_named(fake_writer: FakeWriter) -> None:
    fake_writer.fund(100 * COIN)
    order_id = fake_writer.withdraw("w1", 10 * COIN)
    last_ms = fake_writer.draft.now_ms
    fake_writer.tamper(
        "insert into withdrawal_step values (1001, %s, 1, default, 0, 4, %s, 'forged')", (order_id, last_ms)
    )
    fake_writer.tamper("insert into callback values (1001, %s, 4, 'e', %s)", (order_id, last_ms))
    fake_writer.tamper("update withdrawal set status = 4, step_no = 1, finished_ms = %s", (last_ms,))
    violation = find_violation(fake_writer)
    assert (violation.rule, violation.order_id) == ("release", order_id)


def test_a_second_violation_does_not_hide_the_first(book: RestorableBook) -> None:
    fake_writer, named = book.fake_writer, book.named
    for name in ("debit", "exchange", "adjust"):
        fake_writer.tamper("update entry set hash = sha256(hash) where entry_id = %s", (named[name],))
    violation = find_violation(fake_writer)
    assert violation.entry_id == min(named["debit"], named["exchange"])


def test_a_deposit_that_was_credited_twice_is_found_however_well_it_was_forged(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    sound = next(deposit for deposit in fake_writer.draft.deposits.values() if not deposit.is_merchants)
    key = sound.key
    # A second entry with the same facts, a valid hash and right balances, and the credit attached to it.
    fake_writer.draft.deposits[key] = msgspec.structs.replace(sound, credited=None)
    fake_writer.tamper("delete from deposit_credit where tx_hash = %s", (key.tx_hash,))
    outcome = fake_writer.ask(CreditDeposit(key, sound.address, sound.amount_units, False))
    assert isinstance(outcome, Credited)
    violation = find_violation(fake_writer)
    assert (violation.rule, violation.entry_id) == ("deposit", named["deposit"])


def test_what_one_test_tampers_with_the_next_does_not_find(book: RestorableBook) -> None:
    for table in ("posting", "callback", "sub_user", "deposit", "book"):
        book.fake_writer.tamper(f"delete from {table}")
    book.fake_writer.tamper("update entry set hash = sha256(hash)")
    book.fake_writer.tamper("insert into withdrawal_step values (1001, 5, 0, default, null, 0, 1, 'x')")
    assert not verify(book.fake_writer).ok
    book.restore()
    report = verify(book.fake_writer)
    assert report.ok, report.violation
    assert report.entries == book.fake_writer.draft.entry_count
