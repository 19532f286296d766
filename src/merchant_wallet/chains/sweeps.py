"""The part of a chain that sweeps use: the cost of emptying a deposit address, and its two transactions.

A rescue is a sweep of something else: another token or the chain's coin, to an address of the owner's.

Rules:
- A sweep has at most two transactions. `top_up` sends the chain's coin from the hot wallet to the address.
  `token` sends the token from the address to the hot wallet. `rescue` stands in its place in a rescue.
- What another token's contract says is shown, not trusted. It decides neither fees nor where anything goes.
- As with payouts, signing moves nothing, a broadcast proves nothing, and only `judge` tells what happened.
- The cost of a transaction is bounded by its own bytes or by its sender's coins. No node can raise it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import msgspec

from merchant_wallet.base.addresses import format_address
from merchant_wallet.chains.protocol import Block, Blocked, Obstacle, SignedTransfer, Transfer, Verdict
from merchant_wallet.chains.signer import Purpose, Signer, SigningRefused, SigningRequest, Source

TOP_UP: Final = "top_up"
TOKEN: Final = "token"
RESCUE: Final = "rescue"

Kind = Literal["top_up", "token", "rescue"]

_PURPOSES: Final[Mapping[Kind, Purpose]] = {TOP_UP: "top_up", TOKEN: "sweep", RESCUE: "rescue"}


class Quote(msgspec.Struct, frozen=True, gc=False):
    """The most that emptying an address can cost at the present fees, in wei or sun.

    `held` is the coin at the address. `token_fee` is what the token transfer may burn of it. `top_up_fee` is
    what sending coin there may burn of the hot wallet's coin.
    """

    held: int
    token_fee: int
    top_up_fee: int


class Rescue(msgspec.Struct, frozen=True, gc=False):
    """What a rescue moves, and where to: `amount` smallest units of the token of `contract`.

    Without a contract it is the chain's own coin.
    """

    contract: bytes | None
    recipient: bytes
    amount: int


class SweepTx(msgspec.Struct, frozen=True, gc=False):
    """One transaction of a sweep. `sweep_id` identifies the sweep on its chain for ever.

    `wallet` is the hot wallet that the sweep was opened for. `amount` is coin in wei or sun for a `top_up`,
    units of the token for a `token`, and what `rescue` says for a `rescue`. `fee_limit` is the most that the
    transaction may burn. `nonce` is None on chains without nonces. `reserved` is coin of the hot wallet that
    other open sweeps may still need.
    """

    sweep_id: int
    kind: Kind
    address: bytes
    source: Source
    wallet: bytes
    amount: int
    fee_limit: int
    nonce: int | None = None
    reserved: int = 0
    rescue: Rescue | None = None

    @property
    def rescued(self) -> Rescue:
        """What a rescue moves. Raises ValueError for a sweep."""
        if self.rescue is None:
            raise ValueError("a sweep of the token rescues nothing else")
        return self.rescue


class Draft(Protocol):
    """A transaction that lacks only its nonce and its signature."""

    async def sign(self, nonce: int | None) -> SignedTransfer:
        """Sign it. Nothing is sent and no node is asked. Raises Blocked, SignerAway."""


class Sweeper(Protocol):
    """A chain whose deposit addresses are swept. Everything that asks nodes raises ChainAway."""

    @property
    def wallet(self) -> bytes:
        """The hot wallet that receives everything, 20 bytes."""

    @property
    def has_nonces(self) -> bool:
        """Whether a sender's transactions have EVM nonces."""

    @property
    def fee_cap(self) -> int:
        """The most that one transaction may burn and one top-up may send, in wei or sun."""

    async def final(self) -> Block:
        """The newest block that the chain can no longer take back."""

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Units of the token at an address (see `protocol.ChainReader.balance`)."""

    async def coin_balance(self, address: bytes) -> int:
        """The chain's own coin at an address, in wei or sun."""

    async def quote(self, address: bytes, amount_units: int) -> Quote:
        """What emptying the address would cost. Raises Blocked if it is impossible now."""

    async def foreign_balance(self, address: bytes, contract: bytes | None) -> int:
        """What nodes show now that an address holds of another token, or of the coin (None).

        It is in smallest units. 0 if the contract does not answer as a token does.
        """

    async def quote_rescue(self, address: bytes, rescue: Rescue) -> Quote:
        """What a rescue would cost. `held` is the coin that it leaves for the fee. Raises Blocked."""

    async def next_nonce(self, sender: bytes, known: int | None, *, is_first: bool) -> int:
        """See `protocol.Chain.next_nonce`, for any sender."""

    async def draft(self, sweep_tx: SweepTx, earlier: Sequence[SignedTransfer]) -> Draft:
        """Prepare a transaction, so that signing it needs no node. Raises Blocked.

        `earlier` has everything signed for it before, the oldest first. The rules of `protocol.Chain.build`
        hold: the same nonce, or all of them expired.
        """

    async def broadcast(self, raw: bytes) -> None:
        """Send the bytes to the chain. May be repeated. An error proves nothing."""

    async def judge(self, sweep_tx: SweepTx, signed: Sequence[SignedTransfer]) -> Verdict:
        """What became of a transaction, also of a former hot wallet. `signed` has everything that was ever
        signed for it.
        """

    async def has_lapsed(self, signed: Sequence[SignedTransfer]) -> bool:
        """Whether the only node shows that all of these expired and are in no block. It is no proof."""

    async def fee_of(self, tx_hash: str) -> int | None:
        """What a transaction burnt, in wei or sun. None if no node knows its end."""

    async def check_setup(self) -> list[str]:
        """Sentences about nodes, token or clock that do not fit the rules. Empty if all is well."""

    async def close(self) -> None:
        """Close every connection."""


