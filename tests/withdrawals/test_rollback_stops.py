"""While evidence of a rollback is open, nothing is claimed, signed, sent, settled, cancelled or expired."""

from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.withdrawals.conftest import START_MS
from tests.withdrawals.test_nonces import OTHER, finish, leave_gap

from merchant_wallet.audit.rollback.evidence import (
    Kind,
    RollbackEvidence,
    Subject,
    has_open_evidence,
    list_evidence,
    record_evidence,
)
from merchant_wallet.chains.protocol import ProvenUnpaid, Unpayable
from merchant_wallet.withdrawals.payouts import claim, read_signed

if TYPE_CHECKING:
    from tests.withdrawals.conftest import InShop, Shop

COIN = 1_000_000
BEHIND = RollbackEvidence(1001, "book", "behind", "the checkpoint saw 9 entries, the journal has 3", START_MS)


async def accept(shop: "Shop") -> None:
    await shop.connection.execute("delete from rollback_evidence")


def test_no_order_is_claimed_while_a_sign_stands_and_all_are_paid_after_it(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        payer, order = shop.payer(chains=shop.fakes()), await shop.order()
        key = (1001, order.order_id)
        assert await record_evidence(shop.connection, [BEHIND]) == [BEHIND]
        assert await payer.start_due() == 0
        now = shop.clock.now_ms
        held = await claim(shop.connection, key, claimed_by="other", now_ms=now, until_ms=now + 1000)
        assert (held, await shop.rows("select fence, claimed_by from payout")) == (None, [(0, None)])
        await accept(shop)
        assert await finish(shop, payer, order) == [2]

    in_shop(scenario)


def test_what_is_signed_already_is_neither_sent_again_nor_settled(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        payer = shop.payer(chain)
        await shop.turn(payer)
        sent = list(chain.broadcasts)
        assert len(sent) == 1
        chain.verdict = chain.final()
        await record_evidence(shop.connection, [BEHIND])
        shop.clock.advance(120_000)
        await shop.turn(payer)
        assert (chain.broadcasts, await shop.status(order)) == (sent, 1)
        await accept(shop)
        shop.clock.advance(120_000)
        await shop.turn(payer)
        assert await shop.status(order) == 2

    in_shop(scenario)


def test_a_sign_in_the_last_moment_keeps_what_was_just_signed_from_being_sent(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(), await shop.order()
        chain.may_build.clear()
        payer = shop.payer(chain)
        await payer.start_due()
        await chain.building.wait()
        await record_evidence(shop.connection, [BEHIND])
        chain.may_build.set()
        await payer.finish()
        assert (await shop.status(order), chain.broadcasts) == (1, [])
        assert await read_signed(shop.connection, 1001, order.order_id) == []

    in_shop(scenario)


def test_an_order_is_not_given_up_on_a_proof_that_may_lack_what_was_lost(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        chain, order = shop.scripted(ProvenUnpaid("it was never mined")), await shop.order()
        chain.may_judge.clear()
        payer = shop.payer(chain)
        await payer.start_due()
        await chain.judging.wait()
        await record_evidence(shop.connection, [BEHIND])
        chain.may_judge.set()
        await payer.finish()
        assert await shop.status(order) == 1
        await accept(shop)
        shop.clock.advance(120_000)
        await shop.turn(payer)
        assert await shop.status(order) == 6

    in_shop(scenario)


def test_no_nonce_gap_is_cancelled_while_rollback_evidence_is_open(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        await leave_gap(shop, Unpayable(f"the token refuses {OTHER}"))
        gaps = shop.gaps(shop.fakes(), grace_ms=1000)
        shop.clock.advance(60_000)
        await record_evidence(shop.connection, [BEHIND])
        assert await gaps.cancel_gaps() == 0
        await accept(shop)
        assert await gaps.cancel_gaps() == 1

    in_shop(scenario)


def test_no_order_expires_while_a_sign_stands(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        order, expiry = await shop.order(200 * COIN), shop.expiry()
        shop.clock.advance(3_600_001)
        await record_evidence(shop.connection, [BEHIND])
        assert await expiry.expire_overdue() == 0
        await accept(shop)
        assert await expiry.expire_overdue() == 1
        assert await shop.status(order) == 5

    in_shop(scenario)


def test_signs_are_listed_oldest_first_and_the_first_cause_of_each_stays(in_shop: "InShop") -> None:
    async def scenario(shop: "Shop") -> None:
        assert (await list_evidence(shop.connection), await has_open_evidence(shop.connection)) == ([], False)
        audit = RollbackEvidence(0, "audit", "diverged", "another hash of entry 7", START_MS - 5)
        later = RollbackEvidence(1001, "book", "diverged", "another cause", START_MS + 9)
        assert await record_evidence(shop.connection, [BEHIND, audit]) == [BEHIND, audit]
        assert await record_evidence(shop.connection, [later]) == []
        assert await list_evidence(shop.connection) == [audit, BEHIND]
        assert await has_open_evidence(shop.connection)

    in_shop(scenario)


@pytest.mark.parametrize(
    ("merchant_id", "subject", "kind", "cause"),
    [
        (0, "book", "behind", "why"),
        (1001, "audit", "behind", "why"),
        (-1, "audit", "behind", "why"),
        (1001, "book", "older", "why"),
        (1001, "chain", "behind", "why"),
        (1001, "book", "behind", ""),
    ],
)
def test_the_database_takes_no_sign_of_another_form(
    in_shop: "InShop", merchant_id: int, subject: Subject, kind: Kind, cause: str
) -> None:
    async def scenario(shop: "Shop") -> None:
        with pytest.raises(psycopg.errors.CheckViolation):
            await record_evidence(
                shop.connection, [RollbackEvidence(merchant_id, subject, kind, cause, START_MS)]
            )

    in_shop(scenario)
