"""The signature debugger, used by a developer whose requests are refused."""

import json
from typing import Any

from tests.console.conftest import People, read_text
from tests.journeys.client import string_to_sign
from tests.journeys.conftest import Platform, Shop
from tests.rows import each_row
from tests.waits import wait_until

from merchant_wallet.api.debugger import SENTENCES, compare
from merchant_wallet.console.debugger import mark_lines
from merchant_wallet.web.languages import read_words

PATH = "/merchant/getMerchantBalance"
DEBUGGER = "/console/debugger"


def request_of(shop: Shop, **fields: Any) -> dict[str, Any]:
    """The fields of an unsigned request."""
    return {"appKey": shop.client.app_key, "timestamp": "1763712000000", "nonceStr": "n1", **fields}


def form_of(shop: Shop, fields: dict[str, Any], **more: str) -> dict[str, str]:
    """The debugger's form, filled in."""
    typed = {"merchant": str(shop.merchant_id), "path": PATH, "body": json.dumps(fields), "type": "json"}
    return typed | more


def test_a_valid_signature_is_confirmed_and_no_secret_is_shown(people: People, shop: Shop) -> None:
    fields = request_of(shop)
    fields["sign"] = shop.client.sign(PATH, fields)
    page = people.signed_in("operator").post(DEBUGGER, form_of(shop, fields)).text
    assert "The signature is right" in read_text(page)
    assert shop.client.secret not in page


def test_the_debugger_says_that_the_older_secret_was_used(people: People, shop: Shop) -> None:
    fields = request_of(shop)
    fields["sign"] = shop.client.sign(PATH, fields)
    secret = shop.rotate_secret()
    page = people.signed_in("auditor").post(DEBUGGER, form_of(shop, fields)).text
    assert "older of the two secrets" in read_text(page)
    assert secret not in page


def test_a_computed_signature_is_never_shown(people: People, shop: Shop) -> None:
    fields = request_of(shop)
    right = shop.client.sign(PATH, fields)
    page = people.signed_in("operator").post(DEBUGGER, form_of(shop, {**fields, "sign": "0" * 32})).text
    assert "matches no secret" in read_text(page)
    assert right not in page
    assert right[:12] not in page


def test_the_first_difference_is_shown_in_both_strings(people: People, shop: Shop) -> None:
    fields = request_of(shop)
    ours = string_to_sign(PATH, fields)
    # The appKey, which is drawn, may contain n1 too.
    theirs = ours.replace("nonceStr=n1", "nonceStr=nl")
    page = people.signed_in("operator").post(DEBUGGER, form_of(shop, fields, string=theirs)).text
    assert "The first difference is at line 3, character 11" in read_text(page)
    assert "<mark>1</mark>" in page
    assert "<mark>l</mark>" in page


@each_row(
    ("ours", "theirs", "marked"),
    [
        ("a\nb", "a\nb", [("a", ""), ("b", "")]),
        ("a\nbcd", "a\nbxd", [("a", ""), ("b", "c")]),
        ("a\nb", "a\nb\n", [("a", ""), ("b", "\u21b5")]),
        ("abc", "ab", [("ab", "c")]),
        ("", "x", [("", "\u21b5")]),
    ],
)
def test_lines_are_marked_where_they_differ(ours: str, theirs: str, marked: list[tuple[str, str]]) -> None:
    assert [(line.before, line.marked) for line in mark_lines(ours, compare(ours, theirs))] == marked


def test_hostile_text_is_shown_as_text(people: People, shop: Shop) -> None:
    hostile = "<script>alert(1)</script>"
    fields = request_of(shop, mcOrderId=hostile)
    page = (
        people.signed_in("operator").post(DEBUGGER, form_of(shop, fields, string=hostile, sign=hostile)).text
    )
    assert hostile not in page
    assert "&lt;script&gt;" in page


def test_what_was_pasted_stays_when_something_is_missing(people: People, shop: Shop) -> None:
    form = {"merchant": "no such merchant", "path": PATH, "body": "", "string": "a\n b ", "sign": "abc"}
    answer = people.signed_in("operator").post(DEBUGGER, form)
    assert answer.status_code == 422
    for kept in ("no such merchant", PATH, "a\n b ", "abc"):
        assert kept in answer.text
    assert "Paste the body" in answer.text
    assert "No merchant has this id" in answer.text


def test_a_merchants_user_has_its_own_secrets_tried_whatever_it_names(
    platform: Platform, people: People, shop: Shop
) -> None:
    own = platform.open_merchant()
    fields = request_of(shop)
    fields["sign"] = shop.client.sign(PATH, fields)
    person = people.signed_in("merchant", own.merchant_id)
    page = person.post(DEBUGGER, form_of(shop, fields)).text
    assert "matches no secret" in read_text(page), "those of the other merchant were not tried"
    assert "signature is right" not in read_text(page)
    mine = request_of(own)
    mine["sign"] = own.client.sign(PATH, mine)
    assert "The signature is right" in read_text(person.post(DEBUGGER, form_of(own, mine)).text)


def test_a_refused_request_opens_in_the_debugger(platform: Platform, people: People, shop: Shop) -> None:
    shop.client.expect(40101, "getMerchantBalance", sign="f" * 32, remark="two words")
    operator = people.signed_in("operator")
    url = f"/console/merchants/{shop.merchant_id}/refusals"
    wait_until(lambda: "40101" in operator.page(url), "the refusal is written down")
    page = operator.page(url)
    assert "sign does not match" in read_text(page)
    assert "remark=two words" in page
    link = page.split('href="/console/debugger?')[1].split('"')[0].replace("&amp;", "&")
    filled = operator.page(f"/console/debugger?{link}")
    assert "two words" in filled
    assert f'value="{shop.merchant_id}"' in filled
    assert f'value="{PATH}"' in filled
    assert f"Only {'f' * 8}… of the refused signature is kept" in read_text(filled)


def test_a_refused_request_of_another_merchant_does_not_open(
    platform: Platform, people: People, shop: Shop
) -> None:
    shop.client.expect(40101, "getMerchantBalance", sign="f" * 32, remark="not for others")
    operator = people.signed_in("operator")
    url = f"/console/merchants/{shop.merchant_id}/refusals"
    wait_until(lambda: "not for others" in operator.page(url), "the refusal is written down")
    link = operator.page(url).split('href="/console/debugger?')[1].split('"')[0].replace("&amp;", "&")
    other = people.signed_in("merchant", platform.open_merchant().merchant_id)
    assert "not for others" not in other.page(f"/console/debugger?{link}")


def test_every_finding_has_a_text_in_both_languages() -> None:
    lacking = [text for _, text in SENTENCES.values() if text not in read_words()]
    assert not lacking, "\n".join(lacking)