class SweptChain(Protocol):
    """What a sweeper delegates to its chain. See `Sweeper`."""

    @property
    def wallet(self) -> bytes:
        """The hot wallet."""

    async def final(self) -> Block:
        """The newest final block."""

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """Units of the token at an address."""

    async def coin_balance(self, address: bytes) -> int:
        """The chain's own coin at an address."""

    async def broadcast(self, raw: bytes) -> None:
        """Hand the bytes to the chain."""

    async def check_setup(self) -> list[str]:
        """What does not fit the rules."""

    async def close(self) -> None:
        """Close every connection."""


class ChainSweeper:
    """The common part of every chain's `Sweeper`."""

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

    async def coin_balance(self, address: bytes) -> int:
        """See `Sweeper`."""
        return await self._swept.coin_balance(address)

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
        """The sender of a transaction."""
        return sweep_tx.wallet if sweep_tx.kind == TOP_UP else sweep_tx.address

    def transfer_of(self, sweep_tx: SweepTx) -> Transfer:
        """What the transaction moves: coin to the address, or something from there."""
        if sweep_tx.kind == TOP_UP:
            return Transfer(self._name, self._coin, sweep_tx.address, sweep_tx.amount)
        if sweep_tx.kind == RESCUE:
            rescued = sweep_tx.rescued
            token = self._coin if rescued.contract is None else format_address(self._name, rescued.contract)
            return Transfer(self._name, token, rescued.recipient, rescued.amount)
        return Transfer(self._name, self._token, sweep_tx.wallet, sweep_tx.amount)


async def sign_sweep(signer: Signer, sweep_tx: SweepTx, transfer: Transfer, unsigned: bytes) -> bytes:
    """The signature of one transaction of a sweep. Raises Blocked if the signer refuses, SignerAway."""
    purpose = _PURPOSES[sweep_tx.kind]
    base_units = b""
    if purpose == "rescue":
        base_units = transfer.amount_units.to_bytes(32, "big")
        transfer = msgspec.structs.replace(transfer, amount_units=0)
    request = SigningRequest(
        transfer.chain, purpose, unsigned, sweep_tx.sweep_id, transfer, sweep_tx.source, base_units
    )
    try:
        return await signer.sign(request)
    except SigningRefused as error:
        raise Blocked(Obstacle("limit", f"the signer refuses: {error}")) from error


class NoSigner:
    """A signer without keys, for commands that only read."""

    async def wallets(self) -> Mapping[str, bytes]:
        """There is none."""
        return {}

    async def sign(self, request: SigningRequest) -> bytes:
        """Raises SigningRefused."""
        raise SigningRefused(f"this process has no keys and can't sign a {request.purpose}")


def require_other(chain: str, token: bytes, contract: bytes, replaced_by: Sequence[str | None]) -> None:
    """Raises Blocked if a contract moves the same balances as the token.

    `replaced_by` are the successors that the two name.
    """
    if {format_address(chain, token), format_address(chain, contract)} & set(replaced_by):
        text = "it is the same USDT: this contract replaces the token of the settings, or is replaced by it"
        raise Blocked(Obstacle("token", text))
