"""What payer, watcher and reconciliation know of a chain: it builds, takes and judges transfers, and is read.

Rules: `build` promises nothing to the world: until its bytes are broadcast no money can move. `broadcast` may
be called any number of times with the same bytes and is never a verdict. Only `judge` tells what happened,
and only from what the chain can no longer take back. No merchant and no SQL in here.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Money on a chain: on which one, of which currency, to which 20 bytes, how many millionths."""

    chain: str
    token: str
    recipient: bytes
    amount_units: int


class Payout(msgspec.Struct, frozen=True, gc=False):
    """A transfer that is to be made; `payout_id` is unique on the platform and names it for ever.

    `nonce` is its place among the hot wallet's transactions (an EVM nonce), where the chain has places.
    """

    payout_id: int
    transfer: Transfer
    nonce: int | None = None


class SignedTransfer(msgspec.Struct, frozen=True, gc=False):
    """The bytes that move the money once they are broadcast, and the hash that the chain knows them by.

    `built_at_block` is the height of the chain when they were made: nothing of them is in an earlier block.
    """

    raw: bytes
    tx_hash: str
    built_at_block: int = 0


class Pending(msgspec.Struct, frozen=True, gc=False):
    """Nothing final yet, or nothing known.

    `check_after_ms`: when another look is worth it, if that is known. `stuck`: it has waited so long that a
    replacement (`build` with what was signed so far) is called for. `alert`: what an operator should know.
    """

    check_after_ms: int | None = None
    stuck: bool = False
    alert: str | None = None


class TransferLog(msgspec.Struct, frozen=True, gc=False):
    """One Transfer log of the token: 20 bytes each for sender and recipient, and millionths.

    `remainder` is what the log has above whole millionths, in the token's smallest units.
    """

    sender: bytes
    recipient: bytes
    amount_units: int
    remainder: int = 0


class Final(msgspec.Struct, frozen=True, gc=False):
    """The chain's own final record of what one of the payout's transactions moved.

    `transfer_logs` is empty when the transaction has one Transfer log of the token, from the payer's wallet,
    or none; without one `transfer` has 0 units. Else `transfer_logs` has them all, so the transaction is not
    what was ordered, and `transfer` is what reached the ordered recipient from that wallet.
    """

    transfer: Transfer
    tx_hash: str
    transfer_logs: tuple[TransferLog, ...] = ()

    def is_exactly(self, ordered: Transfer) -> bool:
        """Whether the transaction moved what was ordered and nothing else."""
        return not self.transfer_logs and self.transfer == ordered


class Dead(msgspec.Struct, frozen=True, gc=False):
    """Proof that nothing signed for the payout moved or ever will move anything, and nothing should follow.

    `wallet_fault` says why the hot wallet must not be used until an operator has looked, if that is so.
    """

    cause: str
    wallet_fault: str | None = None


class Expired(msgspec.Struct, frozen=True, gc=False):
    """Proof that everything signed for the payout is void and moved nothing; it may be built anew."""

    cause: str


Verdict = Pending | Final | Dead | Expired


class Obstacle(msgspec.Struct, frozen=True, gc=False):
    """Why nothing can be paid at the moment; the order waits.

    A chain's kinds: `funds`, `top_up`, `fee`, `token_fee`, `paused`, `wallet`, `node` or `limit`. A `wallet`
    obstacle (the token has blacklisted our own wallet) freezes the wallet.
    """

    kind: str
    cause: str


class Unpayable(Exception):
    """Nothing was signed, and nothing ever can be: the recipient can't be paid. The text is the cause."""


class Blocked(Exception):
    """Nothing was signed because of an obstacle that may pass; the order waits."""

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.cause)
        self.obstacle = obstacle


class Chain(Protocol):
    """One chain that withdrawals go to."""

    @property
    def wallet(self) -> bytes:
        """The hot wallet that pays, 20 bytes."""

    @property
    def has_nonces(self) -> bool:
        """Whether the wallet's transactions have numbered places that must all be filled (EVM nonces)."""

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """The place after the last one that the chain or its waiting room knows of this wallet.

        All places below `known` were given out by the platform (None: it knows of none). What is above
        `known` is certain: two nodes say it, or one proves it. With `is_first` places are given out from
        there on. Raises Hindered when that is not certain.
        """

    async def funds(self) -> int:
        """Units of the token that the hot wallet holds for certain: as of the last final block."""

    async def check_payable(self, transfer: Transfer) -> None:
        """See that a transfer could be paid now. Raises Unpayable with proof, Hindered."""

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Make and sign the transfer; nothing is sent.

        `earlier` is everything signed for this payout before, the oldest first. On a sequenced chain the
        result takes the same place as they do, so that at most one of them can ever count; on any other it
        may only be asked for when `judge` has called all of them `Expired`. Raises Unpayable with proof and
        Hindered; any other error means: try again later.
        """

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """A transaction that moves nothing, for a place which no payout will take. Raises Hindered."""

    async def broadcast(self, raw: bytes) -> None:
        """Hand the bytes to the chain, as often as need be. An error proves nothing about the transfer."""

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of a payout for which all of these, and nothing else, were ever signed."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """One block's place in its chain."""

    number: int
    hash: str
    parent_hash: str
    time_ms: int


class TokenTransfer(msgspec.Struct, frozen=True, gc=False):
    """One Transfer log of our token: (chain, tx_hash, log_index) names it for ever.

    `log_index` is its place among the logs of its own transaction, counted from 0. It stays the same when the
    transaction is mined again in another block. `block_log_index` is its place among all logs of the block,
    where the chain counts so (Ethereum's `logIndex`). `remainder` is what arrived above whole units, in the
    token's smallest units: a token with more decimals than the ledger can move parts of a unit.
    """

    chain: str
    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str
    sender: bytes
    recipient: bytes
    amount_units: int
    block_log_index: int | None = None
    remainder: int = 0


class ChainReader(Protocol):
    """One chain as deposits and reconciliation read it; needs no key."""

    async def head(self) -> Block:
        """The newest block."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back, by the configured rule."""

    async def block(self, number: int) -> Block | None:
        """The block of this number on the branch that the node follows now."""

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """Every Transfer log of our token in these blocks (both ends included), in the chain's order.

        Where several nodes are configured and the blocks are final, two must say the same.
        Raises ChainDisagrees when they don't.
        """

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Whole units of the token at an address, at a final block where the node can say so, else now."""

    async def coin_balance(self, address: bytes) -> int:
        """The chain's own coin at an address, in its smallest unit (wei, sun)."""


class ChainAway(Exception):
    """No configured node gave a usable answer; the text names what was asked and what each said."""


class ChainDisagrees(Exception):
    """Two nodes gave different answers where only one can be true; nothing may be decided on either."""
