"""A sub-user's settings need the PIN, and apply from the merchant's next debit on."""

import pytest
from tests.journeys.conftest import Clock, Platform, Shop
from tests.wallet_site.conftest import Browser, texts

from merchant_wallet.base.units import MINUTE_MS
from merchant_wallet.sub_users import pins

CLOCK_MS = 1_763_712_000_000
PAGE = "/wallet/security"
PIN, OTHER_PIN = "482913", "750264"
DEBITS, LIMITS, SET_PIN = f"{PAGE}/debits", f"{PAGE}/limits", f"{PAGE}/pin"


def pay(shop: Shop, code: int, amount: str = "1") -> str:
    """A debit by the merchant that must get this code. Returns the message."""
    return shop.client.expect(
        code,
        "transferFromUserToMerchant",
        mcOrderId=shop.next_order(),
        amount=amount,
        extUserId="alice",
        currency="KFB",
    ).msg


def set_pin(browser: Browser, pin: str = PIN) -> None:
    """Set the first PIN."""
    answer = browser.send(SET_PIN, pin=pin, pin_again=pin)
    assert answer.headers["location"] == "/wallet/security?said=pin", texts(answer)


def enter(shop: Shop, browser: Browser) -> None:
    """Alice has 100 KFB, opens her wallet and sets her PIN."""
    browser.open(shop.user("alice", "100")["url"])
    set_pin(browser)


def test_where_a_pin_is_required_debits_wait_for_it(platform: Platform, browser: Browser) -> None:
    shop = platform.open_merchant(require_pin="on")
    browser.open(shop.user("alice", "100")["url"])
    pay(shop, 40302)
    assert "Set a PIN to pay from this wallet" in texts(browser.get("/wallet"))
    set_pin(browser)
    pay(shop, 200)
    assert "Set a PIN to pay" not in texts(browser.get("/wallet"))


