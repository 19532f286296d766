"""The description of the interface in a real browser: it signs, and in a sandbox it sends."""

import json
from decimal import Decimal

from playwright.sync_api import Page, expect
from tests.browser.conftest import DESKTOP, NARROW, TIMEOUT_MS, Visits
from tests.browser.looks import each_language, require_looks
from tests.journeys.client import hmac_sign
from tests.journeys.conftest import Platform, RunPlatform, Shop

from merchant_wallet.api.reference.callbacks import CALLBACKS
from merchant_wallet.api.reference.operations import COMMON_FIELDS, REFERENCES
from merchant_wallet.api.reference.sandbox_controls import CONTROLS, LISTEN
from merchant_wallet.base.codes import CODES
from merchant_wallet.merchants.records import OPERATIONS
from merchant_wallet.web.languages import Language, read_words, translate

expect.set_options(timeout=TIMEOUT_MS)
PATH = "/docs/api"


def type_keys(page: Page, shop: Shop) -> None:
    page.get_by_label("appKey").first.fill(shop.client.app_key)
    page.locator("#field-secret").fill(shop.client.secret)


def submit(page: Page, operation: str, action: str = "send") -> None:
    """Open the form of an operation, and press one of its buttons."""
    section = page.locator(f"section#{operation}")
    form = section.locator("form[data-call]")
    if not form.is_visible():
        section.locator("summary").last.click()
    form.locator(f"button[value={action}]").click()


def told(page: Page, operation: str) -> str:
    status = page.locator(f"section#{operation} [data-told]")
    expect(status).to_be_visible()
    return status.inner_text()


@each_language
def test_the_page_is_usable_on_every_screen(platform: Platform, visits: Visits, language: str) -> None:
    page = visits.open(DESKTOP, language=language)
    page.goto(platform.address + PATH)
    expect(page.locator("h1")).to_have_text(translate(Language(language), "API explorer"))
    # Everything that can be folded out is looked at as well.
    page.evaluate("() => { for (const part of document.querySelectorAll('details.fold')) part.open = true; }")
    require_looks(page, NARROW, colours=language == "en")


def test_the_page_has_every_operation_callback_field_and_code(platform: Platform, visits: Visits) -> None:
    page = visits.open()
    page.goto(platform.address + PATH)
    names = page.locator("nav a.code").all_inner_texts()
    actions = [control.name for control in CONTROLS]
    assert sorted(names) == sorted([*OPERATIONS, *actions, *(callback.name for callback in CALLBACKS)])
    references = (*REFERENCES, *CONTROLS)
    fields = {reference.name: [*reference.request, *reference.answer] for reference in references}
    fields |= {callback.name: list(callback.fields) for callback in CALLBACKS} | {"signing": [*COMMON_FIELDS]}
    for section, listed in fields.items():
        shown = page.locator(f"section#{section} dt code").all_inner_texts()
        assert [name for name in shown if not name.startswith("webhook-")] == [each.name for each in listed]
    assert page.locator("#codes dt code").all_inner_texts() == [str(code) for code in CODES]


