"""A site answers every request with an id and in the visitor's language, and reveals nothing internal."""

import io
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from jinja2 import DictLoader
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from tests.crash.shop import run
from tests.rows import each_row

from merchant_wallet.base.trusted_proxies import TrustedProxies
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.observability.logs import AccessLog, RequestIds
from merchant_wallet.web import client
from merchant_wallet.web.client import Client
from merchant_wallet.web.connections import Away
from merchant_wallet.web.context import PageContext
from merchant_wallet.web.csrf import Forged
from merchant_wallet.web.forms import BadForm
from merchant_wallet.web.live import TooManyStreams
from merchant_wallet.web.rate_limiter import AUTHENTICATED, BURST, PageRateLimiter
from merchant_wallet.web.responses import Responses
from merchant_wallet.web.site import ERROR_TEMPLATE, Site
from merchant_wallet.web.templates import Templates

Handler = Callable[[Request], Awaitable[Response]]
SECRET = "the hash is $argon2id$v=19"
COOKIE = "session"
WRONG_TOKENS = 3
"""This many wrong tokens a minute are free."""


def make_context(pages_per_s: int = 0) -> PageContext:
    """A context for a site without a database. Its access log can be read; its clock stands still."""
    templates = Templates()
    templates.environment.loader = DictLoader({ERROR_TEMPLATE: "{{ lang }} {{ status }} {{ _(title) }}"})
    log = AccessLog(io.StringIO(), enabled=True)

    def see(request: Request, kept: str | None = None) -> Client:
        return client.read_client(request, TrustedProxies(), kept)

    responses = Responses(templates, secure=False)
    rate_limiter = PageRateLimiter(pages_per_s, WRONG_TOKENS, lambda: 0.0)
    context = SimpleNamespace(
        responses=responses,
        request_ids=RequestIds(),
        access_log=log,
        client=see,
        rate_limiter=rate_limiter,
        proxies=TrustedProxies(),
    )
    return cast(PageContext, context)


def raising(error: Exception) -> Handler:
    """A handler that raises this error."""

    async def fail(request: Request) -> Response:
        raise error

    return fail


def ask(site: Site, path: str, method: str = "GET", **how: Any) -> httpx.Response:
    """Send the site a request."""

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(site)
        async with httpx.AsyncClient(transport=transport, base_url="http://wallet.example") as client:
            return await client.request(method, path, **how)

    return run(send())


def make_site(handler: Handler, path: str = "/wallet/page") -> Site:
    """A site with one page."""
    return Site(make_context(), ("/w", "/wallet"), "/wallet", [Route(path, handler, methods=["GET"])])


@each_row(
    ("error", "status"),
    [
        (BadForm(SECRET), 400),
        (Forged(SECRET), 403),
        (Away(SECRET), 503),
        (Unavailable(SECRET), 503),
        (TooManyStreams(SECRET), 503),
        (RuntimeError(SECRET), 500),
    ],
)
def test_errors_reveal_nothing_internal(error: Exception, status: int) -> None:
    with capture_logs(processors=[merge_contextvars]):
        answer = ask(make_site(raising(error)), "/wallet/page", headers={"accept-language": "zh-CN"})
    assert answer.status_code == status
    assert answer.text.startswith(f"zh-CN {status} ")
    assert "argon2id" not in answer.text
    assert answer.headers["x-request-id"]
    assert "content-security-policy" in answer.headers
    assert ("retry-after" in answer.headers) is (status == 503)


def test_a_fault_is_in_the_log_under_the_id_that_the_visitor_was_given() -> None:
    with capture_logs(processors=[merge_contextvars]) as lines:
        answer = ask(make_site(raising(RuntimeError("broken"))), "/wallet/page")
    assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"]]


def test_the_token_of_a_link_is_in_no_log() -> None:
    site = make_site(raising(RuntimeError("broken")), "/w/{token}")
    with capture_logs(processors=[merge_contextvars]) as lines:
        ask(site, "/w/this-opens-a-wallet")
    assert lines
    assert "this-opens-a-wallet" not in repr(lines)
    assert "this-opens-a-wallet" not in repr(site._context.access_log._lines)


def statuses(site: Site, times: int, path: str = "/wallet/page", token: str = "") -> list[int]:
    """The statuses of a number of requests, one after the other."""
    headers = {"cookie": f"{COOKIE}={token}"} if token else {}
    return [ask(site, path, headers=headers).status_code for _ in range(times)]


