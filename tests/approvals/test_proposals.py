"""Adjustments by two people: one proposes, another accepts, and the book moves the money once."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection, errors
from tests.approvals.proposer_changes import PROPOSER_CHANGES
from tests.crash.shop import ALICE, COIN, FUNDS, Shop, open_merchant, open_shop, run

from merchant_wallet.approvals import proposals
from merchant_wallet.approvals.decisions import ProposalRefusal, ProposalRefused
from merchant_wallet.approvals.proposals import Proposal
from merchant_wallet.audit import records as audit
from merchant_wallet.base.codes import Refusal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.base.settings import Settings
from merchant_wallet.book.commands import Adjust, Command, Submission
from merchant_wallet.book.outcomes import Adjusted, Balances, Outcome
from merchant_wallet.book.rules.operators import SAME_PERSON
from merchant_wallet.book.writer import Unavailable, Writer
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring
from merchant_wallet.processes.base import Base
from merchant_wallet.processes.worker import make_maintenance_tasks

ANN, BOB = "operator:ann", "operator:bob"
ROLES = ("owner", "operator")
DYING = Path(__file__).with_name("dying_operator.py")


class ProposalScene:
    """A shop, a connection to its database, and its book's writer."""

    def __init__(self, shop: Shop, conn: AsyncConnection, writer: Writer) -> None:
        self.shop = shop
        self.conn = conn
        self.writer = writer
        self.asked: list[Command] = []

    async def ask(self, merchant_id: int, command: Command) -> Outcome:
        """The book's answer. It also records what was asked."""
        assert merchant_id == self.shop.merchant_id
        self.asked.append(command)
        return await self.shop.ask(self.writer, command)

    async def propose(
        self, units: int = 5 * COIN, reason: str = "goodwill, ticket 12", **more: Any
    ) -> Proposal:
        """Ann's proposal to credit the merchant's KFB."""
        given = {"proposed_by": ANN, "at_ms": 1000, "currency": KFB, **more}
        currency = given.pop("currency")
        return await proposals.propose(self.conn, self.shop.merchant_id, currency, units, reason, **given)

    async def entries(self) -> list[int]:
        """The entries with a proposal's name."""
        rows = await self.shop.rows(
            "select entry_id from entry where mc_order_id like 'proposal-%%' order by 1"
        )
        return [row[0] for row in rows]

    async def kfb_units(self) -> int:
        """The merchant's KFB."""
        rows = await self.shop.rows(
            "select balance from account where kind = 'merchant' and currency = 'KFB'"
        )
        return int(rows[0][0])


@asynccontextmanager
async def open_scene(url: str) -> AsyncIterator[ProposalScene]:
    shop = await open_shop(url)
    writer = Writer(url)
    async with await connect(url) as conn:
        yield ProposalScene(shop, conn, writer)
    await writer.close()
    await shop.verify()


def run_story(url: str, story: Any) -> None:
    """Run a scenario, then verify the book."""

    async def scenario() -> None:
        async with open_scene(url) as scene:
            await story(scene)

    run(scenario())


async def refusal(decision: Coroutine[Any, Any, object]) -> str:
    """The sentence of a refused decision."""
    with pytest.raises(ProposalRefused) as caught:
        await decision
    return str(caught.value)


