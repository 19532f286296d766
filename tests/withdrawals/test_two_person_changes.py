"""Resuming a chain's payouts lifts what was stopped at the time of the proposal, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.changes import STALE, Connection, Decided, ProposedChange
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.base import db
from merchant_wallet.base.units import DAY_MS
from merchant_wallet.hot_wallet import stops, store
from merchant_wallet.hot_wallet.stops import list_stops, stop_payouts
from merchant_wallet.withdrawals import acts, two_person_changes

ANN, BEN = Person("operator:ann", "192.0.2.1"), Person("operator:ben", "192.0.2.2")
WALLET = bytes(range(20))


async def propose(conn: Connection, at_ms: int = 10) -> ProposedChange:
    before = await stops.read_stopped(conn, "TRC20")
    return await changes.propose(
        conn,
        acts.THAW,
        acts.format_subject("TRC20"),
        before,
        acts.describe_resumed(),
        "the node is back",
        person=ANN,
        at_ms=at_ms,
        lasts_ms=DAY_MS,
    )


async def accept(conn: Connection, proposed: ProposedChange, at_ms: int = 20) -> Decided:
    kind = two_person_changes.make_kinds()[acts.THAW]
    return await changes.accept(conn, kind, proposed.proposal_no, person=BEN, at_ms=at_ms, roles=["operator"])


@asynccontextmanager
async def stopped(database_url: str) -> AsyncIterator[Connection]:
    """A stopped chain whose hot wallet is frozen too, and another chain that is stopped."""
    async with await db.connect(database_url) as conn:
        await store.open_wallet(conn, "TRC20", WALLET, 1)
        await stops.freeze_wallet(conn, "TRC20", "a stranger paid", 3)
        await stop_payouts(conn, "TRC20", "cli:ann", "the node lies", 1)
        await stop_payouts(conn, "TRC20", "reconciliation", "12 USDT are missing", 2)
        await stop_payouts(conn, "ERC20", "cli:ann", "the same node", 1)
        yield conn


def test_a_second_person_resumes_what_was_stopped_by_whomever_and_thaws_the_wallet(database_url: str) -> None:
    async def scenario() -> None:
        async with stopped(database_url) as conn:
            proposed = await propose(conn)
            assert proposed.before["stoppedBy"] == (
                "cli:ann: the node lies; reconciliation: 12 USDT are missing;"
                " frozen hot wallet: a stranger paid"
            )
            assert len(await list_stops(conn)) == 3, "a proposal resumes nothing"
            assert (await accept(conn, proposed)).change.state == "accepted"
            assert [stop.chain for stop in await list_stops(conn)] == ["ERC20"]
            assert not await stops.is_frozen(conn, "TRC20")
            assert (await stops.read_stopped(conn, "TRC20"))["stoppedBy"] is None

    asyncio.run(scenario())


def test_a_stop_that_came_after_the_proposal_keeps_payouts_stopped(database_url: str) -> None:
    async def scenario() -> None:
        async with stopped(database_url) as conn:
            proposed = await propose(conn)
            await stop_payouts(conn, "TRC20", "cli:carol", "I see something", 15)
            done = await accept(conn, proposed)
            assert (done.change.state, done.change.outcome) == ("failed", STALE)
            assert len(await list_stops(conn)) == 4
            assert await stops.is_frozen(conn, "TRC20")

    asyncio.run(scenario())


def test_a_stop_that_was_made_anew_meanwhile_is_another_one(database_url: str) -> None:
    async def scenario() -> None:
        async with stopped(database_url) as conn:
            proposed = await propose(conn)
            seen = await stops.read_stopped(conn, "TRC20")
            one = [stop for stop in seen["stops"] if stop["actor"] == "reconciliation"]
            await stops.resume_payouts(conn, "TRC20", {"stops": one, "frozenMs": None})
            await stop_payouts(conn, "TRC20", "reconciliation", "12 USDT are missing", 16)
            assert (await accept(conn, proposed)).change.state == "failed"
            assert len(await list_stops(conn)) == 3

    asyncio.run(scenario())


def test_a_wallet_that_froze_meanwhile_stays_frozen(database_url: str) -> None:
    async def scenario() -> None:
        async with stopped(database_url) as conn:
            await stops.thaw_wallet(conn, "TRC20")
            proposed = await propose(conn)
            await stops.freeze_wallet(conn, "TRC20", "another stranger", 17)
            assert (await accept(conn, proposed)).change.state == "failed"
            assert await stops.is_frozen(conn, "TRC20")

    asyncio.run(scenario())
