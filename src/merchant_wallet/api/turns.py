"""Whose turn a request waits for, so that one merchant's crowd does not delay another merchant's call.

Rules:
- Merchants take turns. Within a merchant's turn its source addresses take turns. An IPv6 address counts as
  its /64. So a merchant gets no more turns if it calls from more addresses.
- The merchant is the one whose appKey the body has. The body is only searched for it: to parse the body and
  to check the signature is the work that waits for the turn.
- All requests without the appKey of a cached merchant share one turn. So invented appKeys take one turn
  together, however many they are. Within it their sources take turns.
- Somebody who sends a merchant's appKey without its secret takes that merchant's turns, not those of others.
  From other addresses he takes turns beside the merchant, not before it.

Decision 0079 has the reasons and the figures.
"""

import re
from functools import lru_cache
from typing import Final

from merchant_wallet.base.rate_limits import subscriber_of
from merchant_wallet.merchants.cache import MerchantCache

Turn = tuple[str, str]
"""An appKey and a source. The appKey is empty if no cached merchant has it."""
SHARED: Final[Turn] = ("", "")
"""The turn of a request whose body was not searched."""
MAX_SOURCES: Final = 4096
"""How many sources are remembered with their /64."""

_FIELD: Final = b"appKey"
_match_field: Final = re.compile(rb'appKey(?:"\s*:\s*"|=)([!#-%\'-~]{1,20})').match
_find_subscriber: Final = lru_cache(MAX_SOURCES)(subscriber_of)


def find_turn(body: bytes, source: str, merchants: MerchantCache) -> Turn:
    """The turn for a request with this body."""
    # Without the field the place is -1. Then the match begins at 0 and fails.
    found = _match_field(body, body.find(_FIELD))
    app_key = "" if found is None else found[1].decode()
    return ("" if merchants.get(app_key) is None else app_key, _find_subscriber(source))
