"""Changes that one person proposes and another carries out: once, and only while they still fit."""

import asyncio
from typing import LiteralString

import pytest
from psycopg import errors
from tests.approvals.change_scene import (
    ANN,
    BOB,
    FORBIDDEN,
    RENAME,
    ChangeScene,
    read_name,
    run_story,
    write_name,
)
from tests.approvals.proposal_scene import refusal
from tests.approvals.proposer_changes import PROPOSER_CHANGES

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.changes import Kind, ProposedChange
from merchant_wallet.approvals.decisions import Person, ProposalRefusal, ProposalRefused
from merchant_wallet.audit import records as audit
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import HOUR_MS


def test_what_one_proposes_another_carries_out_with_its_audit_entry(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        proposed = await scene.propose()
        assert await scene.name() == "Shop"
        assert await changes.list_open(scene.conn, at_ms=2000) == [proposed]
        done = await scene.accept(RENAME, proposed.proposal_no, person=BOB, at_ms=2000)
        assert await scene.name() == "Bazaar"
        assert (done.change.state, done.change.decided_by, done.change.decided_ms) == (
            "accepted",
            "operator:bob",
            2000,
        )
        assert done.shown == "renamed at 2000"
        assert "renamed" not in repr(done)
        assert await changes.list_open(scene.conn, at_ms=2000) == []
        assert await changes.list_decided(scene.conn, at_ms=2000) == [done.change]
        told, asked = await audit.list_entries(scene.conn)
        assert (told.actor, told.action, told.source) == ("operator:bob", "merchant.rename", "192.0.2.2")
        assert told.before == {"name": "Shop"}
        assert told.after == {
            "name": "Bazaar",
            "proposalNo": proposed.proposal_no,
            "proposedBy": "operator:ann",
            "reason": "they moved",
        }
        assert (asked.actor, asked.action, asked.at_ms) == ("operator:ann", "merchant.rename.propose", 1000)
        assert asked.before == {"name": "Shop"}
        assert asked.after == {"name": "Bazaar", "proposalNo": proposed.proposal_no, "reason": "they moved"}

    run_story(database_url, story)


def test_a_decision_by_a_clock_that_is_behind_is_of_the_moment_of_the_proposal(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        first, second = [(await scene.propose(name)).proposal_no for name in ("Bazaar", "Market")]
        no = await changes.refuse(scene.conn, second, "not now", person=BOB, at_ms=999)
        done = await scene.accept(RENAME, first, person=BOB, at_ms=999)
        assert (no.decided_ms, done.change.state, done.change.decided_ms) == (1000, "accepted", 1000)

    run_story(database_url, story)


@pytest.mark.parametrize("actor", ["operator:ann", "cli:ann", "operator:Ann"])
def test_nobody_carries_out_what_that_person_proposed(database_url: str, actor: str) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose()).proposal_no
        same = Person(actor, "192.0.2.9")
        refused = await refusal(scene.accept(RENAME, number, person=same, at_ms=2000))
        assert refused == ProposalRefusal.OWN.value
        assert await scene.name() == "Shop"
        statement = "update proposal set state = 'accepted', decided_by = %s, decided_ms = 2000"
        with pytest.raises(errors.CheckViolation):
            await scene.conn.execute(statement, [actor])

    run_story(database_url, story)


def test_a_word_that_does_not_count_yet_neither_proposes_nor_accepts_but_may_refuse(
    database_url: str,
) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose()).proposal_no
        new = Person("operator:eve", "192.0.2.3", eligible_ms=2001)
        assert await refusal(scene.propose(person=new, at_ms=2000)) == ProposalRefusal.NOT_YET.value
        early = scene.accept(RENAME, number, person=new, at_ms=2000)
        assert await refusal(early) == ProposalRefusal.NOT_YET.value
        accepted = "state = 'accepted', decided_by = 'operator:eve', decided_ms = 2000"
        for column in ("proposer_eligible_ms", "decider_eligible_ms"):
            with pytest.raises(errors.CheckViolation):
                await scene.conn.execute(f"update proposal set {accepted}, {column} = 2001")
        refused = await changes.refuse(scene.conn, number, "unknown to us", person=new, at_ms=2000)
        assert (refused.state, refused.outcome) == ("refused", "unknown to us")
        again = (await scene.propose()).proposal_no
        done = await scene.accept(RENAME, again, person=new, at_ms=2001)
        assert done.change.state == "accepted"

    run_story(database_url, story)


def test_a_proposal_fails_when_its_value_was_changed_meanwhile(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose()).proposal_no
        await scene.conn.execute("update merchant set name = 'Market'")
        failed = await scene.accept(RENAME, number, person=BOB, at_ms=2000)
        assert (failed.change.state, failed.change.outcome) == ("failed", changes.STALE)
        assert await scene.name() == "Market"
        assert (await scene.log())[0] == ("operator:bob", "merchant.rename.fail")
        late = scene.accept(RENAME, number, person=BOB, at_ms=3000)
        assert "decided already: failed" in await refusal(late)

    run_story(database_url, story)


