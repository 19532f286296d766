"""`audit`: every change at the terminal is logged, and changes of the log itself are found."""

from typing import Any

from tests.cli.conftest import Wallet

from merchant_wallet.book.commands import Approve
from merchant_wallet.cli.session import find_actor


def entries(wallet: Wallet, *options: object) -> list[dict[str, Any]]:
    """The log, oldest first."""
    found: list[dict[str, Any]] = wallet.ask("audit", "list", *options)["entries"]
    return found[::-1]


def actions(wallet: Wallet, *options: object) -> list[str]:
    return [entry["action"] for entry in entries(wallet, *options)]


def test_a_shops_day_at_the_terminal_is_in_the_log(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.run("merchant", "set", "Shop", "--transfer-fee-rate", "0.5%", "--require-pin")
    wallet.run("merchant", "suspend", "Shop")
    wallet.run("merchant", "resume", "Shop")
    secret = wallet.ask("merchant", "rotate-secret", "Shop")["appSecret"]
    wallet.run("merchant", "retire-secret", "Shop")
    log = entries(wallet)
    assert [entry["action"] for entry in log] == [
        "merchant.create",
        "merchant.set",
        "merchant.suspend",
        "merchant.resume",
        "merchant.roll_key",
        "merchant.end_old_secret",
    ]
    assert {(entry["actor"], entry["source"], entry["merchantId"]) for entry in log} == {
        (find_actor(), "terminal", shop)
    }
    subject = f"merchant {shop}"
    assert [entry["subject"] for entry in log] == [subject] * 4 + [f"{subject} key 1"] * 2
    assert log[0]["after"] == {"name": "Shop", "currencyMode": "KFB"}
    assert log[1]["before"] == {"transferFeeRate": "0", "requirePin": False}
    assert log[1]["after"] == {"transferFeeRate": "0.005", "requirePin": True}
    assert (log[2]["before"], log[2]["after"]) == ({"status": "active"}, {"status": "suspended"})
    assert log[5]["after"] == {"ended": True}
    assert secret not in wallet.run("audit", "list", "--json").stdout
    assert wallet.ask("audit", "verify")["ok"] is True


def test_what_is_only_looked_at_or_refused_before_it_was_tried_is_not_in_the_log(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    for command in (
        ("merchant", "list"),
        ("merchant", "show", "Shop"),
        ("rates", "list"),
        ("withdrawals", "list"),
        ("book", "show", "Shop"),
        ("book", "verify"),
        ("operator", "list"),
    ):
        wallet.run(*command)
    wallet.refuse("merchant", "set", "Shop", "--transfer-fee-rate", "2")
    wallet.refuse("merchant", "retire-secret", "Shop")
    wallet.refuse("rates", "set", "KFB:USDT", "0.14", "--merchant", "nobody")
    assert actions(wallet) == ["merchant.create"]


def test_what_a_book_is_asked_is_written_before_and_what_came_of_it_after(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    credited = wallet.credit("Shop", "USDT", "100")
    wallet.refuse("book", "debit", "Shop", "USDT", "500", "--reason", "too much")
    order = wallet.order(shop, "20")
    wallet.run("withdrawals", "cancel", order)
    asked, done, asked_too_much, refused, asked_cancel, cancelled = entries(wallet)[1:]
    assert (asked["action"], done["action"]) == ("book.credit.asked", "book.credit")
    assert (asked["after"]["currency"], asked["after"]["signed_units"]) == ("USDT", 100_000_000)
    assert (asked["after"]["reason"], asked["after"]["actor"]) == ("opening", find_actor())
    assert done["after"] == {"done": True, "entryId": credited["entryId"]}
    assert (asked_too_much["action"], refused["action"]) == ("book.debit.asked", "book.debit.refused")
    assert refused["after"]["refused"] == 42200
    assert (asked_cancel["action"], cancelled["action"]) == ("withdrawal.cancel.asked", "withdrawal.cancel")
    assert cancelled["subject"] == f"order {order}"
    assert {entry["merchantId"] for entry in entries(wallet)} == {shop}


def test_an_approval_that_another_persons_had_made_needless_is_not_told_as_ones_own(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "100")
    order = wallet.order(shop, "40", second_limit="30")
    wallet.run("withdrawals", "approve", order)
    wallet.submit(shop, Approve(order, "operator:bob"))
    wallet.run("withdrawals", "approve", order)
    first, late = [entry["after"] for entry in entries(wallet) if entry["action"] == "withdrawal.approve"]
    assert first == {"done": True, "txnStatus": 0, "firstApprovedBy": find_actor()}
    assert late == {**first, "approvedBy": "operator:bob"}


def test_rates_sub_users_and_stops_are_in_the_log_with_what_was_so_before(wallet: Wallet) -> None:
    shop = wallet.open_merchant("Shop")
    wallet.credit("Shop", "USDT", "1")
    wallet.register(shop, "alice")
    wallet.run("rates", "set", "USDT:KFB", "7")
    wallet.run("rates", "set", "USDT:KFB", "7.1")
    wallet.run("rates", "pause", "USDT:KFB", "--merchant", "Shop")
    wallet.run("sub-users", "set", "Shop", "alice", "--pause", "--limit-day", "50")
    wallet.run("wallets", "stop", "ERC20", "--reason", "odd balances")
    wallet.run("wallets", "resume", "ERC20")
    wallet.run("callbacks", "pause", "Shop")
    wallet.run("callbacks", "resume", "Shop")
    wallet.run("reconcile", "record", "IN", "ERC20", "5", "--tx", "0x" + "ab" * 32, "--reason", "seed money")
    first, second, paused, set_, frozen, thawed, held, let_go, treasury = entries(wallet)[3:]
    assert (first["action"], first["before"]["rate"], first["after"]["rate"]) == ("rate.set", None, "7")
    assert (second["before"]["rate"], second["after"]["rate"], second["merchantId"]) == ("7", "7.1", None)
    assert (paused["action"], paused["merchantId"], paused["after"]["paused"]) == ("rate.pause", shop, True)
    assert (set_["action"], set_["subject"]) == ("sub_user.set", "sub-user alice")
    assert set_["before"] == {"paused": False, "limitDebit": None, "limitDay": None}
    assert set_["after"] == {"paused": True, "limitDebit": None, "limitDay": "50"}
    assert (frozen["action"], frozen["after"]) == ("wallet.freeze", {"reason": "odd balances"})
    assert (thawed["action"], thawed["before"]["stops"][0]["cause"]) == ("wallet.thaw", "odd balances")
    assert (held["action"], held["subject"]) == ("callback.pause", "callback all callbacks")
    assert (let_go["action"], let_go["after"]) == ("callback.resume", {"resumed": True})
    assert (treasury["action"], treasury["after"]["reason"]) == ("treasury.record", "seed money")


def test_a_change_that_can_not_be_logged_is_not_made(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    wallet.tamper("delete from audit_entry")
    wallet.tamper("alter table audit_entry add constraint broken check (false)")
    wallet.run("merchant", "suspend", "Shop", status=1)
    assert wallet.ask("merchant", "show", "Shop")["status"] == "active"
    wallet.run("book", "credit", "Shop", "USDT", "1", "--reason", "x", status=1)
    assert wallet.balance("Shop", "merchant:USDT") == "0"


def test_the_log_is_read_by_merchant_actor_and_action_in_pages(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    wallet.open_merchant("Store")
    wallet.run("merchant", "suspend", "Store")
    assert actions(wallet, "--merchant", "Store") == ["merchant.create", "merchant.suspend"]
    assert actions(wallet, "--action", "merchant.create") == ["merchant.create"] * 2
    assert actions(wallet, "--actor", "operator:ann") == []
    page = wallet.ask("audit", "list", "--limit", "2")
    assert (len(page["entries"]), page["nextBefore"]) == (2, 2)
    rest = wallet.ask("audit", "list", "--limit", "2", "--before", page["nextBefore"])
    assert ([entry["auditNo"] for entry in rest["entries"]], rest["nextBefore"]) == ([1], None)
    said = wallet.run("audit", "list", "--limit", "1")
    assert "suspended a merchant: Store (1002). Status: Active → Suspended" in said.stdout
    assert "There are more: --before 3" in said.stderr


def test_what_was_done_to_the_log_is_named_with_status_1(wallet: Wallet) -> None:
    wallet.open_merchant("Shop")
    wallet.run("merchant", "suspend", "Shop")
    wallet.run("merchant", "resume", "Shop")
    assert wallet.ask("audit", "verify")["entries"] == 3
    wallet.tamper("update audit_entry set actor = 'cli:eve' where audit_no = 2")
    report = wallet.ask("audit", "verify", status=1)
    assert (report["ok"], report["fault"]["auditNo"], report["entries"]) == (False, 2, 1)
    said = wallet.run("audit", "verify", status=1)
    assert "WRONG at entry 2: its hash is not that of its content" in said.stderr
