"""`merchant`: create, settings, status and secrets."""

import re

import pytest
from tests.cli.conftest import Wallet

from merchant_wallet.book.commands import ReadBalances
from merchant_wallet.book.outcomes import Balances, Stale

SECRET_LENGTH = 32


def test_a_new_merchant_gets_its_key_and_secrets_this_once(wallet: Wallet) -> None:
    made = wallet.ask("merchant", "create", "Shop")
    assert list(made) == ["merchantId", "appKey", "appSecret", "callbackSecret"]
    assert len(made["appSecret"]) == len(made["callbackSecret"]) == SECRET_LENGTH
    assert "\nwithdrawFeeMin       0 USDT\n" in wallet.run("merchant", "show", "Shop").stdout
    shown = wallet.run("merchant", "show", "Shop").output + wallet.run("merchant", "list").output
    assert made["appKey"] in shown
    assert made["appSecret"] not in shown
    assert made["callbackSecret"] not in shown


def test_a_merchant_is_named_by_id_key_or_name(wallet: Wallet) -> None:
    made = wallet.ask("merchant", "create", "Corner Shop", "--currency-mode", "USDT")
    for name in (made["merchantId"], made["appKey"], "Corner Shop"):
        shown = wallet.ask("merchant", "show", name)
        assert (shown["merchantId"], shown["currencyMode"]) == (made["merchantId"], "USDT")
    assert "nobody" in wallet.refuse("merchant", "show", "nobody")


def test_a_name_that_two_have_is_refused_with_their_ids(wallet: Wallet) -> None:
    first, second = wallet.open_merchant("Twin"), wallet.open_merchant("Twin")
    told = wallet.refuse("merchant", "suspend", "Twin")
    assert str(first) in told
    assert str(second) in told


def test_settings_are_changed_and_shown_as_they_now_are(wallet: Wallet) -> None:
    wallet.open_merchant()
    after = wallet.ask(
        *("merchant", "set", "Shop", "--transfer-fee-rate", "0.5%", "--withdraw-fee-rate", "1%"),
        *("--withdraw-fee-min", "1.50", "--approval-limit", "500", "--daily-limit", "10000"),
        *("--rate-limit", "50", "--sign-method", "MD5", "--no-auto-register", "--require-pin"),
        *("--allow-network", "192.0.2.0/24", "--allow-network", "2001:db8::/32"),
    )
    assert after == wallet.ask("merchant", "show", "Shop")
    assert after["transferFeeRate"] == "0.005"
    assert after["withdrawFeeRate"] == "0.01"
    assert (after["transferFeePercent"], after["withdrawFeePercent"]) == ("0.5", "1")
    shown = wallet.run("merchant", "show", "Shop").stdout
    assert re.search(r"^transferFeePercent +0\.5%$", shown, re.M)
    assert "FeeRate" not in shown, "people have one form of it"
    assert (
        "transfer-fee-rate: 0.5% -> 2%\n"
        in wallet.run("merchant", "set", "Shop", "--transfer-fee-rate", "2%").stdout
    )
    assert after["withdrawFeeMin"] == "1.5"
    assert (after["approvalLimit"], after["dailyLimit"], after["rateLimit"]) == ("500", "10000", 50)
    assert (after["signMethod"], after["autoRegister"], after["requirePin"]) == ("MD5", False, True)
    assert after["allowedNetworks"] == ["192.0.2.0/24", "2001:db8::/32"]


def test_an_allow_list_is_replaced_and_none_empties_it(wallet: Wallet) -> None:
    wallet.open_merchant()
    evm = "0x742d35cc6634c0532925a3b844bc454e4438f44e"
    tron = "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC"
    set_shop = ("merchant", "set", "Shop")
    assert wallet.ask(*set_shop, "--allow-address", evm)["allowedAddresses"] == [evm]
    assert wallet.ask(*set_shop, "--allow-address", tron)["allowedAddresses"] == [tron]
    assert wallet.ask(*set_shop, "--allow-address", "none")["allowedAddresses"] == []


def test_the_pages_that_may_frame_the_wallet_page_are_a_list_too(wallet: Wallet) -> None:
    wallet.open_merchant()
    set_shop = ("merchant", "set", "Shop", "--frame-origin")
    origins = ["http://localhost:5173", "https://shop.example"]
    assert wallet.ask(*set_shop, origins[1], "--frame-origin", origins[0])["frameOrigins"] == origins
    assert "frame-origins must be" in wallet.refuse(*set_shop, "https://shop.example/page")
    assert wallet.ask(*set_shop, "none")["frameOrigins"] == []


