"""A merchant's look is changed in the console, by the platform's people and by the merchant's own."""

import re
import socket
from html import unescape
from urllib.parse import urlsplit

import httpx
import pytest
from tests.console.conftest import ConsoleUser, People, read_text
from tests.console.test_merchants import url_of
from tests.journeys.conftest import Platform, Shop
from tests.merchants.test_brand import draw
from tests.waits import TIMEOUT_S

from merchant_wallet.console.merchant_look import MAX_FORM_BYTES

LINK = "https://shop.example/wallet"


def save(person: ConsoleUser, shop: Shop, logo: bytes = b"", **changed: str) -> httpx.Response:
    """Send the form of the look as a browser does, with a file or without one."""
    page = person.page(url_of(shop, "/look"))
    shown = re.findall(
        r'<input[^>]* name="(csrf|marks|brand-colour|customer-url)"[^>]*? value="([^"]*)"', page
    )
    form = {name: unescape(value) for name, value in shown}
    form |= {name.replace("_", "-"): text for name, text in changed.items()}
    files = {"logo": ("<x>.png", logo, "image/png")} if logo else {"logo": ("", b"", "")}
    return person.http.post(url_of(shop, "/look"), data=form, files=files)


def looks(platform: Platform, shop: Shop) -> tuple[object, ...]:
    """The present colour, logo and link."""
    asked = "select brand_colour, brand_logo, customer_url from merchant where merchant_id = %s"
    return tuple(platform.rows(asked, shop.merchant_id)[0])


@pytest.mark.parametrize("role", ["operator", "merchant"])
def test_a_look_is_shown_once_it_is_saved_and_can_be_removed(
    platform: Platform, people: People, shop: Shop, role: str
) -> None:
    person = people.signed_in(role, shop.merchant_id if role == "merchant" else None)
    assert url_of(shop, "/look") in person.page(url_of(shop, "/settings"))
    answer = save(person, shop, draw(), brand_colour="#8A1538", customer_url=LINK)
    assert answer.status_code == 303, read_text(answer.text)
    page = person.follow(answer).text
    found = re.search(r'src="(/wallet/brand/([0-9a-f]{64})\.png)"', page)
    assert found is not None
    assert person.get(found[1]).headers["content-type"] == "image/png"
    assert found[1] in person.page(url_of(shop, "/settings"))
    assert looks(platform, shop) == ("#8a1538", found[2], LINK)
    rows = platform.rows(
        "select actor, after ->> 'brandLogo' from audit_entry"
        " where action = 'merchant.set' and merchant_id = %s",
        shop.merchant_id,
    )
    assert rows == [(f"{role}:{person.name}", found[2])]
    person.follow(save(person, shop, do="remove"))
    assert looks(platform, shop) == ("#8a1538", None, LINK)
    person.follow(save(person, shop, brand_colour="", customer_url=""))
    assert looks(platform, shop) == (None, None, None)


@pytest.mark.parametrize("cookie", ["", "console_session=unknown"])
def test_no_file_is_read_from_a_stranger(platform: Platform, shop: Shop, cookie: str) -> None:
    address = urlsplit(platform.address)
    assert address.hostname is not None
    head = (
        f"POST {url_of(shop, '/look')} HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: {cookie}\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {MAX_FORM_BYTES}\r\n\r\n"
    )
    part = b'--b\r\nContent-Disposition: form-data; name="logo"; filename="x"\r\n\r\n'
    with socket.create_connection((address.hostname, address.port), timeout=TIMEOUT_S) as stranger:
        # A tenth of the file, and never the rest.
        stranger.sendall(head.encode() + part + bytes(MAX_FORM_BYTES // 10))
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = stranger.recv(65_536)
            assert piece, answer
            answer += piece
    assert answer.startswith(b"HTTP/1.1 303 ")
    assert b"/console/sign-in" in answer.partition(b"\r\n\r\n")[0]


def test_a_merchants_own_person_changes_nothing_else_through_the_look(
    platform: Platform, people: People, shop: Shop
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    digest = "ab" * 32
    asked = "select name, approval_limit_units from merchant where merchant_id = %s"
    before = platform.rows(asked, shop.merchant_id)
    mei.follow(save(mei, shop, brand_colour="#8a1538", approval_limit="9", brand_logo=digest, name="Mei's"))
    assert looks(platform, shop) == ("#8a1538", None, None)
    assert platform.rows(asked, shop.merchant_id) == before
    assert mei.post(url_of(shop, "/settings"), {"name": "Mei's"}).status_code == 403


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"<svg onload='alert(1)'/>", "This is not a PNG or JPEG picture."),
        (draw("GIF"), "This is not a PNG or JPEG picture."),
        (draw(size=(400, 20)), "each side needs at least 48 pixels"),
        (b"\x89PNG" + bytes(1_100_000), "at most 1 MB and 16 million pixels"),
        (b"\x89PNG" + bytes(3_000_000), "at most 1 MB and 16 million pixels"),
    ],
    ids=["svg", "gif", "small", "above 1 MB", "3 MB"],
)
def test_what_is_no_picture_changes_nothing_and_is_told(
    platform: Platform, people: People, shop: Shop, content: bytes, told: str
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    answer = save(mei, shop, content, brand_colour="#8a1538")
    assert answer.status_code == 422
    assert told in read_text(answer.text)
    assert 'value="#8a1538"' in answer.text, "what was typed stays"
    assert looks(platform, shop) == (None, None, None)


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("brand_colour", "crimson", "Not a value that can be set: 'crimson'"),
        ("customer_url", "javascript:alert(1)", "Not a value that can be set"),
    ],
)
def test_a_wrong_colour_or_link_is_told_at_its_field(
    platform: Platform, people: People, shop: Shop, field: str, text: str, told: str
) -> None:
    mei = people.signed_in("merchant", shop.merchant_id)
    answer = save(mei, shop, draw(), **{field: text})
    assert answer.status_code == 422
    assert told in read_text(answer.text)
    assert looks(platform, shop) == (None, None, None)


def test_nothing_that_somebody_else_changed_meanwhile_is_undone(
    platform: Platform, people: People, shop: Shop
) -> None:
    mei, ann = people.signed_in("merchant", shop.merchant_id), people.signed_in("operator")
    page = mei.page(url_of(shop, "/look"))
    marks = re.search(r'name="marks" value="([^"]*)"', page)
    assert marks is not None
    ann.follow(save(ann, shop, brand_colour="#0a3a3f", customer_url=LINK))
    answer = save(mei, shop, brand_colour="#8a1538", customer_url="", marks=marks[1])
    assert answer.status_code == 422
    assert "Somebody else has changed this meanwhile" in read_text(answer.text)
    assert looks(platform, shop) == ("#0a3a3f", None, LINK)
