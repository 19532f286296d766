"""What a proxy changed of a request on its way, told from a request that was refused for it. Pure.

The caller gets the refusal alone. The log gets what arrived and what the interface says, for the operator.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

PATH_CHANGED: Final = "an operation was called at another path than the documented one"
TYPE_CHANGED: Final = "an operation got a body of a type that it does not read"
HEAD_UNREADABLE: Final = "a trusted proxy sent bytes that can't be read as an HTTP/1.1 request"
KEEP_PATH: Final = "a proxy must pass the path on as it was sent, without a prefix of its own"
KEEP_TYPE: Final = "a proxy must pass Content-Type on as it was sent"

_collapse_slashes = re.compile(r"/+").sub


def find_operation(path: str, operations: Iterable[str]) -> str | None:
    """The operation's path that this one was before it was escaped, prefixed or given more slashes."""
    plain = _collapse_slashes("/", unquote(unquote(path))).rstrip("/").lower()
    return next((known for known in operations if plain.endswith(known.lower())), None)