def test_what_one_proposes_and_another_accepts_moves_once(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        proposed = await scene.propose(ext_user_id=ALICE)
        assert await proposals.list_open(scene.conn) == [proposed]
        assert await scene.shop.alice_units() == 0
        accepted = await proposals.accept(scene.conn, scene.ask, proposed.proposal_no, BOB, 2000, roles=ROLES)
        assert (accepted.state, accepted.decided_by, accepted.decided_ms) == ("accepted", BOB, 2000)
        assert [accepted.entry_id] == await scene.entries()
        assert await scene.shop.alice_units() == 5 * COIN
        assert await proposals.list_open(scene.conn) == []
        assert await proposals.list_decided(scene.conn) == [accepted]
        assert await proposals.carry_out(scene.conn, scene.ask, proposed.proposal_no) == accepted
        assert len(scene.asked) == 1
        facts = await scene.shop.rows("select facts from entry where entry_id = %s", accepted.entry_id)
        assert '"proposedBy":"operator:ann"' in facts[0][0]
        assert '"actor":"operator:bob"' in facts[0][0]

    run_story(database_url, story)


@pytest.mark.parametrize("again", [ANN, "cli:ann", "operator:Ann"])
def test_nobody_accepts_what_he_proposed_himself(database_url: str, again: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        assert "Another person" in await refusal(
            proposals.accept(scene.conn, scene.ask, no, again, 2000, roles=ROLES)
        )
        assert scene.asked == []
        statement = "update proposal set state = 'accepted', decided_by = %s, decided_ms = 2000"
        with pytest.raises(errors.CheckViolation):
            await scene.shop.rows(statement, again)
        command = Adjust(KFB, COIN, "by hand", again, None, "proposal-9", ANN)
        assert await scene.ask(scene.shop.merchant_id, command) == SAME_PERSON

    run_story(database_url, story)


def test_a_proposal_is_decided_once(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        await proposals.accept(scene.conn, scene.ask, no, BOB, 2000, roles=ROLES)
        for decision in (
            proposals.accept(scene.conn, scene.ask, no, "operator:eve", 3000, roles=ROLES),
            proposals.refuse(scene.conn, no, "operator:eve", 3000, "no"),
            proposals.withdraw(scene.conn, no, ANN, 3000),
        ):
            assert "decided already: accepted by operator:bob" in await refusal(decision)
        assert await scene.kfb_units() == FUNDS + 5 * COIN

    run_story(database_url, story)


def test_of_many_who_accept_at_once_one_does(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no

        async def accept(name: str) -> str:
            async with await connect(database_url) as conn:
                try:
                    done = await proposals.accept(conn, scene.ask, no, name, 2000, roles=ROLES)
                except ProposalRefused:
                    return "refused"
                return done.state

        answers = await asyncio.gather(*(accept(f"operator:o{number}") for number in range(5)))
        assert sorted(answers) == ["accepted", *["refused"] * 4]
        assert await scene.kfb_units() == FUNDS + 5 * COIN

    run_story(database_url, story)


def test_a_proposal_is_refused_with_a_reason_or_withdrawn_by_whoever_made_it(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        first, second = [(await scene.propose(reason=f"ticket {no}")).proposal_no for no in range(2)]
        assert "reason" in await refusal(proposals.refuse(scene.conn, first, BOB, 2000, " "))
        no = await proposals.refuse(scene.conn, first, BOB, 2000, "no such ticket")
        assert (no.state, no.outcome, no.entry_id) == ("refused", "no such ticket", None)
        assert "Only operator:ann" in await refusal(proposals.withdraw(scene.conn, second, BOB, 2000))
        back = await proposals.withdraw(scene.conn, second, "cli:ann", 2000)
        assert (back.state, back.outcome) == ("withdrawn", None)
        for number in (first, second):
            assert "can't be carried out" in await refusal(proposals.carry_out(scene.conn, scene.ask, number))
        assert await scene.kfb_units() == FUNDS

    run_story(database_url, story)


def test_what_the_book_refuses_has_failed_and_stays_so(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose(-FUNDS - 1)).proposal_no
        failed = await proposals.accept(scene.conn, scene.ask, no, BOB, 2000, roles=ROLES)
        assert (failed.state, failed.entry_id) == ("failed", None)
        assert failed.outcome == "amount: more than the available balance"
        await scene.shop.ask(scene.writer, Adjust(KFB, COIN, "more", "x", None))
        assert await proposals.carry_out(scene.conn, scene.ask, no) == failed
        assert await scene.entries() == []

    run_story(database_url, story)


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
        done = [await proposals.carry_out(scene.conn, scene.ask, no) for _ in range(2)]
        assert done[0] == done[1]
        assert [done[0].entry_id] == await scene.entries()
        assert await scene.kfb_units() == FUNDS + 5 * COIN
        assert await proposals.list_unfinished(scene.conn, now_ms=later_ms) == []

    run_story(database_url, story)


def test_the_workers_finish_what_was_accepted_and_left(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        await proposals.take(scene.conn, no, BOB, 2000, roles=ROLES)
        finish = make_maintenance_tasks(Base(Settings(), database_url, Keyring(bytes(32))), scene.writer)[
            "proposals"
        ]
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
        finish = make_maintenance_tasks(Base(Settings(), database_url, Keyring(bytes(32))), lame)["proposals"]
        with pytest.raises(ExceptionGroup, match="proposals"):
            await finish(scene.conn, 2001 + proposals.UNFINISHED_AFTER_MS)
        await lame.close()
        assert len(await scene.entries()) == 1
        (left,) = await proposals.list_unfinished(scene.conn, now_ms=2001 + proposals.UNFINISHED_AFTER_MS)
        assert left.proposal_no == stuck

    run_story(database_url, story)


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
        assert (await proposals.carry_out(scene.conn, scene.ask, no)).entry_id is not None

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


def test_an_acceptance_within_a_transaction_is_a_mistake_of_ours(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose()).proposal_no
        async with scene.conn.transaction():
            with pytest.raises(RuntimeError):
                await proposals.accept(scene.conn, scene.ask, no, BOB, 2000, roles=ROLES)
        assert scene.asked == []
        with pytest.raises(TypeError):
            await proposals.note_outcome(
                scene.conn, await proposals.take(scene.conn, no, BOB, 1, roles=ROLES), Balances(0, 0)
            )

    run_story(database_url, story)


NEVER: list[tuple[dict[str, Any], str]] = [
    ({"units": 0}, "amount"),
    ({"units": MAX_BALANCE_UNITS + 1}, "amount"),
    ({"currency": "EUR"}, "currency"),
    ({"reason": " \t"}, "reason"),
    ({"reason": "x" * 501}, "reason"),
    ({"reason": "two\nlines"}, "reason"),
    ({"ext_user_id": ""}, "extUserId"),
    ({"ext_user_id": "x" * 21}, "extUserId"),
    ({"proposed_by": "operator: "}, "name"),
]


def test_what_could_never_be_carried_out_is_not_proposed(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        for change, word in NEVER:
            assert word in await refusal(scene.propose(**change))
        assert await proposals.list_open(scene.conn) == []

    run_story(database_url, story)


def test_a_merchant_with_usdt_alone_is_credited_nothing_else(database_url: str) -> None:
    async def scenario() -> None:
        shop = await open_merchant(database_url)
        merchant_id = shop.merchant.merchant_id
        async with await connect(database_url) as conn:
            keyring = Keyring(bytes(range(32)))
            await store.change_settings(conn, keyring, merchant_id, {"currency-mode": "USDT"})
            for named, currency in ((merchant_id, KFB), (999, USDT)):
                with pytest.raises(ProposalRefused):
                    await proposals.propose(conn, named, currency, COIN, "r", proposed_by=ANN, at_ms=1)
            made = await proposals.propose(conn, merchant_id, USDT, COIN, "r", proposed_by=ANN, at_ms=1)
            assert (made.state, made.signed_units) == ("open", COIN)

    run(scenario())


def test_lists_go_page_by_page(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        numbers = [(await scene.propose(reason=f"ticket {no}")).proposal_no for no in range(5)]

        def given(found: list[Proposal]) -> list[int]:
            return [proposal.proposal_no for proposal in found]

        assert given(await proposals.list_open(scene.conn, limit=2)) == numbers[:2]
        assert given(await proposals.list_open(scene.conn, after_no=numbers[1])) == numbers[2:]
        for number in numbers[:4]:
            await proposals.refuse(scene.conn, number, BOB, 2000, "no")
        newest = list(reversed(numbers[:4]))
        assert given(await proposals.list_decided(scene.conn, limit=3)) == newest[:3]
        mine = scene.shop.merchant_id
        found = await proposals.list_decided(scene.conn, merchant_id=mine, before_no=newest[2])
        assert given(found) == newest[3:]
        assert await proposals.list_decided(scene.conn, merchant_id=mine + 1) == []
        for wrong in (0, 201):
            with pytest.raises(ValueError, match="page"):
                await proposals.list_open(scene.conn, limit=wrong)

    run_story(database_url, story)


@pytest.mark.parametrize("since", PROPOSER_CHANGES)
def test_an_adjustment_is_not_accepted_when_its_proposer_may_no_longer_propose(
    database_url: str, since: LiteralString
) -> None:
    async def story(scene: ProposalScene) -> None:
        await scene.conn.execute(
            "insert into operator (name, role, password_hash, created_ms)"
            " values ('ann', 'owner', '$argon2id$', 0)"
        )
        proposed = await scene.propose()
        await scene.conn.execute(since)
        late = proposals.accept(scene.conn, scene.ask, proposed.proposal_no, BOB, 9000, roles=ROLES)
        assert await refusal(late) == ProposalRefusal.PROPOSER_CHANGED.value
        assert scene.asked == []
        assert await proposals.show(scene.conn, proposed.proposal_no) == proposed, "it can still be refused"

    run_story(database_url, story)


def test_a_double_click_proposes_one_adjustment(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        first = await scene.propose(lasts_ms=1000)
        assert await refusal(scene.propose(at_ms=1001)) == ProposalRefusal.PROPOSED_ALREADY.value
        for more in (
            {"reason": "ticket 13"},
            {"units": 6 * COIN},
            {"ext_user_id": ALICE},
            {"currency": USDT},
        ):
            await scene.propose(**more)
        assert first.expires_ms is not None
        await scene.propose(at_ms=first.expires_ms + 1)

    run_story(database_url, story)
