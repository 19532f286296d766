"""`book credit`, `debit` and `show`: an operator's own entries."""

import os
import pwd

import pytest
from tests.cli.conftest import Wallet, in_one_cell

from merchant_wallet.base.db import connect_sync

IN_BOTH_LAYOUTS = True


def test_a_deposit_is_credited_and_a_mistake_is_taken_back(wallet: Wallet) -> None:
    merchant_id = wallet.open_merchant()
    deposit = wallet.credit("Shop", "USDT", "1000.50")
    assert deposit["merchantId"] == merchant_id
    assert (deposit["amount"], deposit["balance"]) == ("1000.5", "1000.5")
    back = wallet.ask("book", "debit", "Shop", "USDT", "0.5", "--reason", "entered twice")
    assert back["entryId"] == deposit["entryId"] + 1
    assert (back["amount"], back["balance"]) == ("-0.5", "1000")
    assert wallet.balance("Shop", "merchant:USDT") == "1000"
    assert wallet.balance("Shop", "adjustment:USDT") == "-1000"


def test_the_journal_keeps_who_made_an_entry_and_why(wallet: Wallet) -> None:
    wallet.open_merchant()
    wallet.ask("book", "credit", "Shop", "KFB", "5", "--reason", "ticket 12")
    with connect_sync(wallet.both_url) as connection:
        facts = connection.execute("select facts from entry").fetchone()
    assert facts == (f'{{"actor":"cli:{pwd.getpwuid(os.getuid()).pw_name}","reason":"ticket 12"}}',)


@in_one_cell
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (
            ("debit", "Shop", "USDT", "1", "--reason", "x"),
            1,
            "amount: more than the available balance; 1 USDT are asked for, 0 USDT are there.",
        ),
        (("credit", "Shop", "USDT", "1", "--reason", "  "), 1, "needs a reason"),
        (("credit", "Shop", "USDT", "1"), 2, "--reason"),
        (("credit", "Shop", "EUR", "1", "--reason", "x"), 2, "CURRENCY"),
        (("credit", "Shop", "USDT", "0", "--reason", "x"), 1, "nothing to move"),
        (("credit", "Shop", "USDT", "1.0000001", "--reason", "x"), 1, "more than 6 decimals"),
        (("credit", "Shop", "USDT", "1e3", "--reason", "x"), 1, "plain decimal"),
        (("credit", "Shop", "KFB", "1", "--reason", "x", "--sub-user", "nobody"), 1, "Refused (40400)"),
    ],
)
def test_an_entry_that_must_not_be_is_refused(
    wallet: Wallet, arguments: tuple[str, ...], status: int, said: str
) -> None:
    wallet.open_merchant()
    assert said in wallet.refuse("book", *arguments, status=status)
    assert wallet.ask("book", "show", "Shop")["entryCount"] == 0


def test_a_reference_is_done_once_and_says_so(wallet: Wallet) -> None:
    wallet.open_merchant()
    credit = ("book", "credit", "Shop", "USDT", "1000", "--reason", "deposit", "--ref", "bank 4711")
    first = wallet.ask(*credit)
    assert (first["ref"], first["repeated"]) == ("bank 4711", False)
    assert wallet.ask(*credit) == {**first, "repeated": True}
    said = wallet.run(*credit)
    assert f"Done before, as entry {first['entryId']}" in said.stderr
    assert wallet.balance("Shop", "merchant:USDT") == "1000"
    debit = ("book", "debit", "Shop", "USDT", "1000", "--reason", "deposit", "--ref", "bank 4711")
    refused = wallet.refuse_document(*debit)
    assert (refused["code"], "ref: used before with other values" in refused["msg"]) == (40900, True)
    # Another merchant may use the same reference.
    wallet.open_merchant("Other")
    assert not wallet.ask("book", "credit", "Other", *credit[3:])["repeated"]
    shown = wallet.ask("audit", "list", "--merchant", "Shop", "--action", "book.credit")["entries"]
    done = {"done": True, "entryId": first["entryId"]}
    again = {**done, "repeated": True}
    assert [entry["after"] for entry in shown] == [again, again, done]
    assert wallet.ask("book", "verify")["ok"]


def test_without_a_reference_it_is_done_as_often_as_it_is_said(wallet: Wallet) -> None:
    wallet.open_merchant()
    said = [wallet.credit("Shop", "USDT", "1") for _ in range(2)]
    assert [(one["ref"], one["repeated"]) for one in said] == [(None, False)] * 2
    assert wallet.balance("Shop", "merchant:USDT") == "2"


@in_one_cell
def test_a_proposals_name_is_no_reference(wallet: Wallet) -> None:
    wallet.open_merchant()
    credit = ("book", "credit", "Shop", "USDT", "1", "--reason", "x")
    assert "names proposals" in wallet.refuse(*credit, "--ref", "proposal-7")
    assert "1 to 64" in wallet.refuse(*credit, "--ref", "")


def test_a_merchant_with_usdt_alone_is_not_given_kfb(wallet: Wallet) -> None:
    wallet.open_merchant("Shop", "--currency-mode", "USDT")
    wallet.credit("Shop", "USDT", "1")
    assert "USDT alone" in wallet.refuse("book", "credit", "Shop", "KFB", "1", "--reason", "x")


def test_a_sub_users_wallet_is_credited_and_debited(wallet: Wallet) -> None:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "KFB", "1")
    user = wallet.register(merchant_id, "player-7")
    credited = wallet.credit("Shop", "KFB", "50", "--sub-user", "player-7")
    assert (credited["extUserId"], credited["balance"]) == ("player-7", "50")
    debit = ("book", "debit", "Shop", "KFB", "20", "--sub-user", "player-7", "--reason", "x")
    assert wallet.ask(*debit)["balance"] == "30"
    assert wallet.balance("Shop", f"subuser:{user.user_id}:KFB") == "30"
    assert wallet.balance("Shop", "merchant:KFB") == "1"


def test_a_long_list_of_accounts_goes_on_where_it_stopped(wallet: Wallet) -> None:
    wallet.open_merchant()
    first = wallet.ask("book", "show", "Shop", "--limit", "6")
    assert first["nextAfter"] == first["accounts"][-1]["accountId"]
    rest = wallet.ask("book", "show", "Shop", "--after", first["nextAfter"])
    assert [line["accountId"] for line in first["accounts"] + rest["accounts"]] == list(range(1, 12))
    assert rest["nextAfter"] is None
    assert "--after 6" in wallet.run("book", "show", "Shop", "--limit", "6").stderr
