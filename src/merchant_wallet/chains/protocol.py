"""What the payer, the watcher and reconciliation use of a chain: build, send, judge and read transfers.

Rules:
- `build` only signs. No money can move before its bytes are broadcast.
- `broadcast` may be called any number of times with the same bytes. Its result proves nothing.
- Only `judge` tells what happened, and it uses only what the chain can no longer take back.
- Nothing here knows a merchant or SQL.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.base.errors import TransientError
from merchant_wallet.base.money import format_units


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Money on a chain: the chain, the currency, the recipient's 20 bytes and the amount in millionths."""

    chain: str
    token: str
    recipient: bytes
    amount_units: int

    def __str__(self) -> str:
        to = format_address(self.chain, self.recipient)
        return f"{format_units(self.amount_units)} {self.token} to {to}"


class Payout(msgspec.Struct, frozen=True, gc=False):
    """A transfer that must be made. `payout_id` is unique among its purpose on the platform for ever.

    `nonce` is the EVM nonce of the transaction. It is None on chains without nonces. `purpose` is `cold` for
    a transfer to the platform's own cold wallet. `pending` has the newest signed bytes of everything else
    that the wallet sends and that is not known to be final. None stands for a payout that reserved earlier
    and is not signed yet. The wallet needs coin for all of it together. `is_refused`: nodes have just refused
    the newest transfer, perhaps for its tip.
    """

    payout_id: int
    transfer: Transfer
    nonce: int | None = None
    purpose: Literal["payout", "cold"] = "payout"
    pending: tuple[bytes | None, ...] = ()
    is_refused: bool = False


class SignedTransfer(msgspec.Struct, frozen=True, gc=False):
    """The bytes that move the money once they are broadcast, and their hash on the chain.

    `built_at_block` is the chain's height at that time, so no earlier block can contain the transfer.
    """

    raw: bytes
    tx_hash: str
    built_at_block: int = 0


class Pending(msgspec.Struct, frozen=True, gc=False):
    """Nothing is final yet, or nothing is known.

    `check_after_ms`: another look makes sense after this time and not before, if it is known. `stuck`: the
    transfer has waited so long that it must be replaced, by `build` with everything signed so far. `alert`: a
    text for an operator. `is_mined`: enough nodes say that a block which is not final has used its nonce, so
    sending it again is useless.
    """

    check_after_ms: int | None = None
    stuck: bool = False
    alert: str | None = None
    is_mined: bool = False


class TransferLog(msgspec.Struct, frozen=True, gc=False):
    """One Transfer log of the token: the 20 bytes of sender and recipient, and the amount in millionths.

    `remainder` is the part of the amount below a millionth, in the token's smallest units.
    """

    sender: bytes
    recipient: bytes
    amount_units: int
    remainder: int = 0


class FinalRecord(msgspec.Struct, frozen=True, gc=False):
    """The chain's final record of one of the payout's transactions.

    `transfer_logs` is empty if the transaction has exactly one Transfer log of the token, sent by the payer's
    wallet, or no log at all. Without a log `transfer` has 0 units. Otherwise `transfer_logs` has all logs, so
    the transaction is not what was ordered. Then `transfer` is what that wallet sent to the ordered
    recipient.
    """

    transfer: Transfer
    tx_hash: str
    transfer_logs: tuple[TransferLog, ...] = ()

    def is_exactly(self, ordered: Transfer) -> bool:
        """Whether the transaction moved exactly the order and nothing else."""
        return not self.transfer_logs and self.transfer == ordered

    def __str__(self) -> str:
        others = f", in {len(self.transfer_logs)} transfers" if self.transfer_logs else ""
        return f"transaction {self.tx_hash} moved {self.transfer}{others}"


class ProvenUnpaid(msgspec.Struct, frozen=True, gc=False):
    """Proof that nothing signed for the payout has moved or ever will move money. Nothing more may be signed.

    `wallet_fault` is set if the hot wallet must be frozen until an operator has looked. It says why.
    """

    cause: str
    wallet_fault: str | None = None

    def __str__(self) -> str:
        return f"nothing was paid: {self.cause}"


class Expired(msgspec.Struct, frozen=True, gc=False):
    """Proof that everything signed for the payout is void and has moved nothing. It may be built again.

    It expired, or the chain stopped it for a reason that is not the recipient's.
    """

    cause: str


