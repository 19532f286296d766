"""The fields of a page's form, read within limits.

Rules: only `application/x-www-form-urlencoded` in UTF-8, and `multipart/form-data` where a page takes a file.
The size and the number of fields are limited. Text is kept as typed, except for line ends, so that the form
can be shown again. A file's name and type, which its sender chose, are not kept.
"""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

MAX_BYTES: Final = 65_536
MAX_FIELDS: Final = 500
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_FILE_TYPE: Final = "multipart/form-data"
_FIELDS_WITH_FILE: Final = 20


class BadForm(ValueError):
    """The body is not a form of a page. The text says why."""


class Form:
    """The fields of one form. A field may have several values. `files` has the bytes of uploaded files."""

    def __init__(
        self, pairs: list[tuple[str, str]], files: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self._files = files
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value.replace("\r\n", "\n"))

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, without spaces at its ends."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """The first value of a field exactly as typed: for secrets and pasted bodies."""
        return self._values.get(name, [default])[0]

    def all(self, name: str) -> list[str]:
        """Every value of a field, in order."""
        return list(self._values.get(name, ()))

    def file(self, name: str) -> bytes:
        """The bytes of an uploaded file; empty if none was chosen."""
        return self._files.get(name, b"")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def pairs(self) -> list[tuple[str, str]]:
        """Every field with each of its values."""
        return [(name, value) for name, values in self._values.items() for value in values]

    def kept(self) -> dict[str, str]:
        """The typed values, to show the form again."""
        return {name: values[0] for name, values in self._values.items()}


def parse_form(body: bytes) -> Form:
    """Parse a form's body. Raises BadForm."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except (UnicodeDecodeError, ValueError):
        raise BadForm("the form is not UTF-8 or has too many fields") from None
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise BadForm("the form has a null character")
    return Form(pairs)


async def read_form(request: Request, max_bytes: int = MAX_BYTES, *, max_file_bytes: int = 0) -> Form:
    """Read the form of a request. With `max_file_bytes` it may have files of so much. Raises BadForm."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if max_file_bytes and kind == _FILE_TYPE:
        return await _read_files(request, await _read_body(request, max_bytes + max_file_bytes))
    if kind not in (_FORM_TYPE, ""):
        raise BadForm(f"a form is sent as {_FORM_TYPE}")
    return parse_form(await _read_body(request, max_bytes))


async def _read_files(request: Request, body: bytes) -> Form:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        request.headers, stream(), max_files=1, max_fields=_FIELDS_WITH_FILE, max_part_size=MAX_BYTES
    )
    try:
        found = await parser.parse()
    except (MultiPartException, KeyError, ValueError):
        raise BadForm("the form with a file could not be read") from None
    try:
        pairs = [(name, value) for name, value in found.multi_items() if isinstance(value, str)]
        files = {name: await value.read() for name, value in found.items() if isinstance(value, UploadFile)}
    finally:
        await found.close()
    if any("\0" in name or "\0" in value for name, value in pairs):
        raise BadForm("the form has a null character")
    return Form(pairs, files)


async def _read_body(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise BadForm(f"the form is longer than {max_bytes} bytes")
    return bytes(body)
