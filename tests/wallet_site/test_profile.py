"""A sub-user's own name, language and theme."""

import pytest
from tests.journeys.conftest import Shop
from tests.wallet_site.conftest import Browser, texts

PAGE = "/wallet/profile"


def test_the_name_can_be_changed_and_the_merchant_sees_it(shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    answer = browser.send(f"{PAGE}/name", username="  Alice   Liddell ")
    assert answer.headers["location"] == f"{PAGE}?said=name"
    assert "Your name is saved." in texts(browser.get(f"{PAGE}?said=name"))
    assert shop.user("alice")["username"] == "Alice Liddell"


@pytest.mark.parametrize("name", ["", "   ", "x" * 129, "a\u202eb", "a\u0007b", "a\u200bb"])
def test_what_is_no_name_is_shown_again_with_the_reason(name: str, shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    answer = browser.send(f"{PAGE}/name", username=name)
    assert answer.status_code == 422
    assert "field-error" in answer.text
    assert shop.user("alice")["username"] == "alice"


def test_the_language_is_kept_for_the_sub_user_and_in_the_browser(
    shop: Shop, browser: Browser, other_browser: Browser
) -> None:
    browser.open(shop.user("alice")["url"])
    answer = browser.send(f"{PAGE}/language", language="zh-CN")
    assert answer.headers["set-cookie"].startswith(
        "lang=zh-CN; HttpOnly; Max-Age=31536000; Path=/; SameSite=lax"
    )
    assert '<html lang="zh-CN"' in browser.get(PAGE).text
    assert '<html lang="zh-CN"' in other_browser.open(shop.user("alice")["url"]).text


def test_a_language_that_there_is_not_changes_nothing(shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    answer = browser.send(f"{PAGE}/language", language="xx")
    assert (answer.status_code, answer.headers.get("set-cookie")) == (303, None)


def test_the_theme_is_kept_in_the_browser(shop: Shop, browser: Browser) -> None:
    browser.open(shop.user("alice")["url"])
    browser.post("/look", {"theme": "dark", "back": PAGE})
    assert 'data-theme="dark"' in browser.get(PAGE).text


def test_the_merchants_id_for_the_sub_user_can_be_copied(shop: Shop, browser: Browser) -> None:
    alice = shop.user("alice")
    browser.open(alice["url"])
    page = browser.get(PAGE)
    assert 'data-copy="alice"' in page.text
    assert f'data-copy="{alice["userId"]}"' in page.text


def test_where_a_look_can_not_be_chosen_nobody_is_led_to_a_page_that_is_not_there(browser: Browser) -> None:
    page = browser.get("/look")
    assert page.status_code == 405
    assert 'href="/"' not in page.text