def test_what_its_own_rule_refuses_is_undone_and_said(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose(FORBIDDEN)).proposal_no
        failed = await scene.accept(RENAME, number, person=BOB, at_ms=2000)
        assert (failed.change.state, failed.change.outcome) == ("failed", "No merchant has this name.")
        assert await scene.name() == "Shop"

    run_story(database_url, story)


def test_after_its_deadline_nobody_carries_it_out(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        made = await scene.propose()
        last_ms = 1000 + HOUR_MS
        assert made.expires_ms == last_ms
        assert await changes.list_open(scene.conn, at_ms=last_ms) == [made]
        assert await changes.list_open(scene.conn, at_ms=last_ms + 1) == []
        assert await changes.list_decided(scene.conn, at_ms=last_ms + 1) == [made]
        late = scene.accept(RENAME, made.proposal_no, person=BOB, at_ms=last_ms + 1)
        assert "expired" in await refusal(late)
        statement = "update proposal set state = 'accepted', decided_by = 'operator:bob', decided_ms = %s"
        with pytest.raises(errors.CheckViolation):
            await scene.conn.execute(statement, [last_ms + 1])
        assert await scene.name() == "Shop"

    run_story(database_url, story)


def test_a_proposal_is_refused_with_a_reason_or_withdrawn_by_its_maker(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        first, second = [(await scene.propose(name)).proposal_no for name in ("Bazaar", "Market")]
        blank = changes.refuse(scene.conn, first, " ", person=BOB, at_ms=2000)
        assert "reason" in await refusal(blank)
        no = await changes.refuse(scene.conn, first, "not now", person=BOB, at_ms=2000)
        assert (no.state, no.outcome) == ("refused", "not now")
        foreign = changes.withdraw(scene.conn, second, person=BOB, at_ms=2000)
        assert "Only operator:ann" in await refusal(foreign)
        back = await changes.withdraw(scene.conn, second, person=Person("cli:ann", "terminal"), at_ms=2000)
        assert (back.state, back.outcome) == ("withdrawn", None)
        for number in (first, second):
            late = scene.accept(RENAME, number, person=BOB, at_ms=3000)
            assert "decided already" in await refusal(late)
        assert [action for _, action in await scene.log()][:2] == [
            "merchant.rename.withdraw",
            "merchant.rename.refuse",
        ]

    run_story(database_url, story)


def test_of_many_who_accept_at_once_one_does(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose()).proposal_no

        async def accept(name: str) -> str:
            async with await connect(database_url) as conn:
                person = Person(f"operator:{name}", "192.0.2.4")
                try:
                    done = await changes.accept(
                        conn, RENAME, number, person=person, at_ms=2000, roles=["operator"]
                    )
                except ProposalRefused:
                    return "refused"
                return done.change.state

        answers = await asyncio.gather(*(accept(f"o{number}") for number in range(5)))
        assert sorted(answers) == ["accepted", *["refused"] * 4]
        assert [action for _, action in await scene.log()].count("merchant.rename") == 1

    run_story(database_url, story)


def test_what_changes_nothing_or_names_a_secret_is_not_proposed(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        assert "already set" in await refusal(scene.propose("Shop"))
        assert "reason" in await refusal(scene.propose(reason=""))
        assert "name" in await refusal(scene.propose(person=Person("operator: ", "x")))
        with pytest.raises(audit.FactsRefused):
            await scene.propose(before={"password": "x"})
        assert await changes.list_open(scene.conn, at_ms=2000) == []
        assert await scene.log() == []
        assert "no proposal 99" in await refusal(scene.accept(RENAME, 99, person=BOB, at_ms=2000))

    run_story(database_url, story)


def test_a_proposal_of_one_kind_is_not_carried_out_as_another(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        number = (await scene.propose()).proposal_no
        other = Kind("merchant.paint", read_name, write_name)
        refused = await refusal(scene.accept(other, number, person=BOB, at_ms=2000))
        assert "another kind" in refused
        assert await scene.name() == "Shop"

    run_story(database_url, story)


def test_open_ones_are_found_by_kind_and_subject(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        made = await scene.propose()

        async def find(kind: str, subject: str) -> list[ProposedChange]:
            return await changes.list_open(scene.conn, at_ms=2000, kind=kind, subject=subject)

        assert await find(RENAME.name, made.subject) == [made]
        assert await find(RENAME.name, "merchant 9") == []
        assert await find("rate.set", made.subject) == []
        assert await changes.show(scene.conn, made.proposal_no) == made
        assert await changes.show(scene.conn, 2**70) is None

    run_story(database_url, story)


@pytest.mark.parametrize("since", PROPOSER_CHANGES)
def test_a_proposal_fails_when_its_proposer_may_no_longer_propose(
    database_url: str, since: LiteralString
) -> None:
    async def story(scene: ChangeScene) -> None:
        await scene.hire("ann")
        number = (await scene.propose()).proposal_no
        await scene.conn.execute(since)
        failed = await scene.accept(RENAME, number, person=BOB, at_ms=9000)
        assert (failed.change.state, failed.change.outcome) == (
            "failed",
            ProposalRefusal.PROPOSER_CHANGED.value,
        )
        assert await scene.name() == "Shop"
        assert (await scene.log())[0] == ("operator:bob", "merchant.rename.fail")

    run_story(database_url, story)


@pytest.mark.parametrize(
    "since",
    [
        "update operator set status = 'disabled' where name = 'bob'",
        "update operator set role = 'auditor' where name = 'bob'",
        "insert into operator_wait values ('bob', 2001, 5000, 'reset')",
    ],
)
def test_who_lost_the_right_while_waiting_for_the_lock_accepts_nothing(
    database_url: str, since: LiteralString
) -> None:
    async def story(scene: ChangeScene) -> None:
        await scene.hire("bob")
        number = (await scene.propose()).proposal_no
        # The page looked at the rights of Bob before, and his account was changed since.
        async with await connect(database_url) as holder:
            await holder.execute("begin")
            await holder.execute("select from proposal for update")
            accepting = asyncio.create_task(scene.accept(RENAME, number, person=BOB, at_ms=2000))
            await asyncio.sleep(0.2)
            await holder.execute(since)
            await holder.execute("commit")
        with pytest.raises(ProposalRefused, match="has lost the right"):
            await accepting
        assert await scene.name() == "Shop"
        assert await changes.show(scene.conn, number) is not None
        assert (await scene.log())[0] == ("operator:ann", "merchant.rename.propose")

    run_story(database_url, story)


def test_a_proposal_outlives_the_wait_that_its_proposer_had_before_it(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        await scene.hire("ann")
        await scene.conn.execute("insert into operator_wait values ('ann', 500, 999, 'created')")
        number = (await scene.propose()).proposal_no
        done = await scene.accept(RENAME, number, person=BOB, at_ms=2000)
        assert done.change.state == "accepted"

    run_story(database_url, story)


def test_at_the_terminal_the_role_at_the_console_takes_nothing_away_but_a_disabled_person_counts_no_more(
    database_url: str,
) -> None:
    async def story(scene: ChangeScene) -> None:
        await scene.hire("ann", "auditor")
        shell = Person("cli:ann", "terminal")
        first = (await scene.propose(person=shell)).proposal_no
        done = await scene.accept(RENAME, first, person=BOB, at_ms=2000)
        assert done.change.state == "accepted"
        second = (await scene.propose("Market", person=shell, before={"name": "Bazaar"})).proposal_no
        await scene.conn.execute("update operator set status = 'disabled'")
        failed = await scene.accept(RENAME, second, person=BOB, at_ms=2000)
        assert failed.change.outcome == ProposalRefusal.PROPOSER_CHANGED.value

    run_story(database_url, story)


def test_the_same_is_not_proposed_twice_also_not_at_once(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        async def propose() -> str:
            async with await connect(database_url) as conn:
                try:
                    await ChangeScene(conn, scene.merchant_id).propose()
                except ProposalRefused as refused:
                    return str(refused)
                return "proposed"

        answers = await asyncio.gather(*(propose() for _ in range(4)))
        assert sorted(answers) == sorted(["proposed", *[ProposalRefusal.PROPOSED_ALREADY.value] * 3])
        (first,) = await changes.list_open(scene.conn, at_ms=2000)
        await scene.propose("Market")
        await changes.withdraw(scene.conn, first.proposal_no, person=ANN, at_ms=2000)
        again = await scene.propose(at_ms=3000)
        await scene.propose(at_ms=3001 + HOUR_MS)
        assert again.expires_ms == 3000 + HOUR_MS, "what has expired is in nobody's way"

    run_story(database_url, story)


def test_what_was_carried_out_once_is_not_carried_out_again_when_the_value_is_back(database_url: str) -> None:
    async def story(scene: ChangeScene) -> None:
        twice = [(await scene.propose(at_ms=at_ms)).proposal_no for at_ms in (1000, 1001 + HOUR_MS)]
        await scene.conn.execute("update proposal set expires_ms = %s", [9 * HOUR_MS])
        await scene.accept(RENAME, twice[0], person=BOB, at_ms=2 * HOUR_MS)
        await scene.conn.execute("update merchant set name = 'Shop'")
        failed = await scene.accept(RENAME, twice[1], person=BOB, at_ms=3 * HOUR_MS)
        assert failed.change.outcome == changes.STALE
        assert await scene.name() == "Shop"
        anew = (await scene.propose(at_ms=3 * HOUR_MS)).proposal_no
        done = await scene.accept(RENAME, anew, person=BOB, at_ms=3 * HOUR_MS)
        assert done.change.state == "accepted", "what is proposed since then is"

    run_story(database_url, story)
