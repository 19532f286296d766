"""What cold money uses of a chain besides payouts: unsigned transfers, and what a transaction moved.

Rules:
- An unsigned transfer moves nothing. Its signature is made elsewhere, so it is checked like anybody's.
- Anybody who has the unsigned bytes may sign and broadcast them, at any time and with other fees. So the
  chain is asked for the nonce, or on TRON for the id. Two nodes must show in final blocks what used it. A
  single node that knows of something is enough to wait.
- Only the token's Transfer logs in a final block say what a transaction moved. Two nodes must agree on them,
  and on the block. Otherwise one node could name another block, in which the transaction moved nothing.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from merchant_wallet.chains.protocol import Block, TokenTransfer, Transfer


class UnsignedTransfer(msgspec.Struct, frozen=True, gc=False):
    """The bytes to sign, and the chain's height when they were made.

    `expires_ms`: the chain takes them only before this moment of its own time. None if they do not expire.
    """

    unsigned: bytes
    built_at_block: int
    expires_ms: int | None = None


class Executed(msgspec.Struct, frozen=True, gc=False):
    """A transaction in a final block that asks for exactly the unsigned transfer. It may have failed."""

    tx_hash: str


class Replaced(msgspec.Struct, frozen=True, gc=False):
    """A transaction in a final block that used the nonce for something else. The bytes are void."""

    tx_hash: str


class InFlight(msgspec.Struct, frozen=True, gc=False):
    """Some node knows a transaction that uses the nonce or has the id. `cause` says why that is not final.

    `expires`: the chain has a moment after which it is void, and is then no more in flight.
    """

    cause: str
    expires: bool = False


Execution = Executed | Replaced | InFlight


class ColdChain(Protocol):
    """A real chain on which cold money moves. Everything raises ChainAway."""

    async def build_unsigned(
        self, sender: bytes, transfer: Transfer, nonce: int | None, lifetime_ms: int
    ) -> UnsignedTransfer:
        """A transfer of the token from any sender, to be signed elsewhere within `lifetime_ms`.

        Without a nonce the sender's next one is taken, if the chain has nonces. Raises Blocked.
        """

    async def find_execution(self, sender: bytes, transfer: UnsignedTransfer) -> Execution | None:
        """What became of an unsigned transfer on the chain. None if enough nodes know nothing of it.

        Raises ChainDisagrees.
        """

    async def knows(self, tx_hash: str) -> bool:
        """Whether any node knows a transaction, final or not. Raises ChainAway if too few nodes answer."""

    async def find_block(self, tx_hash: str) -> int | None:
        """The number of the block in which two nodes show a transaction. None until they do.

        Raises ChainDisagrees.
        """

    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to the chain. May be repeated. An error proves nothing."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back."""

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """See `protocol.ChainReader`."""


async def read_moved(chain: ColdChain, tx_hash: str) -> Sequence[TokenTransfer] | None:
    """The Transfer logs of a transaction in a final block. None until it is final.

    Raises ChainAway, ChainDisagrees.
    """
    number = await chain.find_block(tx_hash)
    if number is None or number > (await chain.final()).number:
        return None
    return [moved for moved in await chain.transfers(number, number) if moved.tx_hash == tx_hash]
