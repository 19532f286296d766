"""One result of `doctor`'s checks, and the queries that the checks run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `advice` says what to do, None if all is well. `hint` says what could be
    better.
    """

    name: str
    text: str
    advice: str | None = None
    hint: str | None = None

    @property
    def word(self) -> str:
        """The result in one word."""
        return "wrong" if self.advice is not None else "hint" if self.hint is not None else "ok"


async def fetch(conn: Any, query: str) -> list[Any]:
    """The rows of one of `doctor`'s queries."""
    from merchant_wallet.base.db import Queries

    queries = Queries(Path(__file__).with_name("doctor.sql"))
    rows: list[Any] = await (await conn.execute(queries[query].text)).fetchall()
    return rows
