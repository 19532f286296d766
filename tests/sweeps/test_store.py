"""The stored state of sweeps: one open sweep for an address, nonces and bytes stored together or not at
all.
"""

import asyncio
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.sweeps.sweep_scene import NOW_MS, POLICY, USDT, SweepScene, address_of
from tests.waits import wait_until_blocked

from merchant_wallet.audit.rollback.evidence import RollbackEvidence, record_evidence
from merchant_wallet.base.chains import ERC20
from merchant_wallet.chains.protocol import Blocked, Obstacle, SignedTransfer
from merchant_wallet.chains.signer import Source
from merchant_wallet.chains.sweeps import Quote
from merchant_wallet.custody.sweeps import store
from merchant_wallet.custody.sweeps.plan import PlannedSweep, SweepCandidate, Terms, make_plan
from merchant_wallet.custody.sweeps.store import Sweep, SweepMovedOn
from merchant_wallet.hot_wallet import nonces
from merchant_wallet.hot_wallet.store import open_wallet

if TYPE_CHECKING:
    from tests.sweeps.conftest import InScene

WALLET = bytes(range(40, 60))
GWEI = 10**9


class FakeDraft:
    """Signs without a key and records the nonces that it gets, or refuses."""

    def __init__(self, name: str, refusal: Exception | None = None) -> None:
        self.name = name
        self.refusal = refusal
        self.nonces: list[int | None] = []

    async def sign(self, nonce: int | None) -> SignedTransfer:
        self.nonces.append(nonce)
        if self.refusal is not None:
            raise self.refusal
        return SignedTransfer(f"{self.name} at {nonce}".encode(), f"0x{self.name}{nonce}", 7)


