"""What workers write when they screen: screenings that begin, questions and answers.

Rules:
- A question is stored before it is asked, an answer before it is acted on.
- As in `store`, a write that comes too late raises `Overtaken`. Statements are in `asking.sql`.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from merchant_wallet.base.db import Queries
from merchant_wallet.screening import store
from merchant_wallet.screening.facts import Facts, PayoutFacts, build_body
from merchant_wallet.screening.hook import Answer
from merchant_wallet.screening.payout_rules import Cleared, PayoutRules
from merchant_wallet.screening.store import Connection, Screening
from merchant_wallet.screening.verdicts import Reason

QUERIES: Final = Queries(Path(__file__).with_name("asking.sql"))
RULE_COLUMNS: Final = 5
"""Columns of the rules, before those of a screening."""


class Asked(msgspec.Struct, frozen=True):
    """A question as it is sent."""

    request_id: str
    body: str


async def read_order(
    home: Connection, merchant_id: int, order_id: int
) -> tuple[PayoutRules, Screening | None]:
    """A merchant's rules and the screening of an order. Raises LookupError without such a merchant."""
    values = {"merchant_id": merchant_id, "order_id": order_id}
    row = await (await home.execute(QUERIES["read_order"].text, values)).fetchone()
    if row is None:
        raise LookupError(f"there is no merchant {merchant_id}")
    return PayoutRules(*row[:RULE_COLUMNS]), store.make_screening(row[RULE_COLUMNS:])


async def begin(home: Connection, facts: Facts, now_ms: int) -> Screening:
    """Begin a screening, or another round if the facts are others than before. Raises Overtaken."""
    found = await store.find(home, facts)
    if found is not None:
        return found if found.facts == facts.text() else await begin_round(home, found, facts, now_ms)
    subject: dict[str, object] = {"order_id": None, "tx_hash": None, "log_index": None}
    if isinstance(facts, PayoutFacts):
        subject["order_id"] = facts.order_id
    else:
        subject |= {"tx_hash": facts.tx_hash, "log_index": facts.log_index}
    values = {**_make_values(facts, now_ms), **subject, "chain": facts.chain}
    return store.require(await store.fetch_one(home, "begin", values, QUERIES))


async def begin_round(home: Connection, found: Screening, facts: Facts, now_ms: int) -> Screening:
    """Begin another round. Raises Overtaken."""
    values = {**_make_values(facts, now_ms), **store.make_key(found)}
    return store.require(await store.fetch_one(home, "begin_round", values))


async def note_reasons(home: Connection, found: Screening, reasons: Sequence[Reason], now_ms: int) -> None:
    """Store what was found out so far about a screening that stays open."""
    values = {**store.make_key(found), "reasons": store.encode(reasons), "now_ms": now_ms}
    await home.execute(QUERIES["note_reasons"].text, values)


async def begin_question(home: Connection, found: Screening, now_ms: int) -> Asked | None:
    """Store the question of this round before it is asked. None if it was answered before."""
    request_id = f"scr_{secrets.token_hex(16)}"
    body = build_body(request_id, found.facts).decode()
    values = {**store.make_key(found), "request_id": request_id, "body": body, "now_ms": now_ms}
    row = await (await home.execute(QUERIES["begin_question"].text, values)).fetchone()
    return None if row is None else Asked(*row)


async def answer_question(home: Connection, found: Screening, answer: Answer, now_ms: int) -> bool:
    """Store the answer before anything acts on it. False if another worker stored one before."""
    values = {**store.make_key(found), **msgspec.structs.asdict(answer), "now_ms": now_ms}
    values["verdict"] = answer.verdict.value
    return (await home.execute(QUERIES["answer_question"].text, values)).rowcount == 1


async def fail_question(home: Connection, found: Screening, error: str) -> bool:
    """Store why there is no answer yet. False if another worker has stored one."""
    values = {**store.make_key(found), "error": error}
    return (await home.execute(QUERIES["fail_question"].text, values)).rowcount == 1


async def sum_cleared(home: Connection, found: Screening, since_ms: int) -> Cleared:
    """What of the merchant's orders was cleared since then, without this one.

    It locks out the merchant's other orders until the end of the transaction.
    """
    values = {"merchant_id": found.merchant_id, "since_ms": since_ms, "screening_no": found.screening_no}
    await home.execute(QUERIES["lock_merchant"].text, values)
    row = await (await home.execute(QUERIES["sum_cleared"].text, values)).fetchone()
    assert row is not None, "a sum has a row"
    return Cleared(*row)


async def was_paid(cell: Connection, merchant_id: int, address: str) -> bool:
    """Whether the merchant has paid an address before. The address has its written form."""
    values = {"merchant_id": merchant_id, "address": address.lower()}
    row = await (await cell.execute(QUERIES["was_paid"].text, values)).fetchone()
    return row == (True,)


async def list_unapplied(home: Connection, cell_id: int, *, limit: int) -> list[Screening]:
    """People's decisions about one cell's orders and deposits that are not carried on yet."""
    return await store.fetch_many(home, "list_unapplied", {"cell_id": cell_id, "limit": limit}, QUERIES)


async def mark_applied(home: Connection, found: Screening, now_ms: int) -> None:
    """Note that a decision was carried on."""
    await home.execute(QUERIES["mark_applied"].text, {**store.make_key(found), "now_ms": now_ms})


def _make_values(facts: Facts, now_ms: int) -> dict[str, object]:
    return {
        "merchant_id": facts.merchant_id,
        "address": facts.address,
        "amount": facts.amount_units,
        "facts": facts.text(),
        "now_ms": now_ms,
    }
