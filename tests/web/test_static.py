"""Static files: named by their content hash, cached for good, compressed."""

import gzip
import hashlib

import httpx
import pytest
from starlette.applications import Starlette
from tests.crash.shop import run
from tests.rows import each_row

from merchant_wallet.web import static


def get(path: str, encoding: str = "gzip", wait_s: int = 0) -> httpx.Response:
    """Request a file, where the rate limit asks the client to wait `wait_s`."""

    async def ask() -> httpx.Response:
        application = Starlette(routes=[static.make_route(lambda request: wait_s)])
        application.router.redirect_slashes = False
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://wallet.example") as client:
            return await client.get(path, headers={"accept-encoding": encoding})

    return run(ask())


@each_row("name", sorted(static.read_files()))
def test_every_file_arrives_whole_whichever_way_it_is_asked_for(name: str) -> None:
    url, content = static.find_url(name), (static.STATIC_DIR / name).read_bytes()
    for encoding in ("gzip, deflate, br", "identity"):
        answer = get(url, encoding)
        assert (answer.status_code, answer.content) == (200, content)
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["vary"] == "accept-encoding"
    assert hashlib.sha256(content).hexdigest()[:12] in url


def test_scripts_and_styles_go_out_compressed_and_with_their_types() -> None:
    answer = get(static.find_url("vendor/htmx/htmx.min.js"))
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    packed = static.read_files()["vendor/htmx/htmx.min.js"].packed
    assert packed is not None
    assert gzip.decompress(packed) == answer.content


@each_row(
    "path",
    [
        "/static/000000000000/vendor/htmx/htmx.min.js",
        "/static/x/../../languages.py",
        "/static/x/%2e%2e/languages.py",
        "/static/",
        "/static/x",
    ],
)
def test_other_names_are_not_there(path: str) -> None:
    assert get(path).status_code == 404


def test_a_client_over_the_limit_gets_retry_after() -> None:
    answer = get(static.find_url("vendor/htmx/htmx.min.js"), wait_s=3)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")


def test_a_file_that_is_not_there_is_a_fault_of_the_page() -> None:
    with pytest.raises(KeyError):
        static.find_url("nothing.css")
