"""`archive`: closed months leave the database for signed files, and everything is found again."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.archive_scene import MONTHS, file_of, tampered
from tests.book.fake_writer import COIN, MERCHANT_ID, FakeWriter
from tests.cli.conftest import Wallet

from merchant_wallet.audit.checkpointing.keys import open_or_create_signer
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.config import load_settings
from merchant_wallet.book.archive import removal
from merchant_wallet.book.checkpoints import Checkpoint
from merchant_wallet.book.commands import Adjust, Exchange, Submission, UserToMerchant
from merchant_wallet.book.outcomes import Adjusted, Exchanged, Outcome, Transferred
from merchant_wallet.processes.base import make_base, make_writer

RUN = ("archive", "run", "--before", "2025-12")


def read_journal(wallet: Wallet) -> list[tuple[Any, ...]]:
    """All rows of the journal."""
    entries = wallet.read("select * from entry order by entry_id")
    return entries + wallet.read("select * from posting order by entry_id, posting_no")


def count(wallet: Wallet, table: str) -> int:
    """The rows of a table."""
    return int(wallet.read(f"select count(*) from {table}")[0][0])


def path_of(wallet: Wallet, month: str = "2025-10") -> Path:
    """The file of a month."""
    return file_of(wallet.folder, MERCHANT_ID, month)


def test_closed_months_are_in_files_and_not_in_the_tables(wallet: Wallet, named: dict[str, int]) -> None:
    before = wallet.ask("book", "verify")
    document = wallet.ask(*RUN)
    assert [(one["month"], one["rows"]) for one in document["months"]] == [(m, "removed") for m in MONTHS]
    first_left = wallet.read("select min(entry_id) from entry")[0][0]
    assert first_left == named["paid 2025-12"]
    lines = [
        json.loads(line) for line in gzip.decompress(path_of(wallet, "2025-09").read_bytes()).splitlines()
    ]
    assert [line["id"] for line in lines[:2]] == [named["fund"], named["anna"]]
    assert lines[0]["postings"] == [[10, 1, "USDT", 10_000 * COIN, -10_000 * COIN, 10_000 * COIN]]
    after = wallet.ask("book", "verify")
    assert after == before
    assert after["books"][0]["ok"]


def test_the_files_are_written_and_the_rows_stay_until_a_second_run(
    wallet: Wallet, named: dict[str, int]
) -> None:
    before = read_journal(wallet)
    kept = wallet.ask(*RUN, "--keep-rows")
    assert [one["rows"] for one in kept["months"]] == ["kept"] * 3
    assert read_journal(wallet) == before
    written = {month: path_of(wallet, month).read_bytes() for month in MONTHS}
    assert [one["rows"] for one in wallet.ask(*RUN)["months"]] == ["removed"] * 3
    assert written == {month: path_of(wallet, month).read_bytes() for month in MONTHS}
    assert [one["rows"] for one in wallet.ask("archive", "list")["months"]] == ["removed"] * 3


def test_what_was_archived_can_be_restored_row_by_row(wallet: Wallet, named: dict[str, int]) -> None:
    before = read_journal(wallet)
    wallet.ask(*RUN)
    document = wallet.ask("archive", "restore", MERCHANT_ID, "--from", "2025-10")
    assert [one["rows"] for one in document["months"]] == ["removed", "kept", "kept"]
    assert wallet.ask("book", "verify")["ok"]
    wallet.ask("archive", "restore", MERCHANT_ID, "--from", "2025-09")
    assert read_journal(wallet) == before
    assert count(wallet, "archived_order") == 0
    # Its files are still good, so the next run only removes the rows.
    assert [one["rows"] for one in wallet.ask(*RUN)["months"]] == ["removed"] * 3
    assert wallet.ask("archive", "verify")["ok"]


def test_a_repeat_of_an_archived_order_gets_its_first_outcome(wallet: Wallet, named: dict[str, int]) -> None:
    commands = (
        UserToMerchant("d1", "anna", "KFB", 100 * COIN, 10**6, False),
        Exchange("x1", "USDT", "KFB", 1_000 * COIN, None, None),
        Adjust("KFB", -5 * COIN, "a correction", "ann", "anna", "ref-1", None),
    )
    before = [wallet.submit(MERCHANT_ID, command) for command in commands]
    assert [type(one) for one in before] == [Transferred, Exchanged, Adjusted]
    entries = count(wallet, "entry")
    wallet.ask(*RUN)
    assert [wallet.submit(MERCHANT_ID, command) for command in commands] == before
    other = wallet.submit(MERCHANT_ID, UserToMerchant("d1", "anna", "KFB", COIN, 10**6, False))
    assert isinstance(other, Refusal)
    assert other.code == 40900
    assert count(wallet, "entry") < entries


def test_a_writer_that_cached_the_book_answers_an_archived_order_as_before(
    wallet: Wallet, named: dict[str, int]
) -> None:
    archived = UserToMerchant("d1", "anna", "KFB", 100 * COIN, 10**6, False)
    first = wallet.submit(MERCHANT_ID, archived)
    wallet.ask(*RUN)

    async def repeat() -> Outcome:
        writer = make_writer(make_base(load_settings(wallet.variables), wallet.url), connections=1)
        await writer.open()
        try:
            for order in ("new", "newer"):
                new = Submission(UserToMerchant(order, "anna", "KFB", COIN, 10**6, False))
                assert isinstance(await writer.submit(MERCHANT_ID, new), Transferred)
            assert writer.optimistic_count
            return await writer.submit(MERCHANT_ID, Submission(archived))
        finally:
            await writer.close()

    assert asyncio.run(repeat()) == first
    assert isinstance(first, Transferred)


def test_a_new_order_goes_on_after_the_archive(wallet: Wallet, named: dict[str, int]) -> None:
    wallet.ask(*RUN)
    moved = wallet.submit(MERCHANT_ID, UserToMerchant("new", "anna", "KFB", COIN, 10**6, False))
    assert isinstance(moved, Transferred)
    assert wallet.ask("book", "verify")["ok"]


def test_a_changed_file_is_found(wallet: Wallet, named: dict[str, int]) -> None:
    wallet.ask(*RUN)
    for path in (path_of(wallet, month) for month in MONTHS):
        good = path.read_bytes()
        for bad in (good.replace(good[40:50], bytes(10)), good[:-1], good + b"x", b""):
            path.write_bytes(bad)
            assert not wallet.ask("archive", "verify", status=1)["ok"]
            if bad != good + b"x":
                fault = wallet.ask("book", "verify", status=1)["books"][0]["fault"]
                assert fault["rule"] == "archive"
                assert str(path) in fault["text"]
        path.write_bytes(good)
    assert wallet.ask("archive", "verify")["ok"]
    assert wallet.ask("book", "verify")["ok"]


def test_a_missing_file_is_named_with_what_to_do(wallet: Wallet, named: dict[str, int]) -> None:
    wallet.ask(*RUN)
    path_of(wallet).unlink()
    (fault,) = wallet.ask("archive", "verify", status=1)["faults"]
    assert "Bring the file back from its copy" in fault["text"]
    assert wallet.ask("book", "verify", status=1)["books"][0]["fault"]["rule"] == "archive"


def test_a_file_that_was_rewritten_with_its_manifest_is_found(wallet: Wallet, named: dict[str, int]) -> None:
    wallet.ask(*RUN)
    path = path_of(wallet).with_name("2025-10.json")
    good = path.read_text()
    path.write_text(good.replace('"writtenMs":1', '"writtenMs":2'))
    assert "was changed" in wallet.ask("archive", "verify", status=1)["faults"][0]["text"]
    path.write_text(good.replace('"signature":"', '"signature":"00')[:-5] + '"}\n')
    fault = wallet.ask("book", "verify", status=1)["books"][0]["fault"]
    assert "is not signed" in fault["text"]
    # The content is still what the database knows, so it can be signed again.
    assert wallet.ask("archive", "sign")["ok"]
    assert wallet.ask("book", "verify")["ok"]


def test_a_month_that_does_not_match_the_chain_is_refused(
    wallet: Wallet, old_book: FakeWriter, named: dict[str, int]
) -> None:
    for statement in (
        "update posting set amount = amount + 1 where entry_id = {}",
        "update posting set posting_no = 7 where entry_id = {} and posting_no = 1",
        "delete from posting where entry_id = {}",
        "delete from entry where entry_id = {}",
        "update entry set hash = sha256(hash) where entry_id = {}",
    ):
        with tampered(old_book, statement.format(named["debit 2025-10 1"])):
            before = read_journal(wallet)
            document = wallet.ask(*RUN, "--keep-rows", status=1)
            assert {one["month"] for one in document["months"]} <= {"2025-09"}
            assert document["faults"][0]["merchantId"] == MERCHANT_ID
            assert read_journal(wallet) == before
            assert not path_of(wallet).exists()
    assert [one["rows"] for one in wallet.ask(*RUN)["months"]] == ["removed"] * 3


def test_a_journal_that_was_rewritten_with_its_hashes_is_refused_by_the_checkpoint(
    wallet: Wallet, old_book: FakeWriter, named: dict[str, int]
) -> None:
    old_book.tamper("update entry set facts = replace(facts, 'ann', 'bob')")
    old_book.rechain()
    document = wallet.ask(*RUN, status=1)
    # The checkpoint saw the last entry, which stays in the tables. The chain is followed up to there.
    assert document["months"] == []
    assert "a checkpoint saw another hash" in document["faults"][0]["text"]


def test_a_book_keeps_its_last_entry_and_unfinished_orders(
    wallet: Wallet, old_book: FakeWriter, named: dict[str, int]
) -> None:
    wallet.tamper(
        "update withdrawal set status = 1, step_no = 1 where order_id = %(id)s", id=named["paid 2025-11"]
    )
    document = wallet.ask(*RUN, "--keep-rows")
    # The payer compares an order with its entry and the one before, which is the last of October here.
    assert [one["month"] for one in document["months"]] == ["2025-09"]
    assert "is not finished" in document["left"][0]["reason"]


def test_only_months_that_have_ended_can_be_archived(wallet: Wallet, named: dict[str, int]) -> None:
    assert "has not ended" in wallet.refuse("archive", "run", "--before", "2999-01")
    assert "is no month" in wallet.refuse("archive", "run", "--before", "2025", status=2)
    # December has no later entry, so it may still grow.
    document = wallet.ask("archive", "run", "--before", "2026-01", "--keep-rows")
    assert [one["month"] for one in document["months"]] == list(MONTHS)
    assert "its last entry is of that month" in document["left"][0]["reason"]


def test_verification_finds_what_was_changed_in_the_database(
    wallet: Wallet, old_book: FakeWriter, named: dict[str, int]
) -> None:
    wallet.ask(*RUN)
    for statement in (
        "update archived_order set amount = amount + 1 where mc_order_id = 'd1'",
        "delete from archived_order where mc_order_id = 'ref-1'",
        "update archived_order set mc_order_id = 'other' where mc_order_id = 'c1'",
        "insert into archived_order values (1001, 1, 1, 1, 2, 1, 0, 1, 1, 1, 'adjust', 'x', 'KFB', '', '')",
        "update archived_month set digest = sha256(digest) where month = '2025-10'",
        "delete from archived_month where month = '2025-09'",
        "update archived_month set removed_id = first_id - 1 where month = '2025-11'",
        "insert into entry select 1001, entry_id - 3, 'adjust', null, at_ms, 0, '', hash from entry limit 1",
        "insert into posting values (1001, {debit}, 1, 1, 2, 'USDT', 1, 0, 0)",
    ):
        with tampered(old_book, statement.format(debit=named["debit"])):
            assert not wallet.ask("book", "verify", status=1)["books"][0]["ok"], statement
    assert wallet.ask("book", "verify")["ok"]


def test_each_change_of_the_archive_is_in_the_audit_log(wallet: Wallet, named: dict[str, int]) -> None:
    wallet.ask(*RUN)
    wallet.ask("archive", "restore", MERCHANT_ID, "--from", "2025-11")
    entries = wallet.ask("audit", "list")["entries"]
    told = [(one["action"], one["subject"]) for one in entries if one["action"].startswith("archive")]
    assert ("archive.write", "archive of 2025-09") in told
    assert ("archive.remove", "archive of 2025-11") in told
    assert ("archive.restore", "archive of 2025-11") in told


def test_an_archived_book_moves_to_another_cell_and_is_archived_there(
    wallet: Wallet, named: dict[str, int]
) -> None:
    wallet.ask("archive", "run", "--before", "2025-11")
    wallet.run("cell", "add", "east")
    assert wallet.ask("merchant", "move", MERCHANT_ID, "east")["done"] == "moved"
    assert wallet.ask("book", "verify")["ok"]
    assert [one["rows"] for one in wallet.ask(*RUN)["months"]] == ["removed"] * 3
    assert wallet.read("select min(entry_id) from east.entry") == [(named["paid 2025-12"],)]
    assert wallet.ask("book", "verify", MERCHANT_ID)["ok"]
    wallet.ask("archive", "restore", MERCHANT_ID, "--from", "2025-09")
    assert wallet.read("select min(entry_id) from east.entry") == [(named["fund"],)]
    assert wallet.ask("book", "verify")["ok"]


def test_files_that_the_database_does_not_know_are_completed_or_left_alone(
    wallet: Wallet, named: dict[str, int]
) -> None:
    wallet.ask(*RUN, "--keep-rows")
    written = {path: path.read_bytes() for path in (wallet.folder / "archive").rglob("*.*")}
    # As if the run had been killed before the database knew of its files.
    wallet.tamper("delete from archived_month")
    wallet.ask(*RUN, "--keep-rows")
    assert {path: path.read_bytes() for path in (wallet.folder / "archive").rglob("*.*")} == written
    wallet.tamper("delete from archived_month where month > '2025-09'")
    manifest = path_of(wallet).with_name("2025-10.json")
    manifest.write_text(manifest.read_text().replace('"lastHash":"', '"lastHash":"00')[:-1])
    (fault,) = wallet.ask(*RUN, "--keep-rows", status=1)["faults"]
    assert "with other entries" in fault["text"]


def test_repeats_get_their_first_outcome_while_rows_are_removed(
    wallet: Wallet, named: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "ROWS_AT_ONCE", 1)
    commands = [
        UserToMerchant("d1", "anna", "KFB", 100 * COIN, 10**6, False),
        *(
            UserToMerchant(f"d2025-{m}-{n}", "anna", "KFB", COIN, 10**6, False)
            for m in (10, 11)
            for n in range(3)
        ),
    ]

    async def repeat() -> None:
        writer = make_writer(make_base(load_settings(wallet.variables), wallet.url), connections=2)
        await writer.open()
        try:
            first = [await writer.submit(MERCHANT_ID, Submission(command)) for command in commands]
            for arguments in (RUN, ("archive", "restore", MERCHANT_ID, "--from", "2025-09")):
                running = asyncio.create_task(asyncio.to_thread(wallet.ask, *arguments))
                while not running.done():
                    told = await asyncio.gather(
                        *[writer.submit(MERCHANT_ID, Submission(command)) for command in commands]
                    )
                    assert list(told) == first
                assert (await running)["ok"]
        finally:
            await writer.close()

    entries = count(wallet, "entry")
    asyncio.run(repeat())
    assert count(wallet, "entry") == entries


def test_a_checkpoint_of_an_archived_entry_is_compared_with_its_file(
    wallet: Wallet, named: dict[str, int]
) -> None:
    base = make_base(load_settings(wallet.variables), wallet.url)
    signer = open_or_create_signer(base.settings)
    entry_id = named["debit 2025-10 1"]
    ((place, seen),) = wallet.read(
        "select (select count(*) from entry o where o.entry_id <= e.entry_id), hash from entry e"
        " where entry_id = %(entry_id)s",
        entry_id=entry_id,
    )
    path = base.checkpoint_dir / f"{MERCHANT_ID}.jsonl"
    last = path.read_bytes()

    def add(head_hash: str) -> None:
        early = signer.sign(Checkpoint(MERCHANT_ID, place, entry_id, head_hash, 1))
        path.write_bytes(msgspec.json.encode(early) + b"\n" + last)

    add("00" * 32)
    assert "a checkpoint saw another hash" in wallet.ask(*RUN, status=1)["faults"][0]["text"]
    add(seen.hex())
    wallet.ask(*RUN)
    found = wallet.ask("book", "verify")["books"][0]
    assert (found["ok"], found["checkpoints"]) == (True, 2)
    add("00" * 32)
    assert wallet.ask("book", "verify", status=1)["books"][0]["fault"]["rule"] == "checkpoint"
    assert "a checkpoint saw another hash" in wallet.ask("archive", "verify", status=1)["faults"][0]["text"]


@pytest.mark.new_database
def test_doctor_says_when_files_that_alone_have_entries_are_not_there(
    wallet: Wallet, named: dict[str, int]
) -> None:
    def ask() -> dict[str, Any]:
        # No program runs here, so the partition for nonces is missing.
        checks = wallet.ask("doctor", status=1)["checks"]
        return {check["name"]: check for check in checks}

    assert "archive" not in ask()
    wallet.ask(*RUN)
    assert ask()["archive"]["text"].startswith(f"{len(MONTHS)} months in ")
    path_of(wallet).unlink()
    found = ask()["archive"]
    assert not found["ok"]
    assert str(path_of(wallet)) in found["text"]
    assert "WALLET_ARCHIVE_DIR" in found["advice"]
