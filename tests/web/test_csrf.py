"""Only our own pages can make a change: requests without a valid CSRF token are refused."""

import pytest
from starlette.requests import Request
from tests.rows import each_row

from merchant_wallet.web.csrf import Forged, check, make_token, mask
from merchant_wallet.web.forms import parse_form

KEY = bytes(range(32))
HOST = "wallet.example"


def ask(**headers: str) -> Request:
    """A request with these headers; `_` stands for `-`."""
    named = {"host": HOST, **{name.replace("_", "-"): text for name, text in headers.items()}}
    raw = [(name.encode(), text.encode("latin-1")) for name, text in named.items()]
    return Request({"type": "http", "method": "POST", "headers": raw})


def test_a_form_of_our_own_page_passes() -> None:
    token = make_token(KEY, "session")
    check(ask(), parse_form(f"csrf={mask(token)}".encode()), token)
    check(ask(x_csrf_token=mask(token)), None, token)
    check(ask(x_csrf_token=mask(token), origin=f"https://{HOST}", sec_fetch_site="same-origin"), None, token)


def test_each_page_spells_the_token_in_another_way() -> None:
    token = make_token(KEY, "session")
    spellings = {mask(token) for _ in range(50)}
    assert len(spellings) == 50
    assert all(token not in spelling for spelling in spellings)


@each_row("given", ["", "x", "é", "0" * 64, "0" * 32, "zz" * 32])
def test_a_token_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(Forged):
        check(ask(x_csrf_token=given), None, make_token(KEY, "session"))


def test_the_token_of_another_session_is_refused() -> None:
    mine, other = make_token(KEY, "mine"), make_token(KEY, "other")
    with pytest.raises(Forged):
        check(ask(), parse_form(f"csrf={mask(other)}".encode()), mine)


def test_without_a_session_no_token_is_right() -> None:
    with pytest.raises(Forged):
        check(ask(), parse_form(b"csrf="), "")


@each_row(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": f"https://{HOST}:8443"},
        {"origin": f"https://{HOST}.evil.example"},
        {"origin": "http://["},
    ],
)
def test_another_site_is_refused_even_with_the_token(headers: dict[str, str]) -> None:
    token = make_token(KEY, "session")
    with pytest.raises(Forged):
        check(ask(x_csrf_token=mask(token), **headers), None, token)