def test_the_page_signs_and_sends_and_checks_the_answer(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    page.goto(shop.platform.address + PATH)
    type_keys(page, shop)
    submit(page, "getMerchantBalance")
    assert told(page, "getMerchantBalance") == "Done. The signature of the answer is right."
    section = page.locator("section#getMerchantBalance")
    signed = section.locator("[data-part=string]").inner_text()
    body = json.loads(section.locator("[data-part=body]").inner_text())
    assert body["sign"] == hmac_sign(shop.client.secret, signed)
    answer = json.loads(section.locator("[data-part=answer]").inner_text())
    assert answer["data"]["merchantId"] == shop.merchant_id


def test_every_operation_can_be_tried(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    page.goto(shop.platform.address + PATH)
    type_keys(page, shop)
    shop.user("alice", "100")
    address = str(shop.user("alice")["address"])
    order = shop.client.do(
        "createMerchantWithdrawOrder",
        amount="12.50",
        chainType="TRC20",
        currency="USDT",
        mcOrderId="10001",
        address="TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
        notifyUrl="https://example.com/n?a=1&b=2",
    )
    typed = {"transferFromMerchantToUser": ("address", address), "queryOrder": ("orderId", order["orderId"])}
    for operation in OPERATIONS:
        name, value = typed.get(operation, ("", ""))
        if name:
            section = page.locator(f"section#{operation}")
            section.locator("summary").last.click()
            section.locator(f"[name={name}]").fill(str(value))
        submit(page, operation)
        assert told(page, operation) == "Done. The signature of the answer is right.", operation


def test_an_action_of_the_sandbox_can_be_tried_and_a_stream_only_signed(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    page.goto(shop.platform.address + PATH)
    type_keys(page, shop)
    before = Decimal(shop.client.do("getMerchantBalance")["usdtBalance"])
    submit(page, "fund")
    assert told(page, "fund") == "Done. The signature of the answer is right."
    assert Decimal(shop.client.do("getMerchantBalance")["usdtBalance"]) == before + 1000
    assert page.locator(f"section#{LISTEN} button[value=send]").count() == 0
    submit(page, LISTEN, "sign")
    expect(page.locator(f"section#{LISTEN} [data-part=string]")).to_contain_text(f"/sandbox/{LISTEN}")


def test_a_refusal_is_shown_with_its_code(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    page.goto(shop.platform.address + PATH)
    submit(page, "queryOrder")
    assert told(page, "queryOrder") == "First fill in your appKey and secret above."
    type_keys(page, shop)
    page.locator("section#queryOrder [name=orderId]").fill("12")
    submit(page, "queryOrder")
    assert told(page, "queryOrder") == "Refused: 40401 orderId, mcOrderId: no such order"


def test_an_answer_with_a_wrong_signature_is_not_believed(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    forged = '{"code":200,"msg":"success","data":{"merchantId":1,"sign":"00000000000000000000000000000000"}}'
    page.route("**/merchant/getMerchantBalance", lambda route: route.fulfill(body=forged))
    page.goto(shop.platform.address + PATH)
    type_keys(page, shop)
    submit(page, "getMerchantBalance")
    assert "do not believe this answer" in told(page, "getMerchantBalance")


def test_the_secret_is_neither_sent_nor_stored_and_no_other_host_is_asked(shop: Shop, visits: Visits) -> None:
    page = visits.open()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''}"))
    page.goto(shop.platform.address + PATH)
    type_keys(page, shop)
    submit(page, "getMerchantBalance")
    told(page, "getMerchantBalance")
    assert [line for line in sent if not line.startswith(shop.platform.address)] == []
    assert any("/merchant/getMerchantBalance" in line for line in sent)
    assert [line for line in sent if shop.client.secret in line] == []
    kept = page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert shop.client.secret not in kept
    page.reload()
    assert page.locator("#field-secret").input_value() == ""


def test_a_live_service_signs_and_has_nothing_to_send_with(own_platform: RunPlatform, visits: Visits) -> None:
    with own_platform(sandbox=False, trc20_rpc=("http://127.0.0.1:9",)) as live:
        shop = live.open_merchant()
        page = visits.open()
        page.goto(live.address + PATH)
        expect(page.get_by_text("This is a live service")).to_be_visible()
        assert page.locator("button[value=send]").count() == 0
        assert page.get_by_text("/sandbox/").count() == 0
        type_keys(page, shop)
        submit(page, "getMerchantBalance", "sign")
        body = page.locator("section#getMerchantBalance [data-part=body]")
        expect(body).to_contain_text(shop.client.app_key)
        assert page.locator("section#getMerchantBalance [data-part=answer]").inner_text() == ""


def list_meanings() -> set[str]:
    """Every text of the tables that the page shows."""
    fields = [*COMMON_FIELDS]
    for reference in (*REFERENCES, *CONTROLS):
        fields += [*reference.request, *reference.answer]
    for callback in CALLBACKS:
        fields += callback.fields
    texts = {field.meaning for field in fields}
    texts |= {text for each in REFERENCES for text in (each.summary, each.text, each.group)}
    texts |= {text for each in CONTROLS for text in (each.text, each.group)}
    texts |= {text for each in CALLBACKS for text in (each.summary, each.text)}
    return (texts | {text for row in CODES.values() for text in (row.meaning, row.retry)}) - {"", "never"}


def test_every_text_of_the_tables_has_its_chinese() -> None:
    assert [text for text in sorted(list_meanings()) if text not in read_words()] == []
