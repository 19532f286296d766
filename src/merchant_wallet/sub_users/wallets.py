"""A sub-user's two wallet addresses, and the token in the link that opens the wallet page. Pure.

Rules: addresses come from a merchant's extended public keys, so no private key is needed here. A link token
is kept nowhere: it says who and until when, under a mac. It opens more than once while it is valid, because
chat programs fetch links before people do. `sessions` checks whether a reset of the PIN has voided it.
"""

import base64
import hashlib
import hmac
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from merchant_wallet.base.addresses import ERC20, TRC20, address_of_child

LINK_KEY: Final = "wallet link"
"""What the key of link tokens is derived for."""
LINK_LIFETIME_MS: Final = 15 * 60 * 1000

_FORM: Final = 1
# Form, merchant id, user id, the first moment at which the link is no longer valid.
_CONTENT: Final = struct.Struct(">BQQQ")
_MAC_BYTES: Final = 32
_TOKEN_LENGTH: Final = -(-(_CONTENT.size + _MAC_BYTES) * 4 // 3)


class Link(NamedTuple):
    """Whose wallet a link opens, and when it was made."""

    merchant_id: int
    user_id: int
    made_ms: int


class LinkExpired(ValueError):
    """A link that was ours, and whose time is over; the text is a sentence for the page."""


def derive_wallets(account_xpubs: Mapping[str, str], index: int) -> tuple[bytes, bytes]:
    """The EVM and the TRON address, 20 bytes each, at an address index of a merchant.

    Raises ValueError when a key is missing or the index is not below 2**31.
    """
    missing = [chain for chain in (ERC20, TRC20) if chain not in account_xpubs]
    if missing:
        raise ValueError(f"the merchant has no extended public key for {' and '.join(missing)}")
    return address_of_child(account_xpubs[ERC20], index), address_of_child(account_xpubs[TRC20], index)


def make_link_token(key: bytes, merchant_id: int, user_id: int, now_ms: int) -> str:
    """The token of a wallet link that is valid for 15 minutes, in characters that need no escape in a URL."""
    content = _CONTENT.pack(_FORM, merchant_id, user_id, now_ms + LINK_LIFETIME_MS)
    return base64.urlsafe_b64encode(content + _mac(key, content)).decode().rstrip("=")


def read_link_token(key: bytes, token: str, now_ms: int) -> Link:
    """What a token says that was made with this key.

    Raises ValueError with a sentence for the page: it is not ours, or, as LinkExpired, its time is over.
    """
    raw = _decode(token)
    content, mac = raw[: _CONTENT.size], raw[_CONTENT.size :]
    if not hmac.compare_digest(mac, _mac(key, content)):
        raise ValueError("This link is not valid.")
    form, merchant_id, user_id, until_ms = _CONTENT.unpack(content)
    if form != _FORM:
        raise ValueError("This link is not valid.")
    if now_ms >= until_ms:
        raise LinkExpired("This link has expired; ask for a new one.")
    return Link(merchant_id, user_id, until_ms - LINK_LIFETIME_MS)


def _decode(token: str) -> bytes:
    """The bytes of a token; only the one spelling that `make_link_token` writes is taken."""
    try:
        raw = (
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)) if len(token) == _TOKEN_LENGTH else b""
        )
    except ValueError:
        raw = b""
    if len(raw) != _CONTENT.size + _MAC_BYTES or base64.urlsafe_b64encode(raw).decode().rstrip("=") != token:
        raise ValueError("This link is not valid.")
    return raw


def _mac(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, b"wallet link\0" + content, hashlib.sha256)
