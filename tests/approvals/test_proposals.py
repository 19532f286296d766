"""Adjustments by two people: one proposes, another accepts, and the book moves the money once."""

import asyncio
from typing import Any, LiteralString

import pytest
from psycopg import errors
from tests.approvals.proposal_scene import ANN, BOB, ROLES, ProposalScene, refusal, run_story
from tests.approvals.proposer_changes import PROPOSER_CHANGES
from tests.crash.shop import ALICE, COIN, FUNDS, open_merchant, run

from merchant_wallet.approvals import proposals
from merchant_wallet.approvals.decisions import ProposalRefusal, ProposalRefused
from merchant_wallet.approvals.proposals import Proposal
from merchant_wallet.base.currencies import KFB, USDT
from merchant_wallet.base.db import connect
from merchant_wallet.base.money import MAX_BALANCE_UNITS
from merchant_wallet.book.commands import Adjust
from merchant_wallet.book.outcomes import Balances
from merchant_wallet.book.rules.operators import SAME_PERSON
from merchant_wallet.merchants import store
from merchant_wallet.merchants.keys import Keyring


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
        assert await proposals.carry_out(scene.conn, scene.ask, proposed.proposal_no, roles=ROLES) == accepted
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
            assert "can't be carried out" in await refusal(
                proposals.carry_out(scene.conn, scene.ask, number, roles=ROLES)
            )
        assert await scene.kfb_units() == FUNDS

    run_story(database_url, story)


def test_what_the_book_refuses_has_failed_and_stays_so(database_url: str) -> None:
    async def story(scene: ProposalScene) -> None:
        no = (await scene.propose(-FUNDS - 1)).proposal_no
        failed = await proposals.accept(scene.conn, scene.ask, no, BOB, 2000, roles=ROLES)
        assert (failed.state, failed.entry_id) == ("failed", None)
        assert failed.outcome == "amount: more than the available balance"
        await scene.shop.ask(scene.writer, Adjust(KFB, COIN, "more", "x", None))
        assert await proposals.carry_out(scene.conn, scene.ask, no, roles=ROLES) == failed
        assert await scene.entries() == []

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
        for wrong in (0, 20_001):
            with pytest.raises(ValueError, match="at once"):
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
