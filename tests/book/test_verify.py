"""Verification of sound books, of many books, of books in use, and of what only checkpoints show."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.book.fake_writer import COIN, EVM_ADDRESS, MERCHANT_ID, START_MS, FakeWriter, on
from tests.checkpoints import write_checkpoints

from merchant_wallet.audit.checkpointing.signing import CheckpointSigner
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import CURRENCIES, KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.book import commands
from merchant_wallet.book.commands import Command, Submission
from merchant_wallet.book.outcomes import Withdrawal
from merchant_wallet.book.verification import pages
from merchant_wallet.book.verification.verify import BookReport, verify_all, verify_book
from merchant_wallet.book.writer import Writer

SIGNER = CheckpointSigner(b"k" * 32)


def check(fake_writer: FakeWriter, checkpoint_dir: Path | None = None) -> BookReport:
    return on(
        fake_writer.url,
        lambda conn: verify_book(
            conn,
            conn,
            fake_writer.merchant_id,
            checkpoint_dir=checkpoint_dir,
            checkpoint_keys=SIGNER.keys,
        ),
    )


def test_an_empty_book_is_sound(fake_writer: FakeWriter) -> None:
    report = check(fake_writer)
    assert report.ok, report.violation
    assert (report.entries, report.last_entry_id, report.head_hash) == (0, None, bytes(32))


def test_a_book_in_which_everything_has_happened_is_sound(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    report = check(fake_writer)
    assert report.ok, report.violation
    assert report.entries == fake_writer.draft.entry_count == len(fake_writer.entry_ids())
    assert report.head_hash == fake_writer.draft.head_hash
    assert report.last_entry_id == named["fees"]
    assert report.open_orders == 2
    assert report.balances["hold:USDT"] == 130 * COIN
    assert report.balances["subuser:KFB"] == (500 - 100 - 50 - 30 - 5 + 3 * 7) * COIN


@pytest.mark.parametrize("page_rows", [1, 2, 3, 7])
def test_a_journal_is_read_page_by_page(
    fake_writer: FakeWriter, named: dict[str, int], page_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_ROWS", page_rows)
    report = check(fake_writer)
    assert report.ok, report.violation
    assert report.entries == len(fake_writer.entry_ids())


def test_progress_is_told_of_after_each_page(
    fake_writer: FakeWriter, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_ROWS", 10)
    told: list[tuple[int, int, int]] = []

    async def run() -> BookReport:
        async with await connect(fake_writer.url) as conn:
            return await verify_book(conn, conn, MERCHANT_ID, lambda *numbers: told.append(numbers))

    total = asyncio.run(run()).entries
    assert [done for _, done, _ in told] == [*range(10, total, 10), total]
    assert {(merchant_id, all_) for merchant_id, _, all_ in told} == {(MERCHANT_ID, total)}


def test_a_cut_tail_is_named_by_the_book_row(fake_writer: FakeWriter, named: dict[str, int]) -> None:
    for table in ("posting", "entry"):
        fake_writer.tamper(f"delete from {table} where entry_id = %s", (named["fees"],))
    violation = check(fake_writer).violation
    assert violation is not None
    assert (violation.rule, violation.entry_id) == ("book", named["adjust"])


def test_only_a_checkpoint_shows_a_tail_that_was_cut_with_the_book_row(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    fake_writer.fund(100 * COIN)
    kept = (1, fake_writer.draft.head_hash, fake_writer.draft.counter)
    gone = fake_writer.fund(50 * COIN).entry_id
    checkpoint(fake_writer, tmp_path)
    for table in ("posting", "entry"):
        fake_writer.tamper(f"delete from {table} where entry_id = %s", (gone,))
    fake_writer.tamper("update book set entry_count = %s, head_hash = %s, id_counter = %s", kept)
    fake_writer.tamper("update account set balance = sign(balance) * %s where balance <> 0", (100 * COIN,))
    assert check(fake_writer).ok
    violation = check(fake_writer, tmp_path).violation
    assert violation is not None
    assert (violation.rule, violation.entry_id) == ("checkpoint", gone)


def test_only_a_checkpoint_shows_a_past_that_was_rewritten_soundly(
    fake_writer: FakeWriter, tmp_path: Path
) -> None:
    fake_writer.fund(100 * COIN)
    checkpoint(fake_writer, tmp_path)
    fake_writer.tamper("update entry set facts = replace(facts, 'ann', 'bob')")
    fake_writer.rechain()
    assert check(fake_writer).ok
    violation = check(fake_writer, tmp_path).violation
    assert violation is not None
    assert violation.rule == "checkpoint"


def checkpoint(fake_writer: FakeWriter, directory: Path) -> None:
    async def run() -> int:
        async with await connect(fake_writer.url) as conn:
            return await write_checkpoints(conn, SIGNER, directory, fake_writer.draft.now_ms, interval_ms=0)

    assert asyncio.run(run()) == 1


def test_checkpoints_that_hold_are_counted(fake_writer: FakeWriter, tmp_path: Path) -> None:
    for _ in range(3):
        fake_writer.fund(COIN)
        checkpoint(fake_writer, tmp_path)
    report = check(fake_writer, tmp_path)
    assert report.ok, report.violation
    assert (report.checkpoints, report.torn_checkpoint) == (3, False)


def test_a_folder_of_checkpoints_without_its_key_is_refused(fake_writer: FakeWriter, tmp_path: Path) -> None:
    async def run() -> None:
        async with await connect(fake_writer.url) as conn:
            await verify_book(conn, conn, MERCHANT_ID, checkpoint_dir=tmp_path)

    with pytest.raises(ValueError, match="key"):
        asyncio.run(run())


def test_all_books_are_verified_even_those_that_are_gone(fake_writer: FakeWriter, tmp_path: Path) -> None:
    fake_writer.fund(COIN)
    others = [
        FakeWriter(fake_writer.url, 1002, 8),
        FakeWriter(fake_writer.url, 1003, 9),
        FakeWriter(fake_writer.url, 1004, 10),
    ]
    for other in others:
        other.fund(COIN)
    checkpoint_all(fake_writer.url, tmp_path)
    fake_writer.tamper("delete from book where merchant_id = 1002")
    for table in ("posting", "entry", "account", "book"):
        fake_writer.tamper(f"delete from {table} where merchant_id = 1003")
    reports = verify_all_of(fake_writer.url, tmp_path)
    for other in others:
        other.close()
    named = [(report.merchant_id, report.violation and report.violation.rule) for report in reports]
    assert named == [(1001, None), (1002, "book"), (1003, "book"), (1004, None)]
    assert [report.merchant_id for report in verify_all_of(fake_writer.url, None)] == [1001, 1002, 1004]


def checkpoint_all(url: str, directory: Path) -> None:
    async def run() -> int:
        async with await connect(url) as conn:
            return await write_checkpoints(conn, SIGNER, directory, START_MS)

    assert asyncio.run(run()) == 4


def verify_all_of(url: str, directory: Path | None) -> list[BookReport]:
    async def run() -> list[BookReport]:
        async with await connect(url) as conn:
            return await verify_all(conn, conn, checkpoint_dir=directory, checkpoint_keys=SIGNER.keys)

    return asyncio.run(run())


def test_a_book_is_verified_as_of_one_moment_while_it_is_written_to(
    fake_writer: FakeWriter, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_ROWS", 4)
    before = fake_writer.draft.entry_count

    async def run() -> BookReport:
        async with await connect(fake_writer.url) as conn:
            return await verify_book(
                conn,
                conn,
                MERCHANT_ID,
                lambda *_: fake_writer.move(commands.Cancel(fake_writer.withdraw_next(), "ann")),
            )

    report = asyncio.run(run())
    assert report.ok, report.violation
    assert report.entries == before
    assert fake_writer.draft.entry_count > before + 4
    later = check(fake_writer)
    assert later.ok, later.violation
    assert later.entries == fake_writer.draft.entry_count


async def ask_writer(writer: Writer, *asked: Command) -> list[Any]:
    return await asyncio.gather(*[writer.submit(MERCHANT_ID, Submission(command)) for command in asked])


async def keep_book(url: str) -> list[Any]:
    """The real writer registers, funds, transfers, exchanges and pays out, many commands to a batch."""
    ticks = itertools.count(START_MS)
    writer = Writer(url, connections=2, batch_limit=20, clock=lambda: next(ticks))
    await writer.open()
    try:
        funding = [commands.Adjust(currency, 10**4 * COIN, "funding", "ann", None) for currency in CURRENCIES]
        wallets = [
            commands.Register(f"u{n}", KFB, n, bytes([1, *[n] * 19]), bytes([2, *[n] * 19])) for n in range(5)
        ]
        answers = await ask_writer(writer, *funding, *wallets)
        order = ("ERC20", EVM_ADDRESS, "https://shop.example/n", 10**6, COIN, 10**12, None, True, 1000)
        answers += await ask_writer(
            writer,
            *[commands.MerchantToUser(f"c{n}", bytes([1, *[n % 5] * 19]), KFB, COIN) for n in range(60)],
            *[commands.UserToMerchant(f"d{n}", f"u{n % 5}", KFB, COIN // 2, 10**6, False) for n in range(60)],
            *[commands.Exchange(f"x{n}", USDT, KFB, COIN, None, None) for n in range(20)],
            *[commands.CreateWithdrawal(f"w{n}", 5 * COIN, *order) for n in range(6)],
        )
        orders = [answer.order_id for answer in answers if isinstance(answer, Withdrawal)]
        answers += await ask_writer(
            writer,
            *[commands.TakeUp(order_id) for order_id in orders[:3]],
            commands.Settle(orders[0], "0xfeed"),
            commands.Fail(orders[1], "reverted"),
            commands.Refund(orders[1]),
            commands.Cancel(orders[3], "ann"),
            commands.WithdrawFees(USDT, None, "monthly", "ann"),
        )
    finally:
        await writer.close()
    return answers


@pytest.mark.new_database
def test_a_book_that_the_writer_kept_is_sound(fake_writer: FakeWriter) -> None:
    fake_writer.run(f"create table nonce_now partition of nonce for values in ({START_MS // DAY_MS})")
    fake_writer.run(
        "insert into rate (merchant_id, usdt_kfb_e8, usdt_kfb_set_ms) values (0, %s, %s)",
        (7 * 10**8, START_MS),
    )
    for address in (bytes([chain, *[n] * 19]) for n in range(5) for chain in (1, 2)):
        fake_writer.insert("issued_address", address=address)
    answers = asyncio.run(keep_book(fake_writer.url))
    assert [answer for answer in answers if isinstance(answer, Refusal)] == []
    report = check(fake_writer)
    assert report.ok, report.violation
    # All steps but four have an entry. The four move no money: three take-ups and a failure.
    assert report.entries == len(answers) - 4
    assert report.open_orders == 3


def test_a_report_tells_of_the_moment_before_the_fault(
    fake_writer: FakeWriter, named: dict[str, int]
) -> None:
    fake_writer.tamper("update entry set hash = sha256(hash) where entry_id = %s", (named["exchange"],))
    report = check(fake_writer)
    assert not report.ok
    assert report.entries == fake_writer.entry_ids().index(named["exchange"])


def test_every_query_of_verification_can_be_planned(database_url: str) -> None:
    values = {"merchant_id": MERCHANT_ID, "after": 0, "upto": 9, "page": 5}
    with psycopg.connect(database_url, autocommit=True) as conn:
        for query in pages.QUERIES.values():
            if query.name != "begin_snapshot":
                plan = conn.execute(f"explain {query.text}".encode(), values).fetchall()
                assert plan, query.name
