"""What workers report of things that only they can see: nodes, the signer, hot wallets, checkpoints, mail,
and the pages' certificate.

Rules:
- A thing has one report, the newest. A page shows it with its age.
- A report contains no secret. A node is named without the key in its URL.
- Nothing is decided by a report. It is for people.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.base.db import Queries

QUERIES: Final = Queries(Path(__file__).with_name("reports.sql"))

NODE: Final = "node"
SIGNER: Final = "signer"
HOT_WALLET: Final = "hot wallet"
CHAIN_SETUP: Final = "chain set-up"
CHECKPOINTS: Final = "checkpoints"
MAIL: Final = "mail"
CERTIFICATE: Final = "certificate"


class Report(msgspec.Struct, frozen=True):
    """The newest report about one thing, by a worker, at a time in milliseconds."""

    topic: str
    subject: str
    report: dict[str, Any]
    worker: str
    reported_ms: int


async def store_reports(
    conn: AsyncConnection[Any],
    topic: str,
    reports: Mapping[str, Mapping[str, Any] | None],
    worker: str,
    now_ms: int,
) -> None:
    """Store the reports of a topic, by their things. None keeps the last report; other things are dropped."""
    async with conn.transaction():
        for subject, report in reports.items():
            if report is None:
                continue
            values = {
                "topic": topic,
                "subject": subject,
                "report": Jsonb(dict(report)),
                "worker": worker,
                "now_ms": now_ms,
            }
            await conn.execute(QUERIES["store"].text, values)
        await conn.execute(QUERIES["drop_others"].text, {"topic": topic, "subjects": list(reports)})


async def list_reports(conn: AsyncConnection[Any]) -> list[Report]:
    """All reports."""
    cursor = await conn.execute(QUERIES["list"].text)
    return [Report(*row) for row in await cursor.fetchall()]
