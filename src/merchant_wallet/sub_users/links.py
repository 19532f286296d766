"""The token in the link that opens a sub-user's wallet page. Pure.

Rules:
- A link token is stored nowhere. It holds the user and the time of expiry, authenticated by a MAC.
- A token can be used more than once while it is valid: chat programs fetch a link before the user does.
- `sessions` checks whether a reset of the PIN has revoked the link.
"""

import struct
from typing import Final, NamedTuple

from merchant_wallet.sub_users import signed_tokens

LINK_KEY: Final = "wallet link"
"""The purpose from which the key of link tokens is derived."""
LINK_LIFETIME_MS: Final = 15 * 60 * 1000

_FORM: Final = 1
# Version, merchant id, user id, the time of expiry in ms.
_CONTENT: Final = struct.Struct(">BQQQ")


class Link(NamedTuple):
    """A valid link: whose wallet it opens, and when it was created."""

    merchant_id: int
    user_id: int
    made_ms: int


class LinkExpired(ValueError):
    """The link is genuine but has expired. The text is a sentence for the page."""

    def __init__(self, link: Link) -> None:
        super().__init__("This link has expired; ask for a new one.")
        self.link = link


def make_link_token(key: bytes, merchant_id: int, user_id: int, now_ms: int) -> str:
    """The token of a wallet link that is valid for 15 minutes. Its characters need no escape in a URL."""
    content = _CONTENT.pack(_FORM, merchant_id, user_id, now_ms + LINK_LIFETIME_MS)
    return signed_tokens.sign(key, LINK_KEY, content)


def read_link_token(key: bytes, token: str, now_ms: int) -> Link:
    """Check a token and return what it holds.

    Raises LinkExpired, or ValueError if the token was not made with this key. The text is for the page.
    """
    content = signed_tokens.check(key, LINK_KEY, token, _CONTENT.size)
    form, merchant_id, user_id, until_ms = _CONTENT.unpack(content)
    if form != _FORM:
        raise ValueError(signed_tokens.NOT_VALID)
    link = Link(merchant_id, user_id, until_ms - LINK_LIFETIME_MS)
    if now_ms >= until_ms:
        raise LinkExpired(link)
    return link
