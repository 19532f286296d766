"""An accepted adjustment is carried out once, also after a crash or while the book is away."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.approvals.proposal_scene import BOB, ROLES, ProposalScene, refusal, run_story
from tests.crash.shop import COIN, FUNDS
from tests.waits import wait_until_blocked

from merchant_wallet.approvals import proposals
from merchant_wallet.approvals.decisions import ProposalRefusal, ProposalRefused
from merchant_wallet.audit import records as audit
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Adjust, Command, Submission
from merchant_wallet.book.errors import Unavailable
from merchant_wallet.book.outcomes import Adjusted, Outcome
from merchant_wallet.book.rules.operators import LAPSED
from merchant_wallet.book.writer import Writer
from merchant_wallet.processes.worker import make_home_tasks

DYING = Path(__file__).with_name("dying_operator.py")


@pytest.mark.parametrize(("moment", "entries"), [("before", 0), ("after", 1)])
def test_whoever_is_killed_in_the_middle_of_it_moves_nothing_twice(
    database_url: str, moment: str, entries: int
) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        died = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, str(DYING), database_url, str(no), moment],
            timeout=60,
            check=False,
        )
        assert died.returncode == -signal.SIGKILL
        assert len(await scene.entries()) == entries
        later_ms = 2**45
        (left,) = await proposals.list_unfinished(scene.conn, now_ms=later_ms)
        assert (left.proposal_no, left.state, left.entry_id) == (no, "accepted", None)
        assert "decided already" in await refusal(
            proposals.take(scene.conn, no, "operator:eve", later_ms, roles=ROLES)
        )
        done = [await proposals.carry_out(scene.conn, scene.ask, no, roles=ROLES) for _ in range(2)]
        assert done[0] == done[1]
        assert [done[0].entry_id] == await scene.entries()
        assert await scene.kfb_units() == FUNDS + 5 * COIN
        assert await proposals.list_unfinished(scene.conn, now_ms=later_ms) == []

    run_story(database_url, story)


def test_the_workers_finish_what_was_accepted_and_left(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        await proposals.take(scene.conn, no, BOB, 2000, roles=ROLES)
        finish = make_home_tasks(scene.writer, [])["proposals"]
        await finish(scene.conn, 2000)
        assert await scene.entries() == [], "whoever accepted it may still be at it"
        await finish(scene.conn, 2001 + proposals.UNFINISHED_AFTER_MS)
        await finish(scene.conn, 2002 + proposals.UNFINISHED_AFTER_MS)
        done = await proposals.show(scene.conn, no)
        assert done is not None
        assert [done.entry_id] == await scene.entries()
        (told,) = await audit.list_entries(scene.conn)
        assert (told.actor, told.action, told.subject) == (
            "worker",
            "adjustment.carry_out",
            f"proposal {no}",
        )
        assert told.after == {"state": "accepted", "entryId": done.entry_id, "outcome": None}

    run_story(database_url, story)


def test_a_proposal_that_the_workers_cannot_finish_keeps_no_other_waiting(database_url: str) -> None:
    class Lame(Writer):
        """A writer that fails commands about five coins."""

        def submit(self, merchant_id: int, submission: Submission) -> "asyncio.Future[Outcome]":
            assert isinstance(submission.command, Adjust)
            if submission.command.signed_units == 5 * COIN:
                raise Unavailable("queue full")
            return super().submit(merchant_id, submission)

    async def story(scene: ProposalScene) -> None:
        stuck, free = [(await scene.propose(units)).proposal_no for units in (5 * COIN, 7 * COIN)]
        for number in (stuck, free):
            await proposals.take(scene.conn, number, BOB, 2000, roles=ROLES)
        lame = Lame(database_url)
        finish = make_home_tasks(lame, [])["proposals"]
        with pytest.raises(ExceptionGroup, match="proposals"):
            await finish(scene.conn, 2001 + proposals.UNFINISHED_AFTER_MS)
        await lame.close()
        assert len(await scene.entries()) == 1
        (left,) = await proposals.list_unfinished(scene.conn, now_ms=2001 + proposals.UNFINISHED_AFTER_MS)
        assert left.proposal_no == stuck

    run_story(database_url, story)


@pytest.mark.parametrize("is_made", [False, True])
def test_what_a_disabled_operator_had_accepted_is_not_carried_out_unless_it_was_before(
    database_url: str, is_made: bool
) -> None:
    async def story(scene: ProposalScene) -> None:
        await hire(scene, "bob")
        taken = await proposals.take(scene.conn, (await scene.propose()).proposal_no, BOB, 2000, roles=ROLES)
        if is_made:
            await scene.ask(scene.shop.merchant_id, proposals.command_of(taken))
        await scene.conn.execute("update operator set status = 'disabled' where name = 'bob'")
        await make_home_tasks(scene.writer, [])["proposals"](scene.conn, 2001 + proposals.UNFINISHED_AFTER_MS)
        done = await proposals.show(scene.conn, taken.proposal_no)
        assert done is not None
        assert (done.state, done.outcome) == (("accepted", None) if is_made else ("failed", LAPSED.msg))
        assert ([] if done.entry_id is None else [done.entry_id]) == await scene.entries()
        assert await scene.kfb_units() == FUNDS + (5 * COIN if is_made else 0)

    run_story(database_url, story)


def test_operator_disabled_while_his_acceptance_waits_for_a_lock_credits_nothing(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        await hire(scene, "bob")
        no = (await scene.propose()).proposal_no
        async with await connect(database_url) as other, await connect(database_url) as late:
            async with other.transaction():
                await other.execute("select 1 from proposal where proposal_no = %s for update", [no])
                accepting = asyncio.create_task(proposals.accept(late, scene.ask, no, BOB, 2000, roles=ROLES))
                await wait_until_blocked(scene.conn, late.info.backend_pid, accepting)
                await scene.conn.execute("update operator set status = 'disabled' where name = 'bob'")
            with pytest.raises(ProposalRefused) as refused:
                await accepting
        assert refused.value.refusal is ProposalRefusal.DECIDER_CHANGED
        assert await scene.entries() == []

    run_story(database_url, story)


async def hire(scene: ProposalScene, name: str) -> None:
    """An operator with this name."""
    await scene.conn.execute(
        "insert into operator (name, role, password_hash, created_ms)"
        " values (%s, 'operator', '$argon2id$', 0)",
        [name],
    )


def test_while_the_book_is_away_a_proposal_stays_accepted(database_url: str) -> None:
    async def away(merchant_id: int, command: Command) -> Outcome:
        raise Unavailable("stopping")

    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        with pytest.raises(Unavailable):
            await proposals.accept(scene.conn, away, no, BOB, 100_000, roles=ROLES)
        shown = await proposals.show(scene.conn, no)
        assert shown is not None
        assert shown.is_unfinished
        assert (
            await proposals.list_unfinished(scene.conn, now_ms=100_000 + proposals.UNFINISHED_AFTER_MS) == []
        )
        assert (
            len(await proposals.list_unfinished(scene.conn, now_ms=100_001 + proposals.UNFINISHED_AFTER_MS))
            == 1
        )
        assert (await proposals.carry_out(scene.conn, scene.ask, no, roles=ROLES)).entry_id is not None

    run_story(database_url, story)


def test_a_late_entry_of_the_book_overrules_a_recorded_refusal(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        taken = await proposals.take(scene.conn, (await scene.propose()).proposal_no, BOB, 2000, roles=ROLES)
        answer = await scene.ask(scene.shop.merchant_id, proposals.command_of(taken))
        assert isinstance(answer, Adjusted)
        assert await proposals.note_outcome(scene.conn, taken, Refusal(42200, "no"))
        assert await proposals.note_outcome(scene.conn, taken, answer)
        assert not await proposals.note_outcome(scene.conn, taken, Refusal(42200, "no"))
        shown = await proposals.show(scene.conn, taken.proposal_no)
        assert shown is not None
        assert (shown.state, shown.entry_id, shown.outcome) == ("accepted", answer.entry_id, None)

    run_story(database_url, story)
