"""What a proxy changed of a request on its way, told from a request that was refused for it. Pure.

The caller gets the refusal alone. The log gets what arrived and what the interface says, for the operator.
The refusal of an unknown path names the operation whose path is near.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from merchant_wallet.base.codes import PATH_UNKNOWN, Refusal

PATH_CHANGED: Final = "an operation was called at another path than the documented one"
TYPE_CHANGED: Final = "an operation got a body of a type that it does not read"
HEAD_UNREADABLE: Final = "a trusted proxy sent bytes that can't be read as an HTTP/1.1 request"
KEEP_PATH: Final = "a proxy must pass the path on as it was sent, without a prefix of its own"
NOWHERE: Final = "there is nothing at this path"
KEEP_TYPE: Final = "a proxy must pass Content-Type on as it was sent"

LONGEST_NAME: Final = 64
"""Longer names are near to no operation's."""
_LEAST_LIKENESS: Final = 0.7

_collapse_slashes = re.compile(r"/+").sub


def find_operation(path: str, operations: Iterable[str]) -> str | None:
    """The operation's path that this one was before it was escaped, prefixed or given more slashes."""
    plain = _collapse_slashes("/", unquote(unquote(path))).rstrip("/").lower()
    return next((known for known in operations if plain.endswith(known.lower())), None)


def refuse_path(path: str, operations: Iterable[str]) -> Refusal:
    """The refusal of an unknown path. It names the operation that was meant, if one is near."""
    known = tuple(operations)
    near = find_operation(path, known) or _find_like(path, known)
    return Refusal(PATH_UNKNOWN, NOWHERE if near is None else f"{NOWHERE}; did you mean {near}?")


def _find_like(path: str, operations: Sequence[str]) -> str | None:
    name = path.rstrip("/").rpartition("/")[2].lower()
    if len(name) > LONGEST_NAME:
        return None
    names = {known.rpartition("/")[2].lower(): known for known in operations}
    like = difflib.get_close_matches(name, names, n=1, cutoff=_LEAST_LIKENESS)
    return names[like[0]] if like else None
