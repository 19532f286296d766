"""Rate limits: token buckets for requests, and a limit on failed authentications.

The caller passes the time in seconds, from a clock that never goes back. Inside it is kept as whole
nanoseconds, so a burst has exactly its number. Memory is bounded: a full bucket is dropped, since a missing
one counts as full, and the failures of the source that was quiet longest are forgotten first. Every answer is
0 ("go ahead") or the whole seconds to wait. Several processes can share one limit (`shared_limits`).
"""

from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from merchant_wallet.base.shared_limits import SharedLimits

_NS_PER_S: Final = 1_000_000_000
_WINDOW_NS: Final = 60 * _NS_PER_S
_FIRST_SWEEP: Final = 1024


class TokenBuckets:
    """One bucket for each key: `burst` requests at once, then `rate_per_s`. A rate of 0 means no limit.

    With `shared` the buckets are those of all processes that share it.
    """

    def __init__(self, rate_per_s: int, burst: int, shared: SharedLimits | None = None) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._shared = shared
        # A bucket is stored as the time when it is full again. A missing one is full.
        self._full_at_ns: dict[int | str, int] = {}
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        return len(self._full_at_ns)

    def take(
        self, key: int | str, now_s: float, rate_per_s: int | None = None, burst: int | None = None
    ) -> int:
        """Take a token of `key`. Returns 0 if there was one, else the seconds until there is one.

        `rate_per_s` and `burst` replace the defaults for a key with limits of its own.
        """
        rate = self._rate_per_s if rate_per_s is None else rate_per_s
        if rate <= 0:
            return 0
        return self.draw(key, now_s, rate, self._burst if burst is None else burst)[0]

    def draw(self, key: int | str, now_s: float, rate_per_s: int, burst: int) -> tuple[int, int, int]:
        """As `take`, for a key with a limit. Returns also how many tokens are left, and the seconds until the
        bucket is full again.
        """
        now_ns = int(now_s * _NS_PER_S)
        token_ns = _NS_PER_S // rate_per_s
        capacity_ns = token_ns * max(1, burst)
        if self._shared is None:
            missing_ns = self._extend(key, now_ns, token_ns, capacity_ns)
        else:
            missing_ns = self._shared.extend(key, now_ns, token_ns, capacity_ns)
        short_ns = missing_ns - capacity_ns
        if short_ns > 0:
            return _whole_seconds(short_ns), 0, _whole_seconds(missing_ns - token_ns)
        return 0, -short_ns // token_ns, _whole_seconds(missing_ns)

    def _extend(self, key: int | str, now_ns: int, by_ns: int, most_ns: int) -> int:
        """As `SharedLimits.extend`, in this process alone."""
        full_at_ns = max(now_ns, self._full_at_ns.get(key, 0)) + by_ns
        missing_ns = full_at_ns - now_ns
        if missing_ns <= most_ns:
            self._full_at_ns[key] = full_at_ns
            if len(self._full_at_ns) >= self._sweep_at:
                self._drop_full(now_ns)
        return missing_ns

    def _drop_full(self, now_ns: int) -> None:
        self._full_at_ns = {key: at_ns for key, at_ns in self._full_at_ns.items() if at_ns > now_ns}
        # With a doubling threshold, the cost of all sweeps stays in proportion to the requests.
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._full_at_ns))


class FailureLimit:
    """How many authentications a source may fail in the minute after its first failure. 0 means no limit.

    With `shared` the failures are those of all processes that share it.
    """

    def __init__(
        self, per_minute: int, max_sources: int = 100_000, shared: SharedLimits | None = None
    ) -> None:
        self._per_minute = per_minute
        self._shared = shared
        self._max_sources = max_sources
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def note_failure(self, key: str, now_s: float) -> None:
        """Count a failure of `key`."""
        if self._per_minute <= 0:
            return
        now_ns = int(now_s * _NS_PER_S)
        if self._shared is not None:
            self._shared.count(key, now_ns, _WINDOW_NS)
            return
        ends_ns, count = self._counts.get(key, (0, 0))
        if ends_ns <= now_ns:
            ends_ns, count = now_ns + _WINDOW_NS, 0
        self._counts[key] = (ends_ns, count + 1)
        self._counts.move_to_end(key)
        if len(self._counts) > self._max_sources:
            self._counts.popitem(last=False)

    def blocked(self, key: str, now_s: float) -> int:
        """For how many seconds requests of `key` get 42900; 0 if they do not."""
        if self._per_minute <= 0:
            return 0
        now_ns = int(now_s * _NS_PER_S)
        known = self._counts.get(key, (0, 0)) if self._shared is None else self._shared.read(key, now_ns)
        ends_ns, count = known
        left_ns = ends_ns - now_ns
        return _whole_seconds(left_ns) if count >= self._per_minute and left_ns > 0 else 0


def subscriber_of(source: str) -> str:
    """The key of a source address. IPv6 addresses count as their /64, which is one subscriber. Pure."""
    try:
        address = ip_address(source)
    except ValueError:
        # A name from a proxy, or an empty text, is the key itself.
        return source
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ip_network((int(address), 64), strict=False))
    return str(address)


def _whole_seconds(duration_ns: int) -> int:
    return -(-duration_ns // _NS_PER_S)