Verdict = Pending | FinalRecord | ProvenUnpaid | Expired


class Obstacle(msgspec.Struct, frozen=True, gc=False):
    """Why nothing can be paid at the moment. The order waits.

    The kinds that a chain raises: `funds`, `fuel` (too little coin for the network fee), `fee`, `token_fee`,
    `paused`, `deprecated` (another contract replaces the token), `wallet`, `node`, `limit`, `lapsed` (TRON:
    the last transfer came to nothing, and its time is not over) and, for sweeps, `token` (the token refuses
    the simulated transfer). `wallet` means that the token has blacklisted our own wallet; it freezes the
    wallet.

    `hot_wallet` adds `stale`, `clock` and `stopped`. `withdrawals` adds `key` (the key here is not the hot
    wallet's), `stuck`, `alert` and `fault`. It uses `lapsed` when too many transfers came to nothing.
    """

    kind: str
    cause: str


class Unpayable(Exception):
    """The recipient can never be paid, and nothing was signed. The text is the cause."""


class Blocked(Exception):
    """Nothing was signed because of an obstacle that may pass. The order waits."""

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
        """Whether the wallet's transactions have EVM nonces. Every nonce must be used in the end."""

    async def next_nonce(self, known: int | None, *, is_first: bool) -> int:
        """The nonce after the last one that the chain or its mempool knows of this wallet.

        The platform has given out all nonces below `known`. It is None if the platform knows none. A result
        above `known` is certain: two nodes say it, or one node proves it. `is_first` means that the platform
        will give out nonces from the result on. Raises Blocked if the result is not certain.
        """

    async def funds(self) -> int:
        """Units of the token that the hot wallet certainly holds, as of the last final block."""

    async def check_payable(self, transfer: Transfer) -> None:
        """Check that a transfer could be paid now. Raises Unpayable with proof, Blocked."""

    async def build(self, payout: Payout, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """Build and sign the transfer. Nothing is sent.

        `earlier` has everything signed for this payout before, the oldest first. On a chain with nonces the
        result has the same nonce, so at most one of them can count. On other chains it may be called only
        after `judge` has called all of them `Expired`. Raises Unpayable with proof and Blocked. After any
        other error try again later.
        """

    async def build_cancel(self, nonce: int, earlier: Sequence[SignedTransfer]) -> SignedTransfer:
        """A transaction that moves nothing, for a nonce that no payout will use. Raises Blocked."""

    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to the chain. May be repeated. An error proves nothing about the transfer.

        Raises NodeRefused only if enough nodes refuse the bytes. That one is asked too much is none.
        """

    async def judge(self, payout: Payout, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of a payout. `signed` has everything that was ever signed for it."""


class Block(msgspec.Struct, frozen=True, gc=False):
    """The position of a block in its chain."""

    number: int
    hash: str
    parent_hash: str
    time_ms: int


class TokenTransfer(msgspec.Struct, frozen=True, gc=False):
    """One Transfer log of our token, or what its issuer destroyed (see `issuer`).

    (chain, tx_hash, log_index) identifies it for ever.

    `log_index` is its position among the logs of its own transaction, from 0. It stays the same if the
    transaction is mined again in another block. `block_log_index` is its position among all logs of the
    block, if the chain counts so (Ethereum's `logIndex`). `remainder` is the part of the amount below a unit,
    in the token's smallest units. A token with more decimals than the ledger can move parts of a unit.
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
    """A chain as deposits and reconciliation read it. It needs no key."""

    async def head(self) -> Block:
        """The newest block."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back, by the configured rule."""

    async def block(self, number: int) -> Block | None:
        """The block with this number on the branch that the node follows now."""

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """Every Transfer log of our token in these blocks, both ends included, in the chain's order.

        For final blocks of a chain with several nodes two nodes must agree. Raises ChainDisagrees if they
        don't.
        """

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Whole units of the token at an address: at a final block if the node can answer for it, otherwise
        now.
        """

    async def coin_balance(self, address: bytes) -> int:
        """The chain's own coin at an address, in its smallest unit (wei, sun)."""


class ChainAway(TransientError):
    """No configured node gave a usable answer. The text says what was asked and what each node said."""


class ChainDisagrees(TransientError):
    """Two nodes gave different answers, and only one can be true. Nothing may be decided from either."""
