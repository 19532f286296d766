"""`/.well-known/security.txt` (RFC 9116): whom to tell about a vulnerability of this installation.

Rules: the contact is a setting; without it there is no such file. It expires half a year after it is
read, because what the settings say now holds now.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

PATH: Final = "/.well-known/security.txt"
LIFETIME: Final = timedelta(days=180)
"""RFC 9116 section 2.5.5 advises less than a year."""


def make_route(contact: str, public_url: str, clock: Callable[[], int]) -> Route:
    """The route of the file. `clock` gives milliseconds since the epoch."""

    async def show(request: Request) -> Response:
        return PlainTextResponse(write(contact, public_url, clock()))

    return Route(PATH, show, methods=["GET"])


def write(contact: str, public_url: str, now_ms: int) -> str:
    """The file's text."""
    expires = datetime.fromtimestamp(now_ms // 1000, UTC) + LIFETIME
    lines = (
        f"Contact: {contact}",
        f"Expires: {expires:%Y-%m-%dT%H:%M:%SZ}",
        "Preferred-Languages: en, zh",
        f"Canonical: {public_url}{PATH}",
    )
    return "".join(f"{line}\n" for line in lines)
