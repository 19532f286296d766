"""Static files of the pages, named by their content, so that browsers keep them for ever.

Rules: only files that existed at the start are served. The name in the URL identifies the bytes; any other
name is 404. Text is also kept compressed. Clients that request too much have to wait.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

STATIC_DIR: Final = Path(__file__).with_name("static")
PATH: Final = "/static"
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
_COMPRESSED: Final = frozenset(_TYPES)


@dataclass(frozen=True, slots=True)
class File:
    """One file: its URL, type, bytes and, for text, the compressed bytes."""

    url: str
    media_type: str
    content: bytes
    packed: bytes | None


@cache
def read_files() -> dict[str, File]:
    """Every static file by its path below `static/`."""
    paths = (path for path in sorted(STATIC_DIR.rglob("*")) if path.is_file())
    return {path.relative_to(STATIC_DIR).as_posix(): _read(path) for path in paths}


def _read(path: Path) -> File:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:12]
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    packed = gzip.compress(content, 9, mtime=0) if path.suffix in _COMPRESSED else None
    name = path.relative_to(STATIC_DIR).as_posix()
    return File(f"{PATH}/{digest}/{name}", media_type, content, packed)


def find_url(name: str) -> str:
    """The URL of a static file. Raises KeyError for an unknown one."""
    return read_files()[name].url


def make_route(admit: Callable[[Request], int]) -> Route:
    """The route of all static files. `admit` returns 0, or the seconds that the client must wait."""
    by_url = {file.url: file for file in read_files().values()}

    async def show(request: Request) -> Response:
        if wait_s := admit(request):
            raise HTTPException(429, headers={"retry-after": str(wait_s)})
        file = by_url.get(request.url.path)
        if file is None:
            raise HTTPException(404)
        headers = {
            "cache-control": _FOR_GOOD,
            "x-content-type-options": "nosniff",
            "cross-origin-resource-policy": "same-origin",
            "vary": "accept-encoding",
        }
        if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.media_type
            )
        return Response(file.content, headers=headers, media_type=file.media_type)

    return Route(f"{PATH}/{{digest}}/{{name:path}}", show, methods=["GET"])
