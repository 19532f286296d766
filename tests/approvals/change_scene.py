"""A merchant whose name two people change."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection
from tests.approvals.proposal_scene import run_in_scene
from tests.crash.shop import open_shop

from merchant_wallet.approvals import changes
from merchant_wallet.approvals.changes import Applied, ChangeRefused, Kind, ProposedChange
from merchant_wallet.approvals.decisions import Person
from merchant_wallet.audit import records as audit
from merchant_wallet.audit.records import Author
from merchant_wallet.audit.verify import verify
from merchant_wallet.base.db import connect
from merchant_wallet.base.units import HOUR_MS

ANN, BOB = Person("operator:ann", "192.0.2.1"), Person("operator:bob", "192.0.2.2")
FORBIDDEN = "nobody"


async def read_name(conn: AsyncConnection, change: ProposedChange) -> dict[str, Any]:
    """The merchant's name, read under its lock."""
    statement = "select name from merchant where merchant_id = %s for update"
    row = await (await conn.execute(statement, [change.merchant_id])).fetchone()
    assert row is not None
    return {"name": row[0]}


async def write_name(conn: AsyncConnection, change: ProposedChange, author: Author) -> Applied:
    """Renames the merchant, and records that. One name is refused."""
    statement = "update merchant set name = %s where merchant_id = %s"
    await conn.execute(statement, [change.after["name"], change.merchant_id])
    await author.record(
        conn,
        RENAME.name,
        change.subject,
        change.merchant_id,
        before=change.before,
        after=change.after,
    )
    if change.after["name"] == FORBIDDEN:
        raise ChangeRefused("No merchant has this name.")
    return Applied(shown=f"renamed at {author.at_ms}")


RENAME = Kind("merchant.rename", read_name, write_name)


class ChangeScene:
    """A merchant named Shop, and a connection to its database."""

    def __init__(self, conn: AsyncConnection, merchant_id: int) -> None:
        self.conn = conn
        self.merchant_id = merchant_id

    async def propose(
        self, name: str = "Bazaar", person: Person = ANN, at_ms: int = 1000, **more: Any
    ) -> ProposedChange:
        """Ann's proposal to rename the shop."""
        given = {"before": {"name": "Shop"}, "reason": "they moved", **more}
        return await changes.propose(
            self.conn,
            RENAME.name,
            f"merchant {self.merchant_id}",
            given["before"],
            {"name": name},
            given["reason"],
            person=person,
            at_ms=at_ms,
            lasts_ms=HOUR_MS,
            merchant_id=self.merchant_id,
        )

    async def accept(self, kind: Kind, proposal_no: int, *, person: Person, at_ms: int) -> changes.Decided:
        """A person's acceptance. Owners and operators may propose this kind."""
        return await changes.accept(
            self.conn, kind, proposal_no, person=person, at_ms=at_ms, roles=["owner", "operator"]
        )

    async def hire(self, name: str, role: str = "operator") -> None:
        """An operator with this name."""
        await self.conn.execute(
            "insert into operator (name, role, password_hash, created_ms) values (%s, %s, '$argon2id$', 0)",
            [name, role],
        )

    async def name(self) -> str:
        """The merchant's name."""
        row = await (await self.conn.execute("select name from merchant")).fetchone()
        assert row is not None
        return str(row[0])

    async def log(self) -> list[tuple[str, str]]:
        """Who did what, newest first."""
        return [(entry.actor, entry.action) for entry in await audit.list_entries(self.conn)]


@asynccontextmanager
async def open_scene(url: str) -> AsyncIterator[ChangeScene]:
    shop = await open_shop(url)
    async with await connect(url) as conn:
        await conn.execute("update merchant set name = 'Shop'")
        yield ChangeScene(conn, shop.merchant_id)
        assert (await verify(conn)).ok


def run_story(url: str, story: Any) -> None:
    """Run a scenario, then verify the audit log."""
    run_in_scene(open_scene(url), story)
