"""The sandbox chains as deposits read them: one block for each transfer, final after `confirm_ms`."""

import asyncio
from dataclasses import dataclass, field

import pytest

from merchant_wallet.chains.protocol import Block
from merchant_wallet.chains.sandbox.reader import (
    MAX_NUMBER,
    SandboxDeposit,
    SandboxReader,
    UnconfirmedDeposit,
    compute_tx_hash,
)

SENDER, RECIPIENT = b"s" * 20, b"r" * 20


@dataclass
class MemoryLedger:
    """A ledger in memory, for one chain."""

    transfers: list[SandboxDeposit] = field(default_factory=list)
    waiting: list[UnconfirmedDeposit] = field(default_factory=list)

    def wait(self, tx_hash: str, units: int, *, is_gone: bool = False) -> None:
        number = len(self.waiting) + 1
        self.waiting.append(UnconfirmedDeposit(number, tx_hash, SENDER, RECIPIENT, units, 2500, is_gone))

    def add(self, units: int, at_ms: int, recipient: bytes = RECIPIENT) -> None:
        self.transfers.append(SandboxDeposit(len(self.transfers) + 1, SENDER, recipient, units, at_ms))

    async def last(self, chain: str, until_ms: int = MAX_NUMBER) -> SandboxDeposit | None:
        return next((each for each in reversed(self.transfers) if each.at_ms <= until_ms), None)

    async def page(self, chain: str, first: int, last: int) -> list[SandboxDeposit]:
        return [each for each in self.transfers if first <= each.block_number <= last]

    async def unconfirmed(self, chain: str) -> list[UnconfirmedDeposit]:
        return self.waiting

    async def received(self, chain: str, recipient: bytes, last: int) -> int:
        mine = [e for e in self.transfers if e.recipient == recipient and e.block_number <= last]
        return sum(each.amount_units for each in mine)


@pytest.fixture
def ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.add(5, 1000)
    ledger.add(7, 2000)
    ledger.add(9, 2000, SENDER)
    return ledger


def reader(ledger: MemoryLedger, now_ms: int = 3000, chain: str = "ERC20") -> SandboxReader:
    return SandboxReader(chain, ledger, confirm_ms=1500, clock=lambda: now_ms)


def test_blocks_follow_each_other_from_the_first(ledger: MemoryLedger) -> None:
    async def read() -> list[Block | None]:
        return [await reader(ledger).block(number) for number in range(5)]

    genesis, *blocks, none = asyncio.run(read())
    assert none is None
    assert genesis is not None
    assert (genesis.number, genesis.time_ms) == (0, 0)
    for before, block in zip([genesis, *blocks], blocks, strict=False):
        assert before is not None
        assert block is not None
        assert block.parent_hash == before.hash


@pytest.mark.parametrize(("now_ms", "final"), [(2499, 0), (2500, 1), (3499, 1), (3500, 3)])
def test_a_block_is_final_once_its_time_has_passed(ledger: MemoryLedger, now_ms: int, final: int) -> None:
    assert asyncio.run(reader(ledger, now_ms).head()).number == 3
    assert asyncio.run(reader(ledger, now_ms).final()).number == final


def test_an_empty_chain_has_its_first_block() -> None:
    assert asyncio.run(reader(MemoryLedger()).head()) == asyncio.run(reader(MemoryLedger()).final())


def test_transfers_are_in_the_blocks_that_the_chain_shows(ledger: MemoryLedger) -> None:
    async def read() -> None:
        chain = reader(ledger)
        for transfer in await chain.transfers(1, 3):
            block = await chain.block(transfer.block_number)
            assert block is not None
            assert transfer.block_hash == block.hash
        assert [each.amount_units for each in await chain.transfers(2, 3)] == [7, 9]

    asyncio.run(read())


def test_what_an_address_has_got_is_its_balance(ledger: MemoryLedger) -> None:
    async def read() -> None:
        chain = reader(ledger)
        assert await chain.balance(RECIPIENT) == 12
        assert await chain.balance(RECIPIENT, await chain.block(1)) == 5
        assert await chain.coin_balance(RECIPIENT) == 0
        await chain.close()

    asyncio.run(read())


def test_hashes_have_the_form_of_their_chain_and_are_all_different(ledger: MemoryLedger) -> None:
    erc20 = [compute_tx_hash("ERC20", number) for number in range(3)]
    trc20 = [compute_tx_hash("TRC20", number) for number in range(3)]
    assert all(name.startswith("0x") and len(name) == 66 for name in erc20)
    assert all(len(name) == 64 for name in trc20)
    assert len({*erc20, *trc20}) == 6


def test_unconfirmed_deposits_are_in_blocks_above_all_others_and_never_final(ledger: MemoryLedger) -> None:
    ledger.wait("0xa", 11)
    ledger.wait("0xb", 13)

    async def read() -> None:
        chain = reader(ledger, now_ms=10**9)
        head, final = await chain.head(), await chain.final()
        assert (head.number, final.number) == (5, 3)
        below = await chain.block(4)
        assert below is not None
        assert (below.parent_hash, head.parent_hash) == (final.hash, below.hash)
        assert [(e.tx_hash, e.block_number) for e in await chain.transfers(4, 9)] == [("0xa", 4), ("0xb", 5)]

    asyncio.run(read())


def test_a_new_deposit_moves_the_unconfirmed_ones_up_which_is_another_branch(ledger: MemoryLedger) -> None:
    ledger.wait("0xa", 11)

    async def read() -> None:
        chain = reader(ledger)
        before = await chain.head()
        ledger.add(1, 2600)
        after, moved = await chain.block(4), await chain.head()
        assert after is not None
        assert after.hash != before.hash
        assert moved.number == 5
        assert [each.block_number for each in await chain.transfers(5, 5)] == [5]

    asyncio.run(read())


def test_the_block_of_a_deposit_that_is_gone_stays_with_another_hash(ledger: MemoryLedger) -> None:
    ledger.wait("0xa", 11)

    async def read() -> None:
        chain = reader(ledger)
        before = await chain.head()
        ledger.waiting.clear()
        ledger.wait("0xa", 11, is_gone=True)
        after = await chain.head()
        assert after.number == before.number
        assert after.hash != before.hash
        assert await chain.transfers(4, 4) == []

    asyncio.run(read())
