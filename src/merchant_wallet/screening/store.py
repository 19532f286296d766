"""Screenings in the database: one row for each order or deposit, one question for each round.

Rules:
- Screenings are in home, whatever cell has the merchant's book.
- Each write names the round and the state that was read. If either has changed, it changes nothing and raises
  `Overtaken`.
- What workers write is in `asking`. Statements are in `screening.sql`. All functions raise `psycopg.Error`.
  Times are milliseconds.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from merchant_wallet.base.db import Queries
from merchant_wallet.base.units import MAX_BIGINT
from merchant_wallet.screening.facts import Facts, PayoutFacts
from merchant_wallet.screening.screening_states import CLEARED, Event, State, allows, step
from merchant_wallet.screening.verdicts import Reason, Verdict

QUERIES: Final = Queries(Path(__file__).with_name("screening.sql"))
MAX_PAGE: Final = 200
COUNTED: Final = 1000

Connection = AsyncConnection[Any]


class Overtaken(Exception):
    """Somebody else has changed the screening meanwhile."""


class Screening(msgspec.Struct, frozen=True):
    """The screening of one order or one deposit. An order's has an `order_id`, a deposit's a `tx_hash`."""

    screening_no: int
    merchant_id: int
    order_id: int | None
    chain: str
    tx_hash: str | None
    log_index: int | None
    address: bytes
    amount_units: int
    facts: str
    state: State
    reasons: tuple[Reason, ...]
    round_no: int
    begun_ms: int
    changed_ms: int
    decided_by: str | None
    decided_ms: int | None
    proposal_no: int | None

    @property
    def is_order(self) -> bool:
        """Whether it is about an order, and not about a deposit."""
        return self.order_id is not None

    @property
    def is_cleared(self) -> bool:
        """Whether it may be paid or credited."""
        return self.state in CLEARED

    @property
    def waits_for_person(self) -> bool:
        """Whether a person must release or refuse it."""
        return self.state is State.HELD

    def allows(self, event: Event) -> bool:
        """Whether an event is possible now."""
        return allows(self.state, event, is_order=self.is_order)


class Question(msgspec.Struct, frozen=True):
    """What was asked in a round, and the answer if there is one."""

    round_no: int
    request_id: str
    body: str
    asked_ms: int
    attempts: int
    error: str | None
    answered_ms: int | None
    verdict: Verdict | None
    reason: str | None
    reference: str | None


async def find(home: Connection, facts: Facts) -> Screening | None:
    """The screening of an order or a deposit."""
    if isinstance(facts, PayoutFacts):
        return await find_order(home, facts.merchant_id, facts.order_id)
    return await find_deposit(home, facts.chain, facts.tx_hash, facts.log_index)


async def find_order(home: Connection, merchant_id: int, order_id: int) -> Screening | None:
    """The screening of an order."""
    return await fetch_one(home, "find_order", {"merchant_id": merchant_id, "order_id": order_id})


async def find_deposit(home: Connection, chain: str, tx_hash: str, log_index: int) -> Screening | None:
    """The screening of a deposit."""
    values = {"chain": chain, "tx_hash": tx_hash, "log_index": log_index}
    return await fetch_one(home, "find_deposit", values)


async def find_hold(home: Connection, chain: str, tx_hash: str, log_index: int) -> Screening | None:
    """The screening that holds or refuses a deposit, if one does."""
    found = await find_deposit(home, chain, tx_hash, log_index)
    return found if found is not None and found.state in (State.HELD, State.REFUSED) else None


async def find_one(home: Connection, screening_no: int, *, locked: bool = False) -> Screening | None:
    """A screening by its number. `locked`: until the end of the transaction."""
    name = "lock_one" if locked else "find_one"
    return await fetch_one(home, name, {"screening_no": min(screening_no, MAX_BIGINT)})


async def ask_again(home: Connection, found: Screening, now_ms: int) -> Screening:
    """Begin another round with the same facts. Raises Overtaken, IllegalStep."""
    step(found.state, Event.ASKED_AGAIN, is_order=found.is_order)
    values = {
        "facts": found.facts,
        "merchant_id": found.merchant_id,
        "address": found.address,
        "amount": found.amount_units,
        "now_ms": now_ms,
        **make_key(found),
    }
    return require(await fetch_one(home, "begin_round", values))


async def move(
    home: Connection,
    found: Screening,
    event: Event,
    reasons: Sequence[Reason],
    now_ms: int,
    *,
    decided_by: str | None = None,
    proposal_no: int | None = None,
) -> Screening:
    """Take one step. Raises Overtaken, IllegalStep."""
    state = step(found.state, event, is_order=found.is_order)
    values = {
        **make_key(found),
        "state": state.value,
        "reasons": encode(reasons),
        "is_cleared": state in CLEARED,
        "decided_by": decided_by,
        "proposal_no": proposal_no,
        "now_ms": now_ms,
    }
    return require(await fetch_one(home, "move", values))


async def list_questions(home: Connection, screening_no: int) -> list[Question]:
    """The questions of a screening, newest first."""
    rows = await home.execute(QUERIES["list_questions"].text, {"screening_no": screening_no})
    found = await rows.fetchall()
    return [_make_question(row) for row in found]


async def list_waiting(
    home: Connection,
    *,
    state: State | None = None,
    merchant_id: int | None = None,
    after_no: int = 0,
    limit: int = 50,
) -> list[Screening]:
    """Screenings that are open or held, oldest first."""
    values = {
        "state": state,
        "merchant_id": merchant_id,
        "after_no": after_no,
        "limit": min(limit, MAX_PAGE + 1),
    }
    return await fetch_many(home, "list_waiting", values)


async def list_all(
    home: Connection,
    *,
    state: State | None = None,
    merchant_id: int | None = None,
    before_no: int = MAX_BIGINT,
    limit: int = 50,
) -> list[Screening]:
    """All screenings, newest first."""
    values = {
        "state": state,
        "merchant_id": merchant_id,
        "before_no": before_no,
        "limit": min(limit, MAX_PAGE + 1),
    }
    return await fetch_many(home, "list_all", values)


async def count_held(home: Connection) -> tuple[int, int | None]:
    """How many wait for a person, up to `COUNTED`, and since when the oldest does."""
    row = await (await home.execute(QUERIES["count_held"].text, {"most": COUNTED})).fetchone()
    assert row is not None, "a count has a row"
    return int(row[0]), row[1]


def make_key(found: Screening) -> dict[str, object]:
    """The values that a write names."""
    return {
        "screening_no": found.screening_no,
        "round_no": found.round_no,
        "from_state": found.state.value,
    }


def encode(reasons: Sequence[Reason]) -> Jsonb:
    """Reasons as the database stores them."""
    return Jsonb(msgspec.to_builtins(list(reasons)))


def make_screening(row: Sequence[Any]) -> Screening | None:
    """The screening in the columns of a row; None if there is none."""
    if row[0] is None:
        return None
    values = dict(zip(Screening.__struct_fields__, row, strict=True))
    made = {
        "address": bytes(values["address"]),
        "state": State(values["state"]),
        "reasons": msgspec.convert(values["reasons"], tuple[Reason, ...]),
    }
    return Screening(**{**values, **made})


def _make_question(row: Sequence[Any]) -> Question:
    values = dict(zip(Question.__struct_fields__, row, strict=True))
    verdict = values["verdict"]
    return Question(**{**values, "verdict": None if verdict is None else Verdict(verdict)})


def require(found: Screening | None) -> Screening:
    """What a write returned. Raises Overtaken if it changed nothing."""
    if found is None:
        raise Overtaken("somebody else has changed the screening meanwhile")
    return found


async def read_last_question(home: Connection) -> tuple[int, int | None, str | None] | None:
    """When the provider was asked last, when it answered, and why it has not."""
    return await (await home.execute(QUERIES["read_last_question"].text)).fetchone()


async def fetch_many(
    home: Connection, name: str, values: Mapping[str, object], queries: Queries = QUERIES
) -> list[Screening]:
    """The screenings that a statement returns."""
    cursor = await home.execute(queries[name].text, values)
    return [found for row in await cursor.fetchall() if (found := make_screening(row)) is not None]


async def fetch_one(
    home: Connection, name: str, values: Mapping[str, object], queries: Queries = QUERIES
) -> Screening | None:
    """The screening that a statement returns."""
    found = await fetch_many(home, name, values, queries)
    return found[0] if found else None
