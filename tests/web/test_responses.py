"""Every page is sent with the security headers."""

import pytest
from jinja2 import DictLoader
from starlette.requests import Request
from tests.rows import each_row

from merchant_wallet.web.csrf import check, make_token
from merchant_wallet.web.languages import Language
from merchant_wallet.web.responses import Responses, is_part
from merchant_wallet.web.templates import Templates

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors "
)


def make_answers(secure: bool = False, text: str = "<p>{{ csrf }}</p>") -> Responses:
    """Responses with one template."""
    templates = Templates()
    templates.environment.loader = DictLoader({"page.html": text})
    return Responses(templates, secure=secure)


def test_a_page_loads_nothing_from_elsewhere_runs_nothing_inside_and_is_kept_nowhere() -> None:
    answer = make_answers().page("page.html", Language.EN, {"csrf": ""})
    assert answer.headers["content-security-policy"] == POLICY + "'none'"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "strict-transport-security" not in answer.headers


def test_over_https_the_browser_gets_strict_transport_security() -> None:
    answer = make_answers(secure=True).redirect("/wallet")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_only_the_origins_named_may_frame_a_page() -> None:
    answer = make_answers().page(
        "page.html", Language.EN, {"csrf": ""}, frame_ancestors=("https://shop.example",)
    )
    assert answer.headers["content-security-policy"] == POLICY + "https://shop.example"
    assert "x-frame-options" not in answer.headers


@each_row("url", ["https://evil.example", "//evil.example", "wallet", ""])
def test_no_page_sends_anyone_elsewhere(url: str) -> None:
    with pytest.raises(AssertionError):
        make_answers().redirect(url)


def test_a_page_bears_its_session_s_token_never_spelled_the_same() -> None:
    responses, token = make_answers(), make_token(b"key", "session")
    pages = {responses.render("page.html", Language.EN, csrf=token).encode() for _ in range(2)}
    assert len(pages) == 2
    for page in pages:
        given = page.removeprefix(b"<p>").removesuffix(b"</p>")
        check(Request({"type": "http", "headers": [(b"x-csrf-token", given)]}), None, token)


def test_a_part_is_what_htmx_asks_for() -> None:
    def ask(*headers: tuple[bytes, bytes]) -> Request:
        return Request({"type": "http", "headers": list(headers)})

    assert is_part(ask((b"hx-request", b"true")))
    assert not is_part(ask((b"hx-request", b"true"), (b"hx-boosted", b"true")))
    assert not is_part(ask())
