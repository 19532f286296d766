"""The fields of a page's form, read within limits.

Rules: only `application/x-www-form-urlencoded` in UTF-8. The size and the number of fields are limited. Text
is kept as typed, except for line ends, so that the form can be shown again.
"""

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

MAX_BYTES: Final = 65_536
MAX_FIELDS: Final = 500
_FORM_TYPE: Final = "application/x-www-form-urlencoded"


class BadForm(ValueError):
    """The body is not a form of a page. The text says why."""


class Form:
    """The fields of one form. A field may have several values."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
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


async def read_form(request: Request, max_bytes: int = MAX_BYTES) -> Form:
    """Read the form of a request. Raises BadForm."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (_FORM_TYPE, ""):
        raise BadForm(f"a form is sent as {_FORM_TYPE}")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise BadForm(f"the form is longer than {max_bytes} bytes")
    return parse_form(bytes(body))
