"""`sub-users`: finding them, and what they let the merchant debit."""

from tests.cli.conftest import Wallet

from merchant_wallet.book.outcomes import DEBIT_LIMIT, DEBITS_PAUSED, Transferred
from merchant_wallet.chains.addresses import to_eip55, to_tron


def open_shop(wallet: Wallet) -> int:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "KFB", "100")
    return merchant_id


def test_a_sub_user_is_shown_with_both_addresses(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    user = wallet.register(merchant_id, "player-7")
    wallet.pay_user(merchant_id, user, "12.5")
    wallet.collect(merchant_id, "player-7", "2")
    shown = wallet.ask("sub-users", "show", "Shop", "player-7")
    assert shown["userId"] == user.user_id
    assert (shown["balance"], shown["debitedToday"], shown["currency"]) == ("10.5", "2", "KFB")
    assert shown["address"] == to_eip55(user.evm_address)
    assert shown["tronAddress"] == to_tron(user.tron_address)
    assert "no sub-user" in wallet.refuse("sub-users", "show", "Shop", "player-8")


def test_a_pause_and_a_limit_hold_from_the_next_debit_on(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.pay_user(merchant_id, wallet.register(merchant_id, "player-7"), "50")
    set_player = ("sub-users", "set", "Shop", "player-7")
    assert wallet.ask(*set_player, "--pause")["paused"] is True
    assert wallet.collect(merchant_id, "player-7", "1") == DEBITS_PAUSED
    limited = wallet.ask(*set_player, "--resume", "--limit-debit", "5", "--limit-day", "20")
    assert (limited["paused"], limited["limitDebit"], limited["limitDay"]) == (False, "5", "20")
    assert wallet.collect(merchant_id, "player-7", "6") == DEBIT_LIMIT
    freed = wallet.ask(*set_player, "--limit-debit", "none")
    assert (freed["limitDebit"], freed["limitDay"]) == (None, "20")
    assert isinstance(wallet.collect(merchant_id, "player-7", "6"), Transferred)


def test_a_change_of_nothing_or_to_nonsense_is_refused(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    wallet.register(merchant_id, "player-7")
    set_player = ("sub-users", "set", "Shop", "player-7")
    assert "Nothing to change" in wallet.refuse(*set_player, status=2)
    assert "--limit-day" in wallet.refuse(*set_player, "--limit-day", "much")


def test_sub_users_are_listed_page_by_page_and_found(wallet: Wallet) -> None:
    merchant_id = open_shop(wallet)
    users = [wallet.register(merchant_id, f"player-{number}") for number in range(3)]
    first = wallet.ask("sub-users", "list", "Shop", "--limit", "2")
    assert [line["extUserId"] for line in first["subUsers"]] == ["player-0", "player-1"]
    rest = wallet.ask("sub-users", "list", "Shop", "--after", first["nextAfter"])
    assert [line["extUserId"] for line in rest["subUsers"]] == ["player-2"]
    assert rest["nextAfter"] is None
    for text in ("player-1", users[1].user_id, to_tron(users[1].tron_address)):
        found = wallet.ask("sub-users", "list", "Shop", "--search", text)["subUsers"]
        assert [line["userId"] for line in found] == [users[1].user_id]
