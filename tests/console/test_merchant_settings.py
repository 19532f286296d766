"""A merchant's settings in the console: one form for all of them, edited by several people at once."""

import re

from tests.console.conftest import People, read_text
from tests.console.test_merchants import entries, fees_form, marks_of, settings_form, url_of
from tests.journeys.conftest import Platform, Shop

from merchant_wallet.cli.merchant_facts import describe
from merchant_wallet.console.setting_fields import list_fields
from merchant_wallet.merchants import settings, store
from merchant_wallet.merchants.audit_facts import list_settings_facts


def test_every_setting_has_a_field_of_its_own() -> None:
    assert [one.name for one in list_fields() if one.label == one.name] == []
    assert {one.name for one in list_fields()} == set(settings.SETTINGS)


def test_saving_what_stands_there_changes_nothing(platform: Platform, people: People, shop: Shop) -> None:
    shop.change(
        networks="127.0.0.0/8 192.0.2.0/24",
        disabled_operations="exchange",
        daily_limit="500",
        rate_limit="0",
        deposit_notify_url="http://127.0.0.1:9/deposits",
        frame_origins="https://shop.example",
    )
    operator = people.signed_in("operator")
    # Every save moves the settings' version, at home as at the book.
    read = (
        "select to_jsonb(m) - 'settings_version' - 'carried_version' from merchant m where merchant_id = %s"
    )
    before = platform.rows(read, shop.merchant_id)
    answer = operator.post(url_of(shop, "/settings"), settings_form(operator, shop))
    assert "Nothing was changed" in read_text(operator.follow(answer).text)
    assert platform.rows(read, shop.merchant_id) == before
    assert not [row for row in entries(platform, "merchant.set") if row[2] == shop.merchant_id]


