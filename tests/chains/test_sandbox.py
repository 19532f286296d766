"""The sandbox's chains with a ledger in memory and a clock that tests move."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merchant_wallet.base.addresses import SANDBOX_FAILING, SANDBOX_SLOW
from merchant_wallet.chains.protocol import (
    FinalRecord,
    Payout,
    Pending,
    ProvenUnpaid,
    SignedTransfer,
    Transfer,
    Verdict,
)
from merchant_wallet.chains.sandbox.chain import AcceptedTransfer, SandboxChain
from merchant_wallet.chains.sandbox.recipients import BEHAVIOURS, PROCESSING, RECIPIENTS

RECIPIENT = bytes(range(1, 21))
CHAINS = pytest.mark.parametrize("name", ["ERC20", "TRC20"])


@dataclass
class MemoryLedger:
    """Accepted transfers, by chain and hash."""

    accepted: dict[tuple[str, str], AcceptedTransfer] = field(default_factory=dict)

    async def accept(self, accepted: AcceptedTransfer) -> None:
        self.accepted.setdefault((accepted.transfer.chain, accepted.tx_hash), accepted)

    async def find(self, chain: str, tx_hash: str) -> AcceptedTransfer | None:
        return self.accepted.get((chain, tx_hash))


@dataclass
class Clock:
    now_ms: int = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def chain_of(
    name: str, ledger: MemoryLedger | None = None, clock: Callable[[], int] | None = None, seed: bytes = b"s"
) -> SandboxChain:
    return SandboxChain(name, ledger or MemoryLedger(), seed=seed, confirm_ms=1_500, clock=clock or Clock())


def payout_on(
    name: str, recipient: bytes = RECIPIENT, payout_id: int = 7, amount_units: int = 9_000_000
) -> Payout:
    return Payout(payout_id, Transfer(name, "USDT", recipient, amount_units))


async def judge_over_time(name: str, recipient: bytes, moments_ms: list[int]) -> list[Verdict]:
    """The verdicts on one transfer at these times after its broadcast."""
    clock = Clock()
    chain = chain_of(name, clock=clock)
    signed = await chain.build(payout_on(name, recipient), [])
    await chain.broadcast(signed.raw)
    start_ms, verdicts = clock.now_ms, []
    for moment_ms in moments_ms:
        clock.now_ms = start_ms + moment_ms
        verdicts.append(await chain.judge(payout_on(name, recipient), [signed]))
    return verdicts


@CHAINS
def test_a_transfer_becomes_final_by_itself(name: str) -> None:
    verdicts = asyncio.run(judge_over_time(name, RECIPIENT, [0, 1_499, 1_500]))
    signed = asyncio.run(chain_of(name).build(payout_on(name), []))
    assert verdicts == [Pending(1_500), Pending(1), FinalRecord(payout_on(name).transfer, signed.tx_hash)]


@CHAINS
def test_a_transfer_to_the_failing_address_is_proven_unpaid(name: str) -> None:
    pending, unpaid = asyncio.run(judge_over_time(name, SANDBOX_FAILING, [1_499, 1_500]))
    assert pending == Pending(1)
    assert isinstance(unpaid, ProvenUnpaid)


@CHAINS
def test_a_transfer_to_the_slow_address_takes_a_minute(name: str) -> None:
    verdicts = asyncio.run(judge_over_time(name, SANDBOX_SLOW, [59_999, 60_000]))
    slow = payout_on(name, SANDBOX_SLOW)
    signed = asyncio.run(chain_of(name).build(slow, []))
    assert verdicts == [Pending(1), FinalRecord(slow.transfer, signed.tx_hash)]


def test_a_transfer_that_takes_long_is_looked_at_again_soon_because_a_test_may_end_it() -> None:
    verdicts = asyncio.run(judge_over_time("ERC20", PROCESSING, [0, 16_000, 10**9]))
    assert verdicts == [Pending(500), Pending(2_000), Pending(125_000_000)]


def test_the_special_recipients_are_addresses_that_nobody_has() -> None:
    ends = [*(f"57a7{status}" for status in range(7)), "dead", "beef", "5c4ee1", "5c4ee6"]
    assert [recipient.hex().lstrip("0") for recipient in BEHAVIOURS] == ends
    assert [each.status for each in RECIPIENTS[:7]] == list(range(7))


def test_a_hash_that_was_never_broadcast_stays_pending() -> None:
    async def scenario() -> Verdict:
        chain = chain_of("ERC20")
        signed = await chain.build(payout_on("ERC20"), [])
        return await chain.judge(payout_on("ERC20"), [signed])

    assert asyncio.run(scenario()) == Pending(None)


@CHAINS
def test_the_wallet_holds_enough_for_everything_and_has_no_nonces(name: str) -> None:
    chain = chain_of(name)
    assert asyncio.run(chain.funds()) > 10**9 * 10**6
    assert len({chain.wallet, chain_of(name, seed=b"another").wallet, chain_of("XX").wallet}) == 3
    assert (len(chain.wallet), chain.has_nonces) == (20, False)
    for asked in (chain.next_nonce(None, is_first=True), chain.build_cancel(0, [])):
        with pytest.raises(ValueError, match="has no nonces"):
            asyncio.run(asked)


def test_what_has_been_signed_is_never_signed_anew() -> None:
    async def scenario() -> SignedTransfer:
        chain = chain_of("ERC20")
        first = await chain.build(payout_on("ERC20"), [])
        return await chain.build(payout_on("ERC20"), [first])

    with pytest.raises(ValueError, match="never expire"):
        asyncio.run(scenario())


def test_bytes_sent_again_later_change_nothing() -> None:
    async def scenario() -> None:
        ledger, clock = MemoryLedger(), Clock()
        chain = chain_of("TRC20", ledger, clock)
        signed = await chain.build(payout_on("TRC20"), [])
        await chain.broadcast(signed.raw)
        first = dict(ledger.accepted)
        clock.now_ms += 1_000
        await chain.broadcast(signed.raw)
        assert ledger.accepted == first

    asyncio.run(scenario())


def test_hashes_have_the_form_of_their_chain() -> None:
    erc20 = asyncio.run(chain_of("ERC20").build(payout_on("ERC20"), [])).tx_hash
    trc20 = asyncio.run(chain_of("TRC20").build(payout_on("TRC20"), [])).tx_hash
    assert erc20.startswith("0x")
    assert [len(bytes.fromhex(text)) for text in (erc20[2:], trc20)] == [32, 32]


@CHAINS
@pytest.mark.parametrize("position", [0, 31, 32, -1])
def test_bytes_that_were_changed_or_signed_under_another_seed_are_refused(name: str, position: int) -> None:
    signed = asyncio.run(chain_of(name).build(payout_on(name), []))
    changed = bytearray(signed.raw)
    changed[position] ^= 1
    with pytest.raises(ValueError, match="not signed"):
        asyncio.run(chain_of(name).broadcast(bytes(changed)))
    with pytest.raises(ValueError, match="not signed"):
        asyncio.run(chain_of(name, seed=b"another").broadcast(signed.raw))


def test_a_chain_neither_builds_nor_takes_what_belongs_to_another() -> None:
    with pytest.raises(ValueError, match="TRC20"):
        asyncio.run(chain_of("ERC20").build(payout_on("TRC20"), []))
    signed = asyncio.run(chain_of("TRC20").build(payout_on("TRC20"), []))
    with pytest.raises(ValueError, match="not signed"):
        asyncio.run(chain_of("ERC20").broadcast(signed.raw))


PAYOUTS = st.builds(
    payout_on,
    st.just("ERC20"),
    recipient=st.binary(min_size=20, max_size=20).filter(lambda recipient: recipient not in BEHAVIOURS),
    payout_id=st.integers(1, 2**53 - 1),
    amount_units=st.integers(1, 2**62),
)


@given(PAYOUTS, PAYOUTS)
def test_bytes_say_exactly_what_was_ordered_and_no_two_payouts_share_them(one: Payout, other: Payout) -> None:
    async def scenario() -> None:
        ledger = MemoryLedger()
        chain = chain_of("ERC20", ledger)
        signed, again, second = [await chain.build(payout, []) for payout in (one, one, other)]
        assert signed == again
        assert (signed == second) == (one == other)
        await chain.broadcast(signed.raw)
        assert ledger.accepted["ERC20", signed.tx_hash].transfer == one.transfer

    asyncio.run(scenario())
