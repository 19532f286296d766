"""The sandbox's chains as deposits read them. A deposit by an operator becomes final by itself.

Rules:
- Each deposit is a block of its own. The block's hash follows from chain and number, so this branch never
  changes.
- Unconfirmed deposits are in blocks above all others, each with a hash of its own. They become final only
  when a test confirms them. A new deposit below them moves them up, which is a reorganisation. The block of a
  deposit that is gone stays, without it and with another hash.
- Block 0 always exists and is empty.
- A block is final after the sandbox's confirmation time.
- A `Record` keeps the deposits.
"""

import hashlib
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from merchant_wallet.base.addresses import keccak256
from merchant_wallet.base.chains import is_evm
from merchant_wallet.chains.protocol import Block, TokenTransfer

MAX_NUMBER: Final = 2**62


class SandboxDeposit(msgspec.Struct, frozen=True, gc=False):
    """An amount that an operator deposited, and its block."""

    block_number: int
    sender: bytes
    recipient: bytes
    amount_units: int
    at_ms: int
    tx_hash: str | None = None


class UnconfirmedDeposit(msgspec.Struct, frozen=True, gc=False):
    """A deposit that becomes final only when a test confirms it. `is_gone`: its block has left the chain."""

    deposit_no: int
    tx_hash: str
    sender: bytes
    recipient: bytes
    amount_units: int
    at_ms: int
    is_gone: bool


class Record(Protocol):
    """Stores the deposits on the sandbox's chains."""

    async def last(self, chain: str, until_ms: int = MAX_NUMBER) -> SandboxDeposit | None:
        """The newest deposit up to a moment."""

    async def page(self, chain: str, first: int, last: int) -> list[SandboxDeposit]:
        """The deposits in these blocks, in order."""

    async def unconfirmed(self, chain: str) -> list[UnconfirmedDeposit]:
        """The deposits that wait for a test, in order, also those that are gone."""

    async def received(self, chain: str, recipient: bytes, last: int) -> int:
        """Units that an address has received up to a block."""


class SandboxReader:
    """Reads one sandbox chain (see `protocol.ChainReader`)."""

    def __init__(self, name: str, record: Record, *, confirm_ms: int, clock: Callable[[], int]) -> None:
        self._name = name
        self._record = record
        self._confirm_ms = confirm_ms
        self._clock = clock

    async def head(self) -> Block:
        """The block of the newest deposit."""
        branch = await self._branch()
        return branch[-1][0] if branch else self._to_block(await self._record.last(self._name))

    async def final(self) -> Block:
        """The newest block after its confirmation time."""
        return self._to_block(await self._record.last(self._name, self._clock() - self._confirm_ms))

    async def block(self, number: int) -> Block | None:
        """The block of this number."""
        if number == 0:
            return self._to_block(None)
        found = await self._record.page(self._name, number, number)
        if found:
            return self._to_block(found[0])
        return next((block for block, _ in await self._branch() if block.number == number), None)

    async def transfers(self, first: int, last: int) -> list[TokenTransfer]:
        """The deposits in these blocks."""
        settled = [self._to_transfer(each) for each in await self._record.page(self._name, first, last)]
        known = {each.block_number for each in settled}
        return settled + [
            self._to_unconfirmed(block, each)
            for block, each in await self._branch()
            if first <= block.number <= last and block.number not in known and not each.is_gone
        ]

    async def balance(self, address: bytes, block: Block | None = None) -> int:
        """What an address has received. The sandbox never sends anything from such an address."""
        return await self._record.received(self._name, address, MAX_NUMBER if block is None else block.number)

    async def coin_balance(self, address: bytes) -> int:
        """Zero: the sandbox's chains have no coin and no fees."""
        return 0

    def forget(self) -> None:
        """Does nothing: the record is read each time."""

    async def close(self) -> None:
        """Does nothing: the record belongs to its owner."""

    async def _branch(self) -> list[tuple[Block, UnconfirmedDeposit]]:
        """The blocks of the unconfirmed deposits, above all others."""
        waiting = await self._record.unconfirmed(self._name)
        if not waiting:
            return []
        parent = self._to_block(await self._record.last(self._name))
        branch = []
        for each in waiting:
            number = parent.number + 1
            own = f"block {number} of {each.tx_hash} gone {each.is_gone} on {parent.hash}"
            parent = Block(number, _hash(self._name, own), parent.hash, each.at_ms)
            branch.append((parent, each))
        return branch

    def _to_unconfirmed(self, block: Block, each: UnconfirmedDeposit) -> TokenTransfer:
        place = (0, block.number, block.hash)
        return TokenTransfer(self._name, each.tx_hash, *place, each.sender, each.recipient, each.amount_units)

    def _to_block(self, transfer: SandboxDeposit | None) -> Block:
        number, at_ms = (0, 0) if transfer is None else (transfer.block_number, transfer.at_ms)
        before = _hash(self._name, f"block {number - 1}")
        return Block(number, _hash(self._name, f"block {number}"), before, at_ms)

    def _to_transfer(self, transfer: SandboxDeposit) -> TokenTransfer:
        return TokenTransfer(
            self._name,
            transfer.tx_hash or compute_tx_hash(self._name, transfer.block_number),
            0,
            transfer.block_number,
            _hash(self._name, f"block {transfer.block_number}"),
            transfer.sender,
            transfer.recipient,
            transfer.amount_units,
        )


def compute_tx_hash(chain: str, block_number: int) -> str:
    """The hash of the one transaction in a block."""
    return _hash(chain, f"arrival {block_number}")


def compute_unconfirmed_hash(chain: str, name: str) -> str:
    """The hash of the transaction of an unconfirmed deposit, which it keeps. `name` is used once."""
    return _hash(chain, f"unconfirmed arrival {name}")


def _hash(chain: str, text: str) -> str:
    """A hash in the chain's form over a text of ours."""
    message = f"merchant-wallet sandbox {chain} {text}".encode()
    return "0x" + keccak256(message).hex() if is_evm(chain) else hashlib.sha256(message).hexdigest()
