"""What all console pages share: the menu, flash messages, the state of tables in URLs, headers."""

import base64
import re

import pytest
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from tests.console.conftest import SIGN_IN, People, read_text
from tests.journeys.conftest import Platform, Shop
from tests.rows import each_row

from merchant_wallet.console import flash
from merchant_wallet.console.flash import FlashMessage
from merchant_wallet.console.form_state import refill
from merchant_wallet.console.tables import TableState, read_state
from merchant_wallet.web.forms import parse_form

KEY = bytes(32)
ROLES = ("owner", "operator", "auditor", "merchant")


@pytest.mark.parametrize("role", ROLES)
def test_every_entry_of_the_menu_leads_to_a_page_that_names_it_as_the_present_one(
    people: People, shop: Shop, role: str
) -> None:
    person = people.signed_in(role, shop.merchant_id if role == "merchant" else None)
    menu = re.findall(r'class="side-link" href="([^"]+)"', person.page("/console"))
    assert len(menu) >= 8
    for url in menu:
        answer = person.get(url)
        # A merchant's user has only one book and is redirected to it.
        page = (person.follow(answer) if answer.status_code == 303 else answer).text
        present = re.findall(r'class="side-link" href="([^"]+)" aria-current="page"', page)
        assert present == [url], url


def test_no_page_is_kept_or_framed_or_runs_what_is_not_ours(people: People, shop: Shop) -> None:
    owner = people.signed_in("owner")
    for path in ("/console", SIGN_IN, "/console/no-such-page", f"/console/merchants/{shop.merchant_id}"):
        headers = owner.get(path).headers
        policy = headers.get("content-security-policy", "")
        if path != SIGN_IN:
            assert "default-src 'none'" in policy, path
            assert "frame-ancestors 'none'" in policy, path
            assert "unsafe" not in policy, path
        assert headers["cache-control"] == "no-store", path
        assert headers["x-request-id"], path


def test_no_page_has_a_script_or_a_style_inside(people: People, shop: Shop) -> None:
    owner = people.signed_in("owner")
    for path in ("/console", "/console/account", f"/console/merchants/{shop.merchant_id}/settings"):
        page = owner.page(path)
        assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=\"|javascript:", page), path


def test_a_flash_message_is_shown_once(people: People, shop: Shop) -> None:
    operator = people.signed_in("operator")
    answer = operator.post(f"/console/merchants/{shop.merchant_id}/status", {"status": "suspended"})
    assert "is suspended" in read_text(operator.follow(answer).text)
    assert "is suspended: its" not in read_text(operator.follow(answer).text)


def brought(cookie: str) -> Request:
    """A request whose cookie brings a flash message."""
    scope = {"type": "http", "headers": [(b"cookie", f"{flash.COOKIE}={cookie}".encode())]}
    return Request(scope)


def left(said: FlashMessage, session: str = "token") -> str:
    """The cookie that holds a flash message."""
    response = Response()
    flash.write(response, said, KEY, session, False)
    return response.headers.get("set-cookie", "=;").partition(";")[0].partition("=")[2].strip('"')


def test_a_note_is_good_for_its_own_session_only() -> None:
    said = FlashMessage(flash.GOOD, "Hello {name}", {"name": "<b>"})
    cookie = left(said)
    assert flash.read(brought(cookie), KEY, "token") == said
    assert flash.read(brought(cookie), KEY, "another") is None
    assert flash.read(brought(cookie), bytes([1]) * 32, "token") is None


def test_a_note_that_somebody_changed_says_nothing() -> None:
    raw = base64.urlsafe_b64decode(left(FlashMessage(flash.GOOD, "Approved")))
    for at in range(0, len(raw), 5):
        changed = bytearray(raw)
        changed[at] ^= 1
        assert flash.read(brought(base64.urlsafe_b64encode(changed).decode()), KEY, "token") is None
    for cookie in ("", "nonsense", "====", "AAAA", "é", "x" * 5000):
        scope = {"type": "http", "headers": [(b"cookie", f"{flash.COOKIE}={cookie}".encode("latin-1"))]}
        assert flash.read(Request(scope), KEY, "token") is None


def test_a_note_too_long_for_a_cookie_is_left_out() -> None:
    assert left(FlashMessage(flash.GOOD, "x" * 5000)) == ""


def state(query: str) -> TableState:
    """A table's state, read from a query string."""
    return read_state(
        "/list",
        QueryParams(query),
        sorts=("name", "created"),
        default_sort="-created",
        filters=("q", "from"),
        several=("status",),
    )


def test_a_tables_url_leads_back_to_the_same_state() -> None:
    seen = state("q=a%26b&status=1&status=3&sort=name&after=key")
    assert (seen.get("q"), seen.column, seen.descending, seen.after) == ("a&b", "name", False, "key")
    assert seen.has("status", "3")
    again = state(seen.page_after("key").partition("?")[2])
    assert again == seen


def test_another_order_begins_at_the_first_page() -> None:
    seen = state("q=x&sort=name&after=key")
    for url in (seen.sorted_by("created"), seen.sorted_by("name"), seen.first):
        assert state(url.partition("?")[2]).after is None, url
    assert seen.sorted_by("name") == "/list?q=x&sort=-name"
    assert seen.cleared == "/list?sort=name"


@each_row("query", ["sort=password", "sort=-", "sort=name;drop", "nobody=asked", ""])
def test_what_a_table_does_not_know_is_not_there(query: str) -> None:
    seen = state(query)
    assert (seen.sort, seen.is_filtered, seen.first) == ("-created", False, "/list")


def test_a_form_is_shown_again_with_what_was_typed_and_no_more() -> None:
    form = parse_form(b"name=a+b&password=hidden")
    shown = refill(form, ("name", "missing"), {"name": "No."})
    assert (shown.value("name"), shown.value("missing", "x"), shown.error("name")) == ("a b", "", "No.")
    assert shown.value("password") == ""
    assert not shown.ok


def test_a_missing_page_is_reported_in_the_visitors_language(platform: Platform, people: People) -> None:
    chinese = people.stranger(**{"accept-language": "zh-CN"})
    answer = chinese.get("/console/no-such-page")
    assert answer.status_code == 404
    assert "这里没有内容" in answer.text
    for path in ("/console/", "/console//", "/console/merchants/"):
        assert chinese.get(path).status_code == 404, path
