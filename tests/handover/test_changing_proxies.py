"""Proxies that change requests: nginx and HAProxy with the printed settings, of which somebody changed lines.

An operation works, and counts as its caller's, or the log says what arrived and what the interface says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from structlog.testing import capture_logs
from tests.handover.proxies import Proxy
from tests.journeys.client import write_json
from tests.journeys.conftest import Shop, clock, platform, same_shop
from tests.tools import require_tool

from merchant_wallet.api.refused_requests.listing import list_refused
from merchant_wallet.api.rewritten import PATH_CHANGED, TYPE_CHANGED
from merchant_wallet.base.complaints import Complaints
from merchant_wallet.base.trusted_proxies import MISSING, UNREADABLE
from merchant_wallet.web.site import FORM_REFUSED

__all__ = ["clock", "platform", "same_shop"]

SETTINGS = {"trusted_proxies": (ip_network("127.0.0.0/8"),), "failed_auth_limit": 0}
PATH = "/merchant/getMerchantBalance"
CALLER = "203.0.113.9"
SENT = {
    "Content-Type": "application/json",
    "X-Forwarded-For": CALLER,
    "Expect": "100-continue",
    "X_Under_Score": "1",
}
NGINX_SETS = "proxy_set_header X-Forwarded-For"
NGINX_SOURCE = f"{NGINX_SETS} $proxy_add_x_forwarded_for;"
NGINX_HOST = "proxy_set_header Host $host;"
NGINX_ALL = "location / { proxy_pass http://merchant_wallet; }"
NGINX_VERSION = "proxy_http_version 1.1;"
HAPROXY_SOURCE = "http-request set-header X-Forwarded-For %[src]"
HAPROXY_REUSE = "http-reuse safe"


class Told(NamedTuple):
    """What a caller was answered, and what the log says."""

    status: int
    envelope: dict[str, Any]
    complaints: list[Any]
    sources: list[str]


@contextmanager
def _behind(shop: Shop, folder: Path, name: str, changes: Mapping[str, str]) -> Iterator[httpx.Client]:
    """A client of a proxy in front of the service. The service has not complained yet."""
    require_tool(name)
    folder.chmod(0o755)
    port = shop.platform.port
    shop.platform.web.dependencies.proxies.complaints = Complaints()
    proxy = Proxy(name, folder / name, [port, port], changes=changes)
    try:
        proxy.start()
        with httpx.Client(verify=proxy.trusted, trust_env=False, base_url=proxy.url) as client:
            yield client
    finally:
        proxy.end()


def _call(
    shop: Shop, folder: Path, name: str, changes: Mapping[str, str], path: str = PATH, **headers: str
) -> Told:
    fields = shop.client.common()
    body = write_json({**fields, "sign": shop.client.sign(PATH, fields)})
    # Without a length the body goes in chunks.
    content = body if headers.pop("chunked", "") == "" else iter([body[:9], body[9:]])
    with _behind(shop, folder, name, changes) as client, capture_logs() as lines:
        # Joined as texts: a path with two slashes would be read as a host.
        answer = client.post(
            f"https://{client.base_url.netloc.decode()}{path}", content=content, headers={**SENT, **headers}
        )
    recorder = shop.platform.web.dependencies.request_recorder
    assert recorder is not None
    shop.platform.run(recorder.flush)
    sources = shop.platform.rows(
        "select source from request_log where merchant_id = %s order by log_no desc limit 1", shop.merchant_id
    )
    return Told(
        answer.status_code,
        answer.json(),
        [line for line in lines if line["log_level"] == "warning"],
        [source for (source,) in sources],
    )


@pytest.mark.parametrize(
    ("name", "changes", "source", "fault"),
    [
        ("nginx", {}, CALLER, None),
        (
            "nginx",
            {NGINX_SOURCE: f"{NGINX_SETS} $http_x_forwarded_for:4711;"},
            CALLER,
            None,
        ),
        ("nginx", {NGINX_SOURCE: f"{NGINX_SETS} [2001:db8::9]:443;"}, "2001:db8::9", None),
        (
            "nginx",
            {NGINX_SOURCE: f"""{NGINX_SETS} '"[2001:db8::9]:443" , 127.0.0.1';"""},
            "2001:db8::9",
            None,
        ),
        ("nginx", {NGINX_SOURCE: f"{NGINX_SETS} ::ffff:203.0.113.9;"}, CALLER, None),
        ("nginx", {NGINX_SOURCE: f"{NGINX_SETS} fe80::9%eth0;"}, "fe80::9", None),
        ("nginx", {NGINX_SOURCE: f"{NGINX_SETS} unknown;"}, "::", UNREADABLE),
        ("nginx", {NGINX_SOURCE: f"{NGINX_SETS} _hidden;"}, "::", UNREADABLE),
        (
            "nginx",
            {NGINX_SOURCE: f'{NGINX_SETS} ""; proxy_set_header Forwarded "for=203.0.113.9";'},
            "127.0.0.1",
            MISSING,
        ),
        ("haproxy", {}, "127.0.0.1", None),
        # Two headers with one name: the second is the proxy's.
        (
            "haproxy",
            {HAPROXY_SOURCE: "http-request add-header X-Forwarded-For 198.51.100.7"},
            "198.51.100.7",
            None,
        ),
        ("haproxy", {HAPROXY_SOURCE: "http-request del-header X-Forwarded-For"}, "127.0.0.1", MISSING),
    ],
)
def test_a_request_counts_as_its_callers_or_the_log_says_what_the_proxy_must_do(
    name: str, changes: dict[str, str], source: str, fault: str | None, same_shop: Shop, tmp_path: Path
) -> None:
    told = _call(same_shop, tmp_path, name, changes)
    assert (told.envelope["code"], told.sources) == (200, [source])
    assert [line["event"] for line in told.complaints] == ([] if fault is None else [fault])
    for line in told.complaints:
        assert line["peer"] == "127.0.0.1"
        assert "X-Forwarded-For" in line["advice"]


@pytest.mark.parametrize(
    ("name", "changes", "path", "chunked"),
    [
        ("nginx", {NGINX_VERSION: "proxy_http_version 1.0;"}, PATH, ""),
        ("nginx", {NGINX_HOST: "proxy_set_header Host internal:81;"}, PATH, ""),
        ("nginx", {NGINX_HOST: 'proxy_set_header Accept-Encoding "";'}, PATH, ""),
        (
            "nginx",
            {NGINX_HOST: 'proxy_set_header Content-Type "Application/JSON;charset=\\"UTF-8\\"";'},
            PATH,
            "",
        ),
        ("nginx", {NGINX_VERSION: f"{NGINX_VERSION} proxy_request_buffering off;"}, PATH, "1"),
        ("nginx", {}, PATH, "1"),
        ("nginx", {NGINX_VERSION: f"{NGINX_VERSION} underscores_in_headers on;"}, PATH, ""),
        ("nginx", {NGINX_ALL: "location /pay/ { proxy_pass http://merchant_wallet/; }"}, f"/pay{PATH}", ""),
        (
            "nginx",
            {NGINX_ALL: "location / { rewrite ^(.*)$ $1?q=%20 break; proxy_pass http://merchant_wallet; }"},
            f"{PATH}?q=%2f&r=a+b",
            "",
        ),
        # nginx decodes the path, and joins slashes, if its own address has one.
        ("nginx", {NGINX_ALL: "location / { proxy_pass http://merchant_wallet/; }"}, f"/{PATH}", ""),
        ("haproxy", {HAPROXY_REUSE: "http-request set-header Host internal:81"}, PATH, ""),
        ("haproxy", {}, PATH, "1"),
        (
            "haproxy",
            {
                "maxconn 8000": "h1-case-adjust content-type CONTENT-TYPE\n    h1-case-adjust host HOST\n"
                "    h1-case-adjust content-length CONTENT-LENGTH",
                HAPROXY_REUSE: "option h1-case-adjust-bogus-server",
            },
            PATH,
            "",
        ),
    ],
)
def test_what_no_signature_rests_on_may_change(
    name: str, changes: dict[str, str], path: str, chunked: str, same_shop: Shop, tmp_path: Path
) -> None:
    told = _call(same_shop, tmp_path, name, changes, path, chunked=chunked)
    assert told.envelope["code"] == 200, told
    assert told.complaints == []


@pytest.mark.parametrize(
    ("name", "changes", "path", "arrived"),
    [
        (
            "nginx",
            {NGINX_ALL: "location / { proxy_pass http://merchant_wallet/pay/; }"},
            PATH,
            f"/pay{PATH}",
        ),
        ("nginx", {NGINX_ALL: "location / { proxy_pass http://merchant_wallet//; }"}, PATH, f"/{PATH}"),
        (
            "nginx",
            {NGINX_ALL: "location / { rewrite ^(.*)$ $1/ break; proxy_pass http://merchant_wallet; }"},
            PATH,
            f"{PATH}/",
        ),
        ("nginx", {}, "/merchant%2FgetMerchantBalance", "/merchant%2FgetMerchantBalance"),
        ("haproxy", {HAPROXY_REUSE: "http-request replace-path (.*) /\\1"}, PATH, f"/{PATH}"),
    ],
)
def test_a_changed_path_is_refused_and_the_log_has_both(
    name: str, changes: dict[str, str], path: str, arrived: str, same_shop: Shop, tmp_path: Path
) -> None:
    told = _call(same_shop, tmp_path, name, changes, path)
    assert (told.status, told.envelope["code"]) == (404, 404)
    assert told.envelope["msg"].startswith("there is nothing at this path")
    [line] = told.complaints
    source = CALLER if name == "nginx" else "127.0.0.1"
    assert (line["event"], line["path"], line["documented"]) == (PATH_CHANGED, arrived, PATH)
    assert (line["source"], bool(line["request_id"])) == (source, True)


def test_a_changed_type_is_refused_and_log_and_refused_requests_have_it(
    same_shop: Shop, tmp_path: Path
) -> None:
    # So the service knows whose the key is.
    same_shop.client.do("getMerchantBalance")
    told = _call(same_shop, tmp_path, "nginx", {NGINX_HOST: 'proxy_set_header Content-Type "text/plain";'})
    assert (told.status, told.envelope["code"]) == (415, 415)
    assert "text/plain" not in told.envelope["msg"]
    [line] = told.complaints
    assert (line["event"], line["content_type"], line["path"]) == (TYPE_CHANGED, "text/plain", PATH)
    assert line["documented"] == "application/json or application/x-www-form-urlencoded"
    buffer = same_shop.platform.web.dependencies.refused_requests
    assert buffer is not None
    same_shop.platform.run(buffer.flush)
    kept = same_shop.platform.operate(lambda conn: list_refused(conn, same_shop.merchant_id))[0]
    assert (kept.code, kept.content_type, kept.source) == (415, "text/plain", CALLER)
    assert kept.request_id == line["request_id"]


def test_a_changed_type_is_logged_also_if_it_is_refused_before_the_body(same_shop: Shop) -> None:
    same_shop.platform.web.dependencies.proxies.complaints = Complaints()
    client = same_shop.with_client(headers={"Expect": "100-continue", "X-Forwarded-For": CALLER})
    with capture_logs() as lines:
        assert client.send(PATH, b"{}", "text/xml").code == 415
    assert [line["content_type"] for line in lines if line["event"] == TYPE_CHANGED] == ["text/xml"]


def test_a_form_behind_a_changed_host_is_refused_and_the_log_has_both(
    same_shop: Shop, tmp_path: Path
) -> None:
    changes = {NGINX_HOST: "proxy_set_header Host internal:81;"}
    with _behind(same_shop, tmp_path, "nginx", changes) as client, capture_logs() as lines:
        answer = client.post(
            "/look", data={"theme": "dark"}, headers={"Origin": "https://wallet.example.com"}
        )
    assert answer.status_code == 403
    assert "internal:81" not in answer.text
    [line] = [line for line in lines if line["event"] == FORM_REFUSED]
    assert line["reason"] == "Origin is https://wallet.example.com, and Host is internal:81"
