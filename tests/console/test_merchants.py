"""Merchants in the console: opening one, its settings, keys, fees and rates, and the audit log of it."""

import re
from typing import Any
from urllib.parse import unquote

import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import withdrawal

from merchant_wallet.base.money import parse_units
from merchant_wallet.book.commands import Cancel
from merchant_wallet.console.fee_preview import Conditions, preview

HOSTILE = '<b>Shop</b> & "Sons" \''
MERCHANTS = "/console/merchants"


def url_of(shop: Shop, path: str = "") -> str:
    """The URL of a merchant's page."""
    return f"{MERCHANTS}/{shop.merchant_id}{path}"


def entries(platform: Platform, action: str) -> list[tuple[Any, ...]]:
    """The audit log's entries about an action, oldest first."""
    return platform.rows(
        "select actor, subject, merchant_id, before, after from audit_entry where action = %s"
        " order by audit_no",
        action,
    )


def marks_of(page: str) -> str:
    """The version marks that a form carries for the settings it shows."""
    return str(re.findall(r'name="marks" value="([^"]*)"', page)[0])


def fees_form(person: ConsoleUser, shop: Shop, **typed: str) -> dict[str, str]:
    """The fees form with some fields filled in."""
    fees = {name.replace("_", "-"): text for name, text in typed.items()}
    return {"marks": marks_of(person.page(url_of(shop, "/rates"))), **fees}


def settings_form(person: ConsoleUser, shop: Shop) -> dict[str, Any]:
    """The settings form as the page shows it."""
    page = person.page(url_of(shop, "/settings"))
    form: dict[str, Any] = {"marks": marks_of(page)}
    for name, value in re.findall(r'<input class="input"[^>]* name="([a-z-]+)"[^>]* value="([^"]*)"', page):
        form[name] = value
    for name, text in re.findall(r'(?s)<textarea[^>]* name="([a-z-]+)"[^>]*>\n(.*?)</textarea>', page):
        form[name] = text
    for name, text in re.findall(r'(?s)<select[^>]* name="([a-z-]+)".*?value="(\w+)" selected', page):
        form[name] = text
    for name, value in re.findall(r'name="([a-z-]+)" value="([^"]*)"[^>]* checked', page):
        form.setdefault(name, []).append(value)
    return form


def test_a_merchant_is_opened_and_its_secrets_work_and_are_shown_once(
    platform: Platform, people: People
) -> None:
    operator = people.signed_in("operator")
    answer = operator.post(f"{MERCHANTS}/new", {"name": "Corner Shop", "currency-mode": "USDT"})
    assert answer.status_code == 200
    app_key = re.findall(r">(mk_test_[a-z0-9]{12})<", answer.text)[0]
    app_secret, callback_secret = re.findall(r">([A-Za-z0-9]{32})<", answer.text)
    (merchant_id,) = platform.rows("select merchant_id from merchant where app_key = %s", app_key)[0]
    url = f"http://127.0.0.1:{platform.port}"
    lines = (
        "# Corner Shop, sandbox\n"
        f"MERCHANT_WALLET_URL={url}\n"
        f"MERCHANT_WALLET_APP_KEY={app_key}\n"
        f"MERCHANT_WALLET_SECRET={app_secret}\n"
        f"MERCHANT_WALLET_CALLBACK_SECRET={callback_secret}\n"
    )
    assert f'data-copy="{lines}"' in answer.text
    ((name, file),) = re.findall(
        r'download="([^"]+)" href="data:text/plain;charset=utf-8,([^"]+)"', answer.text
    )
    assert (name, unquote(file)) == (f"merchant-{merchant_id}.env", lines)
    assert f'href="{url}/docs/' in answer.text
    shop = Shop(
        platform, merchant_id, platform.open_merchant().with_client(app_key=app_key, secret=app_secret)
    )
    assert shop.client.do("getMerchantBalance")["usdtBalance"] == "0"
    for path in (url_of(shop), url_of(shop, "/settings"), MERCHANTS):
        page = operator.page(path)
        assert app_secret not in page
        assert callback_secret not in page
    kept = platform.rows("select before::text, after::text from audit_entry")
    assert app_secret not in str(kept)
    assert entries(platform, "merchant.create")[-1] == (
        f"operator:{operator.name}",
        f"merchant {merchant_id}",
        merchant_id,
        None,
        {"name": "Corner Shop", "currencyMode": "USDT"},
    )


