"""Books that are sound, and every way of tampering with one."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.book.scribe import COIN, MERCHANT_ID, RANGE_NO, START_MS, Scribe, write_history

from merchant_wallet import ids
from merchant_wallet.book import commands, verify
from merchant_wallet.book.checkpoints import write_checkpoints
from merchant_wallet.book.faults import RULES, FaultFound
from merchant_wallet.book.replay import Replay, first_id_after, position_of
from merchant_wallet.book.state import Entry, Posting
from merchant_wallet.book.verify import BookReport, verify_all, verify_book
from merchant_wallet.db import connect
from merchant_wallet.money import KFB

KEY = b"k" * 32


@pytest.fixture
def scribe(database_url: str) -> Iterator[Scribe]:
    scribe = Scribe(database_url)
    try:
        yield scribe
    finally:
        scribe.close()


@pytest.fixture
def named(scribe: Scribe) -> dict[str, int]:
    return write_history(scribe)


def check(scribe: Scribe, checkpoint_dir: Path | None = None) -> BookReport:
    async def run() -> BookReport:
        conn = await connect(scribe.url)
        try:
            return await verify_book(
                conn, scribe.merchant_id, checkpoint_dir=checkpoint_dir, checkpoint_key=KEY
            )
        finally:
            await conn.close()

    return asyncio.run(run())


def test_an_empty_book_is_sound(scribe: Scribe) -> None:
    report = check(scribe)
    assert report.ok, report.fault
    assert (report.entries, report.last_entry_id, report.head_hash) == (0, None, bytes(32))


def test_a_book_in_which_everything_has_happened_is_sound(scribe: Scribe, named: dict[str, int]) -> None:
    report = check(scribe)
    assert report.ok, report.fault
    assert report.entries == scribe.draft.entry_count == len(scribe.entry_ids())
    assert report.head_hash == scribe.draft.head_hash
    assert report.last_entry_id == named["fees"]
    assert report.open_orders == 2
    assert report.balances["hold:USDT"] == 130 * COIN
    assert report.balances["subuser:KFB"] == (500 - 100 - 50 - 30 - 5) * COIN


@pytest.mark.parametrize("page_rows", [1, 2, 3, 7])
def test_a_journal_is_read_page_by_page(
    scribe: Scribe, named: dict[str, int], page_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "PAGE_ROWS", page_rows)
    report = check(scribe)
    assert report.ok, report.fault
    assert report.entries == len(scribe.entry_ids())


def test_progress_is_told_of_after_each_page(
    scribe: Scribe, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "PAGE_ROWS", 10)
    told: list[tuple[int, int, int]] = []

    async def run() -> BookReport:
        async with await connect(scribe.url) as conn:
            return await verify_book(conn, MERCHANT_ID, lambda *numbers: told.append(numbers))

    total = asyncio.run(run()).entries
    assert [done for _, done, _ in told] == [*range(10, total, 10), total]
    assert {(merchant_id, all_) for merchant_id, _, all_ in told} == {(MERCHANT_ID, total)}


TAMPERINGS = [
    # What is done to the row, the entry whose row it is, the rule that must be named.
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
]


@pytest.mark.parametrize(("statement", "name", "rule"), TAMPERINGS)
def test_a_row_that_was_tampered_with_is_named(
    scribe: Scribe, named: dict[str, int], statement: str, name: str, rule: str
) -> None:
    scribe.tamper(statement.format(named[name]))
    fault = check(scribe).fault
    assert fault is not None
    assert fault.rule == rule, fault
    place = named["settle"] if rule == "release" else named[name]
    assert place in (fault.entry_id, fault.order_id), fault


BOOK_TAMPERINGS = [
    ("update account set balance = balance + 1 where account_id = 1", "account"),
    ("update account set balance = balance + 1 where kind = 'subuser' and balance > 0", "account"),
    ("update account set day_debited = 0 where day_debited > 0", "account"),
    ("update account set currency = 'USDT' where kind = 'subuser'", "account"),
    ("delete from account where account_id = 9", "account"),
    ("insert into account values (1001, 5000, 'subuser', 'KFB', 0)", "account"),
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
    ("update wallet_address set user_id = (select max(user_id) from sub_user)", "wallet"),
    ("insert into wallet_address select 1001, sha256('x')::bytea, min(user_id) from sub_user", "wallet"),
    ("delete from given_address where address < '\\x50'", "wallet"),
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
def test_a_book_that_was_tampered_with_is_named(
    scribe: Scribe, named: dict[str, int], statement: str, rule: str
) -> None:
    scribe.tamper(statement)
    fault = check(scribe).fault
    assert fault is not None
    assert fault.rule == rule, fault


def test_every_rule_but_those_that_follow_from_others_has_its_tampering() -> None:
    covered = {rule for _, _, rule in TAMPERINGS} | {rule for _, rule in BOOK_TAMPERINGS}
    forged = {"shape", "facts", "floor", "hold", "checkpoint"}
    # Postings move between two accounts, so with sound balances the sum can't be anything but 0.
    assert set(RULES) - covered - forged == {"sum"}


FORGERIES = [
    # With all hashes made anew, so that only what the entries mean can give them away.
    ("update entry set rate_e8 = 2 where entry_id = {}", "debit", "shape"),
    ("update entry set rate_e8 = rate_e8 + 1000 where entry_id = {}", "exchange", "shape"),
    ("update entry set mc_order_id = null where entry_id = {}", "credit", "shape"),
    ("update entry set mc_order_id = 'm' where entry_id = {}", "fees", "shape"),
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
    scribe: Scribe, named: dict[str, int], statement: str, name: str, rule: str
) -> None:
    scribe.tamper(statement.format(named[name]))
    scribe.rechain()
    fault = check(scribe).fault
    assert fault is not None
    assert (fault.rule, fault.entry_id) == (rule, named[name]), fault


def test_a_hold_that_is_released_twice_is_named(scribe: Scribe, named: dict[str, int]) -> None:
    scribe.tamper(
        "update entry set facts = (select facts from entry where entry_id = %s) where entry_id = %s",
        (named["cancel"], named["refund"]),
    )
    scribe.rechain()
    fault = check(scribe).fault
    assert fault is not None
    assert (fault.rule, fault.entry_id, fault.order_id) == ("release", named["refund"], named["cancelled"])


def test_an_order_that_ended_without_its_entry_is_named(scribe: Scribe) -> None:
    scribe.fund(100 * COIN)
    order_id = scribe.withdraw("w1", 10 * COIN)
    last_ms = scribe.draft.now_ms
    scribe.tamper(
        "insert into withdrawal_step values (1001, %s, 1, default, 0, 4, %s, 'forged')", (order_id, last_ms)
    )
    scribe.tamper("insert into callback values (1001, %s, 4, 'e', %s)", (order_id, last_ms))
    scribe.tamper("update withdrawal set status = 4, step_no = 1, finished_ms = %s", (last_ms,))
    fault = check(scribe).fault
    assert fault is not None
    assert (fault.rule, fault.order_id) == ("release", order_id)


def test_a_second_fault_does_not_hide_the_first(scribe: Scribe, named: dict[str, int]) -> None:
    for name in ("debit", "exchange", "adjust"):
        scribe.tamper("update entry set hash = sha256(hash) where entry_id = %s", (named[name],))
    fault = check(scribe).fault
    assert fault is not None
    assert fault.entry_id == min(named["debit"], named["exchange"])


def test_a_cut_tail_is_named_by_the_book_row(scribe: Scribe, named: dict[str, int]) -> None:
    for table in ("posting", "entry"):
        scribe.tamper(f"delete from {table} where entry_id = %s", (named["fees"],))
    fault = check(scribe).fault
    assert fault is not None
    assert (fault.rule, fault.entry_id) == ("book", named["adjust"])


def test_only_a_checkpoint_shows_a_tail_that_was_cut_with_the_book_row(
    scribe: Scribe, tmp_path: Path
) -> None:
    scribe.fund(100 * COIN)
    kept = (1, scribe.draft.head_hash, scribe.draft.counter)
    gone = scribe.fund(50 * COIN).entry_id
    checkpoint(scribe, tmp_path)
    for table in ("posting", "entry"):
        scribe.tamper(f"delete from {table} where entry_id = %s", (gone,))
    scribe.tamper("update book set entry_count = %s, head_hash = %s, id_counter = %s", kept)
    scribe.tamper("update account set balance = sign(balance) * %s where balance <> 0", (100 * COIN,))
    assert check(scribe).ok
    fault = check(scribe, tmp_path).fault
    assert fault is not None
    assert (fault.rule, fault.entry_id) == ("checkpoint", gone)


def test_only_a_checkpoint_shows_a_past_that_was_rewritten_soundly(scribe: Scribe, tmp_path: Path) -> None:
    scribe.fund(100 * COIN)
    checkpoint(scribe, tmp_path)
    scribe.tamper("update entry set facts = replace(facts, 'ann', 'bob')")
    scribe.rechain()
    assert check(scribe).ok
    fault = check(scribe, tmp_path).fault
    assert fault is not None
    assert fault.rule == "checkpoint"


def checkpoint(scribe: Scribe, directory: Path) -> None:
    async def run() -> int:
        async with await connect(scribe.url) as conn:
            return await write_checkpoints(conn, KEY, directory, scribe.draft.now_ms, interval_ms=0)

    assert asyncio.run(run()) == 1


def test_checkpoints_that_hold_are_counted(scribe: Scribe, tmp_path: Path) -> None:
    for _ in range(3):
        scribe.fund(COIN)
        checkpoint(scribe, tmp_path)
    report = check(scribe, tmp_path)
    assert report.ok, report.fault
    assert (report.checkpoints, report.torn_checkpoint) == (3, False)


def test_a_folder_of_checkpoints_without_its_key_is_refused(scribe: Scribe, tmp_path: Path) -> None:
    async def run() -> None:
        async with await connect(scribe.url) as conn:
            await verify_book(conn, MERCHANT_ID, checkpoint_dir=tmp_path)

    with pytest.raises(ValueError, match="key"):
        asyncio.run(run())


def test_all_books_are_verified_even_those_that_are_gone(scribe: Scribe, tmp_path: Path) -> None:
    scribe.fund(COIN)
    others = [Scribe(scribe.url, 1002, 8), Scribe(scribe.url, 1003, 9), Scribe(scribe.url, 1004, 10)]
    for other in others:
        other.fund(COIN)
    checkpoint_all(scribe.url, tmp_path)
    scribe.tamper("delete from book where merchant_id = 1002")
    for table in ("posting", "entry", "account", "book"):
        scribe.tamper(f"delete from {table} where merchant_id = 1003")
    reports = verify_all_of(scribe.url, tmp_path)
    for other in others:
        other.close()
    named = [(report.merchant_id, report.fault and report.fault.rule) for report in reports]
    assert named == [(1001, None), (1002, "book"), (1003, "book"), (1004, None)]
    assert [report.merchant_id for report in verify_all_of(scribe.url, None)] == [1001, 1002, 1004]


def checkpoint_all(url: str, directory: Path) -> None:
    async def run() -> int:
        async with await connect(url) as conn:
            return await write_checkpoints(conn, KEY, directory, START_MS)

    assert asyncio.run(run()) == 4


def verify_all_of(url: str, directory: Path | None) -> list[BookReport]:
    async def run() -> list[BookReport]:
        async with await connect(url) as conn:
            return await verify_all(conn, checkpoint_dir=directory, checkpoint_key=KEY)

    return asyncio.run(run())


def test_a_book_is_verified_as_of_one_moment_while_it_is_written_to(
    scribe: Scribe, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "PAGE_ROWS", 4)
    before = scribe.draft.entry_count

    async def run() -> BookReport:
        async with await connect(scribe.url) as conn:
            return await verify_book(
                conn, MERCHANT_ID, lambda *_: scribe.move(commands.Cancel(scribe.withdraw_next(), "ann"))
            )

    report = asyncio.run(run())
    assert report.ok, report.fault
    assert report.entries == before
    assert scribe.draft.entry_count > before + 4
    later = check(scribe)
    assert later.ok, later.fault
    assert later.entries == scribe.draft.entry_count


def test_a_report_tells_of_the_moment_before_the_fault(scribe: Scribe, named: dict[str, int]) -> None:
    scribe.tamper("update entry set hash = sha256(hash) where entry_id = %s", (named["exchange"],))
    report = check(scribe)
    assert not report.ok
    assert report.entries == scribe.entry_ids().index(named["exchange"])


def test_the_id_after_the_last_of_a_range_is_the_first_of_the_next() -> None:
    last = ids.compose(RANGE_NO, ids.MAX_COUNTER)
    assert first_id_after(None, [RANGE_NO, 40]) == ids.compose(RANGE_NO, 1)
    assert first_id_after(last - 1, [RANGE_NO, 40]) == last
    assert first_id_after(last, [RANGE_NO, 40, 41]) == ids.compose(40, 1)
    assert first_id_after(last, [RANGE_NO]) is None
    assert first_id_after(None, []) is None


def test_the_place_of_an_id_counts_the_ranges_before_its_own() -> None:
    assert position_of(ids.compose(RANGE_NO, 5), [RANGE_NO, 40]) == 5
    assert position_of(ids.compose(40, 5), [RANGE_NO, 40]) == ids.MAX_COUNTER + 5
    assert position_of(ids.compose(41, 5), [RANGE_NO, 40]) is None


def test_a_balance_that_passes_its_floor_for_a_moment_is_named() -> None:
    replay = Replay(MERCHANT_ID, (RANGE_NO,))
    below = Posting(2, 11, KFB, 5, -5, 5)
    entry = Entry(ids.compose(RANGE_NO, 1), "adjust", None, 1, 0, "", (below,), b"")
    with pytest.raises(FaultFound) as found:
        replay.take(entry)
    assert (found.value.fault.rule, found.value.fault.account) == ("floor", "merchant:KFB")


def test_a_hold_that_no_open_order_explains_is_named() -> None:
    replay = Replay(MERCHANT_ID, (RANGE_NO,))
    replay.balances[3] = 7
    with pytest.raises(FaultFound) as found:
        replay.close()
    assert (found.value.fault.rule, found.value.fault.account) == ("hold", "hold:USDT")


def test_every_query_of_verification_can_be_planned(database_url: str) -> None:
    values = {"merchant_id": MERCHANT_ID, "after": 0, "upto": 9, "page": 5}
    with psycopg.connect(database_url, autocommit=True) as conn:
        for query in verify.QUERIES.values():
            if query.name != "begin_snapshot":
                plan = conn.execute(f"explain {query.text}".encode(), values).fetchall()
                assert plan, query.name
