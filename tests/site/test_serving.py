"""The site at `/docs`: the bytes of the build, compressed and plain, with an ETag and a strict policy."""

from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from tests.crash.shop import run

from merchant_wallet.web import documentation
from merchant_wallet.web.documentation import Documentation, make_routes
from merchant_wallet.web.languages import Language

GZIP = {"accept-encoding": "gzip"}
PLAIN = {"accept-encoding": "identity"}


@pytest.fixture(scope="module")
def packed(built: Path) -> Documentation:
    return Documentation(built / "documentation.zip")


def get(
    packed: Documentation | None,
    path: str,
    headers: dict[str, str] | None = None,
    *,
    wait_s: int = 0,
    language: Language = Language.EN,
) -> httpx.Response:
    async def ask() -> httpx.Response:
        application = Starlette(routes=make_routes(lambda request: wait_s, lambda request: language, packed))
        application.router.redirect_slashes = False
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://wallet.example") as client:
            return await client.get(path, headers=headers or GZIP)

    return run(ask())


def test_every_file_arrives_whole_compressed_and_plain(packed: Documentation, site: Path) -> None:
    for path in (path for path in site.rglob("*") if path.is_file()):
        url = f"/docs/{path.relative_to(site).as_posix()}"
        for headers in (GZIP, PLAIN):
            answer = get(packed, url, headers)
            assert (answer.status_code, answer.content) == (200, path.read_bytes()), url
            assert ("content-encoding" in answer.headers) is (headers is GZIP)


def test_a_page_is_at_its_folder_and_without_the_slash_leads_there(packed: Documentation, site: Path) -> None:
    for folder in ("codes/40101", "zh", "zh/codes/40101"):
        assert get(packed, f"/docs/{folder}/").content == (site / folder / "index.html").read_bytes()
        answer = get(packed, f"/docs/{folder}")
        assert (answer.status_code, answer.headers["location"]) == (308, f"/docs/{folder}/")
    assert get(packed, "/docs/").content == (site / "index.html").read_bytes()


@pytest.mark.parametrize(("language", "home"), [(Language.EN, "/docs/"), (Language.ZH, "/docs/zh/")])
def test_docs_alone_leads_to_the_readers_language(
    packed: Documentation, language: Language, home: str
) -> None:
    answer = get(packed, "/docs", language=language)
    assert (answer.status_code, answer.headers["location"]) == (303, home)


def test_what_a_browser_has_already_is_not_sent_again(packed: Documentation) -> None:
    first = get(packed, "/docs/")
    assert first.headers["cache-control"] == "no-cache"
    for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}'):
        again = get(packed, "/docs/", {**GZIP, "if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert get(packed, "/docs/", {**PLAIN, "if-none-match": first.headers["etag"]}).status_code == 200


def test_files_named_by_their_content_are_kept_for_good(packed: Documentation, site: Path) -> None:
    named = [*site.glob("assets/inline/*.js"), *site.glob("assets/**/*.????????.min.*")]
    assert len(named) >= 5
    for path in named:
        answer = get(packed, f"/docs/{path.relative_to(site).as_posix()}")
        assert "immutable" in answer.headers["cache-control"]


def test_a_page_may_run_and_load_only_what_is_ours(packed: Documentation) -> None:
    for path in ("/docs/", "/docs/nothing/"):
        headers = get(packed, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/docs/nothing", "/docs/../pyproject.toml", "/docs//", "/docs/codes/40101/x", "/docs/zh//"]
)
def test_other_names_are_not_there(packed: Documentation, path: str) -> None:
    answer = get(packed, path)
    assert answer.status_code == 404
    assert 'href="/docs/"' in answer.text or answer.headers["content-type"].startswith("text/plain")


def test_who_asks_too_often_waits(packed: Documentation) -> None:
    answer = get(packed, "/docs/", wait_s=3)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")


def test_without_the_built_site_the_interface_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(documentation, "PACKED", tmp_path / "none.zip")
    assert documentation.read_documentation() is None
    for path in ("/docs", "/docs/"):
        answer = get(None, path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/docs/api")
    for path in ("/docs/operations/", "/docs/clients/quickstart.py"):
        answer = get(None, path)
        assert answer.status_code == 404
        assert "<code>make site</code> builds them" in answer.text


def test_the_packed_site_is_light(built: Path) -> None:
    assert (built / "documentation.zip").stat().st_size < 2_200_000