def test_loading_the_answer_again_opens_no_second_merchant(people: People) -> None:
    operator = people.signed_in("operator")
    form = {"name": "Twice", "currency-mode": "KFB"}
    assert operator.post(f"{MERCHANTS}/new", form).status_code == 200
    again = operator.post(f"{MERCHANTS}/new", form)
    assert again.status_code == 422
    assert "of this name already" in again.text
    assert 'value="Twice"' in again.text


@pytest.mark.parametrize("name", ["", "   ", "12345", "x" * 129, "bell\x07"])
def test_a_name_that_is_none_stays_in_the_form_with_the_rule(people: People, name: str) -> None:
    answer = people.signed_in("operator").post(f"{MERCHANTS}/new", {"name": name, "currency-mode": "USDT"})
    assert answer.status_code == 422
    assert "1 to 128 printable characters" in answer.text
    assert re.search(r'value="USDT"[^>]* checked', answer.text)


def test_names_are_shown_as_text_everywhere(platform: Platform, people: People) -> None:
    shop = platform.open_merchant(name=HOSTILE)
    user = shop.client.do("getMerchantCustomer", extUserId="<i>player</i>")
    owner = people.signed_in("owner")
    paths = [
        MERCHANTS,
        f"{MERCHANTS}?q=Sons",
        "/console/sub-users?q=%3Ci%3Eplayer%3C%2Fi%3E",
        "/console/audit",
    ]
    paths += [url_of(shop, path) for path in ("", "/settings", "/rates", "/refusals")]
    paths.append(url_of(shop, f"/users/{user['userId']}"))
    owner.post(url_of(shop, "/settings"), {**settings_form(owner, shop), "name": HOSTILE + "<"})
    for path in paths:
        page = owner.page(path)
        assert "<b>Shop" not in page, path
        assert "<i>player" not in page, path
    assert "&lt;b&gt;Shop" in owner.page(MERCHANTS)


def test_a_secret_is_changed_without_an_outage(platform: Platform, people: People, shop: Shop) -> None:
    merchant_user = people.signed_in("merchant", shop.merchant_id)
    answer = merchant_user.post(url_of(shop, "/secrets/rotate"))
    assert answer.status_code == 200
    (secret,) = re.findall(r">([A-Za-z0-9]{32})<", answer.text)
    shop.client.do("getMerchantBalance")
    shop.with_client(secret=secret).do("getMerchantBalance")
    third = merchant_user.post(url_of(shop, "/secrets/rotate"))
    assert third.status_code == 409
    assert "Retire the older one first" in third.text
    assert secret not in merchant_user.page(url_of(shop))
    retired = merchant_user.post(url_of(shop, "/secrets/retire"))
    assert "is no longer valid" in read_text(merchant_user.follow(retired).text)
    shop.client.expect(40101, "getMerchantBalance")
    shop.with_client(secret=secret).do("getMerchantBalance")
    assert merchant_user.post(url_of(shop, "/secrets/retire")).status_code == 409
    actor = f"merchant:{merchant_user.name}"
    assert entries(platform, "merchant.roll_key")[-1][0] == actor
    assert entries(platform, "merchant.end_old_secret")[-1][4] == {"ended": True}


