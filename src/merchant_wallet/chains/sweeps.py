"""What sweeping knows of a chain: what emptying a deposit address costs, and the two transactions that do it.

Rules: beside `protocol`, since only deposit addresses are swept, and those have keys of their own. A sweep is
at most two errands: `top_up` sends the chain's coin from the hot wallet to the address, `token` sends the
token from there to the hot wallet. As with payouts, signing promises nothing until the bytes are broadcast, a
broadcast is no verdict, and only `judge` tells what happened. What an errand may cost is in its own bytes or
in the coins that its sender has, so that no node's word can make it dearer.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from merchant_wallet.chains.protocol import Block, Blocked, Obstacle, SignedTransfer, Transfer, Verdict
from merchant_wallet.chains.signer import Purpose, Signer, SigningRefused, SigningRequest, Source

TOP_UP: Final = "top_up"
TOKEN: Final = "token"

Kind = Literal["top_up", "token"]


class Quote(msgspec.Struct, frozen=True, gc=False):
    """What emptying an address takes at the very most, as fees are now, in wei or sun.

    `held` is the coin that the address has, `token_fee` what moving the token may burn of it, `top_up_fee`
    what sending coin there may burn of the hot wallet's.
    """

    held: int
    token_fee: int
    top_up_fee: int


class SweepTx(msgspec.Struct, frozen=True, gc=False):
    """One of a sweep's transactions; `sweep_id` names the sweep on its chain for ever.

    `amount` is coin in wei or sun (`top_up`), or units of the token; `fee_limit` what the chain may burn for
    it at the most. `nonce` is its place among the sender's transactions, where the chain has such places.
    `promised` is coin of the hot wallet's that other sweeps under way may still take.
    """

    sweep_id: int
    kind: Kind
    address: bytes
    source: Source
    amount: int
    fee_limit: int
    nonce: int | None = None
    promised: int = 0


class Draft(Protocol):
    """A transaction of which only the place and the signature are missing."""

    async def sign(self, nonce: int | None) -> SignedTransfer:
        """Sign it; nothing is sent and no node is asked. Raises Hindered, SignerAway."""


class Sweeper(Protocol):
    """One chain whose deposit addresses are swept. What asks nodes raises ChainAway."""

    @property
    def wallet(self) -> bytes:
        """The hot wallet, to which everything is swept, 20 bytes."""

    @property
    def has_nonces(self) -> bool:
        """Whether a sender's transactions have numbered places (EVM nonces)."""

    @property
    def fee_cap(self) -> int:
        """What one transaction may burn, and one fuelling may send, at the most: wei or sun."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back."""

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Units of the token at an address (see `protocol.ChainReader.balance`)."""

    async def quote(self, address: bytes, amount_units: int) -> Quote:
        """What emptying the address would cost. Raises Hindered when it can't be done now."""

    async def next_nonce(self, sender: bytes, known: int | None, *, is_first: bool) -> int:
        """See `protocol.Chain.next_nonce`, for any sender."""

    async def draft(self, sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> Draft:
        """Prepare an errand, so that signing it needs no node. Raises Hindered.

        `earlier` is everything signed for it before, the oldest first, under the rules of
        `protocol.Chain.build`: the same place, or all of them lapsed.
        """

    async def broadcast(self, raw: bytes) -> None:
        """Hand the bytes to the chain, as often as need be. An error proves nothing."""

    async def judge(self, sweep_tx: SweepTx, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of an errand for which all of these, and nothing else, were ever signed."""

    async def fee_of(self, tx_hash: str) -> int | None:
        """What a transaction burnt, in wei or sun; None when no node knows of its end."""

    async def check_setup(self) -> list[str]:
        """Sentences about what of nodes, token and clock does not fit the rules; none when all is well."""

    async def close(self) -> None:
        """Close every connection."""


class SweptChain(Protocol):
    """What a sweeper has its chain answer; see `Sweeper`."""

    @property
    def wallet(self) -> bytes:
        """The hot wallet."""

    async def final(self) -> Block:
        """The newest final block."""

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Units of the token at an address."""

    async def broadcast(self, raw: bytes) -> None:
        """Hand the bytes to the chain."""

    async def check_setup(self) -> list[str]:
        """What does not fit the rules."""

    async def close(self) -> None:
        """Close every connection."""


class ChainSweeper:
    """What is the same in the `Sweeper` of every chain."""

    def __init__(self, chain: SweptChain, name: str, *, coin: str, token: str) -> None:
        self._swept = chain
        self._name = name
        self._coin = coin
        self._token = token

    @property
    def wallet(self) -> bytes:
        """See `Sweeper`."""
        return self._swept.wallet

    async def final(self) -> Block:
        """See `Sweeper`. Raises ChainAway, ChainDisagrees."""
        return await self._swept.final()

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """See `Sweeper`."""
        return await self._swept.balance(address, block)

    async def broadcast(self, raw: bytes) -> None:
        """See `Sweeper`."""
        await self._swept.broadcast(raw)

    async def check_setup(self) -> list[str]:
        """See `Sweeper`."""
        return await self._swept.check_setup()

    async def close(self) -> None:
        """See `Sweeper`."""
        await self._swept.close()

    def sender_of(self, sweep_tx: SweepTx) -> bytes:
        """Whose transaction it is."""
        return self.wallet if sweep_tx.kind == TOP_UP else sweep_tx.address

    def transfer_of(self, sweep_tx: SweepTx) -> Transfer:
        """What the transaction moves: coin to the address, or the token from there."""
        if sweep_tx.kind == TOP_UP:
            return Transfer(self._name, self._coin, sweep_tx.address, sweep_tx.amount)
        return Transfer(self._name, self._token, self.wallet, sweep_tx.amount)


async def sign_sweep(signer: Signer, sweep_tx: SweepTx, transfer: Transfer, unsigned: bytes) -> bytes:
    """The signature of one of a sweep's transactions. Raises Blocked where it is refused, SignerAway."""
    purpose: Purpose = "top_up" if sweep_tx.kind == TOP_UP else "sweep"
    request = SigningRequest(transfer.chain, purpose, unsigned, sweep_tx.sweep_id, transfer, sweep_tx.source)
    try:
        return await signer.sign(request)
    except SigningRefused as error:
        raise Blocked(Obstacle("limit", f"the signer refuses: {error}")) from error


class NoSigner:
    """Stands where only questions are asked: it has no key and signs nothing."""

    async def wallets(self) -> Mapping[str, bytes]:
        """None."""
        return {}

    async def sign(self, request: SigningRequest) -> bytes:
        """Raises SigningRefused."""
        raise SigningRefused(f"nothing is signed here, a {request.purpose} neither")
