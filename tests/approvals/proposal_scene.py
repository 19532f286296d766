"""A shop in which adjustments are proposed and accepted."""

from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from psycopg import AsyncConnection
from tests.crash.shop import COIN, Shop, open_shop, run

from merchant_wallet.approvals import proposals
from merchant_wallet.approvals.decisions import ProposalRefused
from merchant_wallet.approvals.proposals import Proposal
from merchant_wallet.base.currencies import KFB
from merchant_wallet.base.db import connect
from merchant_wallet.book.commands import Command
from merchant_wallet.book.outcomes import Outcome
from merchant_wallet.book.writer import Writer

ANN, BOB = "operator:ann", "operator:bob"
ROLES = ("owner", "operator")


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
    run_in_scene(open_scene(url), story)


def run_in_scene(opened: AbstractAsyncContextManager[Any], story: Any) -> None:
    """Run a scenario in a scene of its own."""

    async def scenario() -> None:
        async with opened as scene:
            await story(scene)

    run(scenario())


async def refusal(decision: Coroutine[Any, Any, object]) -> str:
    """The sentence of a refused decision."""
    with pytest.raises(ProposalRefused) as caught:
        await decision
    return str(caught.value)