def test_paused_debits_are_refused_until_they_are_allowed_again(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    pay(shop, 200)
    assert browser.send(DEBITS, debits="pause", pin=PIN).headers["location"] == f"{PAGE}?said=paused"
    assert "Debits are paused." in texts(browser.get(f"{PAGE}?said=paused"))
    pay(shop, 40302)
    assert "Debits are paused" in texts(browser.get("/wallet"))
    browser.send(DEBITS, debits="resume", pin=PIN)
    pay(shop, 200)


def test_limits_hold_for_one_debit_and_for_a_day(shop: Shop, browser: Browser, clock: Clock) -> None:
    enter(shop, browser)
    assert browser.send(LIMITS, limit_debit="10", limit_day="25.5", pin=PIN).status_code == 303
    pay(shop, 42202, "10.000001")
    pay(shop, 200, "10")
    pay(shop, 200, "10")
    pay(shop, 42202, "5.6")
    pay(shop, 200, "5.5")
    said = texts(browser.get(PAGE))
    assert "Per debit 10.00 KFB Per day 25.50 KFB Used today 25.50 KFB" in said
    clock.advance(86_400_000)
    browser.open(shop.user("alice")["url"])
    assert "Used today 0.00 KFB" in texts(browser.get(PAGE))
    assert browser.send(LIMITS, limit_debit="", limit_day="", pin=PIN).status_code == 303
    assert "Per debit No limit Per day No limit" in texts(browser.get(PAGE))
    pay(shop, 200, "60")


def test_a_limit_of_nothing_is_a_limit(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    browser.send(LIMITS, limit_debit="0", limit_day="", pin=PIN)
    pay(shop, 42202, "0.000001")


@pytest.mark.parametrize("path", [DEBITS, LIMITS])
def test_without_the_pin_nothing_changes(path: str, shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    for pin in ("", OTHER_PIN, "12345", "abcdef", "４８２９１３"):
        answer = browser.send(path, debits="pause", limit_debit="0", limit_day="0", pin=pin)
        assert answer.status_code == 422, pin
        assert "Your PIN is locked" not in texts(answer), pin
        pay(shop, 200)


@pytest.mark.parametrize("path", [DEBITS, LIMITS])
def test_before_a_pin_is_set_nothing_else_can_be(path: str, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice", "100")["url"])
    assert browser.send(path, debits="pause", limit_debit="0", limit_day="0", pin=PIN).status_code == 422
    pay(shop, 200)


def test_a_form_that_lacks_what_it_is_about_changes_nothing(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    browser.send(DEBITS, debits="pause", pin=PIN)
    browser.send(LIMITS, limit_debit="5", limit_day="7", pin=PIN)
    for fields in ({}, {"debits": ""}, {"debits": "Pause"}):
        assert browser.send(DEBITS, pin=PIN, **fields).status_code == 400
    for fields in ({}, {"limit_debit": ""}, {"limit_day": ""}):
        assert browser.send(LIMITS, pin=PIN, **fields).status_code == 400
    assert "Paused" in texts(browser.get(PAGE))
    assert "Per debit 5.00 KFB Per day 7.00 KFB" in texts(browser.get(PAGE))


def test_after_a_mistake_the_choice_of_language_leads_back_to_the_page(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    answer = browser.send(DEBITS, debits="pause", pin=OTHER_PIN)
    assert f'<input type="hidden" name="back" value="{PAGE}">' in answer.text


def test_amounts_typed_wrong_are_shown_again_and_the_pin_is_not(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    answer = browser.send(LIMITS, limit_debit="1,5", limit_day="200", pin=PIN)
    assert answer.status_code == 422
    assert 'value="1,5"' in answer.text
    assert 'value="200"' in answer.text
    assert PIN not in answer.text
    assert "in a wrong place in 1,5." in texts(answer)
    assert '<dialog id="limits" class="dialog" aria-labelledby="limits-title" open data-shown>' in answer.text
    pay(shop, 200, "50")


def test_what_is_no_amount_is_no_limit(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    for text in ("-1", "1e3", "0x10", "1.1234567", "99999999999999999999", "１０", "<b>"):
        answer = browser.send(LIMITS, limit_debit=text, limit_day="", pin=PIN)
        assert answer.status_code == 422, text
        assert "<b>" not in answer.text
        assert "Per debit No limit Per day No limit" in texts(browser.get(PAGE)), text
    pay(shop, 200, "50")


POOR_PINS = (
    ("111111", "111111", "all six digits are the same"),
    ("123456", "123456", "run up or down"),
    ("121212", "121212", "repeats the same"),
    ("112233", "112233", "pairs or triples"),
    ("48291", "48291", "six digits"),
    (PIN, OTHER_PIN, "The two PINs are not the same."),
    ("", "", "six digits"),
)


def test_a_poor_first_pin_is_refused_with_the_reason(shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    for pin, again, told in POOR_PINS:
        answer = browser.send(SET_PIN, pin=pin, pin_again=again)
        assert answer.status_code == 422, pin
        assert told in texts(answer), pin
        assert "Choose your PIN" in texts(browser.get(PAGE)), pin


def test_the_pin_is_changed_with_the_old_one_only(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    wrong = browser.send(SET_PIN, old_pin=OTHER_PIN, pin=OTHER_PIN, pin_again=OTHER_PIN)
    assert wrong.status_code == 422
    refused = browser.send(SET_PIN, old_pin="000001", pin=OTHER_PIN, pin_again=OTHER_PIN)
    assert "That is not your PIN. Tries left: 4." in texts(refused)
    assert browser.send(SET_PIN, pin=OTHER_PIN, pin_again=OTHER_PIN).status_code == 422
    changed = browser.send(SET_PIN, old_pin=PIN, pin=OTHER_PIN, pin_again=OTHER_PIN)
    assert changed.headers["location"] == f"{PAGE}?said=pin-changed"
    assert browser.send(DEBITS, debits="pause", pin=PIN).status_code == 422
    assert browser.send(DEBITS, debits="pause", pin=OTHER_PIN).status_code == 303


def test_five_wrong_pins_lock_it_and_the_page_says_for_how_long(
    shop: Shop, browser: Browser, clock: Clock
) -> None:
    enter(shop, browser)
    for left in (4, 3, 2, 1):
        answer = browser.send(DEBITS, debits="pause", pin=OTHER_PIN)
        assert f"Tries left: {left}." in texts(answer)
    answer = browser.send(DEBITS, debits="pause", pin=OTHER_PIN)
    assert "Your PIN is locked Too many wrong PINs. Try again in 1 min." in texts(answer)
    answer = browser.send(DEBITS, debits="pause", pin=PIN)
    assert "Try again in 1 min." in texts(answer)
    assert "Your PIN is locked" in texts(browser.get(PAGE))
    clock.advance(MINUTE_MS)
    assert "Your PIN is locked" not in texts(browser.get(PAGE))
    assert browser.send(DEBITS, debits="pause", pin=PIN).status_code == 303


def test_longer_locks_are_shown_in_hours(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    shop.platform.rows(
        "update sub_user set pin_failures = 8, pin_locked_until_ms = %s"
        " where merchant_id = %s and ext_user_id = 'alice'",
        shop.platform.clock() + 200 * MINUTE_MS,
        shop.merchant_id,
    )
    assert "Try again in 4 h." in texts(browser.get(PAGE))


def test_a_sub_user_of_a_suspended_merchant_can_still_pause(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    shop.suspend()
    assert "What you set here holds all the same." in texts(browser.get(PAGE))
    assert browser.send(DEBITS, debits="pause", pin=PIN).status_code == 303
    shop.resume()
    pay(shop, 40302)


def test_what_one_sets_is_no_others_affair(shop: Shop, browser: Browser, other_browser: Browser) -> None:
    enter(shop, browser)
    other_browser.open(shop.user("bob", "5")["url"])
    assert "Choose your PIN" in texts(other_browser.get(PAGE))
    browser.send(DEBITS, debits="pause", pin=PIN)
    shop.client.do("transferFromUserToMerchant", mcOrderId="b", amount="1", extUserId="bob", currency="KFB")


def test_a_word_in_the_url_says_nothing_that_we_did_not_write(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    page = browser.get(f"{PAGE}?said=<script>You+won")
    assert "You won" not in texts(page)
    assert "data-toast" not in page.text


def test_what_is_wrong_is_said_in_chinese_too(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    browser.client.cookies.set("lang", "zh-CN")
    assert "安全密码不正确" in texts(browser.send(DEBITS, debits="pause", pin=OTHER_PIN))


def test_what_a_sub_user_sets_is_in_the_audit_log(shop: Shop, browser: Browser) -> None:
    enter(shop, browser)
    browser.send(DEBITS, debits="pause", pin=PIN)
    browser.send(LIMITS, limit_debit="10", limit_day="", pin=PIN)
    browser.send(LIMITS, limit_debit="20", limit_day="", pin=OTHER_PIN)
    browser.send(SET_PIN, old_pin=PIN, pin=OTHER_PIN, pin_again=OTHER_PIN)
    rows = shop.platform.rows(
        "select actor, action, source, after from audit_entry where merchant_id = %s order by audit_no",
        shop.merchant_id,
    )
    mine = [row[1:] for row in rows if row[0] == "sub-user:alice"]
    controls = {"paused": True, "limitDebit": None, "limitDay": None}
    assert mine == [
        ("sub_user.set_pin", "127.0.0.1", {"hasPin": True}),
        ("sub_user.set", "127.0.0.1", controls),
        ("sub_user.set", "127.0.0.1", controls | {"limitDebit": "10"}),
        ("sub_user.change_pin", "127.0.0.1", None),
    ]


def test_after_a_reset_the_sub_user_is_told_and_guards_only_tighten_for_a_day(
    shop: Shop, browser: Browser, clock: Clock
) -> None:
    enter(shop, browser)
    browser.send(LIMITS, limit_debit="10", limit_day="50", pin=PIN)
    shop.platform.operate(lambda conn: pins.reset(conn, shop.merchant_id, "alice", clock))
    clock.advance(1000)
    page = browser.open(shop.user("alice")["url"])
    assert "Your PIN was reset" in texts(page)
    assert "Tell them at once." in texts(browser.get(PAGE))
    set_pin(browser)
    assert "Your PIN was reset" in texts(browser.get(PAGE))
    for limit_debit, limit_day in (("11", "50"), ("10", "")):
        refused = browser.send(LIMITS, limit_debit=limit_debit, limit_day=limit_day, pin=PIN)
        assert refused.status_code == 422
        assert "For 24 h more, you can only lower limits and pause debits." in texts(refused)
    assert browser.send(LIMITS, limit_debit="9", limit_day="50", pin=PIN).status_code == 303
    assert browser.send(DEBITS, debits="pause", pin=PIN).status_code == 303
    assert browser.send(DEBITS, debits="resume", pin=PIN).status_code == 422
    shop.platform.rows(
        "update sub_user set links_void_until_ms = links_void_until_ms - %s where merchant_id = %s",
        24 * 60 * MINUTE_MS,
        shop.merchant_id,
    )
    assert browser.send(DEBITS, debits="resume", pin=PIN).status_code == 303