async def greet(request: Request) -> Response:
    """A page for the right token. Other visitors are told to sign in."""
    if request.cookies.get(COOKIE) != "right":
        return PlainTextResponse("sign in")
    request.scope[AUTHENTICATED] = True
    return PlainTextResponse("here")


def make_limited_site(pages_per_s: int) -> Site:
    """A site with that page and a limit for visitors who are not signed in."""
    routes = [Route("/wallet/page", greet, methods=["GET"])]
    return Site(make_context(pages_per_s), ("/wallet",), "/wallet", routes, cookie=COOKIE)


@pytest.mark.parametrize("path", ["/wallet/page", "/wallet/nothing-here", "/wallet/p%61ge"])
def test_a_visitor_over_the_limit_gets_retry_after(path: str) -> None:
    site = make_limited_site(pages_per_s=2)
    assert 429 not in statuses(site, 2 * BURST, path)
    refused = ask(site, path, headers={"accept-language": "zh-CN"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.text.startswith("zh-CN 429 ")
    assert refused.headers["x-request-id"]


def test_a_path_in_another_spelling_is_no_page_and_no_way_round_the_limit() -> None:
    site = make_limited_site(pages_per_s=1)
    assert statuses(site, BURST + 1, "/wallet/p%61ge", token="wrong") == [404] * BURST + [429]


def test_who_has_a_session_never_waits_for_strangers_at_the_same_address() -> None:
    site = make_limited_site(pages_per_s=1)
    assert statuses(site, BURST + 1)[-1] == 429
    assert set(statuses(site, 3 * BURST, token="right")) == {200}


def test_tokens_that_open_nothing_count_as_none_once_there_were_too_many() -> None:
    site = make_limited_site(pages_per_s=1)
    assert statuses(site, WRONG_TOKENS + BURST + 1, token="wrong") == [200] * (WRONG_TOKENS + BURST) + [429]
    assert ask(site, "/wallet/page", headers={"cookie": f"{COOKIE}=other"}).status_code == 429


def test_a_token_that_could_not_be_looked_up_is_not_held_against_anybody() -> None:
    async def look_up(request: Request) -> Response:
        if is_away:
            raise Away("the database is restarting")
        return await greet(request)

    is_away = True
    routes = [Route("/wallet/page", look_up, methods=["GET"])]
    site = Site(make_context(pages_per_s=1), ("/wallet",), "/wallet", routes, cookie=COOKIE)
    with capture_logs(processors=[merge_contextvars]):
        assert set(statuses(site, 3 * WRONG_TOKENS, token="right")) == {503}
    is_away = False
    assert set(statuses(site, 2 * BURST, token="right")) == {200}


def test_without_a_limit_nobody_waits() -> None:
    assert set(statuses(make_limited_site(pages_per_s=0), 20 * BURST)) == {200}


def test_there_is_nothing_at_other_paths_nor_by_other_methods() -> None:
    async def page(request: Request) -> Response:
        return PlainTextResponse("here")

    site = make_site(page)
    assert ask(site, "/wallet/page").text == "here"
    assert ask(site, "/wallet/other").status_code == 404
    assert ask(site, "/wallet/page/").status_code == 404
    refused = ask(site, "/wallet/page", "POST")
    assert refused.status_code == 405
    assert "GET" in refused.headers["allow"]


def test_a_get_of_a_forms_url_redirects_to_its_page() -> None:
    async def page(request: Request) -> Response:
        return PlainTextResponse("here")

    routes = [
        Route("/wallet", page, methods=["GET"]),
        Route("/wallet/security", page, methods=["GET"]),
        Route("/wallet/security/pin/change", page, methods=["POST"]),
        Route("/wallet/leave", page, methods=["POST"]),
        Route("/look", page, methods=["POST"]),
    ]
    site = Site(make_context(), ("/wallet", "/look"), "/wallet", routes)
    pages = {"security/pin/change": "/wallet/security", "leave": "/wallet"}
    for form, above in pages.items():
        answer = ask(site, f"/wallet/{form}")
        assert (answer.status_code, answer.headers["location"]) == (303, above)
        assert ask(site, f"/wallet/{form}", "POST").text == "here"
    assert ask(site, "/look").headers["location"] == "/wallet"
    assert ask(site, "/wallet/leave", "PUT").status_code == 405
    without_pages = Site(make_context(), ("/look",), "", [Route("/look", page, methods=["POST"])])
    assert ask(without_pages, "/look").status_code == 405


@each_row("number", ["9" * 5000, "9" * 20, "-1", "x"])
def test_a_number_in_a_path_that_is_no_id_is_a_page_that_is_not_there(number: str) -> None:
    asked: list[int] = []

    async def show(request: Request) -> Response:
        asked.append(request.path_params["no"])
        return PlainTextResponse("")

    site = make_site(show, "/wallet/page/{no:int}")
    assert ask(site, f"/wallet/page/{number}").status_code == 404
    assert ask(site, "/wallet/page/" + "9" * 18).status_code == 200
    assert asked == [int("9" * 18)]


def test_a_site_serves_its_own_paths_only() -> None:
    site = make_site(raising(RuntimeError()))
    owned = [path for path in ("/w", "/w/x", "/wallet", "/wallet/x", "/walletx", "/") if site.owns(path)]
    assert owned == ["/w", "/w/x", "/wallet", "/wallet/x"]


def test_a_long_page_goes_out_compressed_and_a_short_one_as_it_is() -> None:
    async def page(request: Request) -> Response:
        return PlainTextResponse("x" * int(request.query_params["length"]))

    site = make_site(page)
    long, short = ask(site, "/wallet/page?length=5000"), ask(site, "/wallet/page?length=500")
    assert long.headers["content-encoding"] == "gzip"
    assert int(long.headers["content-length"]) < 100
    assert (long.text, short.text) == ("x" * 5000, "x" * 500)
    assert "content-encoding" not in short.headers


def test_a_visitor_who_leaves_while_sending_is_no_fault() -> None:
    async def page(request: Request) -> Response:
        await request.body()
        return PlainTextResponse("read")

    site = Site(make_context(), ("/wallet",), "/wallet", [Route("/wallet", page, methods=["POST"])])
    sent: list[Any] = []

    async def leave() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await site(
            {"type": "http", "method": "POST", "path": "/wallet", "raw_path": b"/wallet", "headers": []},
            receive,
            send,
        )

    with capture_logs(processors=[merge_contextvars]) as lines:
        run(leave())
    assert lines == []
    assert sent[0]["status"] == 400


@pytest.mark.parametrize(
    ("field", "value", "cookie"),
    [
        ("language", "zh-CN", "lang=zh-CN"),
        ("language", "xx", None),
        ("theme", "dark", "theme=dark"),
        ("theme", "<script>", None),
    ],
)
def test_a_choice_of_language_or_theme_is_kept_when_it_is_one(
    field: str, value: str, cookie: str | None
) -> None:
    context = make_context()
    site = Site(context, ("/look",), "/", [client.make_route(context.responses)])
    answer = ask(site, "/look", "POST", data={field: value, "back": "/wallet/profile"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/wallet/profile")
    kept = answer.headers.get("set-cookie")
    assert kept is None if cookie is None else kept is not None and kept.startswith(cookie)


@each_row(
    "back",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/a\r\nset-cookie: x",
        "//[",
        "/中文",
        "",
    ],
)
def test_nobody_is_sent_elsewhere_after_a_choice(back: str) -> None:
    context = make_context()
    site = Site(context, ("/look",), "/", [client.make_route(context.responses)])
    assert ask(site, "/look", "POST", data={"theme": "dark", "back": back}).headers["location"] == "/"


def test_over_https_a_choice_holds_inside_a_frame_of_another_site_too() -> None:
    context = make_context()
    responses = Responses(Templates(), secure=True)
    site = Site(context, ("/look",), "/", [client.make_route(responses)])
    cookies = ask(site, "/look", "POST", data={"theme": "dark", "language": "en"}).headers.get_list(
        "set-cookie"
    )
    assert len(cookies) == 2
    for cookie in cookies:
        assert cookie.endswith("; SameSite=none; Secure; Partitioned")
        assert "HttpOnly" in cookie


def test_another_site_chooses_nothing() -> None:
    context = make_context()
    site = Site(context, ("/look",), "/", [client.make_route(context.responses)])
    answer = ask(site, "/look", "POST", data={"theme": "dark"}, headers={"origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
