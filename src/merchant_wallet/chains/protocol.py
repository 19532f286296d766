"""What the payer knows of a chain: it builds a signed transfer, takes it, and says what became of it.

Rules: `build` promises nothing to the world: until its bytes are broadcast no money can move. `broadcast` may
be called any number of times with the same bytes and is never a verdict. Only `judge` tells what happened,
and only from what the chain can no longer take back. No merchant and no SQL in here.
"""

from typing import Protocol

import msgspec


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Money on a chain: on which one, of which currency, to which 20 bytes, how many millionths."""

    chain: str
    token: str
    recipient: bytes
    amount_units: int


class Payout(msgspec.Struct, frozen=True, gc=False):
    """A transfer that is to be made; `payout_id` is unique on the platform and names it for ever."""

    payout_id: int
    transfer: Transfer


class SignedTransfer(msgspec.Struct, frozen=True, gc=False):
    """The bytes that move the money once they are broadcast, and the hash that the chain knows them by."""

    raw: bytes
    tx_hash: str


class Pending(msgspec.Struct, frozen=True, gc=False):
    """Nothing final yet, or nothing known.

    `check_after_ms`: when another look is worth it, if that is known.
    """

    check_after_ms: int | None = None


class Final(msgspec.Struct, frozen=True, gc=False):
    """The chain's own final record of what this transaction moved."""

    transfer: Transfer


class Dead(msgspec.Struct, frozen=True, gc=False):
    """Proof that this transaction moved nothing and never will."""

    cause: str


Verdict = Pending | Final | Dead


class Unpayable(Exception):
    """Nothing was signed, and nothing ever can be: the recipient can't be paid. The text is the cause."""


class Chain(Protocol):
    """One chain that withdrawals go to."""

    async def build(self, payout: Payout) -> SignedTransfer:
        """Make and sign the transfer. Raises Unpayable with proof; any other error means: try again later."""

    async def broadcast(self, raw: bytes) -> None:
        """Hand the bytes to the chain, as often as need be. An error proves nothing about the transfer."""

    async def judge(self, tx_hash: str) -> Verdict:
        """What became of a transaction."""
