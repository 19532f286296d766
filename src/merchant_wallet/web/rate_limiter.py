"""Limits for requests of one source address without a session. Kept in memory, for all processes of one
`serve` together.

Rules:
- A request without a token takes from its source's bucket before anything is read. A request with a valid
  session takes nothing.
- A request with a token is looked up, because honest users may share the address. After too many invalid
  tokens from a source, its requests with tokens take from the bucket too.
- Files have their own buckets.
"""

from collections.abc import Callable
from typing import Final

from merchant_wallet.base.rate_limits import FailureLimit, TokenBuckets, subscriber_of
from merchant_wallet.base.siblings import Siblings, limits_of

AUTHENTICATED: Final = "merchant_wallet.authenticated"
"""Marks, in its scope, a request with a valid session."""
FILE: Final = "merchant_wallet.file"
"""Marks, in its scope, a request of a file. Its token is not looked up, so it does not count as invalid."""

BURST: Final = 5
"""The requests of this many seconds may come at once."""
FILES: Final = 10
"""This many files may be requested with each page."""


class PageRateLimiter:
    """See the module. `pages_per_s` of 0 sets no limit. `wrong_per_minute` limits invalid tokens.

    `monotonic` returns the time in seconds.
    """

    def __init__(
        self,
        pages_per_s: int,
        wrong_per_minute: int,
        monotonic: Callable[[], float],
        siblings: Siblings | None = None,
    ) -> None:
        files_per_s = FILES * pages_per_s
        self._pages = TokenBuckets(pages_per_s, BURST * pages_per_s, limits_of(siblings, "pages"))
        self._files = TokenBuckets(files_per_s, BURST * files_per_s, limits_of(siblings, "files"))
        self._wrong = FailureLimit(wrong_per_minute, shared=limits_of(siblings, "tokens"))
        self._monotonic = monotonic

    def admit(self, source: str, *, brings_token: bool) -> int:
        """0 if a request for a page is allowed, else the seconds to wait."""
        key, now_s = subscriber_of(source), self._monotonic()
        if brings_token and not self._wrong.blocked(key, now_s):
            return 0
        return self._pages.take(key, now_s)

    def admit_file(self, source: str) -> int:
        """0 if a file may be sent, else the seconds to wait."""
        return self._files.take(subscriber_of(source), self._monotonic())

    def note_invalid_token(self, source: str) -> None:
        """Count an invalid token."""
        self._wrong.note_failure(subscriber_of(source), self._monotonic())