class SlowDraft(FakeDraft):
    """Signs when it is told to."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def sign(self, nonce: int | None) -> SignedTransfer:
        self.begun.set()
        await self.may_end.wait()
        return await super().sign(nonce)


def propose(index: int, *, held: int = 0, units: int = 70 * USDT) -> PlannedSweep:
    quote = Quote(held, 100_000 * GWEI, 20_000 * GWEI)
    candidate = SweepCandidate(ERC20, address_of(index), 1001, Source(3, 0, index), units, quote)
    [planned] = make_plan([candidate], POLICY[ERC20])
    assert planned.verdict == "sweep"
    return planned


async def begin(scene: SweepScene, *indexes: int, held: int = 0) -> list[Sweep]:
    await open_wallet(scene.connection, ERC20, WALLET, NOW_MS)
    await nonces.record_count(scene.connection, ERC20, WALLET, 4, None, NOW_MS)
    for index in indexes:
        await open_one(scene, index, held=held)
    return await store.list_open(scene.connection, ERC20)


async def open_one(scene: SweepScene, index: int, *, held: int = 0, max_concurrent: int = 10) -> int | None:
    return await store.open_sweep(
        scene.connection,
        propose(index, held=held),
        WALLET,
        coin_price_units=3_000 * USDT,
        max_concurrent=max_concurrent,
        actor="tests",
        now_ms=NOW_MS,
    )


async def sign(scene: SweepScene, sweep: Sweep, draft: FakeDraft, *, attempt_no: int = 1) -> SignedTransfer:
    return await store.sign(
        scene.connection,
        sweep,
        draft,
        attempt_no=attempt_no,
        has_nonces=True,
        token_nonce=9,
        now_ms=NOW_MS,
    )


def test_an_address_has_one_sweep_at_a_time_and_a_chain_so_many(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        await begin(scene, 0)
        assert await open_one(scene, 0) is None
        assert await open_one(scene, 1, max_concurrent=1) is None
        assert await open_one(scene, 1, max_concurrent=2) is not None
        assert await store.count_open(scene.connection, ERC20) == 2

    in_scene(scenario)


def test_who_read_an_older_version_signs_nothing_and_takes_no_nonce(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        await sign(scene, sweep, FakeDraft("first"))
        late = FakeDraft("late")
        with pytest.raises(SweepMovedOn):
            await sign(scene, sweep, late)
        with pytest.raises(SweepMovedOn):
            await store.fail(scene.connection, sweep, "an old proof", None, NOW_MS)
        with pytest.raises(SweepMovedOn):
            await store.end_tx(scene.connection, sweep, "0x1", 1, NOW_MS)
        assert late.nonces == []
        assert await scene.rows("select nonce, purpose from wallet_nonce") == [(4, "top_up")]
        assert await scene.rows("select tx_hash from sweep_signed") == [("0xfirst4",)]

    in_scene(scenario)


@pytest.mark.parametrize("refusal", [Blocked(Obstacle("limit", "no")), ConnectionError("gone")])
def test_a_signature_that_fails_takes_no_nonce(in_scene: "InScene", refusal: Exception) -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        with pytest.raises(type(refusal)):
            await sign(scene, sweep, FakeDraft("refused", refusal))
        assert await scene.rows("select nonce from wallet_nonce") == []
        assert await scene.rows("select next_nonce from hot_wallet") == [(4,)]
        assert await store.list_open(scene.connection, ERC20) == [sweep]

    in_scene(scenario)


def test_many_at_once_get_different_nonces(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        sweeps = await begin(scene, *range(5))
        drafts = [FakeDraft(str(sweep.sweep_id)) for sweep in sweeps]

        async def sign_alone(sweep: Sweep, draft: FakeDraft) -> None:
            async with await scene.connect() as connection:
                await store.sign(
                    connection,
                    sweep,
                    draft,
                    attempt_no=1,
                    has_nonces=True,
                    token_nonce=None,
                    now_ms=NOW_MS,
                )

        await asyncio.gather(*map(sign_alone, sweeps, drafts))
        assert sorted(draft.nonces for draft in drafts) == [[4], [5], [6], [7], [8]]

    in_scene(scenario)


def test_coin_that_other_top_ups_may_take_is_reserved(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        first, second = await begin(scene, 0, 1)
        assert (first.reserved, second.reserved) == (0, 2 * first.top_up)
        await sign(scene, first, FakeDraft("first"))
        [first, second] = await store.list_open(scene.connection, ERC20)
        await store.end_tx(scene.connection, first, "0xfirst4", 5, NOW_MS)
        [first, second] = await store.list_open(scene.connection, ERC20)
        assert (first.step, second.reserved) == ("token", 0)

    in_scene(scenario)


def test_a_fault_of_the_wallet_freezes_it_with_the_sweep(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        await sign(scene, sweep, FakeDraft("first"))
        [sweep] = await store.list_open(scene.connection, ERC20)
        await store.fail(scene.connection, sweep, "dead", 3, NOW_MS, wallet_fault="a stranger's nonce")
        assert await scene.rows("select frozen_cause from hot_wallet") == [("a stranger's nonce",)]
        [shown] = await scene.shown()
        assert (shown.step, shown.cause, shown.top_up_fee, shown.token_fee) == ("failed", "dead", 3, None)
        await open_one(scene, 1, held=10**18)
        [token] = await store.list_open(scene.connection, ERC20)
        with pytest.raises(Blocked, match="frozen"):
            await sign(scene, token, FakeDraft("token"))

    in_scene(scenario)


def test_a_fault_of_a_former_wallet_freezes_no_other(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        await sign(scene, sweep, FakeDraft("first"))
        await scene.rows("update hot_wallet set address = %s", bytes(range(60, 80)))
        [sweep] = await store.list_open(scene.connection, ERC20)
        await store.fail(scene.connection, sweep, "dead", 3, NOW_MS, wallet_fault="a stranger's nonce")
        assert await scene.rows("select frozen_cause from hot_wallet") == [(None,)]
        assert await scene.steps() == ["failed"]

    in_scene(scenario)


def test_only_what_was_never_signed_is_dropped(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        signed, unsigned = await begin(scene, 0, 1)
        await sign(scene, signed, FakeDraft("first"))
        assert await store.drop_unsigned(scene.connection, ERC20, NOW_MS - 1, NOW_MS) == 0
        assert await store.drop_unsigned(scene.connection, ERC20, NOW_MS, NOW_MS) == 1
        assert await scene.steps() == ["top_up", "dropped"]
        # A worker that was about to sign it comes too late.
        with pytest.raises(SweepMovedOn):
            await sign(scene, unsigned, FakeDraft("late"))

    in_scene(scenario)


def test_a_sweep_that_is_being_signed_is_not_dropped(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        draft = SlowDraft("first")
        async with await scene.connect() as other:
            signing = asyncio.create_task(sign(scene, sweep, draft))
            await draft.begun.wait()
            dropping = asyncio.create_task(store.drop_unsigned(other, ERC20, NOW_MS, NOW_MS))
            async with await scene.connect() as watching:
                await wait_until_blocked(watching, other.info.backend_pid, dropping)
            draft.may_end.set()
            await signing
            assert await dropping == 0
        assert await scene.steps() == ["top_up"]

    in_scene(scenario)


def test_a_successor_is_never_dropped(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0, held=10**18)
        terms = Terms(5, 6, 7, sweep.budget_left)
        await store.continue_sweep(scene.connection, sweep, terms, "dear", NOW_MS)
        assert await store.drop_unsigned(scene.connection, ERC20, NOW_MS, NOW_MS) == 0
        assert await scene.steps() == ["continued", "top_up"]

    in_scene(scenario)


def test_a_top_up_whose_fee_no_node_knows_counts_with_its_limit(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        await sign(scene, sweep, FakeDraft("first"))
        [signed] = await store.list_open(scene.connection, ERC20)
        await store.end_tx(scene.connection, signed, "0xfirst4", None, NOW_MS)
        [(budget,)] = await scene.rows("select budget from sweep")
        [token] = await store.list_open(scene.connection, ERC20)
        assert (token.step, token.budget_left) == ("token", budget - sweep.top_up_fee_limit)

    in_scene(scenario)


def test_a_nonce_is_never_given_twice(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        [sweep] = await begin(scene, 0)
        await sign(scene, sweep, FakeDraft("first"))
        # As if an operator had thawed the wallet before the chain has our last transaction.
        await scene.rows("update hot_wallet set next_nonce = null")
        await nonces.record_count(scene.connection, ERC20, WALLET, 2, 5, NOW_MS)
        assert await scene.rows("select next_nonce from hot_wallet") == [(5,)]

    in_scene(scenario)


def test_the_database_itself_refuses_a_second_open_sweep_and_an_end_without_a_transaction(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: SweepScene) -> None:
        await begin(scene, 0)
        with pytest.raises(psycopg.errors.UniqueViolation):
            await scene.rows(
                "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet,"
                " amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms,"
                " step) select chain, address, merchant_id, account_no, branch, address_index, wallet,"
                " amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms,"
                " step from sweep"
            )
        for step in ("done", "token"):
            with pytest.raises(psycopg.errors.CheckViolation):
                await scene.rows("update sweep set step = %s, ended_ms = 1", step)

    in_scene(scenario)


def test_no_sweep_is_begun_signed_dropped_or_taken_further_while_a_sign_of_a_rollback_stands(
    in_scene: "InScene",
) -> None:
    async def scenario(scene: SweepScene) -> None:
        topped_up, direct = await begin(scene, 1), await begin(scene, 1, 2, held=10**18)
        assert (len(topped_up), len(direct)) == (1, 2)
        behind = RollbackEvidence(
            1001, "book", "behind", "the checkpoint saw 9 entries, the journal has 3", NOW_MS
        )
        await record_evidence(scene.connection, [behind])
        assert await store.list_open(scene.connection, ERC20) == []
        assert await open_one(scene, 3) is None
        for sweep in direct:
            draft = FakeDraft("x")
            with pytest.raises(SweepMovedOn):
                await sign(scene, sweep, draft)
            assert draft.nonces == []
        assert await store.drop_unsigned(scene.connection, ERC20, NOW_MS, NOW_MS) == 0
        await scene.connection.execute("delete from rollback_evidence")
        assert await store.list_open(scene.connection, ERC20) == direct
        assert (await sign(scene, direct[1], FakeDraft("x"))).raw == b"x at 9"

    in_scene(scenario)


def test_a_run_follows_the_successors_of_its_sweeps(in_scene: "InScene") -> None:
    async def scenario(scene: SweepScene) -> None:
        sweep_ids = []
        for index in range(2):
            address = await scene.deposit(index, 70 * USDT)
            rows = await scene.rows(
                "insert into sweep (chain, address, merchant_id, account_no, branch, address_index, wallet,"
                " amount, coin_price, top_up, top_up_fee_limit, token_fee_limit, budget, actor, opened_ms,"
                " step) values ('ERC20', %s, 1001, 0, 0, 0, %s, 70, 1, 0, 0, 1, 9, 'tests', 1, 'token')"
                " returning sweep_id",
                *(address, WALLET),
            )
            sweep_ids += [sweep_id for (sweep_id,) in rows]
        for _ in range(2):
            sweep = max(await store.list_open(scene.connection, ERC20), key=lambda one: one.sweep_id)
            await store.continue_sweep(scene.connection, sweep, Terms(0, 0, 1, 9), "dear", NOW_MS)
        shown = await scene.shown()
        assert store.find_successors({sweep_ids[1]}, shown) == {shown[2].sweep_id, shown[3].sweep_id}
        assert store.find_successors({sweep_ids[0]}, shown) == set()

    in_scene(scenario)
