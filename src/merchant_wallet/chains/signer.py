"""What a chain asks a signer for: a signature over bytes, and the order's own words about what they must say.

Rules: a signer believes no one. It parses the bytes itself and compares them with the request, with its own
configuration and with what it has signed before; whatever does not agree is refused, never mended. A request
holds no secret and a signer gives none away: addresses and signatures are all that ever leave it. No key
lives in this module, so that anything may import it.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from merchant_wallet.chains.protocol import Transfer

Purpose = Literal["payout", "cancel", "sweep", "top_up"]


class Source(msgspec.Struct, frozen=True, gc=False):
    """A deposit address by its place below the seed: the key /branch/index of m/44'/coin'/account'."""

    account: int
    branch: int
    index: int


class SigningRequest(msgspec.Struct, frozen=True, gc=False):
    """One signature that is asked for.

    `chain` is the chain's code; `unsigned` the bytes as that chain's transactions module encodes them.
    `transfer` says what they must do:

    - `payout`: the token from the hot wallet to the recipient; `payout_id` names the order for ever.
    - `build_cancel`: nothing at all, from the hot wallet to itself, 0 units; only where places are numbered.
    - `sweep`: the token from the deposit address `source` to the hot wallet.
    - `top_up`: the chain's own coin, in wei or sun, from the hot wallet to the deposit address `source`; the
      transfer's `token` is then the coin's name (`ETH`, `TRX`).

    For every purpose but `payout` the `payout_id` is only a name for the logs, and may be 0.
    """

    chain: str
    purpose: Purpose
    unsigned: bytes
    payout_id: int
    transfer: Transfer
    source: Source | None = None


class SigningRefused(Exception):
    """The signer will not sign this; the text says why and holds nothing secret."""


class SignerAway(Exception):
    """The signer could not be asked, or did not answer; nothing is known about the signature."""


class Signer(Protocol):
    """Whoever holds the keys."""

    async def wallets(self) -> Mapping[str, bytes]:
        """The hot wallet of each chain there is a key for, 20 bytes. Raises SignerAway."""

    async def sign(self, request: SigningRequest) -> bytes:
        """The 65 bytes r, s, v: v is 0 or 1, s in the lower half. Raises SigningRefused, SignerAway."""
