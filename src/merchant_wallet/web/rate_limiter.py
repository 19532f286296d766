"""How much one source address may ask of the pages without being signed in. Kept in memory, per process.

Rules: what comes without a token takes from its source's bucket before anything is read; whoever has a
session is not held up by that. Tokens are looked up, as a shared address has honest people behind it; once
too many from there opened nothing, what brings one takes from the bucket too. Files have their own buckets.
"""

from collections.abc import Callable
from typing import Final

from merchant_wallet.base.rate_limits import FailureLimit, TokenBuckets, subscriber_of

AUTHENTICATED: Final = "merchant_wallet.authenticated"
"""Stands in the scope of a request whose session holds."""

BURST: Final = 5
"""So many seconds' requests may come at once."""
FILES: Final = 10
"""So many files may be asked for with each page."""


class PageRateLimiter:
    """See the module. `pages_per_s` of 0 sets no limit; `wrong_per_minute` counts tokens that open nothing.

    `monotonic` gives the moment in seconds.
    """

    def __init__(self, pages_per_s: int, wrong_per_minute: int, monotonic: Callable[[], float]) -> None:
        self._pages = TokenBuckets(pages_per_s, BURST * pages_per_s)
        self._files = TokenBuckets(FILES * pages_per_s, FILES * BURST * pages_per_s)
        self._wrong = FailureLimit(wrong_per_minute)
        self._monotonic = monotonic

    def admit(self, source: str, *, brings_token: bool) -> int:
        """0 when a request for a page may be looked at, else the seconds to wait."""
        key, now_s = subscriber_of(source), self._monotonic()
        if brings_token and not self._wrong.blocked(key, now_s):
            return 0
        return self._pages.take(key, now_s)

    def admit_file(self, source: str) -> int:
        """0 when a file may be sent, else the seconds to wait."""
        return self._files.take(subscriber_of(source), self._monotonic())

    def note_invalid_token(self, source: str) -> None:
        """Count a token that opened nothing."""
        self._wrong.note_failure(subscriber_of(source), self._monotonic())
