"""`book statement` and `book verify`."""

import asyncio
import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
from tests.checkpoints import write_checkpoints
from tests.cli.conftest import COMMAND, Wallet, clean_environment, in_one_cell
from tests.rows import each_row

from merchant_wallet.audit.checkpointing.keys import open_service_signer
from merchant_wallet.base.config import load_settings
from merchant_wallet.base.db import connect
from merchant_wallet.cli import journals
from merchant_wallet.cli.failures import Failure
from merchant_wallet.cli.journals import read_moment
from merchant_wallet.processes.base import make_base

IN_BOTH_LAYOUTS = True

NOV_21_MS = 1_763_683_200_000


@pytest.fixture
def shop(wallet: Wallet) -> Wallet:
    """A merchant with three entries: 100 in, 30 out, 7 in."""
    wallet.open_merchant()
    wallet.credit("Shop", "USDT", "100")
    wallet.ask("book", "debit", "Shop", "USDT", "30", "--reason", "x")
    wallet.credit("Shop", "USDT", "7")
    return wallet


async def checkpoint(wallet: Wallet, at_ms: int) -> int:
    base = make_base(load_settings(wallet.variables), wallet.url)
    async with await connect(wallet.both_url) as conn:
        signer = await open_service_signer(conn, base.settings, at_ms)
        return await write_checkpoints(conn, signer, base.checkpoint_dir, at_ms)


def test_a_statement_of_one_account_adds_up(shop: Wallet) -> None:
    text = shop.run("book", "statement", "Shop", "--account", "merchant:USDT").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["amount"] for row in rows] == ["100", "-30", "7"]
    assert [row["balance"] for row in rows] == ["100", "70", "77"]


@in_one_cell
def test_an_entry_is_shown_by_its_id_or_its_reference_with_the_balances_after_it(shop: Wallet) -> None:
    refund = ("book", "credit", "Shop", "USDT", "5", "--reason", "ticket 12", "--ref", "bank 4711")
    entry_id = shop.ask(*refund)["entryId"]
    shown = shop.ask("book", "entry", entry_id)
    assert (shown["merchantId"], shown["kind"], shown["reference"]) == (1001, "adjust", "bank 4711")
    assert shown["facts"]["reason"] == "ticket 12"
    assert shown["postings"] == [
        {
            "source": "adjustment:USDT",
            "sourceBalance": "-82",
            "target": "merchant:USDT",
            "targetBalance": "82",
            "amount": "5",
            "currency": "USDT",
        }
    ]
    assert shop.ask("book", "entry", entry_id - 1)["hash"] == shown["previousHash"]
    assert shop.ask("book", "entry", "bank 4711") == shown
    printed = shop.run("book", "entry", entry_id).stdout
    assert "reason        ticket 12\n" in printed
    assert "adjustment:USDT  -82            merchant:USDT  82             5       USDT" in printed
    (found,) = [one for one in shop.ask("find", "bank 4711")["found"] if one["kind"] == "entry"]
    assert found["command"] == f"merchant-wallet book entry {entry_id}"
    order = shop.ask("book", "entry", shop.order(1001, "40"))
    assert (order["facts"]["arrival"], order["facts"]["fee"], order["orderId"]) == (
        "39",
        "1",
        order["entryId"],
    )
    assert order["facts"]["deadlineMs"] > order["atMs"]
    assert (order["feePercent"], shown["feePercent"]) == ("0", None)
    printed = shop.run("book", "entry", order["entryId"]).stdout
    assert "feePercent    0%\n" in printed
    assert "rate " not in printed
    assert "There is no entry 8589999999" in shop.refuse("book", "entry", "8589999999")


def test_a_statement_of_the_whole_book_has_both_sides(shop: Wallet) -> None:
    lines = shop.run("book", "statement", "Shop", "--format", "jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 6
    assert {row["account"] for row in rows} == {"merchant:USDT", "adjustment:USDT"}
    result = shop.run("book", "statement", "Shop", "--json")
    assert json.loads(result.stdout) == {"merchantId": 1001, "rows": rows}
    assert result.stdout.count("\n") == 1


def test_an_empty_statement_in_json_is_a_document_without_rows(shop: Wallet) -> None:
    nothing = shop.ask("book", "statement", "Shop", "--from", "2100-01-01")
    assert nothing == {"merchantId": 1001, "rows": []}


def test_a_long_statement_is_one_document_though_it_is_written_in_pieces(
    shop: Wallet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "WRITE_ROWS", 2)
    rows = shop.ask("book", "statement", "Shop")["rows"]
    assert len(rows) == 6
    assert len(shop.run("book", "statement", "Shop").stdout.splitlines()) == 1 + 6


@in_one_cell
def test_a_statement_of_an_unknown_account_is_refused_by_one_document(shop: Wallet) -> None:
    refused = shop.refuse_document("book", "statement", "Shop", "--account", "purse")
    assert "is no account" in refused["msg"]


def test_a_statement_keeps_to_its_moments(shop: Wallet) -> None:
    account = ("book", "statement", "Shop", "--account", "merchant:USDT", "--format", "jsonl")
    moments = [json.loads(line)["atMs"] for line in shop.run(*account).stdout.splitlines()]
    later = shop.run(*account, "--from", moments[1], "--to", moments[2]).stdout.splitlines()
    assert [json.loads(line)["amount"] for line in later] == ["-30"]
    assert shop.run(*account, "--from", "2100-01-01").stdout == ""


def test_an_empty_statement_in_csv_still_has_its_header(shop: Wallet) -> None:
    text = shop.run("book", "statement", "Shop", "--to", "2001-01-01").stdout
    assert text.startswith("entryId,atMs,")
    assert text.count("\n") == 1


@in_one_cell
@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--account", "purse"), 1, "is no account"),
        (("--account", "subuser:8589934599"), 1, "has no account"),
        (("--from", "yesterday"), 2, "is no moment"),
    ],
)
def test_a_statement_that_can_not_be_is_refused(
    shop: Wallet, options: tuple[str, ...], status: int, said: str
) -> None:
    assert said in shop.refuse("book", "statement", "Shop", *options, status=status)


