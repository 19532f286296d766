"""Paths on the wire: each operation has one exact path, and every other path is answered too."""

import json
import re
import socket
from datetime import UTC, datetime, timedelta

import pytest
from tests.journeys.client import write_json
from tests.journeys.conftest import Platform, Shop
from tests.journeys.orders import exchange
from tests.rows import each_row

from merchant_wallet.web import documentation

SETTINGS = {"security_contact": "mailto:security@pay.example"}


def ask(platform: Platform, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes and read the answer until the connection ends."""
    with socket.create_connection(("127.0.0.1", platform.port), 30) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:])
    return int(lines[0].split(" ")[1]), headers, body


def get(platform: Platform, path: str) -> tuple[int, dict[str, str], bytes]:
    return ask(platform, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())


def test_who_finds_a_vulnerability_learns_whom_to_tell(platform: Platform) -> None:
    status, headers, body = get(platform, "/.well-known/security.txt")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    fields = dict(line.split(": ", 1) for line in body.decode().splitlines())
    assert fields["Contact"] == "mailto:security@pay.example"
    left = datetime.fromisoformat(fields["Expires"]) - datetime.now(UTC)
    assert timedelta(days=170) < left < timedelta(days=365)
    assert fields["Canonical"].endswith("/.well-known/security.txt")


@pytest.mark.parametrize(
    "path", ["/%63onsole", "/console/%6Fverview", "/w%2Fx", "/%77allet", "/console%2Fsign-in"]
)
def test_a_page_is_found_under_one_spelling_alone(path: str, platform: Platform) -> None:
    status, headers, _ = get(platform, path)
    assert status == 404
    assert "location" not in headers
    assert headers["x-request-id"]


def test_the_start_page_leads_to_pages_that_are_there(platform: Platform) -> None:
    status, headers, body = get(platform, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["content-security-policy"]
    links = re.findall(r'<li><a href="([^"]+)">', body.decode())
    is_built = documentation.PACKED.exists()
    guides = ["/docs/quick-start/", "/docs"] if is_built else []
    assert links == ["/console", *guides, "/docs/api", "/openapi.json"]
    assert [get(platform, path)[0] for path in links] == [303, *((200, 303) if is_built else ()), 200, 200]
    assert ("make site" in body.decode()) is not is_built
    assert b'<a href="/healthz">' in body


@each_row("path", ["/%68ealthz", "/health%7A", "/healthz%00", "/%6Detrics", "/healthz%2F"])
def test_so_is_everything_else(path: str, platform: Platform) -> None:
    status, _, body = get(platform, path)
    assert (status, json.loads(body)["code"]) == (404, 404)


@pytest.mark.parametrize(
    "path", ["/merchant%2Fexchange", "/merchant%2fexchange", "/%6Derchant/exchange", "/merchant/exch%61nge"]
)
def test_an_operation_is_found_under_one_spelling_alone(path: str, shop: Shop) -> None:
    client, before = shop.client, shop.entry_count()
    fields = {**client.common(), **exchange()}
    body = write_json({**fields, "sign": client.sign("/merchant/exchange", fields)})
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    status, _, answer = ask(shop.platform, request)
    assert (status, json.loads(answer)["code"]) == (404, 404)
    assert shop.entry_count() == before


@each_row("odd", ["%EF%BC%91", "x%00", "x%0D%0ASet-Cookie:%20a=b", "%F0%9F%98%80", "100%25", "%C2%85"])
@each_row("path", ["/console/callbacks/{}/resend", "/console/callbacks/{}", "/wallet/{}", "/w/{}"])
def test_every_path_gets_an_answer(odd: str, path: str, platform: Platform) -> None:
    status, headers, _ = get(platform, path.format(odd))
    assert status in (303, 404)
    assert "set-cookie" not in headers or "a=b" not in headers["set-cookie"]
    location = headers.get("location", "")
    assert location.isascii()
    assert location.isprintable()


def test_a_form_s_address_leads_back_to_its_page_with_its_escapes(platform: Platform) -> None:
    status, headers, _ = get(platform, "/console/callbacks/a%20%EF%BC%91/resend?x=1")
    assert status == 303
    assert headers["location"] == "/console/callbacks/a%20%ef%bc%91"