def test_a_change_holds_from_the_next_request_on_and_is_told_before_and_after(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    form = settings_form(operator, shop) | {
        "name": "Tea House",
        "daily-limit": "250.5",
        "networks": "127.0.0.0/8\n192.0.2.0/24",
        "disabled-operations": ["exchange", "getWithdrawFee"],
    }
    answer = operator.post(url_of(shop, "/settings"), form)
    page = operator.follow(answer).text
    assert "Saved" in read_text(page)
    assert "Tea House" in page
    shop.client.expect(40301, "getWithdrawFee", amount="10", currency="USDT")
    before, after = entries(platform, "merchant.set")[-1][3:]
    assert before | {"name": "…"} == {
        "name": "…",
        "dailyLimit": None,
        "allowedNetworks": [],
        "disabledOperations": [],
    }
    assert after == {
        "name": "Tea House",
        "dailyLimit": "250.5",
        "allowedNetworks": ["127.0.0.0/8", "192.0.2.0/24"],
        "disabledOperations": ["exchange", "getWithdrawFee"],
    }
    log = operator.page(f"/console/audit?merchant={shop.merchant_id}&action=merchant.set")
    assert "<del>no limit</del><ins>250.50 USDT</ins>" in log


def test_the_audit_log_tells_every_setting_as_the_terminal_does(platform: Platform, shop: Shop) -> None:
    merchant = platform.operate(lambda conn: store.load(conn, platform.base.keyring, shop.merchant_id))
    assert merchant is not None
    told = list_settings_facts(merchant)
    assert len(told) == len(settings.SETTINGS)
    assert told.items() <= describe(merchant).items()


def test_every_setting_can_be_changed(platform: Platform, people: People, shop: Shop) -> None:
    typed = {
        "name": "All Else",
        "transfer-fee-rate": "0.1%",
        "withdraw-fee-rate": "0.2%",
        "withdraw-fee-min": "3",
        "approval-limit": "4",
        "second-approval-limit": "5",
        "daily-limit": "6",
        "payout-limit": "11",
        "payout-limit-count": "12",
        "payout-window": "13",
        "first-payout-limit": "14",
        "payout-hours": "Mon-Fri 09:00-18:00 Asia/Shanghai",
        "allowed-addresses": "0x" + "7" * 40,
        "sign-method": "MD5",
        "networks": "127.0.0.0/8",
        "rate-limit": "8",
        "disabled-operations": ["exchange"],
        "require-pin": "on",
        "frame-origins": "https://shop.example",
        "deposit-notify-url": "http://10.0.0.1:9/deposits",
        "brand-colour": "#8A1538",
        "brand-logo": "ab" * 32,
        "customer-url": "https://shop.example/wallet",
        "billing-address": "Shop Ltd; 1 Quay",
        "tax-id": "HK 1234567-8",
    }
    operator = people.signed_in("operator")
    form = {**settings_form(operator, shop), **typed}
    del form["auto-register"]
    answer = operator.post(url_of(shop, "/settings"), form)
    said = read_text(operator.follow(answer).text)
    assert "Saved. Callbacks to 10.0.0.1 will fail: it is no public address." in said
    changed = entries(platform, "merchant.set")[-1][4]
    assert len(changed) == len(settings.SETTINGS) - 1, "the currencies stay"
    assert (changed["requirePin"], changed["autoRegister"], changed["rateLimit"]) == (True, False, 8)


def test_what_somebody_else_has_changed_meanwhile_is_not_undone(people: People, shop: Shop) -> None:
    mei, ann = people.signed_in("operator"), people.signed_in("operator")
    path, stale = url_of(shop, "/settings"), settings_form(mei, shop)
    mei.follow(ann.post(path, settings_form(ann, shop) | {"daily-limit": "500", "rate-limit": "7"}))
    # A refused form in between makes no difference.
    wrong = mei.post(path, stale | {"approval-limit": "many"})
    assert wrong.status_code == 422
    stale["marks"] = marks_of(wrong.text)
    assert "Saved" in read_text(mei.follow(mei.post(path, stale | {"approval-limit": "90"})).text)
    now = settings_form(mei, shop)
    assert (now["daily-limit"], now["rate-limit"], now["approval-limit"]) == ("500", "7", "90")


def test_who_changes_what_somebody_else_has_just_changed_is_told_first(people: People, shop: Shop) -> None:
    mei, ann = people.signed_in("operator"), people.signed_in("operator")
    path, stale = url_of(shop, "/settings"), settings_form(mei, shop)
    ann.post(path, settings_form(ann, shop) | {"daily-limit": "500"})
    asked = mei.post(path, stale | {"daily-limit": "9000", "rate-limit": "7"})
    assert asked.status_code == 422
    assert "Somebody else has changed this meanwhile" in read_text(asked.text)
    assert "The present value is: 500" in read_text(asked.text)
    now = settings_form(mei, shop)
    assert (now["daily-limit"], now["rate-limit"]) == ("500", ""), "all or none"
    again = stale | {"daily-limit": "9000", "rate-limit": "7", "marks": marks_of(asked.text)}
    assert "Saved" in read_text(mei.follow(mei.post(path, again)).text)
    assert settings_form(mei, shop)["daily-limit"] == "9000"


def test_fees_are_not_undone_either(people: People, shop: Shop) -> None:
    mei, ann = people.signed_in("operator"), people.signed_in("operator")
    stale = fees_form(mei, shop, transfer_fee_rate="2%", withdraw_fee_rate="0", withdraw_fee_min="0")
    fees = fees_form(ann, shop, transfer_fee_rate="1%", withdraw_fee_rate="0", withdraw_fee_min="2")
    ann.post(url_of(shop, "/fees"), fees)
    asked = mei.post(url_of(shop, "/fees"), stale)
    assert asked.status_code == 422
    assert "The present value is: 1%" in read_text(asked.text)


def test_what_is_wrong_is_said_of_every_field_and_what_was_typed_stays(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    typed = {
        "withdraw-fee-rate": "150%",
        "approval-limit": "-1",
        "networks": "192.0.2.0/24\nnonsense",
        "allowed-addresses": "0x1234",
        "rate-limit": "many",
        "deposit-notify-url": "ftp://x",
        "name": "",
    }
    before = platform.rows("select * from merchant where merchant_id = %s", shop.merchant_id)
    answer = operator.post(url_of(shop, "/settings"), settings_form(operator, shop) | typed)
    assert answer.status_code == 422
    assert "7 fields must be corrected" in read_text(answer.text)
    operator.post("/console/account/look", {"language": "zh-CN", "theme": "auto"})
    chinese = operator.post(url_of(shop, "/settings"), settings_form(operator, shop) | typed)
    assert "不能设置为该值：nonsense" in chinese.text
    assert "IPv4" not in chinese.text
    wrong = {"allowed-addresses": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tD0C"}
    chinese = operator.post(url_of(shop, "/settings"), settings_form(operator, shop) | wrong)
    assert "不能设置为该值：0<" in chinese.text
    operator.post("/console/account/look", {"language": "en", "theme": "auto"})
    one = operator.post(url_of(shop, "/settings"), settings_form(operator, shop) | {"name": ""})
    assert "Nothing was changed. One field must be corrected." in read_text(one.text)
    assert len(re.findall(r'aria-invalid="true"', answer.text)) == 7
    for text in (
        'value="150%"',
        'value="-1"',
        "192.0.2.0/24\nnonsense",
        "0x1234",
        'value="many"',
        'value="ftp://x"',
    ):
        assert text in answer.text, text
    assert platform.rows("select * from merchant where merchant_id = %s", shop.merchant_id) == before


def test_the_currencies_stay_once_the_book_has_an_entry(people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    form = settings_form(operator, shop) | {"currency-mode": "USDT", "name": "Renamed"}
    answer = operator.post(url_of(shop, "/settings"), form)
    assert answer.status_code == 422
    assert "The currencies stay as they are" in answer.text
    assert 'value="Renamed"' in answer.text
    assert "Renamed" not in operator.page(url_of(shop))
