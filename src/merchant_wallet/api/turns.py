"""Whose turn a request waits for, so that one merchant's crowd does not delay another merchant's call.

Rules:
- The owner of a turn is an appKey together with the source address. The body is only searched for the appKey:
  to parse it is the work that waits for the turn.
- An appKey that no cached merchant has gets no turn of its own. All such requests share one turn. So invented
  appKeys can't take the turns of known merchants.
- Somebody who sends a merchant's appKey without its secret has another source address. So he takes turns
  beside that merchant, not before it.
"""

import re
from typing import Final

from merchant_wallet.merchants.cache import MerchantCache

Turn = tuple[str, str]
"""An appKey and a source address."""
SHARED: Final[Turn] = ("", "")
"""The turn of all requests without a known appKey."""

_FIELD: Final = b"appKey"
_match_field: Final = re.compile(rb'appKey(?:"\s*:\s*"|=)([!-~]{1,20}?)(?:["&]|$)').match


def find_turn(body: bytes, source: str, merchants: MerchantCache) -> Turn:
    """The turn for a request with this body."""
    found = _match_field(body, max(body.find(_FIELD), 0))
    if found is None:
        return SHARED
    app_key = found[1].decode()
    return SHARED if merchants.get(app_key) is None else (app_key, source)
