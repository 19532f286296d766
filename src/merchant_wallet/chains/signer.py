"""What a chain sends to a signer: bytes to sign, and what the order says about them.

Rules:
- A signer trusts no one. It parses the bytes itself. It compares them with the request, its own configuration
  and what it has signed before. It refuses every difference.
- A request holds no secret. Only addresses and signatures leave the signer.
- This module has no key, so every module may import it.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

from merchant_wallet.base.errors import TransientError
from merchant_wallet.chains.protocol import Transfer

Purpose = Literal["payout", "cold", "cancel", "sweep", "top_up", "rescue"]


class Source(msgspec.Struct, frozen=True, gc=False):
    """A deposit address by its derivation path: the key /branch/index of m/44'/coin'/account'."""

    account: int
    branch: int
    index: int


class SigningRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for one signature.

    `chain` is the chain's code. `unsigned` has the bytes as that chain's transactions module encodes them.
    `transfer` says what they must do:

    - `payout`: send the token from the hot wallet to the recipient. `payout_id` names the order for ever.
    - `cold`: send the token from the hot wallet to a cold wallet of the signer's own settings. `payout_id`
      names the transfer for ever.
    - `cancel`: send nothing from the hot wallet to itself, 0 units. Only on chains with nonces.
    - `sweep`: send the token from the deposit address `source` to the hot wallet.
    - `top_up`: send the chain's own coin, in wei or sun, from the hot wallet to the deposit address `source`.
      Then the transfer's `token` is the coin's name (`ETH`, `TRX`).
    - `rescue`: send another token, or the chain's own coin, from the deposit address `source` to a rescue
      address or a cold wallet of the signer's own settings. Then the transfer's `token` is the contract's
      address or the coin's name, and its amount is 0. `base_units` has the amount: 32 bytes, big-endian, in
      the smallest units. A number of JSON has too few digits for it.

    For every other purpose the `payout_id` is only used in logs and may be 0.
    """

    chain: str
    purpose: Purpose
    unsigned: bytes
    payout_id: int
    transfer: Transfer
    source: Source | None = None
    base_units: bytes = b""


class SigningRefused(Exception):
    """The signer refuses to sign this. The text says why and holds no secret."""


class SignerAway(TransientError):
    """The signer could not be asked or did not answer. Nothing is known about the signature."""


class Signer(Protocol):
    """The holder of the private keys."""

    async def wallets(self) -> Mapping[str, bytes]:
        """The hot wallet's 20 bytes for each chain with a key. Raises SignerAway."""

    async def sign(self, request: SigningRequest) -> bytes:
        """The 65 bytes r, s, v. v is 0 or 1, s is in the lower half. Raises SigningRefused, SignerAway."""


class SeededSigner(Signer, Protocol):
    """A signer that tells whose seed it has."""

    async def account(self, account_no: int) -> Mapping[str, str]:
        """The extended public keys of an account of the seed, by the key's name. They tell whose seed it is.

        Empty without a seed. Raises SignerAway.
        """
