"""How long an order rests before a payer looks at it again. Pure: the caller passes the time.

Rules:
- The longer an order has waited for the same, the longer it rests: a part of that time up to 50 seconds, and
  after half an hour more, up to five minutes. People expect no more of what has waited for hours.
- What only this database knows is looked at every 50 seconds: that asks no node.
- Long rests end at whole minutes. So orders that wait look together, and what they have in common is asked
  for once.
"""

from typing import Final

RESEND_MS: Final = 5_000
"""The shortest rest. A young pending transfer is sent again this often."""
FIRST_RESEND_MS: Final = 15_000
"""A transfer is sent a second time after this at the latest. Ethereum usually has it in a block by then."""
SHORT_MS: Final = 50_000
CHECK_MS: Final = 90_000
"""However long the chain says that it will know nothing new."""
LONGEST_MS: Final = 300_000
PENDING_PART: Final = 8
"""An old pending transfer rests for this part of its age, so that many of them leave room for others."""
WAITING_PART: Final = 4
LONG_PART: Final = 30
_STEPS_MS: Final = (300_000, 60_000)
_LOCAL: Final = frozenset({"screening", "screening_away", "payout_rule", "payout_hours", "key"})
"""Kinds of obstacles that are found before any node is asked."""


def rest_pending(now_ms: int, age_ms: int, check_after_ms: int | None, *, is_mined: bool) -> int:
    """The rest of an order whose newest transfer was signed `age_ms` ago. See `protocol.Pending`."""
    # A node may have lost what it took. So it is sent a second time before the chain can answer.
    most_ms = CHECK_MS if age_ms >= RESEND_MS else FIRST_RESEND_MS
    named_ms = RESEND_MS if check_after_ms is None else min(check_after_ms, most_ms)
    rest_ms = _grow(age_ms, PENDING_PART)
    # The sandbox knows the moment, and then a short rest is no waste.
    if not is_mined and (named_ms >= rest_ms or named_ms < RESEND_MS):
        return named_ms
    return _end_together(now_ms, max(rest_ms, named_ms))


def rest_waiting(now_ms: int, waited_ms: int, kind: str) -> int:
    """The rest of an order that has waited so long for an obstacle of this kind."""
    if kind in _LOCAL:
        return max(RESEND_MS, min(SHORT_MS, waited_ms // WAITING_PART))
    return _end_together(now_ms, max(RESEND_MS, _grow(waited_ms, WAITING_PART)))


def rest_failed(now_ms: int, waited_ms: int, kind: str, pause_ms: int) -> int:
    """The rest of an order whose attempts have failed for so long with this kind of obstacle."""
    long_ms = 0 if kind in _LOCAL else _grow_long(waited_ms)
    return _end_together(now_ms, max(pause_ms, long_ms))


def _grow(waited_ms: int, part: int) -> int:
    return max(min(SHORT_MS, waited_ms // part), _grow_long(waited_ms))


def _grow_long(waited_ms: int) -> int:
    return min(LONGEST_MS, waited_ms // LONG_PART)


def _end_together(now_ms: int, rest_ms: int) -> int:
    """The rest, until the nearest whole minute or five minutes if it is about as long."""
    for step_ms in _STEPS_MS:
        if 4 * rest_ms >= 3 * step_ms:
            return (now_ms + rest_ms + step_ms // 2) // step_ms * step_ms - now_ms
    return rest_ms
