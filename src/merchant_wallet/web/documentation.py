"""The documentation site at `/docs`, if it was built into the package (`make site`, `make release`).

Rules:
- The site is one zip file. Its texts are deflated, and are sent as they are to clients that accept gzip:
  nothing is compressed here, and only what is asked for is read.
- Every answer has an ETag from the file's own check sum. Files whose names change with their content are
  kept for ever; everything else is asked for again, which costs a 304.
- A page may load only from this origin, and nothing in it may run that is not a file. Clients that request
  too much have to wait.
- Without the file `/docs` leads to the description of the interface, `/docs/api`, which is not here: see
  `reference`. Everything else below it is 404, with what builds the site.
"""

import mimetypes
import mmap
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from merchant_wallet.web import reference
from merchant_wallet.web.languages import Language
from merchant_wallet.web.static import find_url

PACKED: Final = Path(__file__).with_name("documentation.zip")
PATH: Final = "/docs"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "vary": "accept-encoding",
}
_TYPES: Final = {
    "": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".atom": "application/atom+xml; charset=utf-8",
}
_FOR_GOOD: Final = re.compile(r"assets/inline/|\.[0-9a-f]{8}\.min\.(?:js|css)$")
_LOCAL_HEADER: Final = 30
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"


class Packed(NamedTuple):
    """A file of the zip: where its deflated bytes are, and what they are."""

    begin: int
    end: int
    size: int
    check_sum: int
    media_type: str


class Documentation:
    """The site in a zip file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with zipfile.ZipFile(path) as zipped:
            self._files = {entry.filename: self._find(entry) for entry in zipped.infolist()}

    def _find(self, entry: zipfile.ZipInfo) -> Packed:
        # The lengths of the name and of the extra field in the local header may differ from the directory's.
        lengths = struct.unpack_from("<HH", self._bytes, entry.header_offset + _LOCAL_HEADER - 4)
        begin = entry.header_offset + _LOCAL_HEADER + sum(lengths)
        suffix = Path(entry.filename).suffix
        media_type = (
            _TYPES.get(suffix) or mimetypes.guess_type(entry.filename)[0] or "application/octet-stream"
        )
        return Packed(begin, begin + entry.compress_size, entry.file_size, entry.CRC, media_type)

    def answer(self, name: str, headers: Mapping[str, str]) -> Response:
        """The file with a name below `/docs/`, for a request with these headers."""
        if f"{name}/index.html" in self._files:
            return RedirectResponse(f"{PATH}/{name}/", 308)
        path = f"{name}index.html" if name.endswith("/") or not name else name
        file = self._files.get(path)
        if file is None:
            return _refuse(
                "There is no such page.",
                "没有这个页面。",
                f'<a href="{PATH}/">Documentation</a> · <a lang="zh" href="{PATH}/zh/">文档</a>',
            )
        zips = "gzip" in headers.get("accept-encoding", "")
        tag = f'"{file.check_sum:08x}{"-gz" if zips else ""}"'
        caching = "public, max-age=31536000, immutable" if _FOR_GOOD.search(path) else "no-cache"
        own = {**_HEADERS, "etag": tag, "cache-control": caching}
        if tag in (each.strip().removeprefix("W/") for each in headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=own)
        if zips:
            return Response(
                self._gzip(file), headers={**own, "content-encoding": "gzip"}, media_type=file.media_type
            )
        return Response(self._plain(file), headers=own, media_type=file.media_type)

    def _gzip(self, file: Packed) -> bytes:
        """The file as gzip has it: the deflated bytes between a head and a check sum (RFC 1952)."""
        tail = struct.pack("<II", file.check_sum, file.size)
        return b"".join((_GZIP_HEAD, self._bytes[file.begin : file.end], tail))

    def _plain(self, file: Packed) -> bytes:
        return zlib.decompress(self._bytes[file.begin : file.end], -zlib.MAX_WBITS)


def _refuse(english: str, chinese: str, links: str) -> Response:
    """A 404 in both languages: the site's pages know no visitor. All three are HTML."""
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>404</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{find_url("base.css")}">'
    )
    page = (
        f'{head}<main class="centered"><div class="centered-card"><h1>404</h1><p>{english}</p>'
        f'<p lang="zh">{chinese}</p><p>{links}</p></div></main></html>\n'
    )
    return HTMLResponse(page, 404, {**_HEADERS, "cache-control": "no-cache"})


def read_documentation() -> Documentation | None:
    """The site, or None if it was not built in."""
    return Documentation(PACKED) if PACKED.exists() else None


def make_routes(
    admit: Callable[[Request], int],
    choose: Callable[[Request], Language],
    documentation: Documentation | None,
) -> list[Route]:
    """The routes of the site. `admit` returns 0, or the seconds the client must wait."""
    if documentation is None:

        async def lead_on(request: Request) -> Response:
            return RedirectResponse(reference.PAGE_PATH, 303, {"cache-control": "no-cache"})

        async def explain(request: Request) -> Response:
            return _refuse(
                "The guides and the clients are not built into this service. In the folder of its sources, "
                "<code>make site</code> builds them; then start the service again.",
                "此服务未包含指南和客户端。请在其源代码文件夹中运行 <code>make site</code> 生成，"
                "然后重新启动服务。",
                f'<a href="{reference.PAGE_PATH}">API explorer · <span lang="zh">API 调试页</span></a>',
            )

        return [
            *(Route(path, lead_on, methods=["GET"]) for path in (PATH, f"{PATH}/")),
            Route(f"{PATH}/{{name:path}}", explain, methods=["GET"]),
        ]
    read = documentation.answer

    async def enter(request: Request) -> Response:
        home = f"{PATH}/zh/" if choose(request) is Language.ZH else f"{PATH}/"
        return RedirectResponse(home, 303, {"vary": "accept-language, cookie", "cache-control": "no-cache"})

    async def show(request: Request) -> Response:
        if wait_s := admit(request):
            raise HTTPException(429, headers={"retry-after": str(wait_s)})
        return read(request.path_params["name"], request.headers)

    return [
        Route(PATH, enter, methods=["GET"]),
        Route(f"{PATH}/{{name:path}}", show, methods=["GET"]),
    ]
