"""For how long a node that refuses calls is left alone. Pure: the caller passes the time.

Rules:
- HTTP 429 means a rest, and 503 if it says how long. So does 403, unless it is about the call itself: a
  provider says so in an error object, or has answered others since its last rest and never this one.
- The node names the time: in `Retry-After`, or in its sentence, as TronGrid does. Otherwise the first rest
  takes 30 seconds, and each further one half as long again, up to five minutes, until a call is answered.
- No rest is longer than an hour.
- The refusal of a call that was under way when a rest began prolongs it: providers count so.
"""

import math
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

FIRST_REST_S: Final = 30.0
GROWTH: Final = 1.5
LONGEST_UNNAMED_S: Final = 300.0
LONGEST_S: Final = 3_600.0
_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_SUSPENDED: Final = re.compile(rb"suspended for (\d{1,6}) ?(s|m|h)", re.IGNORECASE)
_SECONDS: Final = {b"s": 1, b"m": 60, b"h": 3600}


def read_rest_s(retry_after: str | None, body: bytes, now_ms: int) -> float | None:
    """The seconds that a node asks for, in the header `Retry-After` or in its sentence. None if it names
    none.
    """
    named_s = _read_header_s((retry_after or "").strip(), now_ms)
    if named_s is None and (said := _SUSPENDED.search(body)):
        named_s = int(said[1]) * _SECONDS[said[2].lower()]
    # Rounded, the node's seconds may end a moment later than ours. A call too early begins them again.
    return named_s + 1.0 if named_s is not None and named_s >= 0 else None


def _read_header_s(text: str, now_ms: int) -> float | None:
    if re.fullmatch(r"\d{1,9}", text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now_ms / 1000


def asks_for_rest(status: int, *, names_time: bool, is_about_call: bool) -> bool:
    """Whether an HTTP error means that the node wants no more calls for a while."""
    if status == _FORBIDDEN:
        return names_time or not is_about_call
    return status == _TOO_MANY or (status == _UNAVAILABLE and names_time)


class Rest:
    """The rests of one node, by a clock that never goes back. `count` is their number."""

    def __init__(self) -> None:
        self.until_s = -math.inf
        self.count = 0
        self._length_s = self._unnamed_s = FIRST_REST_S

    def note_refusal(self, asked_s: float, now_s: float, named_s: float | None) -> bool:
        """Rest after a refusal of a call that was sent at `asked_s`. Returns whether a new rest began."""
        is_new = asked_s >= self.until_s
        if is_new:
            self._length_s = self._unnamed_s
            if named_s is None:
                self._unnamed_s = min(self._unnamed_s * GROWTH, LONGEST_UNNAMED_S)
        length_s = self._length_s if named_s is None else min(named_s, LONGEST_S)
        self.until_s = max(self.until_s, now_s + length_s)
        self.count += is_new
        return is_new

    def note_answer(self, asked_s: float) -> None:
        """The node has answered a call that was sent at `asked_s`."""
        if asked_s >= self.until_s:
            self._unnamed_s = FIRST_REST_S
