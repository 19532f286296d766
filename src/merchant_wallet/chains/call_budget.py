"""How many more calls a node takes, by its limits for a second and a day. Pure: the caller passes the time.

Rules:
- Within no second do more calls arrive than the limit. They may all be sent at its beginning. A batch counts
  as its calls, since providers count so.
- Nobody knows when a call arrives, such as while a connection is opened. So it counts until a second after
  its answer, or for two seconds.
- A day is a UTC day.
- Reading stays below a line, which rises through the day from half of the day's calls to nine tenths. So it
  slows down first, and the rest is for payouts.
- New payouts leave the last twentieth of the day's calls to what is signed: it must be sent and followed.
"""

from enum import StrEnum
from typing import Final

from merchant_wallet.base.node_addresses import CallLimits
from merchant_wallet.base.units import DAY_MS

SECOND_S: Final = 1.0
RESERVED_PART: Final = 20
"""The last of so many parts of a day's calls is for what is signed."""


class Purpose(StrEnum):
    """What calls are for: payouts and sweeps, those that are signed, or everything that may wait longer."""

    PAYOUTS = "payouts"
    SIGNED = "signed"
    READING = "reading"


class Charge:
    """Calls that were sent, and until when they count for the limit of a second."""

    def __init__(self, calls: int, until_s: float) -> None:
        self.calls = calls
        self.until_s = until_s


class CallBudget:
    """The budget of one node. `now_s` is from a clock that never goes back, `now_ms` since the epoch."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._charges: list[Charge] = []
        self._day = 0
        self._used = 0

    def count_today(self, now_ms: int) -> int:
        """The calls of this UTC day."""
        return self._used if now_ms // DAY_MS == self._day else 0

    def take(self, now_s: float, now_ms: int, calls: int) -> Charge:
        """Count calls that are sent now. `end` is to be told when they are answered."""
        self._used = self.count_today(now_ms) + calls
        self._day = now_ms // DAY_MS
        charge = Charge(calls, now_s + 2 * SECOND_S)
        if self.limits.per_s is not None:
            self._charges = [one for one in self._charges if one.until_s > now_s] + [charge]
        return charge

    def end(self, charge: Charge, now_s: float) -> None:
        """The calls were answered, or given up."""
        charge.until_s = min(charge.until_s, now_s + SECOND_S)

    def await_second(self, now_s: float, calls: int) -> float:
        """For how many seconds the limit of a second makes these calls wait, if none is answered before."""
        per_s = self.limits.per_s
        if per_s is None:
            return 0.0
        counted = sorted((one.until_s, one.calls) for one in self._charges if one.until_s > now_s)
        too_many = sum(each for _, each in counted) + min(calls, per_s) - per_s
        delay_s = 0.0
        for until_s, each in counted:
            if too_many <= 0:
                break
            too_many -= each
            delay_s = until_s - now_s
        return delay_s

    def await_day(self, now_ms: int, calls: int, purpose: Purpose) -> float:
        """For how many seconds the day's limit makes these calls wait: at most until the next day."""
        per_day = self.limits.per_day
        if per_day is None:
            return 0.0
        passed_ms = now_ms % DAY_MS
        used = self.count_today(now_ms) + calls
        if purpose is not Purpose.READING:
            most = per_day if purpose is Purpose.SIGNED else per_day - per_day // RESERVED_PART
            free_ms = 0 if used <= most else DAY_MS
        else:
            # The line is at 5/10 of the limit at midnight and at 9/10 a day later.
            free_ms = min(-(-(10 * used - 5 * per_day) * DAY_MS // (4 * per_day)), DAY_MS)
        return max(0, free_ms - passed_ms) / 1000