@in_one_cell
def test_a_statement_in_two_formats_is_refused_as_json(shop: Wallet) -> None:
    refused = shop.run("book", "statement", "Shop", "--json", "--format", "csv", status=2)
    assert "contradict" in json.loads(refused.stdout)["msg"]


@each_row(
    ("text", "at_ms"),
    [
        ("2025-11-21", NOV_21_MS),
        ("2025-11-21T00:00:00Z", NOV_21_MS),
        ("2025-11-21T08:00:00.250+08:00", NOV_21_MS + 250),
        (str(NOV_21_MS), NOV_21_MS),
        (str(NOV_21_MS // 1000), NOV_21_MS),
        ("1969-12-31T23:59:59Z", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_a_moment_is_a_date_a_time_or_a_number(text: str, at_ms: int | None) -> None:
    if at_ms is None:
        with pytest.raises(Failure, match="is no moment"):
            read_moment(text, "--from")
    else:
        assert read_moment(text, "--from") == at_ms


@in_one_cell
def test_a_reader_that_stops_early_ends_the_statement_quietly(shop: Wallet) -> None:
    command = f'"{COMMAND}" book statement Shop --format jsonl | sleep 0; echo "${{PIPESTATUS[0]}}"'
    ended = subprocess.run(
        ["bash", "-c", command],
        env={**clean_environment(), **shop.variables},
        capture_output=True,
        text=True,
        check=True,
    )
    # The reader has closed the output, so the statement is incomplete: not a success, but no message either.
    assert (ended.stdout.strip(), ended.stderr) == ("1", "")


def test_sound_books_are_verified_with_their_checkpoints(shop: Wallet) -> None:
    assert asyncio.run(checkpoint(shop, 1)) == 1
    shop.open_merchant("Second")
    found = shop.ask("book", "verify")
    assert found["ok"] is True
    first, second = found["books"]
    assert (first["entries"], first["checkpoints"], first["fault"]) == (3, 1, None)
    assert first["balances"]["merchant:USDT"] == "77"
    assert second["entries"] == 0
    assert shop.ask("book", "verify", "Shop")["books"] == [first]


def test_the_first_entry_that_is_wrong_is_named(shop: Wallet) -> None:
    entry_id = shop.credit("Shop", "USDT", "5")["entryId"] - 2
    shop.tamper("update posting set amount = 1 where entry_id = %(entry)s", entry=entry_id)
    found = shop.ask("book", "verify", status=1)
    assert found["ok"] is False
    assert found["books"][0]["fault"]["entryId"] == entry_id
    told = shop.run("book", "verify", "Shop", status=1).stderr
    assert f"WRONG: merchant 1001 at entry {entry_id}" in told


def test_a_tail_that_was_cut_off_cleanly_is_seen_by_its_checkpoint(shop: Wallet) -> None:
    asyncio.run(checkpoint(shop, 1))
    last = shop.ask("book", "show", "Shop")["lastEntryId"]
    shop.tamper("delete from posting where entry_id = %(last)s", last=last)
    shop.tamper("delete from entry where entry_id = %(last)s", last=last)
    shop.tamper(
        "update book set entry_count = 2, id_counter = id_counter - 1,"
        " head_hash = (select hash from entry order by entry_id desc limit 1)"
    )
    shop.tamper("update account set balance = 70000000 where account_id = 1")
    shop.tamper("update account set balance = -70000000 where kind = 'adjustment' and currency = 'USDT'")
    fault = shop.ask("book", "verify", status=1)["books"][0]["fault"]
    assert (fault["rule"], fault["entryId"]) == ("checkpoint", last)


def test_checkpoints_are_looked_for_where_the_settings_say(shop: Wallet, tmp_path: Path) -> None:
    shop.variables["WALLET_CHECKPOINT_DIR"] = str(tmp_path / "apart")
    asyncio.run(checkpoint(shop, 1))
    assert shop.ask("book", "verify")["books"][0]["checkpoints"] == 1
    assert (tmp_path / "apart" / "1001.jsonl").exists()
