"""How many callbacks may run to one host at once. Pure.

Rules:
- Nobody knows beforehand which endpoint hangs. A host gets few slots until it has answered fast, then many.
- After a slow answer or none it gets one slot, until it answers fast again.
- All slow hosts together use at most half of the slots, so they slow nobody else down.
"""

from collections import Counter, OrderedDict
from typing import Final

UNKNOWN_LIMIT: Final = 2
QUICK_LIMIT: Final = 16
SLOW_LIMIT: Final = 1
SLOW_MS: Final = 1000
MAX_KEPT: Final = 10_000
"""The number of hosts that are remembered. The host unused for longest is forgotten first."""


class HostConcurrency:
    """`slots` slots for running attempts, shared by all hosts."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._slow_slots = max(1, slots // 2)
        self._under_way: Counter[str] = Counter()
        self._slow: OrderedDict[str, bool] = OrderedDict()
        self._counted_slow: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """How many attempts may start now."""
        return self._slots - self._under_way.total()

    def acquire(self, host: str) -> bool:
        """Take a slot for an attempt to a host. False if it may have no more."""
        slow = self._slow.get(host)
        limit = UNKNOWN_LIMIT if slow is None else SLOW_LIMIT if slow else QUICK_LIMIT
        if self.free <= 0 or self._under_way[host] >= limit:
            return False
        if slow and self._counted_slow.total() >= self._slow_slots:
            return False
        self._under_way[host] += 1
        if slow:
            self._counted_slow[host] += 1
        return True

    def release(self, host: str, latency_ms: int | None = None) -> None:
        """Return a slot. With the attempt's latency the host is remembered as fast or slow."""
        self._lower(self._under_way, host)
        if self._counted_slow[host]:
            self._lower(self._counted_slow, host)
        if latency_ms is not None:
            self._slow[host] = latency_ms >= SLOW_MS
            self._slow.move_to_end(host)
            if len(self._slow) > MAX_KEPT:
                self._slow.popitem(last=False)

    def _lower(self, counter: Counter[str], host: str) -> None:
        counter[host] -= 1
        if counter[host] <= 0:
            del counter[host]
