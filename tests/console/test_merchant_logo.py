"""A merchant's logo is uploaded in the console, and outside the sandbox another person accepts it."""

import re

import httpx
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_merchants import url_of
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw


def upload(person: ConsoleUser, shop: Shop, content: bytes, **fields: str) -> httpx.Response:
    """Send the form of the logo page with a file, as a browser does."""
    page = person.page(url_of(shop, "/logo"))
    hidden = dict(re.findall(r'<input type="hidden" name="(csrf|marks)" value="([^"]*)"', page))
    files = {"logo": ("<x>.png", content, "image/png")} if content else {"logo": ("", b"", "")}
    return person.http.post(url_of(shop, "/logo"), data={**hidden, **fields}, files=files)


def test_a_logo_is_shown_once_it_is_uploaded_and_can_be_removed(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    answer = upload(operator, shop, draw())
    assert answer.status_code == 303, read_text(answer.text)
    page = operator.follow(answer).text
    found = re.search(r'src="(/wallet/brand/[0-9a-f]{64}\.png)"', page)
    assert found is not None
    assert operator.get(found[1]).headers["content-type"] == "image/png"
    assert found[1] in operator.page(url_of(shop, "/settings"))
    rows = platform.rows(
        "select after ->> 'brandLogo' from audit_entry where action = 'merchant.set' and merchant_id = %s",
        shop.merchant_id,
    )
    assert rows == [(found[1].split("/")[-1].removesuffix(".png"),)]
    operator.follow(upload(operator, shop, b"", do="remove"))
    assert "/wallet/brand/" not in operator.page(url_of(shop, "/logo"))


def test_what_is_no_picture_changes_nothing_and_is_told(
    platform: Platform, people: People, shop: Shop
) -> None:
    operator = people.signed_in("operator")
    for content, told in (
        (b"<svg onload='alert(1)'/>", "This is not a PNG or JPEG picture."),
        (b"", "Choose a file first."),
        (b"\x89PNG" + bytes(1_100_000), "could not be read|too large|not sent by this page"),
    ):
        answer = upload(operator, shop, content)
        assert answer.status_code in (400, 422)
        assert re.search(told, read_text(answer.text)), read_text(answer.text)[:500]
    assert platform.rows("select brand_logo from merchant where merchant_id = %s", shop.merchant_id) == [
        (None,)
    ]
