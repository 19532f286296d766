"""Whose turn a page's request waits for, and how many requests one person may have under way.

Rules:
- The turn is a person's. A merchant is a group of its people; each of the platform's people is a group alone.
- A session's person is known here from the moment it was opened or first read. Before that, and without a
  session, the request belongs to the group of strangers, in which source addresses take turns.
- Strangers have connections of their own. A page reads an unknown session over one of them, and then waits
  for a connection as the session's person.
- The turn decides only who waits for whom. It gives no right.
- A person, or a source of strangers, has at most `MAX_UNDER_WAY` requests under way. Any more are refused at
  once, before their body is read.
"""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.fair_queue import Owner
from merchant_wallet.base.rate_limits import subscriber_of

MAX_UNDER_WAY: Final = 24
"""A browser opens six connections at once. Behind a proxy with HTTP/2, restoring many tabs takes more."""
MAX_SESSIONS: Final = 4096
"""How many sessions are remembered with their person."""
STRANGERS: Final = "strangers"
_PLATFORM: Final = "operator "


class TooManyRequests(TransientError):
    """The person, or the source, has as many requests under way as it may have."""


class Turns:
    """The persons of one site's sessions, and what they have under way."""

    def __init__(self) -> None:
        self._people: OrderedDict[bytes, Owner] = OrderedDict()
        self._under_way: Counter[Owner] = Counter()

    def find(self, token: str, source: str) -> Owner:
        """The owner of a request with this session's token from this address."""
        key = _hash(token)
        if key not in self._people:
            return STRANGERS, subscriber_of(source)
        self._people.move_to_end(key)
        return self._people[key]

    def note(self, token: str, person: Owner) -> None:
        """Remember whose session it is."""
        self._people[_hash(token)] = person
        if len(self._people) > MAX_SESSIONS:
            self._people.popitem(last=False)

    def forget(self, token: str) -> None:
        """The session has ended."""
        self._people.pop(_hash(token), None)

    @contextmanager
    def under_way(self, owner: Owner) -> Iterator[None]:
        """Count a request of a person or a stranger until its answer is ready. Raises TooManyRequests."""
        if self._under_way[owner] >= MAX_UNDER_WAY:
            raise TooManyRequests("the person or the source has too many requests under way")
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]


def person_of_merchant(merchant_id: int, person_id: int) -> Owner:
    """A merchant's operator or sub-user."""
    return f"merchant {merchant_id}", str(person_id)


def person_of_platform(operator_id: int) -> Owner:
    """One of the platform's people."""
    return f"{_PLATFORM}{operator_id}", ""


def is_stranger(owner: Owner) -> bool:
    """Whether nobody here knows whose request it is."""
    return owner[0] == STRANGERS


def is_of_platform(owner: Owner) -> bool:
    """Whether a person is known here as one of the platform's people."""
    return owner[0].startswith(_PLATFORM)


def _hash(token: str) -> bytes:
    # A browser may send any text.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
