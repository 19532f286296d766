"""The only accepted spelling of a path, and URLs in headers. Pure.

Rules:
- A path is served only in its plain form: characters that need no escape are not escaped. So a proxy that
  filters paths by their text sees the path that is served (RFC 3986 section 6.2.2).
- An escape has capital digits. It stands for no letter, no digit, none of `-._~/` and no control character.
- The escapes of a path are valid UTF-8.
"""

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_match_plain = re.compile(
    rb"(?:[!-$&-~]|%(?:2[0-9A-C]|3[A-F]|40|5[B-E]|60|7[B-D]|[89A-F][0-9A-F]))*"
).fullmatch


def is_plain(raw_path: bytes) -> bool:
    """Whether a path, as it was sent, is in its plain form."""
    if b"%" not in raw_path:
        return True
    if _match_plain(raw_path) is None:
        return False
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def write_location(url: str) -> str:
    """One of our URLs in a form for a header. Its escapes stay as they are."""
    return quote(url, safe=_VISIBLE)