def test_a_suspended_merchant_is_refused_until_it_is_resumed(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    told = operator.follow(operator.post(url_of(shop, "/status"), {"status": "suspended"})).text
    assert "is suspended" in read_text(told)
    assert shop.client.call("getMerchantBalance").code != 200
    assert "Suspended" in read_text(operator.page(url_of(shop)))
    operator.post(url_of(shop, "/status"), {"status": "active"})
    shop.client.do("getMerchantBalance")
    assert entries(platform, "merchant.suspend")[-1][3:] == ({"status": "active"}, {"status": "suspended"})
    assert entries(platform, "merchant.resume")[-1][3:] == ({"status": "suspended"}, {"status": "active"})


@pytest.mark.parametrize("form", [{}, {"status": ""}, {"status": "on"}])
def test_a_status_that_is_none_resumes_nobody(people: People, shop: Shop, form: dict[str, str]) -> None:
    operator = people.signed_in("operator")
    operator.post(url_of(shop, "/status"), {"status": "suspended"})
    assert operator.post(url_of(shop, "/status"), form).status_code == 400
    assert "Suspended" in read_text(operator.page(url_of(shop)))
    operator.post(url_of(shop, "/status"), {"status": "active"})


def test_fees_are_set_beside_the_preview(platform: Platform, people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    typed = fees_form(operator, shop, transfer_fee_rate="1%", withdraw_fee_rate="0.4%", withdraw_fee_min="2")
    answer = operator.post(url_of(shop, "/fees"), typed)
    assert "Saved" in read_text(operator.follow(answer).text)
    quoted = shop.client.do("getWithdrawFee", amount="1000", currency="USDT")
    assert (quoted["fee"], quoted["amountArrival"]) == ("4", "996")
    wrong = operator.post(url_of(shop, "/fees"), typed | {"withdraw-fee-rate": "140%"})
    assert wrong.status_code == 422
    assert 'value="140%"' in wrong.text
    # The preview reads the form, not the settings that were stored before.
    told = read_text(wrong.text)
    assert "The fee is not a value." in told
    again = operator.post(
        url_of(shop, "/fees"), typed | {"withdraw-fee-min": "-", "transfer-fee-rate": "25%"}
    )
    assert "750.00 KFB after a fee of 250.00 KFB" in read_text(again.text)


def test_the_preview_tells_what_the_interface_answers(people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    typed = {"transfer-fee-rate": "1.25%", "withdraw-fee-rate": "0.33%", "withdraw-fee-min": "1.5"}
    query = {"amount": "123.45", **typed, "rate-usdt-kfb": "7.01234567", "rate-kfb-usdt": ""}
    part = read_text(operator.get(url_of(shop, "/preview"), params=query).text)
    operator.post(url_of(shop, "/fees"), {**fees_form(operator, shop), **typed})
    shop.set_rate("USDT:KFB", "7.01234567")
    quoted = shop.client.do("getWithdrawFee", amount="123.45", currency="USDT")
    assert f"{quoted['amountArrival']} USDT after a fee of" in part
    exchanged = shop.client.do("exchange", sendCurrency="USDT", receiveCurrency="KFB", amount="123.45")
    assert f"{exchanged['amountArrival']} KFB arrives" in part
    back = shop.client.do("exchange", sendCurrency="KFB", receiveCurrency="USDT", amount="123.45")
    assert f"{back['amountArrival']} USDT arrives" in part


@pytest.mark.parametrize("amount", ["", "0", "-1", "1e3", "1,00", "abc", "1.0000001", "9" * 60])
def test_an_amount_that_is_none_previews_nothing(people: People, shop: Shop, amount: str) -> None:
    answer = people.signed_in("operator").get(url_of(shop, "/preview"), params={"amount": amount})
    assert answer.status_code == 200
    assert "Type an amount" in answer.text


def test_a_preview_says_what_would_be_refused() -> None:
    conditions = Conditions(1_000_000, None, 0, (("USDT:KFB", None), ("KFB:USDT", 1)), True)
    shown = preview("0.000001", conditions)
    assert [quote.refusal for quote in shown.quotes] == [
        "",
        "The fee is not a value.",
        "No rate: refused.",
        "Too little to arrive: refused.",
    ]
    whole = preview("5", Conditions(0, 0, parse_units("5"), (), False))
    assert [quote.refusal for quote in whole.quotes] == ["", "The fee takes it all: refused."]


def test_a_rate_of_its_own_is_set_paused_and_taken_away(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    usdt = {"direction": "USDT:KFB"}

    def exchange() -> Any:
        return shop.client.call("exchange", sendCurrency="USDT", receiveCurrency="KFB", amount="1")

    operator.post(url_of(shop, "/rates"), {**usdt, "do": "set", "rate-usdt-kfb": "6.5"})
    assert exchange()["amountArrival"] == "6.5"
    operator.post(url_of(shop, "/rates"), {**usdt, "do": "pause"})
    assert exchange().code == 42203
    operator.post(url_of(shop, "/rates"), {**usdt, "do": "resume"})
    assert exchange()["amountArrival"] == "6.5"
    operator.post(url_of(shop, "/rates"), {**usdt, "do": "remove"})
    assert exchange()["amountArrival"] == "7.1"
    assert entries(platform, "rate.set")[-1][1:] == (
        "rate USDT:KFB",
        shop.merchant_id,
        {"rate": None, "paused": False, "maxAgeMs": None},
        {"rate": "6.5", "paused": False, "maxAgeMs": None},
    )
    assert entries(platform, "rate.remove")[-1][3]["rate"] == "6.5"


def test_a_rate_that_would_make_money_in_a_loop_is_refused_with_the_largest_that_can_be(
    people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    form = {"direction": "USDT:KFB", "do": "set", "rate-usdt-kfb": "7.2", "rate-usdt-kfb-hours": "60"}
    answer = operator.post(url_of(shop, "/rates"), form)
    assert answer.status_code == 422
    assert "at most 7.14285714" in read_text(answer.text)
    assert 'value="7.2"' in answer.text
    assert 'value="60"' in answer.text
    assert operator.post(url_of(shop, "/rates"), form | {"rate-usdt-kfb": "7.14285714"}).status_code == 303


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"rate-usdt-kfb": "0"}, "rate-usdt-kfb"),
        ({"rate-usdt-kfb": "seven"}, "rate-usdt-kfb"),
        ({"rate-usdt-kfb": "7", "rate-usdt-kfb-hours": "0"}, "rate-usdt-kfb-hours"),
        ({"rate-usdt-kfb": "7", "rate-usdt-kfb-hours": "3600"}, "rate-usdt-kfb-hours"),
    ],
)
def test_a_rate_that_is_none_is_refused_beside_its_field(
    people: People, shop: Shop, typed: dict[str, str], field: str
) -> None:
    form = {"direction": "USDT:KFB", "do": "set", **typed}
    answer = people.signed_in("operator").post(url_of(shop, "/rates"), form)
    assert answer.status_code == 422
    assert f'id="field-{field}-error"' in answer.text


def test_merchants_are_found_by_key_id_and_part_of_the_name(platform: Platform, people: People) -> None:
    shop = platform.open_merchant(name="Quince and Quill")
    auditor = people.signed_in("auditor")
    for word in ("quill", shop.client.app_key, str(shop.merchant_id)):
        assert "Quince and Quill" in auditor.page(f"{MERCHANTS}?q={word}"), word
    assert "No merchant matches" in auditor.page(f"{MERCHANTS}?q=nobody-of-this-name")
    assert "No merchant matches" in auditor.page(f"{MERCHANTS}?q=quill&status=suspended")


def test_the_list_goes_on_page_by_page_and_keeps_its_state_in_the_url(
    platform: Platform, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merchant_wallet.console.merchant_list.PAGE_ROWS", 2)
    for letter in "abcde":
        platform.open_merchant(name=f"Zz shop {letter}")
    auditor = people.signed_in("auditor")
    seen: list[str] = []
    url = f"{MERCHANTS}?sort=-name"
    page = auditor.page(f"{MERCHANTS}?sort=name")
    for _ in range(40):
        seen += re.findall(r"Zz shop ([a-e])<", page)
        found = re.findall(r'rel="next" href="([^"]+)"', page)
        if not found:
            break
        url = found[0].replace("&amp;", "&")
        assert "sort=name" in url
        page = auditor.page(url)
    assert seen == list("abcde")
    back = re.findall(r'rel="prev" href="([^"]+)"', page)[0].replace("&amp;", "&")
    assert re.findall(r"Zz shop ([a-e])<", auditor.page(back))
    assert auditor.get(f"{MERCHANTS}?after=nonsense").status_code == 404


def test_a_merchant_nobody_has_is_not_there(people: People) -> None:
    operator = people.signed_in("operator")
    for number in ("0", "987654321", "9" * 30):
        assert operator.get(f"{MERCHANTS}/{number}").status_code == 404
        assert operator.post(f"{MERCHANTS}/{number}/settings").status_code == 404
    assert operator.get(f"{MERCHANTS}/-1").status_code == 404


def test_a_new_merchants_page_lists_what_is_left_to_do_until_it_works(
    platform: Platform, people: People
) -> None:
    shop, operator = platform.open_merchant(), people.signed_in("operator")
    told = read_text(operator.page(url_of(shop)))
    assert "Until this merchant works 1 of 4 done" in told
    assert "None has arrived yet." in told
    assert "None has been accepted yet." in told
    platform.rows(
        "insert into merchant_key_use (merchant_id, key_no, used_ms) values (%s, 1, %s)"
        " on conflict do nothing",
        shop.merchant_id,
        platform.clock(),
    )
    assert "3 of 4 done" in read_text(operator.page(url_of(shop)))
    shop.change(approval_limit="0")
    shop.fund("USDT", "100")
    fields = withdrawal(shop.next_order(), "60", "ERC20")
    order = int(shop.client.do("createMerchantWithdrawOrder", **fields)["orderId"])
    shop.ask_book(Cancel(order, "cli:ann"))
    platform.rows(
        "update callback set state = 'delivered', delivered_ms = %s where merchant_id = %s",
        platform.clock(),
        shop.merchant_id,
    )
    assert "Until this merchant works" not in operator.page(url_of(shop))
