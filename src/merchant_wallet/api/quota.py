"""What an answer says of the merchant's rate limit, as response headers.

Rules:
- The form is that of the IETF draft "RateLimit header fields for HTTP" (httpapi working group): a policy
  (quota `q` in a window of `w` seconds), and what is left of it (`r` requests, all back in `t` seconds).
- The policy is the token bucket: its burst, and the time in which an empty bucket is full again.
- Only a request that was counted has the headers. One that was refused before has none, so that a stranger
  learns nothing of a merchant.
- Headers are outside of the signed part of an answer.
"""

from functools import lru_cache
from typing import Final

from merchant_wallet.base.codes import Refusal

WINDOW_S: Final = 2
"""A burst is what comes back in this time."""
Headers = tuple[tuple[bytes, bytes], ...]
Quota = tuple[Refusal | None, Headers]
"""Why a request that was counted is refused, if it is, and the headers of its answer."""
UNLIMITED: Final[Quota] = (None, ())


def tell(rate_per_s: int, left: int, full_in_s: int) -> Headers:
    """The headers for a bucket with `left` tokens, which is full again in `full_in_s` seconds."""
    return _tell_policy(rate_per_s), (b"ratelimit", b'"requests";r=%d;t=%d' % (left, full_in_s))


@lru_cache(1024)
def _tell_policy(rate_per_s: int) -> tuple[bytes, bytes]:
    return b"ratelimit-policy", b'"requests";q=%d;w=%d' % (WINDOW_S * rate_per_s, WINDOW_S)