def test_operations_are_switched_off_and_on_one_by_one(wallet: Wallet) -> None:
    wallet.open_merchant()
    set_shop = ("merchant", "set", "Shop")
    both = wallet.ask(*set_shop, "--disable", "exchange", "--disable", "queryOrder")
    assert both["disabledOperations"] == ["exchange", "queryOrder"]
    one = wallet.ask(*set_shop, "--enable", "exchange")
    assert one["disabledOperations"] == ["queryOrder"]
    assert wallet.ask(*set_shop, "--enable", "queryOrder")["disabledOperations"] == []


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--transfer-fee-rate", "101%"), 1, "from 0% to 100%"),
        (("--transfer-fee-rate", "0.5"), 1, "0.5 can mean 0.5% or 50%: write 0.5% or 50%."),
        (("--withdraw-fee-rate", "2"), 1, "Write the percent sign: 2%."),
        (("--allow-network", "10.0.0.1/8"), 1, "networks must be"),
        (("--allow-address", "0x12"), 1, "allowed-addresses must be"),
        (("--disable", "exchang"), 1, "is no operation"),
        (("--enable", "exchang"), 1, "is no operation"),
        (("--enable", "exchange", "--disable", "exchange"), 2, "both"),
        (("--sign-method", "RSA"), 1, "HMAC or MD5"),
        ((), 2, "Nothing to change"),
    ],
)
def test_a_wrong_setting_is_refused_and_nothing_is_changed(
    wallet: Wallet, options: tuple[str, ...], status: int, said: str
) -> None:
    wallet.open_merchant()
    before = wallet.ask("merchant", "show", "Shop")
    good = ("--approval-limit", "1") if options else ()
    assert said in wallet.refuse("merchant", "set", "Shop", *good, *options, status=status)
    assert wallet.ask("merchant", "show", "Shop") == before


def test_a_person_is_told_what_was_changed(wallet: Wallet) -> None:
    wallet.open_merchant()
    result = wallet.run("merchant", "set", "Shop", "--approval-limit", "250")
    assert result.stdout == "approval-limit: 1000 -> 250\n"
    again = wallet.run("merchant", "set", "Shop", "--approval-limit", "250")
    assert again.stdout == ""
    assert "Nothing changed" in again.stderr


@pytest.mark.parametrize(
    "change",
    [
        ("suspend", "Shop"),
        ("resume", "Shop"),
        ("set", "Shop", "--approval-limit", "1"),
        ("rotate-secret", "Shop"),
    ],
)
def test_a_change_holds_from_the_next_request_on(wallet: Wallet, change: tuple[str, ...]) -> None:
    merchant_id = wallet.open_merchant()
    wallet.credit("Shop", "KFB", "1")
    assert isinstance(wallet.submit(merchant_id, ReadBalances(), settings_version=1), Balances)
    wallet.run("merchant", *change)
    assert isinstance(wallet.submit(merchant_id, ReadBalances(), settings_version=1), Stale)


def test_suspending_twice_changes_nothing_the_second_time(wallet: Wallet) -> None:
    wallet.open_merchant()
    assert wallet.ask("merchant", "suspend", "Shop")["changed"] is True
    assert wallet.ask("merchant", "suspend", "Shop")["changed"] is False
    assert wallet.ask("merchant", "show", "Shop")["status"] == "suspended"
    assert wallet.ask("merchant", "resume", "Shop")["status"] == "active"


def test_a_secret_is_rotated_before_the_old_one_is_retired(wallet: Wallet) -> None:
    first = wallet.ask("merchant", "create", "Shop")["appSecret"]
    assert "one valid secret only" in wallet.refuse("merchant", "retire-secret", "Shop")
    rotated = wallet.ask("merchant", "rotate-secret", "Shop")
    assert len(rotated["appSecret"]) == SECRET_LENGTH
    assert rotated["appSecret"] != first
    assert wallet.ask("merchant", "show", "Shop")["liveSecrets"] == 2
    assert "older secret of this key still works" in wallet.refuse("merchant", "rotate-secret", "Shop")
    assert wallet.ask("merchant", "retire-secret", "Shop")["retiredSecretNo"] == 1
    assert wallet.ask("merchant", "show", "Shop")["liveSecrets"] == 1


def test_no_merchant_is_opened_under_another_master_key(wallet: Wallet) -> None:
    wallet.open_merchant()
    elsewhere = Wallet(wallet.url, wallet.folder.with_name("elsewhere"))
    assert "master key" in elsewhere.refuse("merchant", "create", "Second", status=2)
    assert not elsewhere.folder.exists()
    elsewhere.variables["WALLET_MASTER_KEY"] = "ab" * 32
    assert "does not open" in elsewhere.refuse("merchant", "create", "Second", status=2)
    assert "does not open" in elsewhere.refuse("merchant", "rotate-secret", "Shop", status=2)
    assert len(wallet.ask("merchant", "list")["merchants"]) == 1


def test_a_name_is_no_markup_and_no_escape_sequence(wallet: Wallet) -> None:
    wallet.open_merchant("[red]Shop[/red]")
    assert "[red]Shop[/red]" in wallet.run("merchant", "list").stdout
    assert "printable" in wallet.refuse("merchant", "create", "\x1b[31mShop")
