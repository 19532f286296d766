"""The token in the link that shows one movement to whoever has it. Pure.

Rules:
- A receipt's token opens no wallet and no other movement: its key and purpose are not those of wallet links.
- It is valid for 30 days. A reset of the PIN revokes it, as it revokes wallet links.
"""

import struct
from typing import Final, NamedTuple

from merchant_wallet.base.units import DAY_MS
from merchant_wallet.sub_users import signed_tokens

RECEIPT_KEY: Final = "wallet receipt"
"""The purpose from which the key of receipt tokens is derived."""
RECEIPT_LIFETIME_MS: Final = 30 * DAY_MS

_FORM: Final = 1
# Version, merchant id, user id, entry id, the time of expiry in ms.
_CONTENT: Final = struct.Struct(">BQQQQ")


class ReceiptLink(NamedTuple):
    """A valid link to a receipt: which entry of which wallet, and until when it works."""

    merchant_id: int
    user_id: int
    entry_id: int
    until_ms: int

    @property
    def made_ms(self) -> int:
        """When the link was made."""
        return self.until_ms - RECEIPT_LIFETIME_MS


class ReceiptExpired(ValueError):
    """The link is genuine, but its 30 days are over."""


def make_receipt_token(key: bytes, merchant_id: int, user_id: int, entry_id: int, now_ms: int) -> str:
    """The token of a link that shows one entry of one wallet for 30 days."""
    content = _CONTENT.pack(_FORM, merchant_id, user_id, entry_id, now_ms + RECEIPT_LIFETIME_MS)
    return signed_tokens.sign(key, RECEIPT_KEY, content)


def read_receipt_token(key: bytes, token: str, now_ms: int) -> ReceiptLink:
    """Check a token and return what it holds. Raises ReceiptExpired, ValueError."""
    content = signed_tokens.check(key, RECEIPT_KEY, token, _CONTENT.size)
    form, merchant_id, user_id, entry_id, until_ms = _CONTENT.unpack(content)
    if form != _FORM:
        raise ValueError(signed_tokens.NOT_VALID)
    if now_ms >= until_ms:
        raise ReceiptExpired("This receipt's link has expired.")
    return ReceiptLink(merchant_id, user_id, entry_id, until_ms)
